"""Lesson 08c, Backprop: the whole."""

from dataclasses import dataclass, field

import numpy as np

from ... import reference
from ...errors import LlmclError
from ...reference import bounds
from . import Broken, Exercise, KernelTask, Question, blank, kernel_file


def _numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _exact(array):
    return np.asarray(array, np.float64)


# ---- faults to be found ----

PARTS = ("attn_norm", "attention", "ffn_norm", "feed_forward")


def _norm_without_spread(x, gamma, mean, rstd, dy, dgamma, dbeta):
    dx = reference.layer_norm_backward(x, gamma, mean, rstd, dy, dgamma, dbeta)
    r = rstd[..., None]
    xhat = (x - mean[..., None]) * r
    return dx + r * xhat * (gamma * dy * xhat).mean(axis=-1, keepdims=True)


def _attention_without_average(qkv, y, log_sum, dy):
    # The average of the wishes is 0 where nothing was heard.
    return reference.fused_attention_backward(qkv, np.zeros_like(y), log_sum, dy)


def _gelu_without_second_term(x, dy):
    return dy * np.where(x == 0, 0.5, reference.gelu(x) / np.where(x == 0, 1, x))


_WRONG = {
    "attn_norm": ("layer_norm_backward", _norm_without_spread),
    "attention": ("fused_attention_backward", _attention_without_average),
    "ffn_norm": ("layer_norm_backward", _norm_without_spread),
    "feed_forward": ("gelu_backward", _gelu_without_second_term),
}


def break_part(model, block: int, part: str) -> None:
    """Gives one part of a model on the NumPy engine a wrong way back; the way forward stays right.

    part is one of PARTS; raises LlmclError for another one.
    """
    if part not in _WRONG:
        raise LlmclError(f"a block has no part {part!r}; its parts are {', '.join(PARTS)}.")
    name, wrong = _WRONG[part]
    engine = reference.Engine(model.engine.dtype)
    setattr(engine, name, wrong)
    getattr(model.blocks[block], part).engine = engine


def where(seed: int, blocks: int) -> str:
    """The place that hide_fault chooses for a seed, such as "blk.2.ffn_norm"."""
    rng = np.random.default_rng([8, seed])
    return f"blk.{rng.integers(blocks)}.{PARTS[rng.integers(len(PARTS))]}"


def hide_fault(model, seed: int) -> None:
    """Breaks the way back of one part of a model; which one, the seed decides and nobody says."""
    _, block, part = where(seed, len(model.blocks)).split(".")
    break_part(model, int(block), part)


HIDDEN = where(11, 8)
_BLOCK, _PART = int(HIDDEN.split(".")[1]), HIDDEN.split(".")[2]


def _told(answer):
    return lambda: answer


# ---- softmax and attention ----


def _softmax_backward(shares, dshares):
    return shares * (dshares - (shares * dshares).sum(axis=-1, keepdims=True))


def _shares_of(seed, *shape):
    return reference.softmax(2 * _exact(_numbers(seed, *shape))), _exact(_numbers(seed + 1, *shape))


def _some_shares(seed, rows, n):
    shares, dshares = _shares_of(seed, rows, n)
    return shares.astype(np.float32), dshares.astype(np.float32)


def _even_shares(seed, rows, n):
    return np.full((rows, n), np.float32(1 / n)), _numbers(seed, rows, n)


def _softmax_back(engine, kernel, shares, dshares):
    (rows, n), d = shares.shape, blank(engine, *shares.shape)
    kernel((rows,), (4,), engine.from_host(shares), engine.from_host(dshares), d, rows, n)
    return engine.to_host(d)


def _softmax_back_want(shares, dshares):
    exact = _exact(shares), _exact(dshares)
    return reference.softmax_backward(*exact), bounds.softmax_backward(*exact)[0]


_TWO_LOOPS = """dshares[row * n + j];
    for (int j = 0; j < n; ++j)
        dscores[row * n + j] = shares[row * n + j] * (dshares[row * n + j] - average);"""
_ONE_LOOP = """dshares[row * n + j],
        dscores[row * n + j] = shares[row * n + j] * (dshares[row * n + j] - average);"""

