"""Lesson 11, Generating."""

import numpy as np

from ... import reference
from ...reference import bounds
from . import Broken, Exercise, KernelTask, Question, blank, kernel_file


def _numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _exact(array):
    return np.asarray(array, np.float64)


# ---- shares ----


def _quiet(function):
    """The function without NumPy's warnings: wrong shares overflow or divide by 0 on purpose."""

    def run(*args):
        with np.errstate(all="ignore"):
            return function(*args)

    return run


def _tempered(logits, temperature):
    e = np.exp((logits - logits.max()) / temperature)
    return e / e.sum()


def _overflowing(logits, temperature):
    e = np.exp(logits / temperature)
    return e / e.sum()


def _nucleus(shares, p, sign=-1, last=np.less, stays=None, whole=True, back=True):
    order = np.argsort(sign * shares, kind="stable")
    ranked = shares[order]
    before = np.cumsum(ranked) - ranked
    kept = np.where(stays(ranked, before) if stays else last(before, p), ranked, 0)
    out = np.zeros_like(shares)
    out[order if back else np.arange(len(shares))] = kept
    return out / out.sum() if whole else out


def _in_order_of_ids(shares, p):
    kept = np.where(np.cumsum(shares) - shares < p, shares, 0)
    return kept / kept.sum()


def _sharp(logits):
    return np.eye(len(logits))[np.argmax(logits)]


def _shares_at(logits, temperature):
    return _sharp(logits) if temperature == 0 else _tempered(logits, temperature)


def _tiny_instead(logits, temperature):
    return _tempered(logits, max(temperature, 1e-9))


def _all_of_the_largest(logits, temperature):
    if temperature == 0:
        return (logits == logits.max()) * 1.0
    return _tempered(logits, temperature)


# ---- kernels ----


def _scores(engine, kernel, qkv, n_heads, first, length):
    (B, T, width), asking = qkv.shape, length - first
    d = width // 3 // n_heads
    scores = blank(engine, B, n_heads, asking, length)
    sizes = (length, B * n_heads * asking), (4, 4)
    kernel(*sizes, engine.from_host(qkv), scores, B, T, n_heads, d, first, length, d**-0.5)
    return engine.to_host(scores)


def _scores_want(qkv, *how):
    exact = _exact(qkv)
    return reference.attention_scores(exact, *how), bounds.attention_scores(exact, *how)[0]


SCORES = KernelTask(
    kernel_file("attention"),
    "attention_scores",
    _scores,
    _scores_want,
    cases=[(_numbers(1, 1, 7, 18), 2, 3, 4)],
)


def _mix_case(seed, T, n_heads, d, first):
    cache = _numbers(seed, T, 3 * n_heads * d)
    shares = reference.softmax(_exact(_numbers(seed + 1, n_heads, first + 1)))
    return cache, shares.astype(np.float32), n_heads, d, first


def _mix(engine, kernel, cache, shares, n_heads, d, first):
    y = blank(engine, n_heads * d)
    there = engine.from_host(cache), engine.from_host(shares), y
    kernel((n_heads * d,), (4,), *there, n_heads, d, first)
    return engine.to_host(y)


def _mix_want(cache, shares, n_heads, d, first):
    exact = _exact(cache)[None], _exact(shares)[None, :, None, :]
    want = reference.attention_mix(*exact, first)[0, 0]
    return want, bounds.attention_mix(*exact, first)[0][0, 0]


MIX = KernelTask(
    """
__kernel void newest_mix(__global const float *cache,    // (T, 3C)
                         __global const float *shares,   // (H, first + 1)
                         __global float *y,              // (C)
                         const int H, const int d, const int first)
{
    const int c = get_global_id(0);
    const int C = H * d;
    if (c >= C) return;
    const int h = c / d;
    float sum = 0.0f;
    for (int j = 0; j <= first; ++j)
        sum += shares[h * (first + 1) + j] * cache[j * 3 * C + 2 * C + c];
    y[c] = sum;
}
""",
    "newest_mix",
    _mix,
    _mix_want,
    cases=[_mix_case(3, 7, 2, 3, 4), _mix_case(5, 6, 3, 1, 5), _mix_case(7, 4, 1, 5, 0)],
    given=("j <= first", "j < first"),
    mistakes=[
        ("j <= first", "j <= first + 1", "How many shares does a head have?"),
        ("2 * C + c", "C + c", "Are these the values, or the keys?"),
        ("j * 3 * C", "j * C", "How many numbers does a place have in the cache?"),
        ("c / d", "c % d", "Which head does channel c belong to?"),
        ("h * (first + 1)", "h * first", "How many shares does a head have, with its own?"),
        ("int j = 0", "int j = 1", "Does the new place hear the first place of the text?"),
    ],
)


def _keep(engine, kernel, qkv, cache, first):
    kept, (asking, width) = engine.from_host(cache), qkv.shape
    kernel((width, asking), (4, 4), engine.from_host(qkv), kept, asking, width, first)
    return engine.to_host(kept)


def _keep_want(qkv, cache, first):
    want = _exact(cache)
    want[first : first + len(qkv)] = qkv
    return want, np.zeros_like(want)


