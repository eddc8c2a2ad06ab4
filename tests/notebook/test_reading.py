"""Whatever an editor, a mailer or a student leaves: reading ends in a notebook or a reason."""

from __future__ import annotations

import codecs
import json

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_lib.notebook.reading import Unreadable, read


def code(source="x = 1", **changes):
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": source}
    return cell | {"outputs": [], "execution_count": None} | changes


def notebook(*cells, **changes):
    whole = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells or [code()])}
    return whole | changes


def dump(value, **options):
    return json.dumps(value, **options).encode("utf-8")


def reason(content, **options):
    with pytest.raises(Unreadable) as caught:
        read(content, **options)
    return str(caught.value)


def test_a_good_notebook_is_read_without_a_note():
    reading = read(dump(notebook(code("print(1)"))))
    assert reading.notes == ()
    assert reading.notebook.cells[0].source == "print(1)"
    nbformat.validate(reading.notebook)


def test_a_byte_order_mark_is_left_out_with_a_note():
    reading = read(
        codecs.BOM_UTF8
        + dump(
            notebook(
                code("π = 3"),
            ),
            ensure_ascii=False,
        )
    )
    assert reading.notebook.cells[0].source == "π = 3"
    assert any("byte order mark" in note for note in reading.notes)
    utf16 = json.dumps(notebook(code("π = 3")), ensure_ascii=False).encode("utf-16")
    assert read(utf16).notebook.cells[0].source == "π = 3"


def test_windows_1252_bytes_are_read_with_a_note():
    content = dump(notebook(code("# QUOTE and ACCENT")))
    content = content.replace(b"QUOTE", b"\x91\x92\x9d").replace(b"ACCENT", "é".encode())
    reading = read(content)
    assert reading.notebook.cells[0].source.startswith("# ‘’")
    assert "é" in reading.notebook.cells[0].source
    assert any("Windows-1252" in note for note in reading.notes)


def test_ids_with_an_old_minor_version_are_no_obstacle():
    reading = read(dump(notebook(code(), nbformat_minor=2)))
    assert (reading.notebook.nbformat_minor, reading.notebook.cells[0].id) == (5, "a")


def test_missing_and_duplicate_ids_become_unique():
    nameless = code()
    del nameless["id"]
    reading = read(dump(notebook(nameless, code(id="a"), code(id="a"), code(id="no good!"))))
    ids = [cell.id for cell in reading.notebook.cells]
    assert len(set(ids)) == 4 and ids[1] == "a"
    assert any("id of an earlier cell" in note for note in reading.notes)
    nbformat.validate(reading.notebook)


def test_version_3_is_upgraded():
    old = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {},
        "worksheets": [
            {
                "cells": [
                    {"cell_type": "heading", "level": 1, "source": ["Title"]},
                    {"cell_type": "code", "input": ["x = 1\n", "y = 2"], "outputs": []},
                ]
            }
        ],
    }
    cells = read(dump(old)).notebook.cells
    assert [cell.cell_type for cell in cells] == ["markdown", "code"]
    assert cells[1].source == "x = 1\ny = 2"


def test_an_old_notebook_without_worksheets_has_no_cells_and_no_error():
    empty = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": []}
    assert read(dump(empty)).notebook.cells == []


@pytest.mark.parametrize("major", [0, 1, 5, "4", True, 4.0])
def test_an_unknown_major_version_is_named(major):
    assert repr(str(major)) in reason(dump(notebook(nbformat=major)))


def test_colab_widget_state_and_all_outputs_are_dropped():
    output = {"output_type": "stream", "name": "stdout", "text": "PASS"}
    whole = notebook(code(outputs=[output], execution_count=7))
    whole["metadata"] = {"widgets": {"application/x": {}}, "colab": {"name": "x"}}
    reading = read(dump(whole))
    assert "widgets" not in reading.notebook.metadata
    assert reading.notebook.cells[0].outputs == []
    assert reading.notebook.cells[0].execution_count is None


def test_missing_keys_and_cells_of_wrong_types_are_mended():
    reading = read(dump({"cells": [{"cell_type": "code"}, "text", 7, None, {"source": ["a", 3]}]}))
    assert [cell.source for cell in reading.notebook.cells] == ["", "text", "", "", "a"]
    assert [cell.cell_type for cell in reading.notebook.cells] == ["code", *["raw"] * 4]
    nbformat.validate(reading.notebook)


def test_a_huge_file_is_refused_before_it_is_parsed():
    assert "at most" in reason(b"[" * 2_000_000, max_bytes=1_000_000)