SOFTMAX_BACK = KernelTask(
    """
__kernel void softmax_back(__global const float *shares,    // (rows, n)
                           __global const float *dshares,   // (rows, n)
                           __global float *dscores,         // (rows, n)
                           const int rows, const int n)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    float average = 0.0f;
    for (int j = 0; j < n; ++j)
        average += shares[row * n + j] * dshares[row * n + j];
    for (int j = 0; j < n; ++j)
        dscores[row * n + j] = shares[row * n + j] * (dshares[row * n + j] - average);
}
""",
    "softmax_back",
    _softmax_back,
    _softmax_back_want,
    cases=[_some_shares(1, 5, 7), _some_shares(3, 3, 4)],
    mistakes=[
        (" - average", "", "A share that grows takes from the others. Where is that?"),
        (" - average)", " + average)", "Above the average, or below it: which sign is that?"),
        (" - average)", " - average / n)", "The shares are 1 in total already. Is their weighted "
         "average a sum, or a mean?"),
        ("average += shares[row * n + j] * ", "average += ", "Does a place that is hardly heard "
         "count as much in the average as one that is heard?"),
        ("dscores[row * n + j] = shares[row * n + j] * ", "dscores[row * n + j] = ", "Can a score "
         "move more than the share that it has?"),
        (_TWO_LOOPS, _ONE_LOOP, "Is the average whole when the first number is written?"),
        ("average += ", "average = ", "Is the average a sum over the row, or its last part?"),
        ("dscores[row * n + j]", "dscores[j]", "Whose row of dscores is that?"),
        ("    if (row >= rows) return;\n", "", "Which work-items have no row of their own, and do "
         "they leave?"),
    ],
)  # fmt: skip

PLAIN_MEAN = KernelTask(
    kernel_file("softmax"),
    "softmax_backward",
    _softmax_back,
    _softmax_back_want,
    cases=[_some_shares(5, 5, 7)],
)


def _keys_case(seed, T, d):
    shares = reference.causal_softmax(_exact(_numbers(seed, T, T)))
    dscores = reference.softmax_backward(shares, _exact(_numbers(seed + 1, T, T)))
    return _numbers(seed + 2, T, d), dscores.astype(np.float32)


def _keys(engine, kernel, q, dscores):
    (T, d), dk = q.shape, blank(engine, *q.shape)
    scale = float(1 / np.sqrt(d))
    kernel((d, T), (2, 2), engine.from_host(q), engine.from_host(dscores), dk, T, d, scale)
    return engine.to_host(dk)


def _keys_want(q, dscores):
    q, dscores = _exact(q), _exact(dscores)
    scale, terms = 1 / np.sqrt(q.shape[1]), len(q) + 2
    return dscores.T @ q * scale, terms * bounds.U * (np.abs(dscores).T @ np.abs(q)) * scale


KEYS = KernelTask(
    """
__kernel void key_gradient(__global const float *q,         // (T, d)
                           __global const float *dscores,   // (T, T)
                           __global float *dk,              // (T, d)
                           const int T, const int d, const float scale)
{
    const int e = get_global_id(0), t = get_global_id(1);
    if (e >= d || t >= T) return;
    float sum = 0.0f;
    for (int i = t; i < T; ++i)
        sum += dscores[i * T + t] * q[i * d + e];
    dk[t * d + e] = sum * scale;
}
""",
    "key_gradient",
    _keys,
    _keys_want,
    cases=[_keys_case(11, 5, 3), _keys_case(14, 4, 7)],
    mistakes=[
        ("sum * scale", "sum", "Forward divides by the root of d. And backward?"),
        ("q[i * d + e]", "q[t * d + e]", "Who asked key t: place t, or each place i?"),
        ("int i = t;", "int i = t + 1;", "Does a place see itself?"),
        ("i = t; i < T; ++i)\n        sum += dscores[i * T + t]",
         "i = 0; i <= t; ++i)\n        sum += dscores[t * T + i]", "Those are the places that "
         "place t asks. Which places ask it?"),
        ("i = t; i < T; ++i", "i = 0; i <= t; ++i", "Which places may see place t: the earlier "
         "ones, or the later ones?"),
        ("dscores[i * T + t]", "dscores[i * T + i]", "Which score has the query i and the key t?"),
    ],
    given=("dscores[i * T + t]", "dscores[t * T + i]"),
)  # fmt: skip


# ---- the table that two sides add to ----


def _look_up(engine, kernel, ids, dx, dtokens):
    (places, c), there = dx.shape, [engine.from_host(array) for array in (ids, dx, dtokens)]
    kernel((c, len(dtokens)), (2, 2), *there, places, len(dtokens), c, 1)
    return engine.to_host(there[2])


def _look_up_want(ids, dx, dtokens):
    want = _exact(dtokens)
    np.add.at(want, ids, _exact(dx))
    unused = np.zeros((len(ids), dx.shape[1]))
    args = ids[None], _exact(dx)[None], _exact(dtokens), unused
    return want, bounds.embedding_backward(*args)[0]


def _table_case(seed, before):
    ids = np.array([3, 1, 5, 0], np.int32)
    return ids, _numbers(seed, 4, 3), np.float32(before) * _numbers(seed + 1, 7, 3)


