"""The explorers' JavaScript: shared parts and one module for each, put together as one module.

colours.mjs, pen.mjs      one look: cividis, both themes, a canvas with axes and numbers
words.mjs                 numbers in words, as Python writes them
rules.mjs                 what doesn't fit, and its nearest neighbours
controls.mjs              named controls that the keyboard moves
explorer.mjs              controls, picture and sentence put together
NAME.mjs                  what one explorer draws and says; ends in `export default explorer({...})`
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

SHARED = ("colours", "words", "pen", "rules", "controls", "explorer")
FOLDER = Path(__file__).parent


@cache
def source(name: str) -> str:
    """The whole JavaScript module of an explorer; it imports nothing."""
    files = [FOLDER / f"{part}.mjs" for part in (*SHARED, name)]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@cache
def style() -> str:
    """The style sheet of all explorers."""
    return (FOLDER / "explorer.css").read_text(encoding="utf-8")
