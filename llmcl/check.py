"""Compares every operation on a device with NumPy in float64, on random odd inputs.

`llmcl check` prints the table; the tests run the same cases over many more sizes.
"""

import time
from dataclasses import dataclass

import numpy as np

from . import reference
from .reference import bounds


@dataclass(frozen=True)
class Sizes:
    """The sizes that a case is made of: batch, time, heads, head width, vocabulary, wide layer."""

    B: int = 3
    T: int = 19
    H: int = 3
    d: int = 11
    V: int = 71
    F: int = 53

    @property
    def C(self) -> int:
        """The width of the model, heads times head width."""
        return self.H * self.d


@dataclass(frozen=True)
class Comparison:
    """One array against its reference: the worst element measured by its bound."""

    ok: bool
    error: float  # at the worst element
    bound: float  # allowed there
    where: tuple[int, ...]
    got: float
    want: float
    expected: tuple[int, ...] | None = None  # the shape, where it is another one than got

    def __str__(self) -> str:
        if self.expected is not None:
            return f"the shape is {self.where}, expected {self.expected}"
        if self.ok:
            return f"error {self.error:.1e} below its bound {self.bound:.1e} at {self.where}"
        return (
            f"at {self.where} you have {self.got:.6g}, expected {self.want:.6g}: "
            f"error {self.error:.1e} above its bound {self.bound:.1e}"
        )