LOOK_UP = KernelTask(
    kernel_file("embedding"),
    "embedding_backward_tokens",
    _look_up,
    _look_up_want,
    cases=[_table_case(21, 1)],
)

# ---- GELU's slope ----

_ROOT = float(np.sqrt(2 / np.pi))


def _share_kept(x):
    return 1 / (1 + np.exp(-2 * _ROOT * (x + 0.044715 * x**3)))


def _gelu_slope(x, s, du, first=1.0, second=1.0):
    return first * s + second * x * 2 * s * (1 - s) * du


def _at(*numbers):
    x = np.array(numbers)
    return x, _share_kept(x), _ROOT * (1 + 3 * 0.044715 * x**2)


# ---- halving ----


@dataclass(frozen=True)
class Chain:
    """A way back whose half number `fault` is wrong: call it with a point to ask if it agrees."""

    fault: int
    most: int
    asked: list = field(default_factory=list, compare=False)

    def __call__(self, point: int) -> bool:
        self.asked.append(point)
        if len(self.asked) > self.most:
            raise LlmclError(f"asked more than {self.most} times; does each question halve?")
        return point > self.fault


def _find_fault(agrees, n):
    wrong, right = 0, n
    while right - wrong > 1:
        middle = (wrong + right) // 2
        if agrees(middle):
            right = middle
        else:
            wrong = middle
    return wrong


def _other_side(agrees, n):
    wrong, right = 0, n
    while right - wrong > 1:
        middle = (wrong + right) // 2
        wrong, right = (middle, right) if agrees(middle) else (wrong, middle)
    return wrong


def _too_early(agrees, n):
    wrong, right = 0, n
    while right - wrong > 2:
        middle = (wrong + right) // 2
        wrong, right = (wrong, middle) if agrees(middle) else (middle, right)
    return wrong


# ---- what the lesson asks ----

