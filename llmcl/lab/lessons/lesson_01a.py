"""Lesson 01a, A first kernel."""

import numpy as np

from ...reference import bounds
from . import Broken, KernelTask, blank, kernel_file


def _numbers(seed, *shapes):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).astype(np.float32) for shape in shapes)


def _product(engine, kernel, a, b):
    (m, k), n = a.shape, b.shape[1]
    c = blank(engine, m, n)
    kernel((m, n), (4, 4), engine.from_host(a), engine.from_host(b), c, m, n, k)
    return engine.to_host(c)


def _exact(a, b):
    exact = a.astype(np.float64), b.astype(np.float64)
    return exact[0] @ exact[1], bounds.matmul(*exact)[0]


PRODUCT = KernelTask(
    kernel_file("matmul"),
    "matmul_naive",
    _product,
    _exact,
    cases=[_numbers(1, (3, 5), (5, 7)), _numbers(2, (6, 1), (1, 2))],
)

EXERCISES = {}
QUESTIONS = {}
BROKEN = {
    "01a.no_guard": Broken(
        PRODUCT,
        "    if (row >= m || col >= n) return;\n",
        "",
        tries=[
            ("4 x 4 times 4 x 4", _numbers(3, (4, 4), (4, 4))),
            ("3 x 5 times 5 x 7", _numbers(1, (3, 5), (5, 7))),
        ],
        finder="invalid write",
        reason="Sizes are rounded up to whole groups, so some work-items have no element.",
    ),
}
