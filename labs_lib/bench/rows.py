"""What a bench finds: a row for each thing measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass


class Unavailable(Exception):
    """This machine can't measure it; the message says why and the way out, in one sentence."""


class WrongResult(Exception):
    """What was timed computed something wrong; no figure is shown for it."""


@dataclass(frozen=True)
class Row:
    """One figure: seconds (median after a warm-up), and what it is held against.

    `work` and `moved` are the floating-point operations and bytes of one run; `peak` and
    `bandwidth` what the chip can do of them in a second. `faster` is the bar for the ratio to the
    peer, `within` the bar in seconds. `more` holds further columns by name.
    """

    what: str
    seconds: float
    peer: str = ""
    peer_seconds: float | None = None
    faster: float | None = None
    within: float | None = None
    work: float | None = None
    moved: float | None = None
    peak: float | None = None
    bandwidth: float | None = None
    more: tuple[tuple[str, str], ...] = ()

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the peer."""
        return self.peer_seconds / self.seconds if self.peer_seconds is not None else None

    @property
    def share(self) -> float | None:
        """The share of what the chip can do: of its arithmetic or its memory, the larger one."""
        shares = [
            amount / self.seconds / most
            for amount, most in ((self.work, self.peak), (self.moved, self.bandwidth))
            if amount is not None and most
        ]
        return max(shares, default=None)

    @property
    def met(self) -> bool | None:
        """Whether its bars are met and it is possible at all; None where nothing is asked."""
        asked = []
        if self.share is not None and self.share > 1:
            asked.append(False)
        if self.faster is not None and self.ratio is not None:
            asked.append(self.ratio > self.faster)
        if self.within is not None:
            asked.append(self.seconds < self.within)
        return all(asked) if asked else None

    @property
    def verdict(self) -> str:
        """What is asked and whether it holds, in words."""
        if self.share is not None and self.share > 1:
            return "above the chip's peak: a mistake"
        asked = []
        if self.faster is not None:
            asked.append(f"> {self.faster:,g} ×")
        if self.within is not None:
            asked.append(f"< {in_words(self.within)}")
        if not asked:
            return ""
        return f"{' and '.join(asked)}: {'yes' if self.met else 'NO'}"

    def to_dict(self) -> dict:
        """Everything as plain data for JSON, derived figures included."""
        data = {k: v for k, v in asdict(self).items() if v not in (None, "", ())}
        derived = {"ratio": self.ratio, "share": self.share, "met": self.met}
        more = {"more": dict(self.more)} if self.more else {}
        return data | {k: v for k, v in derived.items() if v is not None} | more


def in_words(seconds: float) -> str:
    """A time with three digits and its unit."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
