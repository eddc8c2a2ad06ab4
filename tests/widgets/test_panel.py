"""A panel draws what its controls say, explains what can't be, and never raises or leaks."""

from __future__ import annotations

import gc

import ipywidgets
import matplotlib.pyplot as plt
import pytest

from labs_lib.widgets.panel import Panel, head_controls, slider


def draw(figure, **values):
    figure.add_subplot().bar(range(len(values)), list(values.values()))
    return f"{values['n_head']} heads"


@pytest.fixture
def panel():
    return Panel("heads", head_controls(), draw)


def test_moving_a_control_redraws_and_values_read_as_attributes(panel):
    before = panel.image.value
    panel.controls["n_head"].value = 8
    assert panel.n_head == 8
    assert panel.message == "8 heads"
    assert panel.image.value != before
    panel.d_model = 512
    assert panel.controls["d_model"].value == 512


def test_an_illegal_pair_is_shown_explained_and_offered_its_neighbours(panel):
    panel.n_head = 7
    assert not panel.legal
    assert "768" in panel.message
    assert "763" in panel.message
    assert "770" in panel.message
    offered = [button.description for button in panel.offers.children]
    assert offered == ["d_model = 763", "d_model = 770", "n_head = 6", "n_head = 8"]
    panel.offers.children[1].click()
    assert (panel.n_head, panel.d_model, panel.legal) == (7, 770, True)
    assert panel.offers.children == ()


@pytest.mark.parametrize("n_head", [1, 2, 7, 12, 31, 32])
def test_every_pair_is_either_drawn_or_offered_a_way_out(panel, n_head):
    for d_model in (8, 97, 768, 1531):
        panel.set(n_head=n_head, d_model=d_model)
        assert not panel.failed
        assert panel.legal == (d_model % n_head == 0)
        assert panel.legal or panel.offers.children


def test_an_error_in_a_drawing_is_shown_in_the_panel_and_the_next_setting_draws_again():
    def fragile(figure, n_head, d_model):
        if n_head == 4:
            raise RuntimeError("four <b>heads</b> broke it")
        return draw(figure, n_head=n_head, d_model=d_model)

    panel = Panel("fragile", head_controls(), fragile)
    panel.n_head = 4
    assert panel.failed
    assert "RuntimeError: four &lt;b&gt;heads" in panel.status.value
    panel.n_head = 8
    assert not panel.failed
    assert panel.message == "8 heads"


def test_setting_several_controls_draws_once():
    drawn = []

    def counted(figure, **values):
        drawn.append(values)
        return ""

    panel = Panel("counted", head_controls(), counted)
    panel.set(n_head=16, d_model=1024)
    assert drawn[1:] == [{"n_head": 16, "d_model": 1024}]


def test_an_unknown_control_is_answered_with_the_known_ones(panel):
    with pytest.raises(AttributeError, match="no control 'heads'; it has n_head, d_model"):
        panel.set(heads=3)
    with pytest.raises(AttributeError, match="no control 'colour'"):
        _ = panel.colour


def test_without_a_front_end_it_shows_a_picture_and_a_sentence(panel):
    bundle = panel._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert bundle["text/plain"] == "heads (n_head=12, d_model=768)\n12 heads"
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_its_text_is_equal_for_equal_settings_and_holds_no_address(panel):
    assert repr(panel) == repr(Panel("heads", head_controls(), draw))
    assert "0x" not in repr(panel)


def test_the_picture_has_an_alternative_text_that_says_what_is_seen(panel):
    assert '<img alt="heads. 12 heads" ' in panel.image.value
    assert 'role="status"' in panel.status.value


def test_a_hundred_moves_leave_one_figure_and_no_new_widgets(panel):
    panel.n_head = 6
    gc.collect()
    before = len(ipywidgets.widget.Widget.widgets or {})
    figure = panel.figure
    for move in range(100):
        panel.controls["n_head"].value = (6, 8)[move % 2]
    assert panel.figure is figure
    assert len(panel.figure.axes) == 1
    assert plt.get_fignums() == []
    assert len(ipywidgets.widget.Widget.widgets or {}) == before


def test_no_widget_carries_a_tooltip_that_its_front_end_cannot_show(panel):
    """The front end reads `description` wherever it finds a tooltip, and fails without one."""
    for widget in all_widgets(panel.view):
        assert getattr(widget, "tooltip", None) is None or hasattr(widget, "description"), widget


def all_widgets(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from all_widgets(child)


def test_an_explicit_head_dim_lifts_the_condition():
    panel = Panel("free", head_controls(7, 768), draw, explicit_head_dim=True)
    assert panel.legal
    assert panel.message == "7 heads"


def test_sliders_are_named_and_say_what_they_move():
    control = slider("scale", 0.5, 0.0, 2.0, "what the scores are multiplied by", step=0.1)
    assert isinstance(control, ipywidgets.FloatSlider)
    assert control.description == "scale"
    assert control.tooltip == "scale: what the scores are multiplied by"
    assert isinstance(slider("key", 1, 0, 6, "which key"), ipywidgets.IntSlider)
