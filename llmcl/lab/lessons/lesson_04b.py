"""Lesson 04b, Many heads."""

import numpy as np

from ... import reference
from ...reference import bounds
from ...reference.attention import join_heads, split_heads
from ...reference.softmax import causal_softmax
from . import Broken, Exercise, KernelTask, Question, blank, kernel_file


def _numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _exact(array):
    return np.asarray(array, np.float64)


# ---- the bound of the whole layer ----


def layer_bound(x, w_qkv, b_qkv, w_out, b_out, n_heads):
    """How far the layer's float32 result (B, T, C) may lie from the exact one.

    x (B, T, C), w_qkv (C, 3C), b_qkv (3C), w_out (C, C), b_out (C), all float64. What each step
    rounds goes on through the steps behind it, in their magnitudes.
    """
    qkv, off = x @ w_qkv + b_qkv, bounds.linear(x, w_qkv, b_qkv)[0]
    q, k, v = (split_heads(np.abs(part), n_heads) for part in np.split(qkv, 3, axis=-1))
    dq, dk, dv = (split_heads(part, n_heads) for part in np.split(off, 3, axis=-1))
    y, shares = reference.attention(qkv, n_heads)
    moved = ((q + dq) @ (k + dk).swapaxes(-1, -2) - q @ k.swapaxes(-1, -2)) / np.sqrt(q.shape[-1])
    # Scores that move by at most m change a share by at most the factor exp(2m).
    most = np.where(shares > 0, moved, 0).max(axis=-1, keepdims=True)
    heard = join_heads(shares * np.expm1(2 * most) @ (v + dv) + shares @ dv)
    heard += bounds.fused_attention(qkv, n_heads)[0]  # not below the bound of attention()
    return heard @ np.abs(w_out) + bounds.linear(y, w_out, b_out)[0]


# ---- functions that go wrong ----