KEEP = KernelTask(
    """
__kernel void keep_rows(__global const float *qkv,   // (Q, width)
                        __global float *cache,       // (T, width)
                        const int Q, const int width, const int first)
{
    const int c = get_global_id(0), i = get_global_id(1);
    if (c >= width || i >= Q) return;
    cache[(first + i) * width + c] = qkv[i * width + c];
}
""",
    "keep_rows",
    _keep,
    _keep_want,
    cases=[
        (_numbers(11, 3, 6), _numbers(12, 7, 6), 0),
        (_numbers(13, 1, 9), _numbers(14, 5, 9), 4),
        (_numbers(15, 2, 5), _numbers(16, 9, 5), 3),
    ],
    mistakes=[
        ("(first + i) * width", "i * width", "Whose row is row 0 of the cache?"),
        (
            "c >= width || i >= Q",
            "c >= width || first + i >= Q",
            "Q counts the new rows. Is first + i one of them, or a row of the cache?",
        ),
        (
            "c = get_global_id(0), i = get_global_id(1)",
            "c = get_global_id(1), i = get_global_id(0)",
            "Id 0 runs along a row, as in all lessons. Which of the two counts columns?",
        ),
        (
            "(first + i) * width + c",
            "first + i * width + c",
            "What is multiplied by the width: i, or first as well?",
        ),
        ("(first + i) * width", "first * width", "Where does the second of two new rows go?"),
        (
            "qkv[i * width",
            "qkv[(first + i) * width",
            "Which rows does qkv have: those of the whole text, or the new ones?",
        ),
        (
            "    if (c >= width || i >= Q) return;\n",
            "",
            "Which work-items have no number of their own, and do they leave?",
        ),
        (
            "cache[(first + i) * width + c] = qkv[i * width + c]",
            "cache[c * width + first + i] = qkv[i * width + c]",
            "How many numbers lie between the beginnings of two rows?",
        ),
    ],
)

# ---- what the lesson asks ----

_EXTRA = "One line does not belong. Which work is the cache there to save?"
_LAND = np.array([8.5, 7.2, 6.5, 5.0, 4.8, 4.4])

EXERCISES = {
    "11.2": Exercise(
        _tempered,
        cases=[
            (np.array([2.0, 1.0, 0.0]), 1.0),
            (_LAND, 2.0),
            (_LAND, 0.5),
            (np.array([998.0, 1000.0, 999.0]), 0.5),
        ],
        mistakes=[
            (lambda z, t: _tempered(z, 1 / t), "Hot makes alike. Did you divide?"),
            (
                lambda z, t: _tempered(z, 1.0),
                "Where does the temperature come in: before the exponentials, or behind them?",
            ),
            (lambda z, t: _tempered(z, 1.0) / t, "Do these shares sum to 1?"),
            (lambda z, t: np.exp((z - z.max()) / t), "What do shares sum to?"),
            (
                _quiet(_overflowing),
                "What is exp(2000)? Which number is taken away first?",
            ),
            (
                _quiet(lambda z, t: np.exp(z - z.max() / t) / np.exp(z - z.max() / t).sum()),
                "Is the whole difference to the largest divided, inside the exponential?",
            ),
            (
                _quiet(lambda z, t: (z - z.max()) / t / ((z - z.max()) / t).sum()),
                "Shares are above 0. Where is the exponential?",
            ),
            (
                lambda z, t: np.exp((z - z.max()) / t) / np.exp(z - z.max()).sum(),
                "Which exponentials are added up: those at this temperature?",
            ),
        ],
    ),
    "11.3": Exercise(
        _nucleus,
        cases=[
            (np.array([0.05, 0.5, 0.15, 0.3]), 0.7),
            (np.array([0.125, 0.5, 0.25, 0.125]), 0.75),
            (np.array([0.2, 0.5, 0.3]), 1.0),
            (np.array([0.2, 0.5, 0.3]), 0.01),
            (np.array([0.25, 0.25, 0.25, 0.25]), 0.5),
        ],
        mistakes=[
            (
                _quiet(lambda s, p: _nucleus(s, p, stays=lambda r, b: b + r <= p)),
                "The token that reaches p: does it stay? And what stays if p is tiny?",
            ),
            (
                _quiet(lambda s, p: _nucleus(s, p, stays=lambda r, b: b + r < p)),
                "np.cumsum counts each token itself. What is the sum of those before it?",
            ),
            (
                _quiet(lambda s, p: _nucleus(s, p, stays=lambda r, b: r < p)),
                "Is p compared with one share, or with the sum of those before?",
            ),
            (
                _quiet(lambda s, p: _nucleus(s, p, stays=lambda r, b: b > p)),
                "Which side of p is cut off?",
            ),
            (
                lambda s, p: _nucleus(s, p, last=np.less_equal),
                "The shares before it have reached p exactly. Does it stay?",
            ),
            (
                lambda s, p: _nucleus(s, p, whole=False),
                "What do the shares that stay sum to?",
            ),
            (
                _quiet(lambda s, p: _nucleus(s, p, stays=lambda r, b: r >= p)),
                "Is p compared with one share, or with a sum of shares?",
            ),
            (_in_order_of_ids, "Which token is asked first: token 0, or the likeliest?"),
            (lambda s, p: _nucleus(s, p, sign=1), "Which end comes first: the large shares?"),
            (
                lambda s, p: _nucleus(s, p, back=False),
                "Whose share is the first number: token 0's, or the largest?",
            ),
        ],
    ),
    "11.5": KEEP,
    "11.6": Exercise(
        _shares_at,
        cases=[
            (np.array([1.0, 3.0, 2.0]), 0.0),
            (np.array([1.0, 3.0, 3.0]), 0.0),
            (_LAND, 0.5),
            (np.array([1000.0, -1000.0]), 0.0),
            (_LAND, 2.0),
        ],
        given=_tiny_instead,
        mistakes=[
            (_quiet(_tempered), "What is 0 divided by 0?"),
            (_all_of_the_largest, "Two logits are the largest. What do the shares sum to?"),
            (
                lambda z, t: _sharp(-z[::-1])[::-1] if t == 0 else _tempered(z, t),
                "Which logit is taken, the largest or the smallest?",
            ),
            (
                lambda z, t: _sharp(z[::-1])[::-1] if t == 0 else _tempered(z, t),
                "Two logits are the largest. Which of the two does np.argmax take?",
            ),
            (
                lambda z, t: z / z.max() if t == 0 else _tempered(z, t),
                "What do shares sum to, and which tokens may be drawn when greedy is meant?",
            ),
            (
                lambda z, t: np.argmax(z) if t == 0 else _tempered(z, t),
                "That is which token it is. Which shares say so?",
            ),
            (
                lambda z, t: _sharp(z) if t < 1 else _tempered(z, t),
                "A temperature of 0.5 is not greedy. When is it?",
            ),
            (
                lambda z, t: _sharp(z),
                "Other temperatures than 0 are to stay as they were. Do they?",
            ),
        ],
    ),
    "11.7": Exercise(
        lambda: "CDAEB",
        cases=[()],
        mistakes=[
            (lambda: "CADEB", "A place hears itself, too. Is its key there in time?"),
            (lambda: "DCAEB", "Where do its key and value come from, before it is looked up?"),
            (lambda: "CDABE", "What is drawn from, before there are logits?"),
            (lambda: "BCDAE", "What is drawn from, before there are logits?"),
            (lambda: "CDAE", "Five lines belong. How does the next token come out of the logits?"),
            (lambda: "CAEB", "Five lines belong. How will later places find this one's key?"),
            (lambda: "CDEAB", "Can logits come before attention?"),
            *(
                (lambda order=order: order, _EXTRA)
                for order in ("FDAEB", "FCDAEB", "CFDAEB", "CDFAEB", "CDAFEB", "CDAEFB", "CDAEBF")
            ),
        ],
        secret=True,
    ),
    "11.8": MIX,
}

