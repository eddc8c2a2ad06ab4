"""Answers to io_bytes."""

from __future__ import annotations

import math

from labs_lib.arithmetic.traffic import io_bytes

from ..kit import Answer, Right, Wrong


def _program(naive=None, flash=None):
    """The right program with another count of elements or bytes for one of the two."""

    def program(n_q, n_k, head_dim, block_q, itemsize=2):
        right = io_bytes(n_q, n_k, head_dim, block_q, itemsize)
        sizes = (n_q, n_k, head_dim, block_q, itemsize)
        return {
            "naive": naive(*sizes) if naive else right["naive"],
            "flash": flash(*sizes) if flash else right["flash"],
        }

    return program


def _tiles(n_q, block_q):
    return -(-n_q // block_q)


def _by_steps(n_q, n_k, head_dim, block_q, itemsize=2):
    q, k, scores = n_q * head_dim, n_k * head_dim, n_q * n_k
    steps = [(q + k, scores), (scores, scores), (scores + k, q)]
    flash = n_q * 4
    for start in range(0, n_q, block_q):
        rows = min(block_q, n_q - start)
        flash += (rows * head_dim + 2 * k + rows * head_dim) * itemsize
    return {"naive": sum(r + w for r, w in steps) * itemsize, "flash": flash}


IO_BYTES = Answer(
    reference=io_bytes,
    wrong=(
        Wrong(
            "six_passes",
            _program(lambda n, m, d, b, s: (2 * (n + m) * d + 6 * n * m) * s),
            "naive counts six passes over the matrix, as if scaling were a step of its own. Here\n"
            "there are three steps: scores, softmax, weights times v.",
        ),
        Wrong(
            "two_passes",
            _program(lambda n, m, d, b, s: (2 * (n + m) * d + 2 * n * m) * s),
            "naive counts two passes over the matrix: only the writes, or only the reads. What\n"
            "one step writes, the next one reads.",
        ),
        Wrong(
            "three_passes",
            _program(lambda n, m, d, b, s: (2 * (n + m) * d + 3 * n * m) * s),
            "naive counts three passes over the matrix. Scores and weights are each written once\n"
            "and read once.",
        ),
        Wrong(
            "matrix_only",
            _program(lambda n, m, d, b, s: 4 * n * m * s),
            "naive leaves out q, k, v and the output.",
        ),
        Wrong(
            "keys_read_for_every_query",
            _program(lambda n, m, d, b, s: (2 * n * d + 2 * n * m * d + 4 * n * m) * s),
            "naive reads k and v anew for every query. Count what a step needs once: tiles make\n"
            "that possible (lab 09).",
        ),
        Wrong(
            "keys_read_once",
            _program(flash=lambda n, m, d, b, s: 2 * (n + m) * d * s + 4 * n),
            "flash reads k and v once altogether. Each tile of queries walks over all keys again.",
        ),
        Wrong(
            "keys_read_for_every_query_in_flash",
            _program(flash=lambda n, m, d, b, s: (2 * n * d + 2 * n * m * d) * s + 4 * n),
            "flash reads k and v for every query. All queries of a tile share one reading.",
        ),
        Wrong(
            "short_tile_forgotten",
            _program(flash=lambda n, m, d, b, s: (2 * n * d + n // b * 2 * m * d) * s + 4 * n),
            "flash counts full tiles of queries only. A short last tile reads all keys too.",
        ),
        Wrong(
            "a_part_of_a_tile",
            _program(flash=lambda n, m, d, b, s: (2 * n * d + n / b * 2 * m * d) * s + 4 * n),
            "flash counts a short last tile as a part of one. It reads all keys like the others.",
        ),
        Wrong(
            "one_tile_too_many",
            _program(flash=lambda n, m, d, b, s: (
                2 * n * d + (n // b + 1) * 2 * m * d) * s + 4 * n),
            "flash counts a tile more than there are where block_q divides n_q.",
        ),
        Wrong(
            "values_forgotten",
            _program(flash=lambda n, m, d, b, s: (2 * n * d + _tiles(n, b) * m * d) * s + 4 * n),
            "flash reads k for each tile, and not v.",
        ),
        Wrong(
            "lse_forgotten",
            _program(flash=lambda n, m, d, b, s: (2 * n * d + _tiles(n, b) * 2 * m * d) * s),
            "flash doesn't write lse: 4 bytes for each query.",
        ),
        Wrong(
            "lse_in_itemsize",
            _program(flash=lambda n, m, d, b, s: (2 * n * d + _tiles(n, b) * 2 * m * d + n) * s),
            "lse takes itemsize bytes a query here. It is float32 whatever the inputs are.",
        ),
        Wrong(
            "output_forgotten",
            _program(flash=lambda n, m, d, b, s: (n * d + _tiles(n, b) * 2 * m * d) * s + 4 * n),
            "flash doesn't write the output.",
        ),
        Wrong(
            "output_forgotten_in_both",
            _program(
                lambda n, m, d, b, s: (n * d + 2 * m * d + 4 * n * m) * s,
                lambda n, m, d, b, s: (n * d + _tiles(n, b) * 2 * m * d) * s + 4 * n,
            ),
            "Neither program writes its output here: n_q * head_dim elements in both.",
        ),
        Wrong(
            "output_forgotten_in_naive",
            _program(lambda n, m, d, b, s: (n * d + 2 * m * d + 4 * n * m) * s),
            "naive doesn't write the output.",
        ),
        Wrong(
            "queries_of_full_tiles",
            _program(flash=lambda n, m, d, b, s: (
                _tiles(n, b) * b * d + n * d + _tiles(n, b) * 2 * m * d) * s + 4 * n),
            "flash reads block_q queries for each tile, the last one too. A short tile reads only\n"
            "the queries that there are.",
        ),
        Wrong(
            "queries_read_again",
            _program(flash=lambda n, m, d, b, s: (
                n * d + _tiles(m, b) * n * d + _tiles(n, b) * 2 * m * d) * s + 4 * n),
            "flash reads q again and again. A tile of queries is read once and stays on the chip.",
        ),
        Wrong(
            "all_queries_for_each_tile",
            _program(flash=lambda n, m, d, b, s: (
                n * d + _tiles(n, b) * (n + 2 * m) * d) * s + 4 * n),
            "flash reads all of q for each tile of queries. A tile reads its own queries only, so\n"
            "that q is read once altogether.",
        ),
        Wrong(
            "all_of_it_for_each_tile",
            _program(flash=lambda n, m, d, b, s: _tiles(n, b) * 2 * (n + m) * d * s + 4 * n),
            "flash reads all of q and writes the whole output for each tile of queries. A tile\n"
            "has its own queries only.",
        ),
        Wrong(
            "lse_in_naive",
            _program(lambda n, m, d, b, s: (2 * (n + m) * d + 4 * n * m) * s + 4 * n),
            "naive has a lse in it, 4 bytes a query. Only flash writes one.",
        ),
        Wrong(
            "scores_cross_too",
            _program(flash=lambda n, m, d, b, s: (
                2 * n * d + _tiles(n, b) * 2 * m * d + 2 * n * m) * s + 4 * n),
            "flash writes and reads scores. They never leave the chip: that is what it is for.",
        ),
        Wrong(
            "elements",
            lambda n, m, d, b, s=2: {
                "naive": 2 * (n + m) * d + 4 * n * m,
                "flash": 2 * n * d + _tiles(n, b) * 2 * m * d + n,
            },
            "These are elements. A byte count multiplies them by itemsize.",
        ),
        Wrong(
            "elements_beside_bytes",
            lambda n, m, d, b, s=2: {
                "naive": 2 * (n + m) * d + 4 * n * m,
                "flash": 2 * n * d + _tiles(n, b) * 2 * m * d + 4 * n,
            },
            "These are elements, and only lse is in bytes. All others take itemsize bytes each.",
        ),
        Wrong(
            "always_two_bytes",
            lambda n, m, d, b, s=2: io_bytes(n, m, d, b, 2),
            "An element takes two bytes here whatever itemsize says.",
        ),
        Wrong(
            "names_swapped",
            lambda n, m, d, b, s=2: dict(
                zip(("flash", "naive"), io_bytes(n, m, d, b, s).values(), strict=True)),
            "The two numbers stand under each other's names.",
        ),
    ),
    right=(
        Right("step_by_step", _by_steps),
        Right("by_ceil", _program(flash=lambda n, m, d, b, s: (
            2 * n * d + math.ceil(n / b) * 2 * m * d) * s + 4 * n)),
        Right("floats", lambda n, m, d, b, s=2: {
            k: float(x) for k, x in io_bytes(n, m, d, b, s).items()}),
    ),
)  # fmt: skip
