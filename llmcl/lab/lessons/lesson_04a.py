"""Lesson 04a, One head of attention."""

import numpy as np

from ... import reference
from ...reference import bounds
from . import Broken, Exercise, KernelTask, Question, blank, kernel_file


def _numbers(seed, *shape, scale=1.0):
    return (scale * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


def _exact(array):
    return np.asarray(array, np.float64)


# ---- a head in NumPy, and how it goes wrong ----


def _quiet(function):
    """The function without NumPy's warnings: a wrong softmax overflows on purpose."""

    def run(*args):
        with np.errstate(all="ignore"):
            return function(*args)

    return run


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _past(scores, ahead=0):
    """Where column j is at most `ahead` places in row i's future."""
    return np.tril(np.ones(scores.shape, bool), ahead)


def _hidden(scores, ahead=0):
    return np.where(_past(scores, ahead), scores, -np.inf)


def _causal_shares(scores):
    return _softmax(_hidden(scores))


def _no_largest(scores):
    e = np.exp(_hidden(scores))
    return e / e.sum(axis=-1, keepdims=True)


def _largest_of_all_rows(scores):
    e = np.exp(_hidden(scores) - scores.max())
    return e / e.sum(axis=-1, keepdims=True)


def _largest_of_all_that_is_seen(scores):
    e = np.exp(_hidden(scores) - _hidden(scores).max())
    return e / e.sum(axis=-1, keepdims=True)


def _largest_of_the_future(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True)) * _past(scores)
    return e / e.sum(axis=-1, keepdims=True)


def _attend(shares_of):
    """A head that is its own query, key and value, so that only the mask can leak."""
    return lambda x: shares_of(x @ x.T / np.sqrt(x.shape[1])) @ x


def _only_place_3_leaks(x):
    y = _attend(_causal_shares)(x)
    y[1] += x[3]
    return y


def _leaks_a_little(x):
    return _attend(_causal_shares)(x) + 1e-12 * x.sum(axis=0)


def _leaks(attend, x, differ=lambda a, b: not np.array_equal(a, b), part=lambda y, t: y[:t]):
    before, found = attend(x), []
    for t in range(len(x)):
        changed = x.copy()
        changed[t] += 1
        if differ(part(attend(changed), t), part(before, t)):
            found.append(t)
    return found


def _leaks_without_a_copy(attend, x):
    before, found = attend(x), []
    for t in range(len(x)):
        x[t] += 1
        if not np.array_equal(attend(x)[:t], before[:t]):
            found.append(t)
    return found


def _by_hand(shares_of=_causal_shares, root=2.0):
    q = np.array([[1, 1, 0, 0], [4, 0, 0, 0], [0, 0, 2, 2]])
    k = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]])
    v = np.array([[8, 0, 0, 1], [0, 8, 0, 1], [0, 0, 8, 1]])
    return shares_of(q @ k.T / root) @ v


def _window(scores, window, low=0):
    far = np.tril(np.ones(scores.shape, bool), -window - low)
    return _softmax(np.where(_past(scores) & ~far, scores, -np.inf))


_X = _exact(_numbers(5, 5, 4))
_ROWS_APART = _exact(_numbers(6, 4, 4)) + np.array([[0.0], [2000], [-2000], [0]])
_LOUD_FUTURE = _exact(_numbers(7, 4, 4)) + np.array([0.0, 0, 0, 2000])

# ---- kernels ----


def _row(engine, kernel, scores):
    shares, rows = blank(engine, *scores.shape), len(scores)
    kernel((rows,), (4,), engine.from_host(scores), shares, rows)
    return engine.to_host(shares)


def _row_want(scores):
    exact = _exact(scores)
    return reference.causal_softmax(exact), bounds.causal_softmax(exact)[0]


def _spike(size, i, j, by):
    scores = _numbers(size, size, size)
    scores[i, j] += by
    return (scores,)


