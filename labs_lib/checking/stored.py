"""Stored outputs: how a handout without answers still checks, and still names mistakes.

Outputs of functions are kept as arrays: knowing the output of one visible case gives no program.
A number or a choice is its own answer, so only a salted slow hash of it is kept, and its sentence
is sealed under the value that it belongs to.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..exercises.kit import Exercise
from .compare import difference
from .kernel_mistakes import CASES_TO_NAME
from .observe import Leaf, Observation
from .oracle import NOT_KEPT, LiveOracle, Mistake
from .render import rounded

FOLDER = Path(__file__).parent / "stored_outputs"
_SCRYPT = {"n": 2**14, "r": 8, "p": 1, "dklen": 32}


class StoredOracle:
    """Reads what `pack` wrote for one lab."""

    def __init__(self, entries: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._entries, self._arrays = entries, arrays

    @classmethod
    def load(cls, lab: str, folder: Path = FOLDER) -> StoredOracle | None:
        """The lab's stored outputs, or None where there are none."""
        file = folder / f"{lab}.json"
        if not file.exists():
            return None
        return _read(file, file.stat().st_mtime_ns)

    def knows(self, name: str) -> bool:
        """Whether the exercise's outputs are stored."""
        return name in self._entries

    def judge(self, exercise: Exercise, got: list[Observation]) -> list[Observation] | bool:
        """The stored observations; for numbers and choices whether the hash agrees."""
        entry = self._entries[exercise.name]
        if exercise.is_program:
            return [self._decode(item) for item in entry["want"]]
        return _key(_value_text(exercise, got), entry["salt"])[:16].hex() == entry["hash"]

    def mistakes(self, exercise: Exercise, got: list[Observation]) -> Iterator[Mistake]:
        """The stored mistakes; for numbers and choices only the one that the value unseals."""
        entry = self._entries[exercise.name]
        if exercise.is_program:
            for item in entry["mistakes"]:
                want = entry["want"]
                theirs = [want[i] if one is None else one for i, one in enumerate(item["got"])]
                yield Mistake(item["name"], item["says"], [self._decode(one) for one in theirs])
            return
        sentence = _unseal(entry, _value_text(exercise, got), "mistakes")
        if sentence:
            name, _, says = sentence.partition("\n")
            yield Mistake(name, says, got)

    def because(self, exercise: Exercise, got: list[Observation]) -> str:
        """The sentence sealed under the right value."""
        entry = self._entries[exercise.name]
        if exercise.is_program:
            return entry.get("because", "")
        return _unseal(entry, _value_text(exercise, got), "because")

    def _decode(self, item: dict[str, Any]) -> Observation:
        leaves = {}
        for path, leaf in item["leaves"].items():
            value = self._value(leaf)
            leaves[path] = Leaf(leaf["kind"], value, leaf["dtype"])
        return Observation(leaves, item["raised"], item["message"], tuple(item["changed"]))

    def _value(self, leaf: dict[str, Any]) -> Any:
        if "array" not in leaf:
            return leaf["value"]
        stored = self._arrays[leaf["array"]]
        double = leaf["kind"] == "tensor" and stored.dtype == np.float32
        return stored.astype(np.float64) if double else stored


@lru_cache(maxsize=2)
def _read(file: Path, _written: int) -> StoredOracle:
    """A lab's stored outputs, read once: a check would spend most of its time on it."""
    entries = json.loads(file.read_text(encoding="utf-8"))
    return StoredOracle(entries, _Arrays(file.with_suffix(".npz").read_bytes()))


class _Arrays(dict):
    """Arrays by name, each unpacked when it is first asked for."""

    def __init__(self, packed: bytes) -> None:
        super().__init__()
        self._archive = np.load(io.BytesIO(packed), allow_pickle=False)

    def __missing__(self, name: str) -> np.ndarray:
        self[name] = self._archive[name]
        return self[name]


def pack(exercises: list[Exercise], oracle: LiveOracle, answers: Any) -> tuple[str, bytes]:
    """The JSON text and the npz bytes that `StoredOracle.load` reads, for one lab's exercises.

    `oracle` is a live one; `answers` maps an exercise's name to its answer.
    """
    arrays: dict[str, np.ndarray] = {}
    entries: dict[str, Any] = {}
    for item in exercises:
        if item.is_program:
            entries[item.name] = _pack_program(item, oracle, arrays)
            entries[item.name]["because"] = answers(item.name).because
        else:
            entries[item.name] = _seal_values(item, answers(item.name))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return json.dumps(entries, ensure_ascii=False, indent=1), buffer.getvalue()