EXERCISES = {
    "08c.2": Exercise(
        _softmax_backward,
        cases=[_shares_of(31, 3, 5), _shares_of(33, 4, 4), _shares_of(35, 2, 3, 3)],
        mistakes=[
            (lambda p, dp: p * dp, "A share that grows takes from the others. Where is that?"),
            (lambda p, dp: p * (1 - p) * dp, "That is what a score does to its own share. What "
             "does it do to the others?"),
            (lambda p, dp: p * (dp - dp.sum(-1, keepdims=True)), "Does a place that is hardly "
             "heard count as much as one that is heard?"),
            (lambda p, dp: p * (dp - dp.mean(-1, keepdims=True)), "Does a place that is hardly "
             "heard count as much in the average as one that is heard?"),
            (lambda p, dp: dp - (p * dp).sum(-1, keepdims=True), "Can a score move more than the "
             "share that it has?"),
            (lambda p, dp: p * (dp - (p * dp).mean(-1, keepdims=True)), "The shares are 1 in total "
             "already. Is their weighted average a sum, or a mean?"),
            (lambda p, dp: p * (dp - (p * dp).sum()), "Has each row an average of its own?"),
            (lambda p, dp: p * (dp + (p * dp).sum(-1, keepdims=True)), "Above the average, or "
             "below it: which sign is that?"),
            (lambda p, dp: p * ((p * dp).sum(-1, keepdims=True) - dp), "If a place with a large "
             "slope is heard more, does the loss grow, or shrink?"),
        ],
    ),
    "08c.3": Exercise(
        _gelu_slope,
        cases=[_at(-2.0, -0.5, 0.0, 0.7, 3.0)],
        mistakes=[
            (lambda x, s, du: s, "x moves, and s moves too. Where is the second way?"),
            (lambda x, s, du: s + 2 * s * (1 - s) * du, "In x · s, how far does the product move "
             "when s does?"),
            (lambda x, s, du: s + x * 2 * s * (1 - s), "s depends on u, and u on x. How many "
             "slopes has that chain?"),
            (lambda x, s, du: s + x * du, "du is how fast u moves. How fast does s move when u "
             "does?"),
            (lambda x, s, du: (s + x * 2 * s * (1 - s)) * du, "Two ways. Does x itself go through "
             "u, too?"),
            (lambda x, s, du: s + x * s * (1 - s) * du, "The exponent is −2u. What became of the "
             "2?"),
            (lambda x, s, du: x * 2 * s * (1 - s) * du, "Which way is missing: x itself, or s?"),
            (lambda x, s, du: s * x * 2 * s * (1 - s) * du, "Two ways from x to the result: are "
             "they multiplied, or added?"),
        ],
    ),
    "08c.4": SOFTMAX_BACK,
    "08c.5": Exercise(
        lambda: "EBDAC",
        cases=[()],
        mistakes=[
            (lambda: "EBDFC", "Which block is nearest to the loss: the first, or the last?"),
            (lambda: "BDACE", "When must the gradients be 0: before something is added, or after?"),
            (lambda: "BDAEC", "When must the gradients be 0: before something is added, or after?"),
            (lambda: "BADCE", "When must the gradients be 0: before something is added, or after?"),
            (lambda: "BDAC", "Gradients are added. To what, if nobody cleared them?"),
            (lambda: "EDBAC", "Which is nearer to the loss: the head, or the last norm?"),
            (lambda: "EBDACF", "One line does not belong. Which two do nearly the same?"),
            (lambda: "EBDAFC", "One line does not belong. Which two do nearly the same?"),
            (lambda: "EBADC", "The last norm stands behind the blocks. Where does the way back "
             "meet it?"),
            (lambda: "ECADB", "Where does the way back begin: at the loss, or at the look-up?"),
            (lambda: "ECFDB", "Where does the way back begin: at the loss, or at the look-up?"),
        ],
        secret=True,
    ),
    "08c.6": Exercise(
        _find_fault,
        cases=[(Chain(11, 12), 16), (Chain(0, 12), 16), (Chain(15, 12), 16), (Chain(3, 12), 7),
               (Chain(700, 30), 1024)],
        mistakes=[
            (_other_side, "If the middle agrees, on which side of it is the fault?"),
            (lambda f, n: _find_fault(f, n) + 1, "Half i lies between the points i and i + 1. "
             "Which of the two is wrong?"),
            (_too_early, "How far apart are the two points when only one half is left?"),
            (lambda f, n: n // 2, "One question is not enough. How often is it asked?"),
        ],
    ),
    "08c.7": Exercise(
        lambda: HIDDEN,
        cases=[()],
        mistakes=[(_told(f"blk.{_BLOCK}.{part}"), "The block is right. Which half of it, and is "
                   "it the norm or the branch?") for part in PARTS if part != _PART]
        + [(_told(f"blk.{2 * _BLOCK + (_PART in PARTS[2:])}.{_PART}"), "Is that the block, or the "
            "half? Two halves make a block."),
           (_told("blk.5.attn_norm"), "That is the fault of the model before. Which one did you "
            "ask: faulty, or mystery?")]
        + [(_told(f"blk.{_BLOCK + step}.{_PART}"), "The part is right. Two halves make a block: "
            "what is half of the half's number?") for step in (-1, 1)],
        secret=True,
    ),
    "08c.8": KEYS,
}  # fmt: skip

QUESTIONS = {
    "08c.q1": Question("C", {
        "A": "the head adds to it too, for every token, used or not",
        "B": "the look-up adds only to rows of tokens that occur; but it is not alone",
        "C": "the head compares each place with every row, so each row gets a gradient from there",
    }),
    "08c.q2": Question("B", {
        "A": "point 8 is right, so nothing between it and the loss can be wrong",
        "B": "8 agrees and 4 does not, so one of the halves 4 to 7 is wrong",
        "C": "a fault spoils what comes before it, and point 8 comes behind these",
    }),
    "08c.q3": Question("A", {
        "A": "two places of a token write to the same row; the owner of a row collects alone",
        "B": "they read dx as often as before; the reason is who writes",
        "C": "both use a table of (V, C)",
    }),
    "08c.q4": Question("B", {
        "A": "that is a model that has learned nothing, and says so",
        "B": "loud weights make loud logits: the model is sure, and wrong",
        "C": "padding has no target, so it is not in the mean",
    }),
    "08c.q5": Question("C", {
        "A": "that is the width of the row, and no head sees all of it",
        "B": "the scores are divided by its root, but the count of heads is no width",
        "C": "a score is a sum over the channels of one head",
    }),
}  # fmt: skip

BROKEN = {
    "08c.plain_mean": Broken(
        PLAIN_MEAN,
        "dot += p[j] * dp[j];",
        "dot += dp[j] / n;",
        tries=[
            ("no mask, all shares alike", _even_shares(41, 5, 8)),
            ("shares that differ", _some_shares(43, 5, 8)),
        ],
        finder="check",
        reason="With equal shares, the weighted average is the plain mean.",
    ),
    "08c.writes": Broken(
        LOOK_UP,
        "dtokens[v * C + c] += dx",
        "dtokens[v * C + c] = dx",
        tries=[
            ("a table of zeros", _table_case(51, 0)),
            ("the head's gradient lies there", _table_case(53, 1)),
        ],
        finder="check",
        reason="What the head has added to the row of a used token is lost.",
    ),
}  # fmt: skip