ROW = KernelTask(
    """__kernel void causal_row(__global const float *restrict scores,   // (T, T)
                         __global float *restrict shares,         // (T, T)
                         const int T)
{
    const int row = get_global_id(0);
    if (row >= T) return;
    __global const float *in = scores + row * T;
    __global float *out = shares + row * T;
    const int seen = row + 1;

    float largest = in[0];
    for (int j = 1; j < seen; ++j) largest = fmax(largest, in[j]);

    float total = 0.0f;
    for (int j = 0; j < seen; ++j) {
        out[j] = exp(in[j] - largest);
        total += out[j];
    }
    for (int j = 0; j < seen; ++j) out[j] /= total;
    for (int j = seen; j < T; ++j) out[j] = 0.0f;
}
""",
    "causal_row",
    _row,
    _row_want,
    cases=[(_numbers(1, 5, 5),), _spike(7, 2, 6, 200), _spike(6, 4, 4, 200), (_numbers(2, 1, 1),)],
    mistakes=[
        (
            "int j = 1; j < seen; ++j) largest",
            "int j = 1; j < row; ++j) largest",
            "What if the largest score is the row's own, in column `row`?",
        ),
        (
            "exp(in[j] - largest)",
            "exp(in[j])",
            "What is exp of a score of 200 in float32?",
        ),
        (
            "const int seen = row + 1;",
            "const int seen = min(row + 2, T);",
            "How many columns may row 0 see?",
        ),
        (
            "const int seen = row + 1;",
            "const int seen = T;",
            "Whose columns are those behind `row`?",
        ),
        (
            "for (int j = seen; j < T; ++j) out[j] = 0.0f;",
            "",
            "Who writes the shares of the future?",
        ),
    ],
    given=("int j = 1; j < seen; ++j) largest", "int j = 1; j < T; ++j) largest"),
)


def _masked_scores(engine, kernel, q, k):
    places, d = q.shape
    scores = blank(engine, places, places)
    sizes = (places, places), (4, 4)
    kernel(*sizes, engine.from_host(q), engine.from_host(k), scores, places, d, d**-0.5)
    return engine.to_host(engine.softmax(scores))


def _masked_want(q, k):
    qkv = _exact(np.concatenate([q, k, k], axis=1))[None]
    return reference.attention(qkv, 1)[1][0, 0], bounds.attention(qkv, 1)[1][0, 0]


SCORES = KernelTask(
    """__kernel void masked_scores(__global const float *restrict q,    // (T, d)
                            __global const float *restrict k,    // (T, d)
                            __global float *restrict scores,     // (T, T)
                            const int T, const int d, const float scale)
{
    const int j = get_global_id(0);            // who is asked
    const int i = get_global_id(1);            // who asks
    if (j >= T || i >= T) return;

    float sum = 0.0f;
    for (int e = 0; e < d; ++e) sum += q[i * d + e] * k[j * d + e];
    scores[i * T + j] = j > i ? -INFINITY : sum * scale;
}
""",
    "masked_scores",
    _masked_scores,
    _masked_want,
    cases=[(_numbers(3, 5, 3), _numbers(4, 5, 3)), (_numbers(5, 7, 2), _numbers(6, 7, 2))],
    mistakes=[
        ("j > i", "j >= i", "May a place see itself? Look at row 0."),
        ("j > i", "j < i", "On which side of the diagonal is the future?"),
        ("-INFINITY", "0.0f", "What is exp(0)?"),
        (" * scale", "", "What are scores divided by, and where does `scale` stand?"),
        ("if (j >= T || i >= T) return;", "", "Which work-items have no score of their own?"),
        ("scores[i * T + j]", "scores[j * T + i]", "Whose row is it: who asks, or who is asked?"),
        ("q[i * d + e] * k[j * d + e]", "q[j * d + e] * k[i * d + e]",
         "Whose query is it: that of the row, or of the column?"),
    ],
)  # fmt: skip


def _causal(engine, kernel, scores, first):
    (sequences, asking, n), shares = scores.shape, blank(engine, *scores.shape)
    rows = sequences * asking
    kernel((rows,), (4,), engine.from_host(scores), shares, rows, asking, n, first)
    return engine.to_host(shares)


def _causal_want(scores, first):
    exact = _exact(scores)
    return reference.causal_softmax(exact, first), bounds.causal_softmax(exact, first)[0]


