"""The filter of system calls lets a kernel work and refuses what no namespace holds back."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from labs_lib.grading.sandbox import levels, refused

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED = {"x86_64": (0, 1, 9, 57, 59, 231), "aarch64": (63, 64, 222, 221, 94)}
CLONE, SOCKET = {"x86_64": 56, "aarch64": 220}, {"x86_64": 41, "aarch64": 198}
REFUSED = {"x86_64": (29, 101, 250, 272, 319, 425), "aarch64": (194, 117, 219, 97, 279, 425)}


def verdict(program, architecture, number, first=0):
    """What Linux makes of one call: the filter's four kinds of steps, one after another."""
    steps = list(struct.iter_unpack("=HBBI", program))
    told = {0: number, 4: architecture, 16: first}
    held, at = 0, 0
    while True:
        code, if_so, if_not, value = steps[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            held = told[value]
            continue
        true = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[code]
        at += if_so if true else if_not


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_the_filter_knows_calls_from_each_other(machine):
    program, own = refused.program(machine), ARCHITECTURES[machine]
    no, yes = 0x50000 | refused.ENOSYS, 0x7FFF0000
    assert {verdict(program, own, n) for n in ALLOWED[machine]} == {yes}
    assert {verdict(program, own, n) for n in REFUSED[machine]} == {no}
    assert verdict(program, own, ALLOWED[machine][0] + 0x40000000) == no
    assert verdict(program, 0x40000003, ALLOWED[machine][0]) == no  # as a program of 32 bits
    assert verdict(program, own, CLONE[machine], 0x01200011) == yes
    assert verdict(program, own, CLONE[machine], 0x10000011) == no
    families = {family: verdict(program, own, SOCKET[machine], family) for family in range(46)}
    assert [family for family, said in families.items() if said == yes] == [1, 2, 10, 16]


def test_a_machine_whose_calls_are_not_known_has_no_filter():
    assert refused.program("riscv64") == b""


def test_a_machine_that_refuses_no_call_says_so_in_every_report(monkeypatch):
    assert levels._fence_sentence().endswith("output.") == bool(refused.here())
    monkeypatch.setattr(refused, "AVAILABLE", Path("/nowhere"))
    assert levels._fence_sentence().endswith("had the machine's own bounds.")
