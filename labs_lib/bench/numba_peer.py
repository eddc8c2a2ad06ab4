"""Times the same kernels in numba's CUDA simulator; a program of its own, which prints JSON.

The simulator is chosen by NUMBA_ENABLE_CUDASIM=1 before numba is imported.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import time
from contextlib import suppress
from typing import Any

import numpy as np

from labs_lib.bench import inputs

REPEATS = 3
cuda: Any  # numba's module and its type: `main` brings them, where numba is installed
float32: Any


def main() -> None:
    """Prints each kernel's median processor seconds after a first run, and how wrong it was."""
    global cuda, float32  # the simulator finds its module among a kernel's globals
    from numba import cuda, float32

    with suppress(AttributeError, OSError):
        # Its threads hand one lock around: on one core it is twice as fast as on two.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(json.dumps({"product": _product(), "flash": _flash()}))


def _timed(run, out: np.ndarray, wanted: np.ndarray) -> dict:
    times = []
    for _ in range(REPEATS + 1):
        start = time.process_time()  # neighbours on a busy machine don't count against it
        run()
        times.append(time.process_time() - start)
    return {
        "seconds": statistics.median(times[1:]),
        "wrong_by": float(np.abs(out - wanted).max()),
    }


def _product() -> dict:
    T, n = inputs.TILE, inputs.N

    @cuda.jit
    def product(a, b, c, n):
        tile_a = cuda.shared.array((T, T), float32)
        tile_b = cuda.shared.array((T, T), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + y, cuda.blockIdx.x * T + x
        total = float32(0.0)
        for t in range(0, n, T):
            tile_a[y, x] = a[row, t + x]
            tile_b[y, x] = b[t + y, col]
            cuda.syncthreads()
            for i in range(T):
                total += tile_a[y, i] * tile_b[i, x]
            cuda.syncthreads()
        c[row, col] = total

    a, b, wanted = inputs.product()
    c = np.full((n, n), np.nan, np.float32)
    return _timed(lambda: product[(n // T, n // T), (T, T)](a, b, c, n), c, wanted)


def _flash() -> dict:
    B, D, n = inputs.QUERIES, inputs.HEAD_DIM, inputs.N

    @cuda.jit
    def flash(q, k, v, o, n):
        keys = cuda.shared.array((B, D), float32)
        values = cuda.shared.array((B, D), float32)
        acc = cuda.local.array(D, float32)
        mine = cuda.local.array(D, float32)
        row = cuda.blockIdx.x * B + cuda.threadIdx.x
        m, l = -math.inf, 0.0
        for i in range(D):
            acc[i] = 0.0
            mine[i] = q[row, i] if row < n else 0.0
        for start in range(0, n, B):
            for i in range(cuda.threadIdx.x, B * D, B):
                inside = start + i // D < n
                keys[i // D, i % D] = k[start + i // D, i % D] if inside else 0.0
                values[i // D, i % D] = v[start + i // D, i % D] if inside else 0.0
            cuda.syncthreads()
            for j in range(min(B, n - start)):
                s = 0.0
                for i in range(D):
                    s += mine[i] * keys[j, i]
                s *= 0.125
                bigger = max(m, s)
                keep, p = math.exp(m - bigger), math.exp(s - bigger)
                l = l * keep + p
                m = bigger
                for i in range(D):
                    acc[i] = acc[i] * keep + p * values[j, i]
            cuda.syncthreads()
        if row < n:
            for i in range(D):
                o[row, i] = acc[i] / l

    q, k, v, wanted = inputs.flash()
    o = np.full((n, D), np.nan, np.float32)
    return _timed(lambda: flash[-(-n // B), B](q, k, v, o, n), o, wanted)


if __name__ == "__main__":
    main()
