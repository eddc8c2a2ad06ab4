"""Checks what a kernel is called with, by name, before anything runs."""

from __future__ import annotations

import numbers

import torch

from labs_lib.cuda.errors import LaunchError
from labs_lib.cuda.source import Parameter, Signature

_INT = {
    "int": 32, "int32_t": 32, "signed": 32, "signed int": 32, "unsigned": -32, "unsigned int": -32,
    "uint": -32, "uint32_t": -32, "long": 64, "long int": 64, "long long": 64, "long long int": 64,
    "int64_t": 64, "size_t": -64, "unsigned long": -64, "unsigned long long": -64, "uint64_t": -64,
    "short": 16, "int16_t": 16, "unsigned short": -16, "uint16_t": -16, "char": 8,
    "signed char": 8, "int8_t": 8, "unsigned char": -8, "uint8_t": -8, "ptrdiff_t": 64,
}  # fmt: skip
_FLOAT = {
    "float": torch.float32, "double": torch.float64, "half": torch.float16, "__half": torch.float16,
    "nv_bfloat16": torch.bfloat16, "__nv_bfloat16": torch.bfloat16,
}  # fmt: skip
_VECTORS = {
    "float2": torch.float32, "float3": torch.float32, "float4": torch.float32,
    "double2": torch.float64, "half2": torch.float16, "__half2": torch.float16,
    "nv_bfloat162": torch.bfloat16, "__nv_bfloat162": torch.bfloat16,
    "int2": torch.int32, "int4": torch.int32,
}  # fmt: skip
_BY_BITS = {
    8: (torch.int8,), -8: (torch.uint8, torch.bool), 16: (torch.int16,), -16: (torch.uint16,),
    32: (torch.int32,), -32: (torch.uint32, torch.int32), 64: (torch.int64,),
    -64: (torch.uint64, torch.int64),
}  # fmt: skip


def dtypes_of(kind: str) -> tuple[torch.dtype, ...] | None:
    """The dtypes that a pointer to `kind` may be given; None when any may (void)."""
    if kind == "void":
        return None
    if kind in _FLOAT or kind in _VECTORS:
        return ((_FLOAT | _VECTORS)[kind],)
    if kind == "bool":
        return (torch.bool,)
    if kind in _INT:
        return _BY_BITS[_INT[kind]]
    raise LaunchError(
        f"a kernel parameter of type {kind}* can't be given a tensor; use "
        "float, double, __half, __nv_bfloat16, an integer type, bool, or a vector of them"
    )


def check(signature: Signature, args: tuple) -> torch.device:
    """Raises LaunchError unless the arguments fit; returns the device that all tensors are on."""
    want = signature.parameters
    if len(args) != len(want):
        names = ", ".join(p.name for p in want)
        raise LaunchError(
            f"{signature.name} takes {len(want)} arguments ({names}), {len(args)} were given"
        )
    devices = {}
    for p, value in zip(want, args, strict=True):
        if p.pointer:
            _check_tensor(signature, p, value)
            devices.setdefault(value.device, p.name)
        else:
            scalar_bits(p, value)
    if len(devices) > 1:
        shown = ", ".join(f"{name} on {device}" for device, name in devices.items())
        raise LaunchError(f"all tensors must be on one device; here: {shown}")
    return next(iter(devices), torch.device("cpu"))


def _check_tensor(signature: Signature, p: Parameter, value) -> None:
    if not isinstance(value, torch.Tensor):
        raise LaunchError(
            f"{p.name} is a pointer ({p.type}*) and needs a tensor, "
            f"{type(value).__name__} was given"
        )
    if value.layout != torch.strided or value.device.type not in ("cpu", "cuda"):
        raise LaunchError(f"{p.name} must be a plain tensor on the CPU or a CUDA device")
    allowed = dtypes_of(p.type)
    if allowed and value.dtype not in allowed:
        shown = str(allowed[0]).removeprefix("torch.")
        got = str(value.dtype).removeprefix("torch.")
        raise LaunchError(
            f"{p.name} must be {shown}, as the kernel says {p.type}*; {got} was given. "
            f"Convert it: {p.name}.to(torch.{shown})"
        )
    if not value.is_contiguous():
        raise LaunchError(
            f"{p.name} is not contiguous (shape {tuple(value.shape)}, strides {value.stride()}), "
            f"and a kernel reads memory in order. Pass {p.name}.contiguous()"
        )
    if not p.const and value.requires_grad and torch.is_grad_enabled():
        raise LaunchError(
            f"{p.name} requires grad and the kernel writes to it; pass {p.name}.detach()"
        )
    if value.is_conj() or value.is_neg():
        raise LaunchError(f"{p.name} is a lazy view; pass {p.name}.resolve_conj().resolve_neg()")


def scalar_bits(p: Parameter, value) -> int:
    """The bits of a scalar argument, as the kernel's type stores them.

    Raises: LaunchError for a tensor, a fraction given to an integer, a number out of range.
    """
    if isinstance(value, torch.Tensor):
        raise LaunchError(f"{p.name} is a number ({p.type}), a tensor was given; pass .item()")
    if p.type == "bool":
        return int(bool(value))
    if p.type in _FLOAT:
        if not isinstance(value, numbers.Real):
            raise LaunchError(f"{p.name} is a {p.type}, {type(value).__name__} was given")
        raw = torch.tensor([float(value)], dtype=torch.float64).to(_FLOAT[p.type]).view(torch.uint8)
        return int.from_bytes(bytes(raw.tolist()), "little")
    if p.type not in _INT:
        raise LaunchError(f"{p.name} is of type {p.type}, which can't be passed; pass numbers")
    if not isinstance(value, numbers.Integral):
        raise LaunchError(f"{p.name} is an integer ({p.type}), {value!r} was given")
    bits = _INT[p.type]
    low, high = (0, 2**-bits) if bits < 0 else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    if not low <= int(value) < high:
        raise LaunchError(f"{p.name} = {value} does not fit into {p.type}")
    return int(value) % 2 ** abs(bits)