def _pack_program(
    item: Exercise, oracle: LiveOracle, arrays: dict[str, np.ndarray]
) -> dict[str, Any]:
    want = oracle.judge(item, [])
    mistakes = []
    for mistake in oracle.mistakes(item, []):
        if item.kind == "kernel":
            got = _pack_kernel(item, want, mistake, arrays)
        else:
            got = [_encode(one, arrays) for one in mistake.observations]
        mistakes.append({"name": mistake.name, "says": mistake.says, "got": got})
    return {"want": [_encode(one, arrays) for one in want], "mistakes": mistakes}


def _pack_kernel(
    item: Exercise, want: list[Observation], mistake: Mistake, arrays: dict[str, np.ndarray]
) -> list[dict[str, Any] | None]:
    """A wrong kernel's first wrong cases, and None for those before in which it is right.

    Each case costs a launch and its outputs room, and a mistake is told by the first few.
    """
    packed: list[dict[str, Any] | None] = []
    kept = 0
    for index, w in enumerate(want):
        if kept == CASES_TO_NAME:
            packed.append(_encode(NOT_KEPT, arrays))
            continue
        got = mistake.observations[index]
        wrong = bool(difference(item, w, got))
        packed.append(_encode(got, arrays) if wrong else None)
        kept += wrong
    return packed


def _encode(observation: Observation, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    leaves = {}
    for path, leaf in observation.leaves.items():
        entry: dict[str, Any] = {"kind": leaf.kind, "dtype": leaf.dtype}
        if leaf.kind in ("tensor", "array"):
            single = leaf.dtype == "float32" and leaf.value.dtype == np.float64
            entry["array"] = _put(leaf.value.astype(np.float32) if single else leaf.value, arrays)
        else:
            entry["value"] = leaf.value
        leaves[path] = entry
    return {
        "leaves": leaves,
        "raised": observation.raised,
        "message": observation.message,
        "changed": list(observation.changed),
    }


def _put(array: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    """Adds an array under a name made from its content: equal ones are kept once."""
    told = f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes()
    name = hashlib.sha256(told).hexdigest()[:20]
    arrays[name] = array
    return name


def _value_text(exercise: Exercise, got: list[Observation]) -> str:
    leaf = got[0].leaves.get("") if got else None
    return "" if leaf is None else _plain_text(exercise, leaf.value)


def _plain_text(exercise: Exercise, value: Any) -> str:
    if exercise.kind == "choice" or not isinstance(value, (int, float)):
        return str(value).strip().lower()
    if exercise.decimals is None:
        return rounded(value, 12)
    return rounded(round(float(value), exercise.decimals), exercise.decimals)


def _seal_values(exercise: Exercise, answer: Any) -> dict[str, Any]:
    salt = os.urandom(16).hex()
    right = _key(_plain_text(exercise, answer.reference), salt)
    return {
        "salt": salt,
        "hash": right[:16].hex(),
        "because": [_seal(right, answer.because)],
        "mistakes": [
            _seal(_key(_plain_text(exercise, w.program), salt), f"{w.name}\n{w.says}")
            for w in answer.wrong
        ],
    }


def _key(text: str, salt: str) -> bytes:
    return hashlib.scrypt(text.encode("utf-8"), salt=bytes.fromhex(salt), **_SCRYPT)


def _stream(key: bytes, length: int) -> bytes:
    return hashlib.shake_256(b"sentence" + key).digest(length)


def _seal(key: bytes, sentence: str) -> str:
    plain = b"labs" + sentence.encode("utf-8")
    sealed = bytes(a ^ b for a, b in zip(plain, _stream(key, len(plain)), strict=True))
    return base64.b64encode(sealed).decode("ascii")


def _unseal(entry: dict[str, Any], text: str, which: str) -> str:
    key = _key(text, entry["salt"])
    for item in entry[which]:
        sealed = base64.b64decode(item)
        plain = bytes(a ^ b for a, b in zip(sealed, _stream(key, len(sealed)), strict=True))
        if plain.startswith(b"labs"):
            return plain[4:].decode("utf-8")
    return ""
