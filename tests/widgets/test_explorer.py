"""An explorer's Python half: settings, what doesn't fit, a student's function, a still picture."""

from __future__ import annotations

import re

import pytest
from traitlets import TraitError

from labs_lib.widgets import front
from labs_lib.widgets.explorer import Explorer
from labs_lib.widgets.knobs import choice, head_knobs, slider, steps, text_line, tick
from labs_lib.widgets.rules import group_rule

KNOBS = (
    *head_knobs(12, 768),
    slider("pull", 0.0, -2.0, 2.0, "how far", step=0.5),
    choice("who", [("nobody", "none"), ("head 1", 1)], "who is silent"),
    tick("causal", False, "no later key"),
    steps("step", 0, 9, "how far it is played"),
)


def draw(figure, **values):
    figure.add_subplot().bar(range(2), [values["n_head"], values["d_model"]])
    return f"{values['n_head']} heads"


def made(draw=draw, **options):
    return Explorer("heads", KNOBS, draw, script="head_split", **options)


def test_settings_are_attributes_and_the_sentence_follows_them():
    w = made()
    w.n_head = 8
    assert (w.n_head, w.values["n_head"], w.message) == (8, 8, "8 heads")
    w.set(n_head=16, d_model=1024, who=1, causal=True, pull=-1.5, step=9)
    assert w.values == {
        "n_head": 16, "d_model": 1024, "pull": -1.5, "who": 1, "causal": True, "step": 9,
    }  # fmt: skip


def test_all_that_the_browser_needs_is_in_its_state():
    state = made().get_state()
    wanted = {"n_head", "d_model", "pull", "who", "causal", "step", "knobs", "title", "own", "data"}
    assert wanted | {"_esm", "_css"} <= set(state)
    assert [knob["name"] for knob in state["knobs"]] == [knob.name for knob in KNOBS]


@pytest.mark.parametrize(
    ("name", "value"), [("n_head", 33), ("n_head", 0), ("n_head", "8"), ("who", 2), ("pull", 2.5)]
)
def test_a_value_that_the_control_can_not_show_is_refused(name, value):
    w = made()
    with pytest.raises(TraitError, match=name):
        w.set(**{name: value})
    assert w.values == made().values


def test_a_line_of_text_takes_any_text_and_nothing_else():
    w = Explorer("words", [text_line("text", "a b", "some words")], draw, script="induction")
    w.text = "张三, <b>\n"
    assert w.values == {"text": "张三, <b>\n"}
    with pytest.raises(TraitError, match="text"):
        w.text = 3


def test_a_first_value_beyond_the_edge_moves_the_edge():
    assert Explorer("wide", head_knobs(64, 4), draw, script="head_split").values == {
        "n_head": 64, "d_model": 4,
    }  # fmt: skip


def test_an_unknown_control_is_answered_with_the_known_ones():
    w = made()
    with pytest.raises(AttributeError, match="no control 'heads'; it has n_head, d_model"):
        w.set(heads=3)
    with pytest.raises(AttributeError, match="no control 'colour'"):
        _ = w.colour


def test_an_illegal_pair_is_explained_and_offered_its_neighbours():
    w = made()
    w.n_head = 7
    assert not w.legal and not w.failed
    said = (
        "Not allowed: d_model=768 can't be shared out evenly among n_head=7 heads; "
        "d_model=763 or 770 would do, or n_head=6 or 8."
    )
    assert w.message == said
    assert w.offers == (("d_model", 763), ("d_model", 770), ("n_head", 6), ("n_head", 8))
    w.set(**dict([w.offers[1]]))
    assert w.legal and w.offers == ()


def test_the_sentence_offers_nothing_that_a_control_does_not_take():
    w = Explorer("made", head_knobs(12, 770), draw, script="tour")
    w.set(n_head=32, d_model=1535)
    assert w.offers == (("d_model", 1504), ("d_model", 1536), ("n_head", 5))
    assert w.message.endswith("heads; d_model=1504 or 1536 would do, or n_head=5.")
    for name, value in w.offers:
        w.set(n_head=32, d_model=1535)
        w.set(**{name: value})
        assert w.legal


def test_a_follower_goes_along_until_it_goes_its_own_way():
    knobs = [*head_knobs(), slider("n_kv_head", 12, 1, 32, "heads of keys")]
    follow = {"n_kv_head": "n_head"}
    w = Explorer("kv", knobs, draw, script="ledger", follow=follow, rules=(group_rule,))
    w.n_head = 8
    assert w.n_kv_head == 8
    w.n_kv_head = 3
    assert not w.legal and w.offers == (("n_kv_head", 2), ("n_kv_head", 4))
    w.n_head = 6
    assert w.n_kv_head == 3 and w.legal
    w.set_state({"n_kv_head": 6})
    w.set_state({"n_head": 12})  # the browser moves followers by itself
    assert w.n_kv_head == 6


def test_an_error_while_drawing_is_the_sentence_and_the_next_setting_draws_again():
    def fragile(figure, **values):
        if values["n_head"] == 4:
            raise RuntimeError("four heads broke it")
        return draw(figure, **values)

    w = made(fragile)
    w.n_head = 4
    assert w.failed and w.message == "This setting raised RuntimeError: four heads broke it"
    assert w.picture.startswith(b"\x89PNG")
    w.n_head = 8
    assert not w.failed and w.message == "8 heads"


def test_a_students_function_answers_once_for_each_legal_setting():
    asked = []

    def ask(**values):
        asked.append(values["n_head"])
        if values["n_head"] == 4:
            raise ValueError("not with four")
        return None if values["causal"] else {"message": "yours"}

    w = made(ask=ask)
    assert w.own == {"message": "yours", "of": w.values}
    w.set(n_head=8, d_model=512)
    assert w.own["of"] == w.values
    w.n_head = 4
    assert w.own["failed"] and w.own["message"] == "This setting raised ValueError: not with four"
    w.causal = True
    w.set(n_head=16)
    assert w.own is None
    w.n_head = 7
    assert asked == [12, 8, 4, 4, 16] and w.own is None


def test_without_a_front_end_it_shows_a_picture_and_a_sentence():
    bundle, _ = made()._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert bundle["text/plain"].endswith(")\n12 heads")
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_its_text_is_equal_for_equal_settings_and_holds_no_address():
    assert repr(made()) == repr(made())
    assert "0x" not in repr(made())


def test_moves_draw_nothing_in_python_until_somebody_looks():
    drawn = []

    def counted(figure, **values):
        drawn.append(values["n_head"])
        return ""

    w = made(counted)
    for move in range(200):
        w.n_head = (6, 8)[move % 2]
    assert drawn == []
    assert w.message == "" and w.picture and w.figure and drawn == [8]


@pytest.mark.parametrize("name", [f.stem for f in front.FOLDER.glob("*.mjs")])
def test_the_front_takes_nothing_from_elsewhere(name):
    text = (front.FOLDER / f"{name}.mjs").read_text(encoding="utf-8")
    assert not re.search(r"^\s*import\b|import\(|https?:|fetch\(|XMLHttp|eval\(", text, re.M)
    assert ("export default explorer({" in text) == (name not in front.SHARED)


@pytest.mark.parametrize(
    "name", [f.stem for f in front.FOLDER.glob("*.mjs") if f.stem not in front.SHARED]
)
def test_parts_of_one_module_give_no_name_twice(name):
    names = re.findall(r"^(?:const|let|function|class) (\w+)", front.source(name), re.M)
    assert len(names) == len(set(names))
