"""Answers to quantise_int8."""

from __future__ import annotations

import torch

from labs_lib.attention.int8 import quantise_int8

from ..kit import Answer, Right, Wrong


def _scale(x, axis, levels=127.0):
    largest = x.abs().max() if axis is None else x.abs().amax(1 - axis, keepdim=True)
    return torch.where(largest > 0, largest / levels, torch.ones_like(largest))


def _with(scale=_scale, convert=lambda places: places.round()):
    """A program with another scale, or another way to a whole number."""

    def program(x, axis=None):
        step = scale(x, axis)
        return convert(x / step).to(torch.int8), step

    return program


def _zeros_are_nan(x, axis=None):
    largest = x.abs().max() if axis is None else x.abs().amax(1 - axis, keepdim=True)
    return (x / (largest / 127)).round().to(torch.int8), largest / 127


def _largest_without_size(x, axis):
    largest = x.max() if axis is None else x.amax(1 - axis, keepdim=True)
    return torch.where(largest > 0, largest / 127, torch.ones_like(largest))


def _clamped(places):
    return places.round().clamp(-128, 127)


def _spread(x, axis):
    step = 3 * (x.std() if axis is None else x.std(1 - axis, keepdim=True)) / 127
    return torch.where(step > 0, step, torch.ones_like(step))


def _range(x, axis):
    if axis is None:
        return (x.max() - x.min()).clamp_min(1e-30) / 255
    wide = x.amax(1 - axis, keepdim=True) - x.amin(1 - axis, keepdim=True)
    return torch.where(wide > 0, wide / 255, 1.0)


def _from_zero_point(x, axis=None):
    """Asymmetric: the smallest number becomes -128, the largest 127."""
    dims = (0, 1) if axis is None else (1 - axis,)
    low, high = x.amin(dims, keepdim=axis is not None), x.amax(dims, keepdim=axis is not None)
    step = torch.where(high > low, (high - low) / 255, torch.ones_like(high))
    return ((x - low) / step - 128).round().clamp(-128, 127).to(torch.int8), step


def _other_axis(x, axis):
    return _scale(x, None if axis is None else 1 - axis)


def _flat_scale(x, axis=None):
    q, step = quantise_int8(x, axis)
    return q, step if axis is None else step.flatten()


def _loop(x, axis=None):
    if axis is None:
        return quantise_int8(x)
    parts = [quantise_int8(part) for part in x.split(1, dim=axis)]
    scales = torch.cat([scale.view(1, 1) for _, scale in parts], dim=axis)
    return torch.cat([q for q, _ in parts], dim=axis), scales


def _float64(x, axis=None):
    q, scale = quantise_int8(x.double(), axis)
    return q, scale.to(x.dtype)


def _plain_number(x, axis=None):
    q, scale = quantise_int8(x, axis)
    return [q, float(scale) if axis is None else scale]


def _by_max_and_min(x, axis=None):
    if axis is None:
        largest = torch.maximum(x.max(), -x.min())
    else:
        largest = torch.maximum(x.amax(1 - axis, True), -x.amin(1 - axis, True))
    step = largest / 127
    step = step + (step == 0)
    return torch.clamp(torch.round(x / step), -127, 127).type(torch.int8), step


QUANTISE_INT8 = Answer(
    reference=quantise_int8,
    wrong=(
        Wrong(
            "cut_off",
            _with(convert=lambda places: places),
            "Decimals are cut off, not rounded: .to(torch.int8) alone turns 2.9 into 2.",
        ),
        Wrong(
            "rounded_down",
            _with(convert=lambda places: places.floor()),
            "Everything is rounded down. Take the nearest whole number.",
        ),
        Wrong(
            "a_step_of_128",
            _with(lambda x, axis: _scale(x, axis, 128.0), _clamped),
            "The largest size became 128, which int8 can't hold on the positive side. Make it 127.",
        ),
        Wrong(
            "a_step_of_255",
            _with(lambda x, axis: _scale(x, axis, 255.0), _clamped),
            "The largest size is spread over 255 steps, so that all large numbers are cut off at\n"
            "127. 255 is for both signs together.",
        ),
        *(
            Wrong(
                f"sign_of_the_largest{how}",
                _with(_largest_without_size, *convert),
                "The scale comes from the largest number, not the largest size: a negative number\n"
                "further out than it doesn't fit into int8.",
            )
            for how, convert in (("", (_clamped,)), ("_not_cut_off", ()))
        ),
        Wrong(
            "other_axis",
            _with(_other_axis),
            "Tokens and channels are exchanged. With axis 1 each channel has its own scale,\n"
            "[1, channels], so the maximum goes over the tokens.",
        ),
        Wrong(
            "always_one_scale",
            _with(lambda x, axis: _scale(x, None), _clamped),
            "There is one scale, whatever axis says.",
        ),
        Wrong(
            "flat_scale",
            _flat_scale,
            "The scales are right but flat. Keep a 1 in the place of the axis that they cover,\n"
            "so that q * scale works.",
        ),
        Wrong(
            "scale_upside_down",
            lambda x, axis=None: (quantise_int8(x, axis)[0], 1 / quantise_int8(x, axis)[1]),
            "q is right, and the scale stands upside down: q * scale should give x back.",
        ),
        Wrong(
            "zeros_divide_by_zero",
            _zeros_are_nan,
            "Where all numbers are 0, the scale is 0 as well, and 0 / 0 isn't a number. There\n"
            "the scale is 1.",
        ),
        Wrong(
            "still_floats",
            lambda x, axis=None: (quantise_int8(x, axis)[0].to(x.dtype), quantise_int8(x, axis)[1]),
            "The whole numbers are still floats. Four bytes each: nothing is saved yet.",
        ),
        Wrong(
            "back_already",
            lambda x, axis=None: quantise_int8(x, axis)[0] * quantise_int8(x, axis)[1],
            "These are the numbers on their way back, q * scale. Wanted are q and scale.",
        ),
        Wrong(
            "with_a_zero_point",
            _from_zero_point,
            "The smallest number became -128 and the largest 127. That is the asymmetric way,\n"
            "which needs a third number, the zero point. Here 0 stays 0.",
        ),
        Wrong(
            "by_the_spread",
            _with(_spread, _clamped),
            "The scale comes from the standard deviation. Numbers further out are cut off.",
        ),
        Wrong(
            "from_smallest_to_largest",
            _with(_range, _clamped),
            "One step is the way from the smallest to the largest number, divided by 255. Then 0\n"
            "must be allowed to move. Here it stays, and the largest size becomes 127.",
        ),
        Wrong(
            "scale_before_q",
            lambda x, axis=None: quantise_int8(x, axis)[::-1],
            "q and scale have changed places: (q, scale) is wanted.",
        ),
        Wrong(
            "without_signs",
            lambda x, axis=None: ((x / _scale(x, axis)).round().to(torch.int16).to(torch.uint8),
                                  _scale(x, axis)),
            "uint8 holds 0 to 255 and no negative numbers. int8 holds -128 to 127.",
        ),
    ),
    right=(
        Right("part_by_part", _loop),
        Right("float64_inside", _float64),
        Right("a_list_and_a_plain_number", _plain_number),
        Right("from_max_and_min", _by_max_and_min),
    ),
)  # fmt: skip