def test_a_git_lfs_pointer_tells_to_push_the_object():
    text = b"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 4\n"
    assert "push the object" in reason(text)


def test_a_merge_conflict_quotes_its_line():
    text = json.dumps(notebook(), indent=1).split("\n")
    text[2:2] = ["<<<<<<< HEAD"]
    assert "line 3" in reason("\n".join(text).encode()) and "HEAD" in reason(
        "\n".join(text).encode()
    )


@pytest.mark.parametrize("content", [b"", b"  \n", b"\x00" * 50])
def test_an_empty_file_says_so(content):
    assert "empty" in reason(content)


def test_a_truncated_file_says_that_it_was_cut_off():
    whole = dump(notebook(code("print('a long line')")))
    for cut in range(1, len(whole)):
        assert "cut off" in reason(whole[:cut]) or "JSON" in reason(whole[:cut])
    assert "cut off" in reason(whole[: len(whole) // 2])


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"PK\x03\x04rest", "zip"), (b"%PDF-1.7", "PDF"), (b"<!DOCTYPE html><p>", "web page")],
)
def test_other_kinds_of_files_are_named(content, kind):
    assert kind in reason(content)


@pytest.mark.parametrize("depth", [500, 5_000, 200_000])
def test_deep_nesting_is_no_crash(depth):
    reason(b"[" * depth + b"]" * depth)
    deep = b'{"nbformat": 4, "cells": [], "metadata": ' + b'{"a":' * depth + b"1" + b"}" * depth
    try:
        read(deep + b"}")
    except Unreadable as error:
        assert "deep" in str(error)


@pytest.mark.parametrize(
    "content", [b"[1]", b'"x"', b"null", b"12", b"nan", b"{}", b'{"cells": 3}']
)
def test_json_that_is_no_notebook_gets_a_reason(content):
    assert reason(content)


def test_half_a_surrogate_pair_and_a_number_of_thousands_of_digits_are_survived():
    reading = read(dump(notebook(code("s = '\ud800'"))))
    reading.notebook.cells[0].source.encode("utf-8")
    assert "digits" in reason(b'{"nbformat": ' + b"4" * 5000 + b', "cells": []}')


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["cells", "cell_type", "source", "metadata", "id", "tags", "labs", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("value", ["", 3, -1, 0.5, True, None, [], [3], {}, {"name": 3}, "a\n,b"])
def test_metadata_of_any_shape_is_read_and_written_again(value):
    names = "tags name collapsed scrolled jupyter execution format attachments labs slideshow"
    for kind in ("code", "raw", "markdown"):
        for name in names.split():
            one = {"cell_type": kind, "source": "x", "metadata": {name: value}}
            tagged = {"cell_type": kind, "source": "x", "metadata": {"tags": [value, "kept"]}}
            _survives(dump({"nbformat": 4, "metadata": {}, "cells": [one, tagged]}))
    for name in [
        "kernelspec",
        "language_info",
        "title",
        "authors",
        "orig_nbformat",
        "widgets",
        "labs",
    ]:
        for held in (value, {"name": value}, {"name": "x", "codemirror_mode": value}):
            _survives(dump({"nbformat": 4, "metadata": {name: held}, "cells": []}))


def test_metadata_that_fits_is_kept():
    spec = {"name": "python3", "display_name": "Python 3"}
    cell = {"cell_type": "code", "source": "x"}
    cell["metadata"] = {"tags": ["a", "a,b", ""], "collapsed": True, "scrolled": "auto", "mine": 3}
    content = {"nbformat": 4, "metadata": {"kernelspec": spec, "title": 3}, "cells": [cell]}
    found = read(dump(content)).notebook
    assert found.metadata == {"kernelspec": spec}
    assert found.cells[0].metadata == cell["metadata"] | {"tags": ["a"]}


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes_never_raise_anything_but_unreadable(content):
    _survives(content)


@settings(max_examples=150, deadline=None)
@given(st.lists(_JSON, max_size=4), _JSON)
def test_random_cells_never_raise_anything_but_unreadable(cells, metadata):
    _survives(dump({"nbformat": 4, "metadata": metadata, "cells": cells}))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_corruption_never_raises_anything_but_unreadable(data):
    content = bytearray(dump(notebook(code("def f(x):\n    return 'é'"), code(id="b")), indent=1))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
        content = content or bytearray(b" ")
    _survives(bytes(content))


def _survives(content):
    try:
        reading = read(content)
    except Unreadable as error:
        assert str(error)
        return
    nbformat.validate(reading.notebook)
    nbformat.writes(reading.notebook).encode("utf-8")
