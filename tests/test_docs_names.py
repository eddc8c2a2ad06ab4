"""What the documents name is there: files, modules with their functions, and commands."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

import pytest

from labs_lib import cli

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))]
FOLDERS = ("labs_lib", "notebooks", "solutions", "data", "docs", "tests")
FOLDERS += (".ci", ".binder", ".devcontainer")
OURS = re.compile(rf"(?:{'|'.join(map(re.escape, FOLDERS))})/[\w./-]*")
BARE = re.compile(r"(?:\w+/)*\w+(?:\.py|\.mjs|\.toml)|\w+/")
MADE = {"grades/", "sitecustomize.py"}  # by a run; a file that a student may try to leave behind
STANDS_FOR = re.compile(r"NN|NAME|LETTER")


def words(page):
    """Each piece of a page that is set as code, between single backticks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [" ".join(one.split()) for one in re.findall(r"`([^`]+)`", text)]


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_folder_that_a_page_names_is_there(page):
    for word in words(page):
        known = OURS.fullmatch(word) or BARE.fullmatch(word)
        if known and word not in MADE and not STANDS_FOR.search(word):
            there = [ROOT / word, ROOT / "labs_lib" / word, *(ROOT / "labs_lib").glob(f"*/{word}")]
            assert any(one.exists() for one in there) or _below(word), f"{page} names {word}"


def _below(word):
    return any(any((ROOT / folder).rglob(word)) for folder in ("labs_lib", "tests"))


@pytest.mark.parametrize("page", PAGES)
def test_every_module_and_function_that_a_page_names_is_there(page):
    for word in words(page):
        if re.match(r"labs_lib(\.\w+)+", word):
            assert _found(re.match(r"[\w.]+", word)[0]), f"{page} names {word}"


def _found(name):
    module, rest = name, []
    while module:
        try:
            found = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
    for part in rest:
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_a_page_names_can_be_given(page):
    parser, known = cli._parser()
    for word in words(page):
        if re.match(r"labs [a-z]", word):
            command, *given = shlex.split(word)[1:]
            assert command in known, f"{page} names {word}"
            for option in (one for one in given if one.startswith("--")):
                helped = parser._subparsers._group_actions[0].choices[command].format_help()
                assert option in helped, f"{page} names {word}"
