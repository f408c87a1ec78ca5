"""Every operation refuses arrays that do not fit each other, on either engine, before it runs."""

import numpy as np
import pytest

from llmcl.check import Sizes, make_cases
from llmcl.errors import LlmclError

CASES = make_cases(np.random.default_rng(0), Sizes(B=2, T=5, H=2, d=7, V=11, F=9))
# (operation, argument, axis) where another size is a right size too.
FREE = {
    ("embedding", 0, 0), ("embedding", 0, 1), ("embedding", 1, 0), ("embedding", 2, 0),
    ("embedding_backward", 2, 0), ("embedding_backward", 3, 0), ("unembedding", 0, 0),
    ("unembedding", 0, 1), ("unembedding", 1, 0), ("linear", 0, 0), ("linear", 0, 1),
    ("layer_norm", 0, 0), ("layer_norm", 0, 1), ("attention_mix", 0, 1), ("cross_entropy", 0, 2),
    ("cross_entropy_backward", 0, 2),
}  # fmt: skip
# Operations of one array, which nothing can contradict, and those with a test of their own.
ALONE = {
    "gelu", "softmax", "causal_softmax", "sum_squares", "fill", "attention_scores", "attention",
    "fused_attention", "pair_counts", "global_norm", "matmul",
}  # fmt: skip


def mutations():
    """Cases with one array that is a row or a column too long."""
    found = {}
    for case in CASES:
        for i, arg in enumerate(case.args):
            if not isinstance(arg, np.ndarray) or case.name in ALONE:
                continue
            for axis in range(arg.ndim):
                longer = np.concatenate([arg, np.take(arg, [0], axis)], axis)
                args = [*case.args[:i], longer, *case.args[i + 1 :]]
                name = f"{case.name}-argument {i}-axis {axis}"
                if (case.name, i, axis) not in FREE:
                    found.setdefault(name, pytest.param(case, args, id=name))
    return list(found.values())


@pytest.mark.parametrize("case, args", mutations())
def test_an_array_with_one_row_or_column_too_many_is_refused(any_engine, case, args):
    moved = [any_engine.from_host(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    before = [any_engine.to_host(m) for m in moved if hasattr(m, "shape")]
    with pytest.raises(LlmclError, match=r"\d"):
        getattr(any_engine, case.name)(*moved, **(case.options or {}))
    for old, new in zip(before, [m for m in moved if hasattr(m, "shape")], strict=True):
        np.testing.assert_array_equal(any_engine.to_host(new), old)


def test_the_norm_s_loss_and_last_status_have_fixed_sizes(any_engine):
    grads = [any_engine.from_host(np.ones(3))]
    with pytest.raises(LlmclError, match=r"loss has the shape \(2,\); it must be \(1,\)"):
        any_engine.global_norm(grads, any_engine.from_host(np.ones(2)), 1.0)
    loss = any_engine.from_host(np.ones(1))
    with pytest.raises(LlmclError, match=r"before has the shape \(4,\); it must be \(5,\)"):
        any_engine.global_norm(grads, loss, 1.0, 2, any_engine.from_host(np.ones(4)))