CAUSAL = KernelTask(
    kernel_file("softmax"),
    "softmax_causal",
    _causal,
    _causal_want,
    cases=[(_numbers(1, 3, 11, 11), 0), (_numbers(2, 3, 1, 7), 6)],
)


def _forward(engine, kernel, scores):
    (rows, n), shares = scores.shape, blank(engine, *scores.shape)
    kernel((rows,), (4,), engine.from_host(scores), shares, rows, n)
    return engine.to_host(shares)


def _forward_want(scores):
    return reference.softmax(_exact(scores)), bounds.softmax(_exact(scores))[0]


FORWARD = KernelTask(
    kernel_file("softmax"),
    "softmax_forward",
    _forward,
    _forward_want,
    cases=[(_numbers(3, 5, 7),)],
)

# ---- what the lesson asks ----

EXERCISES = {
    "04a.2": Exercise(
        _by_hand,
        cases=[()],
        mistakes=[
            (lambda: _by_hand(_softmax), "May place 0 see place 1?"),
            (lambda: _by_hand(root=1.0), "What is the root of d, and where does it belong?"),
            (lambda: _by_hand(root=4.0), "Is it d, or the root of d?"),
            (
                lambda: _by_hand(lambda s: _softmax(s * _past(s))),
                "Which share does a score of 0 get?",
            ),
            (
                lambda: _by_hand(lambda s: _softmax(s) * _past(s)),
                "Is the last number of each row 1? It says what the shares sum to.",
            ),
            (
                lambda: _by_hand(lambda s: _past(s) / (1.0 + np.arange(len(s)))[:, None]),
                "What are the two scores of place 1?",
            ),
            (
                lambda: [*_by_hand()[:2], [0, 0, 8, 1]],
                "Place 2 fits no key, so its scores are equal. Which shares are equal, too?",
            ),
        ],
        tolerance=0.01,
        secret=True,
    ),
    "04a.3": Exercise(
        _causal_shares,
        cases=[(_exact(_numbers(8, 5, 5)),), (_ROWS_APART,), (_LOUD_FUTURE,), (np.zeros((1, 1)),)],
        mistakes=[
            (_quiet(_no_largest), "What is exp of a score of 2000?"),
            (_quiet(_largest_of_all_rows), "Does each row take away its own largest score?"),
            (
                _quiet(_largest_of_all_that_is_seen),
                "Does each row take away its own largest score?",
            ),
            (
                _quiet(lambda s: _softmax(np.where(_past(s), s, -1000.0))),
                "Is there a score below yours, in a row of low ones? Which number has none below?",
            ),
            (
                _quiet(lambda s: _softmax(np.where(_past(s.T).T, s, -np.inf))),
                "On which side of the diagonal is the past?",
            ),
            (_quiet(_largest_of_the_future), "May the largest score come from the future?"),
            (_quiet(lambda s: _softmax(s * _past(s))), "Which share does a score of 0 get?"),
            (_quiet(lambda s: _softmax(s) * _past(s)), "Do the rows still sum to 1?"),
            (_softmax, "Where is the mask?"),
            (lambda s: _softmax(_hidden(s, 1)), "How many columns may row 0 see?"),
            (_quiet(lambda s: _softmax(_hidden(s, -1))), "May a place see itself?"),
            (lambda s: _causal_shares(s.T).T, "Which row belongs to whom: do rows sum to 1?"),
        ],
    ),
    "04a.4": Exercise(
        _leaks,
        cases=[
            (_attend(_causal_shares), _X),
            (_attend(_softmax), _X),
            (_only_place_3_leaks, _X),
            (_leaks_a_little, _X),
        ],
        mistakes=[
            (
                lambda attend, x: _leaks(attend, x, part=lambda y, t: y),
                "A change at t may change the outputs from t on. Which ones may it not change?",
            ),
            (
                lambda attend, x: _leaks(attend, x, lambda a, b: not np.allclose(a, b)),
                "Is nearly equal enough for a proof?",
            ),
            (_leaks_without_a_copy, "Did you change a copy of x, or x itself?"),
            (lambda attend, x: [], "Does anything change when you change x?"),
            (lambda attend, x: len(_leaks(attend, x)) > 0, "Which places leak? Return a list."),
        ],
        secret=True,
    ),
    "04a.5": Exercise(
        lambda: "CBEFA",
        cases=[()],
        mistakes=[
            (lambda: "CBFA", "Where is the future hidden?"),
            (lambda: "CBDFA", "Which share does a score of 0 get?"),
            (lambda: "CBFEA", "Can a share be minus infinity?"),
            (lambda: "CBFDA", "Do rows still sum to 1 if the mask comes after softmax?"),
            (lambda: "CEBFA", "Can scores be hidden before there are any?"),
            (lambda: "BCEFA", "Where do q and k come from?"),
            *(
                (lambda order=order: order, "One line does not belong. Which is undone by E?")
                for order in ("CBDEFA", "CBEDFA", "CBEFDA", "DCBEFA", "CDBEFA", "CBEFAD")
            ),
        ],
        secret=True,
    ),
    "04a.6": ROW,
    "04a.7": SCORES,
    "04a.8": Exercise(
        _window,
        cases=[(_exact(_numbers(9, 6, 6)), 2), (_exact(_numbers(10, 5, 5)), 5),
               (_exact(_numbers(11, 4, 4)), 1)],
        mistakes=[
            (lambda s, w: _window(s, w, 1), "Does the window count the place itself?"),
            (_quiet(lambda s, w: _window(s, w, -1)), "Does the window count the place itself?"),
            (lambda s, w: _causal_shares(s), "What hides the places that are too far back?"),
            (
                lambda s, w: _softmax(np.where(_past(s, w - 1) & ~_past(s, -w), s, -np.inf)),
                "Is the future still hidden?",
            ),
            (
                _quiet(lambda s, w: _causal_shares(s) * ~_past(s, -w)),
                "Do the rows still sum to 1?",
            ),
        ],
    ),
}  # fmt: skip