QUESTIONS = {
    "11.q1": Question("B", {
        "A": "dividing by a number above 0 keeps the order, at every temperature",
        "B": "all differences are halved, and softmax cares for differences only",
        "C": "that is what a low temperature does",
    }),
    "11.q2": Question("C", {
        "A": "that is true, and without the mask their rows would change all the same",
        "B": "nothing is rounded more by keeping it; but that is no reason why it may be kept",
        "C": "no place hears a later one, so whatever comes, the old rows stay as they are",
    }),
    "11.q3": Question("A", {
        "A": "the user asks, the model answers; only the answer's tokens are targets",
        "B": "it is read like everything else; it only asks for no answer of its own",
        "C": "the end token counts; it is how the model learns to stop",
    }),
    "11.q4": Question("C", {
        "A": "the head is one of two that use the table",
        "B": "the look-up is one of two that use the table",
        "C": "used twice, added twice",
    }),
    "11.q5": Question("B", {
        "A": "a fresh model gives ln V for wrong targets as well",
        "B": "it knows nothing yet, so no target surprises it more than another",
        "C": "padding is another matter, and shows when pads are added",
    }),
}  # fmt: skip

BROKEN = {
    "11.who_asks": Broken(
        SCORES,
        "(b * T + first + i)",
        "(b * T + i)",
        tries=[
            ("all places ask, as in training", (_numbers(21, 2, 6, 18), 2, 0, 6)),
            ("the newest of four places asks", (_numbers(23, 1, 7, 18), 2, 3, 4)),
        ],
        finder="check",
        reason="With a cache, the first row in memory is place 0, and not the place that asks.",
    ),
    "11.rows_in_use": Broken(
        SCORES,
        "(b * T + j)",
        "(b * length + j)",
        tries=[
            ("one text, 4 of 7 rows in use", (_numbers(23, 1, 7, 18), 2, 3, 4)),
            ("two texts, all rows in use", (_numbers(21, 2, 6, 18), 2, 0, 6)),
            ("two texts, 4 of 7 rows in use", (_numbers(25, 2, 7, 18), 2, 3, 4)),
        ],
        finder="check",
        reason="The second text begins T rows behind the first, however many of them are in use.",
    ),
}
