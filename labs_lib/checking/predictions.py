"""Predictions: a guess typed in before an experiment, kept, and shown again beside the result."""

from __future__ import annotations

from typing import Any

from . import progress

_guesses: dict[str, Any] = {}


def predict(name: str, guess: Any) -> None:
    """Keep a guess under a name such as `lab01.row_sum`; None means not guessed yet."""
    _guesses[name] = guess
    if guess is None:
        print("no guess yet: put yours in place of None, then run this cell")
        return
    progress.update(f"prediction.{name}", guess=_plain(guess))
    print(f"your guess is kept: {guess}")


def recall(name: str, measured: Any) -> None:
    """Show the guess kept under `name` beside what was measured."""
    guess = _guesses.get(name)
    if guess is None:
        guess = progress.entry(f"prediction.{name}").get("guess")
    print(f"your guess:  {'none' if guess is None else guess}\nmeasured:    {measured}")


def _plain(guess: Any) -> Any:
    return guess if isinstance(guess, (int, float, str, bool)) else str(guess)