QUESTIONS = {
    "04a.q1": Question("B", {
        "A": "a score of 0 is an ordinary score: exp(0) is 1, so it gets a share",
        "B": "exp of minus infinity is 0, so the share is 0 and the rest still sums to 1",
        "C": "then the row no longer sums to 1, and the total has already seen the future",
    }),
    "04a.q2": Question("C", {
        "A": "that is the query: what a place looks for",
        "B": "that is the key: what a query is compared with",
        "C": "the shares say how much of each value is taken",
    }),
    "04a.q3": Question("A", {
        "A": "the same row for the token, another row for the place, and their sums differ",
        "B": "that would be so without the rows for places",
        "C": "a row of the table belongs to an id, not to a place in the text",
    }),
    "04a.q4": Question("C", {
        "A": "that is what a dictionary of words does; bytes have no need of it",
        "B": "nothing is left out; every byte has a token",
        "C": "each of its bytes has a token, so nothing is lost; it only takes more of them",
    }),
    "04a.q5": Question("B", {
        "A": "0 would mean that it is sure and always right",
        "B": "all tokens are about equally likely, and minus the logarithm of 1/V is ln V",
        "C": "1 is no special loss; it depends on how many tokens there are",
    }),
}  # fmt: skip

BROKEN = {
    "04a.leaks": Broken(
        CAUSAL,
        "first + row % T + 1;",
        "min(first + row % T + 2, n);",
        tries=[
            ("only the last place asks", (_numbers(2, 3, 1, 7), 6)),
            ("all places ask", (_numbers(1, 3, 7, 7), 0)),
        ],
        finder="check",
        reason="Every place but the last sees one column of its future.",
    ),
    "04a.overflow": Broken(
        FORWARD,
        "const float e = exp(in[j] - largest);",
        "const float e = exp(in[j]);",
        tries=[
            ("scores near 0", (_numbers(3, 5, 7),)),
            ("scores near 1000", (1000 + _numbers(4, 5, 7),)),
        ],
        finder="check",
        reason="exp of more than 88 does not fit into float32, and infinity by infinity is NaN.",
    ),
}
