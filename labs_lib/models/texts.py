"""The texts on which heads are looked at: short ones of our own, and paragraphs of data/text."""

import re
from functools import cache

from labs_lib import paths

# Short, to look at a head on, or where each head costs a pass of its own.
PROSE = (
    "The ferry left the island at seven, when the fog was still lying on the water. Two "
    "fishermen stood at the rail and talked about the price of fuel, the weather, and the new "
    "harbour. One of them said that the harbour would never be finished; the other said that "
    "nothing on the island was ever finished, and that this was the best thing about the "
    "island. Behind them a child counted the gulls, lost count, and began again.",
    "A clock measures time by counting something that repeats. In an old clock, a pendulum "
    "swings, and a wheel moves on by one tooth at each swing. In a watch, a small crystal of "
    "quartz shakes more than thirty thousand times in a second, and a chip counts the shakes. "
    "The best clocks count the light that atoms give off; they would lose less than a second in "
    "the age of the universe. What repeats has changed, but the idea of the clock has not.",
)

# Pairs that say the same; every other sentence is another matter.
PAIRS = (
    ("A cat sleeps on the sofa.", "On the couch lies a sleeping kitten."),
    ("A dog sleeps on the sofa.", "There is a puppy napping on the couch."),
    ("The train was late because of snow.", "Snowfall delayed the railway service."),
    ("The plane was late because of fog.", "The flight was held up by mist."),
    ("She bought a red bicycle.", "A bike in red was what she purchased."),
    ("She bought a red car.", "The automobile that she got was red."),
    ("He can't find his glasses.", "His spectacles are lost."),
    ("He can't find his keys.", "The key ring has gone missing."),
    ("The soup is too salty.", "There is too much salt in this broth."),
    ("The coffee is too bitter.", "This espresso tastes far too sharp."),
    ("Children play football in the park.", "Kids are having a soccer game on the green."),
    ("Children swim in the lake.", "Kids are bathing in the pond."),
    ("The company raised its prices.", "The firm now charges more."),
    ("The company dismissed its director.", "The firm fired the man who ran it."),
    ("How do I reset my password?", "What are the steps to get a new login code?"),
    ("How do I delete my account?", "What are the steps to remove my user profile?"),
)  # fmt: skip

# More of it, of another sort: paragraphs of the documentation in data/text.
SHORTEST, LONGEST = 350, 900  # characters
MOSTLY_WORDS = 0.955  # the share of letters, blanks, commas and full stops
PARTS = {"to look at": 0, "to choose": 1, "to judge": 2}


def passages(part: str, count: int, longest: int = LONGEST) -> tuple[str, ...]:
    """Return the first `count` paragraphs of prose of a part of data/text; no part shares any.

    Raises KeyError for a part that isn't in PARTS, ValueError where there are fewer paragraphs.
    """
    found = [p for p in _prose()[PARTS[part] :: len(PARTS)] if len(p) <= longest][:count]
    if len(found) < count:
        raise ValueError(f"{part!r} has {len(found)} paragraphs up to {longest}, not {count}")
    return tuple(found)


def halves(paragraph: str) -> tuple[str, str]:
    """Return a paragraph cut behind the full stop that lies nearest to its middle."""
    stops = [match.end() for match in re.finditer(r"\.\s", paragraph)]
    cut = min(stops, key=lambda place: abs(place - len(paragraph) / 2))
    return paragraph[:cut].strip(), paragraph[cut:].strip()


@cache
def _prose() -> tuple[str, ...]:
    text = (paths.data() / "text" / "python_docs.txt").read_text(encoding="utf-8")
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.splitlines()
        joined = " ".join(paragraph.split())
        words = sum(c.isalpha() or c in " ,." for c in joined)
        code = any(line.startswith((" ", ">")) for line in lines[1:])
        if (
            SHORTEST <= len(joined) <= LONGEST
            and not code
            and words >= MOSTLY_WORDS * len(joined)
            and ". " in joined
        ):
            found.append(joined)
    return tuple(found)