def compare(got, want, bound) -> Comparison:
    """Whether |got - want| <= bound in every element; a NaN only passes for a NaN."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape != want.shape:
        nan = float("nan")
        return Comparison(False, nan, nan, got.shape, nan, nan, want.shape)
    allowed = np.broadcast_to(np.nan_to_num(np.asarray(bound, np.float64)), want.shape)
    with np.errstate(invalid="ignore", over="ignore"):  # what a kernel read may be any number
        error = np.asarray(np.abs(got - want))  # of two single numbers too
        share = error / np.maximum(allowed, 1e-300)
    error[np.isnan(got) & np.isnan(want)] = 0  # a NaN is right only where NaN is expected
    fails = ~(error <= allowed)
    badness = np.where(fails, np.inf, share)
    where = np.unravel_index(int(np.argmax(badness)), want.shape)
    return Comparison(
        not fails.any(),
        float(error[where]),
        float(allowed[where]),
        tuple(int(i) for i in where),
        float(got[where]),
        float(want[where]),
    )


@dataclass(frozen=True)
class Case:
    """Arguments for one operation, and which of them it writes."""

    name: str
    args: tuple
    written: tuple[int, ...] = ()
    options: dict | None = None

    def run(self, engine) -> list[np.ndarray]:
        """All outputs on an engine as NumPy arrays: what is returned, then what is written."""
        args = [_move(engine, arg) for arg in self.args]
        returned = getattr(engine, self.name)(*args, **(self.options or {}))
        outputs = [] if returned is None else returned
        outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
        outputs = [] if returned is None else outputs
        return [engine.to_host(out) for out in outputs + [args[i] for i in self.written]]

    def bounds(self) -> list[np.ndarray]:
        """The allowed error of every output."""
        engine = reference.Engine()
        args = [_move(engine, arg) for arg in self.args]
        return getattr(bounds, self.name)(*args, **(self.options or {}))

    def check(self, engine) -> list[Comparison]:
        """Every output of the engine against NumPy in float64."""
        wants = self.run(reference.Engine())
        triples = zip(self.run(engine), wants, self.bounds(), strict=True)
        return [compare(got, want, bound) for got, want, bound in triples]


def _move(engine, arg):
    if isinstance(arg, np.ndarray):
        return engine.from_host(arg)
    if isinstance(arg, list):
        return [engine.from_host(array) for array in arg]
    return arg


def make_cases(rng: np.random.Generator, s: Sizes = Sizes()) -> list[Case]:
    """One case or more for every operation, at the given sizes, from random numbers.

    What backward passes need of the forward pass is computed in float64 and rounded to float32, so
    that both sides start from the same numbers.
    """

    def normal(*shape):
        return rng.normal(size=shape).astype(np.float32)

    x, wide = normal(s.B, s.T, s.C), 3 * normal(s.B, s.T, s.F)
    ids = rng.integers(0, s.V, size=(s.B, s.T), dtype=np.int32)
    targets = rng.integers(-1, s.V, size=(s.B, s.T), dtype=np.int32)
    targets[-1, -1] = s.V - 1
    tokens, positions = normal(s.V, s.C), normal(s.T + 5, s.C)
    logits, qkv = 4 * normal(s.B, s.T, s.V), normal(s.B, s.T, 3 * s.C)
    scores = 5 * normal(s.B, s.H, s.T, s.T)
    gamma, beta = normal(s.C), normal(s.C)
    _, mean, rstd = _single(reference.layer_norm, x, gamma, beta)
    shares = _single(reference.attention, qkv, s.H)[1]
    heard, row_sums = _single(reference.fused_attention, qkv, s.H)
    log_sum = _single(reference.cross_entropy, logits, targets)[1]
    last = s.T - 1
    grads = [normal(s.C, s.F), normal(s.F), normal(s.V, s.C)]
    pieces = rng.integers(-1, s.V, size=s.B * s.T + 2, dtype=np.int32)
    adam = dict(rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8, decay=0.1, step=3)
    w, grad, m, v = normal(s.C, s.F), normal(s.C, s.F), normal(s.C, s.F), normal(s.C, s.F) ** 2
    status = np.array([13, 0.7, 1, 2, 0], np.float32)
    failed = np.array([13, 0.7, 0, 2, 5], np.float32)
    return [
        Case("embedding", (ids, tokens, positions)),
        Case("embedding", (ids[:, :1], tokens, positions, 4)),
        Case("embedding_backward", (ids, x, tokens.copy(), positions.copy()), (2, 3)),
        Case("unembedding", (x, tokens)),
        Case("unembedding_backward", (x, tokens, logits, normal(s.V, s.C)), (3,)),
        Case("matmul", (normal(s.V, s.C), normal(s.C, s.F))),
        Case("matmul", (normal(s.C, s.V), normal(s.C, s.F), True, False)),
        Case("matmul", (normal(s.V, s.C), normal(s.F, s.C), False, True)),
        Case("matmul", (normal(s.C, s.V), normal(s.F, s.C), True, True)),
        Case("linear", (x, normal(s.C, s.F), normal(s.F))),
        Case("linear", (x, normal(s.C, s.F), normal(s.F), normal(s.B, s.T, s.F))),
        Case(
            "linear_backward",
            (x, normal(s.C, s.F), wide, normal(s.C, s.F), normal(s.F)),
            (3, 4),
        ),
        Case("gelu", (wide,)),
        Case("gelu_backward", (wide, normal(s.B, s.T, s.F))),
        Case("layer_norm", (x + 3, gamma, beta)),
        Case(
            "layer_norm_backward",
            (x, gamma, mean, rstd, normal(s.B, s.T, s.C), normal(s.C), normal(s.C)),
            (5, 6),
        ),
        Case("residual", (x, normal(s.B, s.T, s.C))),
        Case("softmax", (logits,)),
        Case("causal_softmax", (scores,)),
        Case("causal_softmax", (scores[:, :, -1:], last)),
        Case("softmax_backward", (shares, normal(s.B, s.H, s.T, s.T))),
        Case("attention_scores", (qkv, s.H)),
        Case("attention_mix", (qkv, shares)),
        Case("attention", (qkv, s.H)),
        Case("attention", (qkv[:, : s.T], s.H, last, s.T)),
        Case("attention", (qkv, s.H, 0, (s.T + 1) // 2)),
        Case("attention_backward", (qkv, shares, normal(s.B, s.T, s.C))),
        Case("fused_attention", (qkv, s.H)),
        Case("fused_attention", (qkv, s.H, last, s.T)),
        Case("fused_attention", (qkv, s.H, 0, (s.T + 1) // 2)),
        Case("fused_attention_backward", (qkv, heard, row_sums, normal(s.B, s.T, s.C))),
        Case("cross_entropy", (logits, targets)),
        Case("cross_entropy_backward", (logits, targets, log_sum)),
        Case("sum_squares", (normal(s.V, s.F),)),
        Case("global_norm", (grads, np.array([2.5], np.float32), 1.0)),
        Case("global_norm", (grads, np.array([2.5], np.float32), 1e6)),
        Case("global_norm", (grads, np.array([np.nan], np.float32), 1.0, 7, status)),
        Case("global_norm", (grads, np.array([2.5], np.float32), 1.0, 9, failed)),
        Case("adamw", (w, grad, m, v, status), (0, 2, 3), adam | {"n_decay": w.size // 2}),
        Case("adamw", (w, grad, m, v, failed), (0, 2, 3), adam | {"n_decay": w.size // 2}),
        Case("fill", (normal(s.B, s.F), 0.1), (0,)),
        Case("pair_counts", (pieces, s.V)),
    ]


def _single(operation, *args):
    """The operation's outputs from float64, rounded to float32."""
    lifted = [a.astype(np.float64) if getattr(a, "dtype", None) == np.float32 else a for a in args]
    return [np.asarray(out, np.float32) for out in operation(*lifted)]


def check_all(engine, seed: int = 0):
    """Yields (case, its comparisons, seconds) for every operation; the first run compiles."""
    for case in make_cases(np.random.default_rng(seed)):
        comparisons = case.check(engine)
        start = time.perf_counter()
        case.run(engine)
        yield case, comparisons, time.perf_counter() - start