def _split_by_reshape(part, n_heads):
    b, t, c = part.shape
    return part.reshape(b, n_heads, t, c // n_heads)


def _split_every_other(part, n_heads):
    b, t, c = part.shape
    return part.reshape(b, t, c // n_heads, n_heads).transpose(0, 3, 1, 2)


def _split_places_first(part, n_heads):
    b, t, c = part.shape
    return part.reshape(b, t, n_heads, c // n_heads)


def _split_on_its_side(part, n_heads):
    return split_heads(part, n_heads).swapaxes(-1, -2)


def _join_by_reshape(heads):
    b, h, t, d = heads.shape
    return heads.reshape(b, t, h * d)


def _join_every_other(heads):
    b, h, t, d = heads.shape
    return heads.transpose(0, 2, 3, 1).reshape(b, t, h * d)


def _shared(
    q, k, v, n_heads, width=None, split=split_heads, join=join_heads, shares_of=causal_softmax
):
    q, k, v = split(q, n_heads), k[:, None], v[:, None]
    width = q.shape[-1] if width is None else width
    return join(shares_of(q @ k.swapaxes(-1, -2) / np.sqrt(width)) @ v)


def _shared_numbers(seed, b, t, h, d):
    q, k, v = _numbers(seed, b, t, h * d), _numbers(seed + 1, b, t, d), _numbers(seed + 2, b, t, d)
    return _exact(q), _exact(k), _exact(v), h


# ---- kernels ----


def _sizes(qkv, n_heads):
    b, t, width = qkv.shape
    return b, t, n_heads, width // 3 // n_heads


def _scores(engine, kernel, qkv, n_heads):
    b, t, h, d = _sizes(qkv, n_heads)
    scores = blank(engine, b, h, t, t)
    size = t, b * h * t
    kernel(size, (4, 4), engine.from_host(qkv), scores, b, t, h, d, 0, t, d**-0.5)
    return engine.to_host(scores)


def _scores_want(qkv, n_heads):
    exact = _exact(qkv)
    scores = reference.attention_scores(exact, n_heads)
    return scores, bounds.attention_scores(exact, n_heads)[0]


SCORES = KernelTask(
    kernel_file("attention"),
    "attention_scores",
    _scores,
    _scores_want,
    cases=[(_numbers(1, 2, 5, 3 * 3 * 2), 3)],
)


def _shares(seed, b, h, t):
    return causal_softmax(_exact(_numbers(seed, b, h, t, t))).astype(np.float32)


def _mix(engine, kernel, qkv, shares):
    b, t, h, d = _sizes(qkv, shares.shape[1])
    y = blank(engine, b, t, h * d)
    there = engine.from_host(qkv), engine.from_host(shares)
    kernel((h * d, b * t), (4, 4), *there, y, b, t, h, d, 0, t)
    return engine.to_host(y)


def _mix_want(qkv, shares):
    qkv, shares = _exact(qkv), _exact(shares)
    return reference.attention_mix(qkv, shares), bounds.attention_mix(qkv, shares)[0]


MIX = KernelTask(
    kernel_file("attention"),
    "attention_mix",
    _mix,
    _mix_want,
    cases=[(_numbers(2, 2, 5, 3 * 3 * 2), _shares(3, 2, 3, 5))],
)


def _hear(engine, kernel, v, shares):
    (b, h, t, _), c = shares.shape, v.shape[-1]
    y = blank(engine, b, t, c)
    there = engine.from_host(v), engine.from_host(shares)
    kernel((c, b * t), (4, 4), *there, y, b, t, h, c // h)
    return engine.to_host(y)


def _hear_want(v, shares):
    return _mix_want(np.concatenate([v, v, v], axis=-1), shares)


HEAR = KernelTask(
    """__kernel void hear(__global const float *restrict v,        // (B, T, C)
                   __global const float *restrict shares,   // (B, H, T, T)
                   __global float *restrict y,              // (B, T, C)
                   const int B, const int T, const int H, const int d)
{
    const int c = get_global_id(0), place = get_global_id(1);
    const int C = H * d;
    if (c >= C || place >= B * T) return;
    const int i = place % T, b = place / T, h = c / d;
    __global const float *p = shares + ((b * H + h) * T + i) * T;

    float sum = 0.0f;
    for (int j = 0; j <= i; ++j) sum += p[j] * v[(b * T + j) * C + c];
    y[place * C + c] = sum;
}
""",
    "hear",
    _hear,
    _hear_want,
    cases=[
        (_numbers(4, 1, 5, 6), _shares(5, 1, 3, 5)),
        (_numbers(6, 2, 5, 6), _shares(7, 2, 3, 5)),
        (_numbers(8, 3, 2, 8), _shares(9, 3, 2, 2)),
    ],
    given=("(b * H + h) * T", "(h * B + b) * T"),
    mistakes=[
        ("(b * H + h) * T", "h * T", "Is the second sentence asked for anywhere now?"),
        ("(b * H + h) * T", "(h * H + b) * T", "In (B, H, T, T), which comes first: b or h?"),
        ("(b * H + h) * T", "(b * d + h) * T", "How many tables of shares has one sentence?"),
        ("h = c / d;", "h = c % H;", "Which columns are head 0's: the first d, or every H-th?"),
    ],
)


def _split(engine, kernel, x, n_heads):
    b, t, c = x.shape
    heads = blank(engine, b, n_heads, t, c // n_heads)
    kernel((c, b * t), (4, 4), engine.from_host(x), heads, b, t, n_heads, c // n_heads)
    return engine.to_host(heads)


SPLIT = KernelTask(
    """__kernel void split_heads(__global const float *restrict x,   // (B, T, C)
                          __global float *restrict heads,     // (B, H, T, d)
                          const int B, const int T, const int H, const int d)
{
    const int c = get_global_id(0), place = get_global_id(1);
    const int C = H * d;
    if (c >= C || place >= B * T) return;
    const int t = place % T, b = place / T, h = c / d, e = c % d;
    heads[((b * H + h) * T + t) * d + e] = x[place * C + c];
}
""",
    "split_heads",
    _split,
    lambda x, n_heads: (split_heads(_exact(x), n_heads), 0.0),
    cases=[(_numbers(10, 2, 5, 6), 3), (_numbers(11, 3, 2, 12), 2), (_numbers(12, 1, 3, 7), 1)],
    mistakes=[
        (
            "((b * H + h) * T + t) * d + e",
            "place * C + c",
            "Has any number moved? That is what a reshape does.",
        ),
        (
            "h = c / d, e = c % d;",
            "h = c % H, e = c / H;",
            "Which columns are head 0's: the first d, or every H-th?",
        ),
        (
            "(b * H + h) * T + t",
            "(h * B + b) * T + t",
            "In (B, H, T, d), which comes first: b or h?",
        ),
        (
            "(b * H + h) * T + t",
            "h * T + t",
            "Where do the heads of the second sentence begin?",
        ),
        (
            "    if (c >= C || place >= B * T) return;\n",
            "",
            "Which work-items have no number of their own, and do they leave?",
        ),
    ],
)

# ---- what the lesson asks ----

_SPLITS = [
    (_exact(_numbers(13, 2, 5, 6)), 3),
    (_exact(_numbers(14, 1, 4, 8)), 2),
    (_exact(_numbers(15, 3, 2, 5)), 1),
]
_EXTRA = "One line does not belong. Which of them leaves every number where it lies?"

EXERCISES = {
    "04b.2": Exercise(
        split_heads,
        cases=_SPLITS,
        mistakes=[
            (_split_by_reshape, "Are the numbers of head 0 all from columns 0 to d - 1?"),
            (_split_every_other, "Which columns are head 0's: the first d, or every H-th?"),
            (_split_places_first, "The cut is right. Which axis has to come forward?"),
            (_split_on_its_side, "Which of the four axes should be the last one?"),
        ],
    ),
    "04b.3": Exercise(
        join_heads,
        cases=[(split_heads(*case),) for case in _SPLITS],
        mistakes=[
            (_join_by_reshape, "What did split_heads do last? That is undone first."),
            (_join_every_other, "Does head 0 come first, with all its d columns?"),
        ],
    ),
    "04b.4": Exercise(
        lambda d_model, n_heads: 4 * d_model**2 + 4 * d_model,
        cases=[(6, 3), (10, 5), (96, 3)],
        mistakes=[
            (lambda c, h: 4 * c * c, "Where are the biases?"),
            (lambda c, h: 3 * c * c + 3 * c, "What mixes the heads at the end?"),
            (lambda c, h: 3 * c * c + c * c + 3 * c, "Has the output product a bias, too?"),
            (
                lambda c, h: h * (4 * c * c + 4 * c),
                "Is a head as wide as the whole row, or only its share of it?",
            ),
            (
                lambda c, h: 4 * c * (c // h) + 4 * (c // h),
                "That is a single head. How many are there?",
            ),
            (lambda c, h: 4 * c * c + c, "How long is the bias of the first product?"),
        ],
    ),
    "04b.5": Exercise(
        lambda: "CBFDAE",
        cases=[()],
        mistakes=[
            (lambda: "CBFDA", "What brings together what the heads heard?"),
            (lambda: "CBFDGE", "Which of the two lines puts a place's numbers side by side?"),
            (lambda: "CBDFAE", "Can there be shares before there are scores?"),
            (lambda: "BCFDAE", "Can q, k and v be cut out before they are computed?"),
            (lambda: "CBFDEA", "What does the output product need: heads, or one row for a place?"),
            *(
                (lambda order=order: order, _EXTRA)
                for order in ("CBFDGAE", "CBFDAGE", "CBGFDAE", "GCBFDAE", "CGBFDAE", "CBFGDAE")
            ),
        ],
        secret=True,
    ),
    "04b.6": HEAR,
    "04b.7": SPLIT,
    "04b.8": Exercise(
        _shared,
        cases=[_shared_numbers(16, 2, 5, 3, 4), _shared_numbers(19, 3, 4, 2, 6)],
        mistakes=[
            (
                lambda q, k, v, h: _shared(q, k, v, h, width=q.shape[-1]),
                "A score is a sum of how many products?",
            ),
            (
                lambda q, k, v, h: _shared(q, k, v, h, shares_of=reference.softmax),
                "May a place hear its future?",
            ),
            (
                lambda q, k, v, h: _shared(q, k, v, h, join=_join_by_reshape),
                "How do the heads come back into one row?",
            ),
            (
                lambda q, k, v, h: _shared(q, k, v, h, split=_split_by_reshape),
                "Whose queries does head 0 have?",
            ),
            (
                lambda q, k, v, h: _shared(q, k, v, h, join=lambda heads: heads),
                "The heads are right. Are they one row for each place yet?",
            ),
        ],
    ),
}

QUESTIONS = {
    "04b.q1": Question("B", {
        "A": "that is the width of a whole row; a score adds up the products of one head only",
        "B": "a score of one head is a sum of 96 / 3 = 32 products",
        "C": "it is the root of the width: the spread of a sum grows with the root",
    }),
    "04b.q2": Question("A", {
        "A": "the same tables are cut into four strips instead of three",
        "B": "there are more heads, but each of them is narrower",
        "C": "each head is narrower, but there are more of them",
    }),
    "04b.q3": Question("B", {
        "A": "the division by the total does that, whatever is taken away first",
        "B": "then the largest exponential is 1, and infinity divided by infinity never comes up",
        "C": "the mask does that; the largest visible score has nothing to do with it",
    }),
    "04b.q4": Question("A", {
        "A": "one token back and no further; attention is what looks further",
        "B": "then it would need a count for every beginning there is, and most occur once",
        "C": "its table has a row for a token, and none for a place",
    }),
    "04b.q5": Question("C", {
        "A": "plain PyOpenCL cannot know what kind of number a kernel takes the bytes for",
        "B": "nobody converts: what is handed over is bytes",
        "C": "each eight bytes are read as two float32 numbers, and nobody complains",
    }),
}  # fmt: skip

_ONE = _numbers(20, 2, 5, 3 * 6)
_THREE = _numbers(21, 2, 5, 3 * 6)

BROKEN = {
    "04b.wrong_key": Broken(
        SCORES,
        "3 * C + C + h * d;",
        "3 * C + d + h * d;",
        tries=[("one head", (_ONE, 1)), ("three heads", (_THREE, 3))],
        finder="check",
        reason="The keys begin behind all queries, C numbers on; one head is only d wide.",
    ),
    "04b.wrong_width": Broken(
        SCORES,
        "sum * scale;",
        "sum / sqrt((float)C);",
        tries=[("one head", (_ONE, 1)), ("three heads", (_THREE, 3))],
        finder="check",
        reason="A score of one head is a sum of d products, not of C.",
    ),
    "04b.wrong_owner": Broken(
        MIX,
        "h = c / d;",
        "h = c % H;",
        tries=[
            ("one head", (_ONE, _shares(22, 2, 1, 5))),
            ("three heads", (_THREE, _shares(23, 2, 3, 5))),
        ],
        finder="check",
        reason="A head's columns lie side by side; counted with %, they are dealt out one by one.",
    ),
}
