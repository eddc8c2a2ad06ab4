"""Cells keep their identity, regions pair up, and a file is written whole or not at all."""

from __future__ import annotations

import re

import pytest

from labs_lib.notebook.atomic import write_bytes, write_text
from labs_lib.notebook.bindings import binds, bound_names, kernel_names
from labs_lib.notebook.cells import cell_id, checked_exercise, info, role, text_hash
from labs_lib.notebook.regions import RegionError, replace_region, split_region, strip_markers

CELL = "import torch\n# BEGIN SOLUTION\ndef f(x):\n    return x\n# END SOLUTION\nf(1)"
CUDA = "%%cuda\n  // BEGIN SOLUTION\n  y[i] = x[i];\n  // END SOLUTION\n}"


def test_a_region_is_replaced_and_all_around_it_stays():
    assert split_region(CELL) == ("import torch", "def f(x):\n    return x", "f(1)")
    assert replace_region(CELL, "\ndef f(x): ...\n") == "import torch\ndef f(x): ...\nf(1)"
    assert replace_region(CUDA, "  // your line") == "%%cuda\n  // your line\n}"
    assert strip_markers(CELL) == "import torch\ndef f(x):\n    return x\nf(1)"


@pytest.mark.parametrize(
    "source",
    [
        "# BEGIN SOLUTION\nx = 1",
        "x = 1\n# END SOLUTION",
        "# END SOLUTION\nx = 1\n# BEGIN SOLUTION",
        "# BEGIN SOLUTION\n# END SOLUTION\n# BEGIN SOLUTION\n# END SOLUTION",
    ],
)
def test_markers_that_do_not_pair_up_are_named_by_line(source):
    with pytest.raises(RegionError, match="lines"):
        split_region(source)


def test_cell_ids_are_valid_stable_and_unique_even_for_long_names():
    short = cell_id("lab02.split_heads", "answer", 1)
    assert short == "lab02-split_heads-answer-1"
    long = [cell_id("lab02." + "very_long_name_" * 6, "check", n) for n in (1, 2)]
    for one in (short, *long):
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", one)
    assert long[0] != long[1]


@pytest.mark.parametrize(
    "metadata", [None, 3, [], {"labs": 3}, {"labs": {"role": ["answer"]}}, {"labs": {"role": "x"}}]
)
def test_strange_metadata_has_no_role(metadata):
    cell = {"metadata": metadata}
    assert role(cell) == ""
    assert role({}) == "" and dict(info({})) == {}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('check("lab01.x", x)', "lab01.x"),
        ('check("lab01.x",\n      x)\n', "lab01.x"),
        ('check("lab01.x", x)\ncheck("lab01.y", y)', ""),
        ('print("check")', ""),
        ("check(x)", ""),
        ("check(", ""),
        ("", ""),
    ],
)
def test_a_check_cell_is_one_call_of_check(source, name):
    assert checked_exercise(source) == name


def test_white_space_at_line_ends_does_not_make_an_answer():
    assert text_hash("a = None  \n\n") == text_hash("a = None")
    assert text_hash("a = 1") != text_hash("a = None")


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    target = tmp_path / "näme with space.txt"
    write_text(target, "first ≤ second\n")
    assert target.read_bytes() == "first ≤ second\n".encode()

    def full(*args):
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_bytes(target, b"second")
    assert target.read_text(encoding="utf-8") == "first ≤ second\n"
    assert [p.name for p in tmp_path.iterdir()] == [target.name]


def test_a_stub_with_a_cell_magic_replaces_the_magics_line_too():
    source = "%%cuda\n// BEGIN SOLUTION\n__global__ void k(int n) { n; }\n// END SOLUTION"
    stub = "%%cuda\n__global__ void k(int n) {}\n"
    assert replace_region(source, stub) == stub.strip("\n")
    assert strip_markers(source) == "%%cuda\n__global__ void k(int n) { n; }"


def test_a_cuda_cell_binds_its_kernels_and_no_comment_does():
    cell = (
        "\n%%cuda --arch sm_90\n// __global__ void no(int)\n__device__ void f(int) {}\n"
        '__global__ void __launch_bounds__(64) a(int n) { f(n); }\nextern "C" __global__\nvoid b('
    )
    assert bound_names(cell) == {"a", "b"}
    assert binds(cell, "a", as_function=True) and not binds(cell, "f", as_function=True)
    assert not binds("x = 1\n" + cell, "a", as_function=True), "no magic below the first line"
    assert kernel_names("__global__ " * 100_000) == []


def test_an_error_on_the_way_names_the_file_that_was_asked_for(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left on device") as raised:
        write_text(tmp_path / "marks.csv", "1")
    assert raised.value.filename == str(tmp_path / "marks.csv")
    assert not list(tmp_path.iterdir())
