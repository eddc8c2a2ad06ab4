"""What a GPU can do at most, from its makers' data sheets (dense, without sparsity)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Chip:
    """Floating-point operations a second in float32 and in half on tensor cores; bytes a second."""

    name: str
    single: float
    half: float
    bandwidth: float


# The longest name that a device's own name contains counts.
CHIPS = (
    Chip("T4", 8.1e12, 65e12, 320e9),
    Chip("V100", 15.7e12, 125e12, 900e9),
    Chip("A100", 19.5e12, 312e12, 2039e9),
    Chip("A10", 31.2e12, 125e12, 600e9),
    Chip("L4", 30.3e12, 121e12, 300e9),
    Chip("L40S", 91.6e12, 362e12, 864e9),
    Chip("RTX 3090", 35.6e12, 142e12, 936e9),
    Chip("RTX 4090", 82.6e12, 330e12, 1008e9),
    Chip("H100", 66.9e12, 989e12, 3350e9),
    Chip("H200", 66.9e12, 989e12, 4800e9),
)


def chip(device_name: str) -> Chip | None:
    """The chip of a device by the name that it gives itself; None for one that isn't listed."""
    words = f" {device_name.upper().replace('-', ' ')} "
    found = [c for c in CHIPS if f" {c.name.upper()} " in words]
    return max(found, key=lambda c: len(c.name), default=None)
