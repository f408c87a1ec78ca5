"""Lesson 09, Training."""

import math

import numpy as np

from ... import reference
from ...reference import bounds
from . import Broken, Exercise, KernelTask, Question, kernel_file


def _numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _exact(array):
    return np.asarray(array, np.float64)


# ---- AdamW in NumPy ----


def _adamw(
    w, g, m, v, t, rate, decay=0.01, beta1=0.9, beta2=0.99, epsilon=1e-8,
    *, correct="both", root="outside", square=True, decayed="beside", sign=-1, old=False,
    swapped=False, bare=False, stored="averages",
):  # fmt: skip
    """One update; what stands behind the star makes known mistakes."""
    if decayed == "gradient":
        g = g + decay * w
    b1, b2 = {True: (beta2, beta1), "new": (1 - beta1, 1 - beta2)}.get(swapped, (beta1, beta2))
    m_new = m + (1 - b1) * (g - m)
    v_new = v + (1 - b2) * ({True: g * g, False: np.abs(g), "signed": g}[square] - v)
    used_m, used_v = (m, v) if old else (m_new, v_new)
    c1, c2 = 1 - beta1**t, 1 - beta2**t
    fair_m = (
        used_m / {"both": c1, "v": 1, "no": 1, "m": c1, "once": 1 - b1, "times": 1 / c1}[correct]
    )
    fair_v = (
        used_v / {"both": c2, "v": c2, "no": 1, "m": 1, "once": 1 - b2, "times": 1 / c2}[correct]
    )
    with np.errstate(invalid="ignore"):  # signed averages
        below = np.sqrt(fair_v + epsilon) if root == "inside" else np.sqrt(fair_v) + epsilon
    step = fair_m / (fair_v + epsilon if root == "none" else below)
    pull = {"beside": rate * decay * w, "bare": decay * w, "away": -rate * decay * w,
            "bare away": -decay * w}.get(decayed, 0)  # fmt: skip
    step = step if bare else rate * step
    new = w + sign * step - pull
    return {"averages": (new, m_new, v_new), "fair": (new, fair_m, fair_v), "w": new}[stored]


def _update_case(seed, t, rate=0.1, decay=0.05, scale=1.0):
    w, g, m = (_exact(a) for a in _numbers(seed, 3, 4))
    v = _exact(_numbers(seed + 1, 4)) ** 2 + 0.1
    if t == 1:
        m, v = np.zeros(4), np.zeros(4)
    return w, scale * g, scale * m, scale**2 * v, t, rate, decay


def _wrong(**how):
    return lambda *args, **options: _adamw(*args, **options, **how)


# ---- clipping ----


def _norm(grads):
    return np.sqrt(sum((g**2).sum() for g in grads))


def _clip(grads, max_norm):
    norm = _norm(grads)
    factor = max_norm / norm if norm > max_norm else 1.0
    return [g * factor for g in grads]


def _clip_each(grads, max_norm):
    return [_clip([g], max_norm)[0] for g in grads]


def _clip_always(grads, max_norm):
    norm = np.sqrt(sum((g**2).sum() for g in grads))
    return [g * max_norm / norm for g in grads]


def _clip_by_sum_of_norms(grads, max_norm):
    norm = sum(np.sqrt((g**2).sum()) for g in grads)
    return [g * (max_norm / norm if norm > max_norm else 1.0) for g in grads]


def _clip_without_root(grads, max_norm):
    norm = sum((g**2).sum() for g in grads)
    return [g * (max_norm / norm if norm > max_norm else 1.0) for g in grads]


def _clip_to_one(grads, max_norm):
    norm = np.sqrt(sum((g**2).sum() for g in grads))
    return [g / norm if norm > max_norm else g for g in grads]


# ---- the schedule ----


def _rate_at(
    step, rate, steps, warmup, line=True, floor=0.1, since="warmup", high=True,
    fall=lambda done: 0.5 * (1 + math.cos(math.pi * done)), last=0.1,
):  # fmt: skip
    """The rate; what stands behind warmup makes known mistakes."""
    if line and step <= warmup:
        return rate * {True: step / warmup, "flat": 1, "long": step / steps}[line]
    way = {"warmup": steps - warmup, "start": steps, "late": steps}[since]
    done = (step - (0 if since == "start" else warmup)) / way
    share = fall(done)
    if last != 0.1:
        return last(rate, share)
    return rate * (floor + (1 - floor) * share) if high else rate * (floor + share)


# ---- kernels ----

ADAMW_ONE = """
__kernel void adamw_one(__global float *w, __global const float *grad,
                        __global float *m, __global float *v,
                        const float rate, const float take1, const float take2,
                        const float epsilon, const float decay,
                        const float correction1, const float correction2, const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    const float g = grad[i];
    const float m_new = m[i] + take1 * (g - m[i]);
    const float v_new = v[i] + take2 * (g * g - v[i]);
    const float step = m_new * correction1 / (sqrt(v_new * correction2) + epsilon);
    m[i] = m_new;
    v[i] = v_new;
    w[i] -= rate * (step + decay * w[i]);
}
"""

BETA1, BETA2, EPSILON = 0.9, 0.99, 1e-8


def _kernel_case(seed, n, t, rate=0.1, decay=0.05):
    """w, grad, m, v as a run has them before step t."""
    w, grad, m = _numbers(seed, 3, n)
    v = np.abs(_numbers(seed + 1, n)) + np.float32(0.1)
    if t == 1:
        m, v = np.zeros(n, np.float32), np.zeros(n, np.float32)
    return w, grad, m, v, t, rate, decay


def _faint():
    """A first step whose gradients are not much above epsilon."""
    w, _, m, v, *numbers = _kernel_case(7, 4, 1)
    return w, np.array([3e-8, -1e-7, 5e-8, 0.5], np.float32), m, v, *numbers


def _launch_one(engine, kernel, w, grad, m, v, t, rate, decay):
    there = [engine.from_host(array) for array in (w, grad, m, v)]
    corrections = 1 / (1 - BETA1**t), 1 / (1 - BETA2**t)
    numbers = rate, 1 - BETA1, 1 - BETA2, EPSILON, decay, *corrections
    kernel((w.size,), (4,), *there, *numbers, w.size)
    return np.stack([engine.to_host(there[i]) for i in (0, 2, 3)])


def _launch_package(engine, kernel, w, grad, m, v, t, rate, decay):
    there = [engine.from_host(array) for array in (w, grad, m, v)]
    status = engine.from_host(np.array([1, 1, 1, 1, 0], np.float32))
    corrections = 1 / (1 - BETA1**t), 1 / (1 - BETA2**t)
    numbers = rate, 1 - BETA1, 1 - BETA2, EPSILON, decay, *corrections
    kernel((w.size,), (4,), *there, status, *numbers, w.size, w.size)
    return np.stack([engine.to_host(there[i]) for i in (0, 2, 3)])


def _update_want(w, grad, m, v, t, rate, decay):
    arrays = [_exact(array) for array in (w, grad, m, v)]
    status = np.array([1.0, 1, 1, 1, 0])
    options = {"rate": rate, "beta1": BETA1, "beta2": BETA2, "epsilon": EPSILON, "decay": decay,
               "step": t, "n_decay": w.size}  # fmt: skip
    bound = np.stack(bounds.adamw(*arrays, status, **options))
    reference.adamw(*arrays, status, **options)
    return np.stack([arrays[0], *arrays[2:]]), bound


ADAMW = KernelTask(
    ADAMW_ONE,
    "adamw_one",
    _launch_one,
    _update_want,
    cases=[
        _kernel_case(1, 7, 10), _kernel_case(3, 5, 1), _kernel_case(5, 4, 3, decay=0.5), _faint(),
    ],
    mistakes=[
        ("    if (i >= n) return;\n", "", "Which work-items have no weight of their own, and do "
         "they leave?"),
        ("g * g - v[i]", "g - v[i]", "v is the average of what: the gradients, or their squares?"),
        ("take2 * (g * g", "take1 * (g * g", "Both averages take a share of the new. The same "
         "share?"),
        ("m_new * correction1 / (sqrt(v_new * correction2) + epsilon)",
         "m_new / (sqrt(v_new) + epsilon)", "Where are the two corrections?"),
        ("m_new * correction1", "m_new", "Which of the two averages is not corrected?"),
        ("sqrt(v_new * correction2)", "sqrt(v_new)", "Which of the two averages is not corrected?"),
        ("sqrt(v_new * correction2) + epsilon", "v_new * correction2 + epsilon", "v is an average "
         "of squares. How does it become the usual size?"),
        ("m_new * correction1 / (sqrt(v_new * correction2)",
         "m[i] * correction1 / (sqrt(v[i] * correction2)", "Is the step made with the averages "
         "before this gradient, or with it?"),
        ("w[i] -= rate * (step + decay * w[i])", "w[i] -= rate * step + decay * w[i]", "What does "
         "the rate multiply: the step, or the pull as well?"),
        ("w[i] -= rate", "w[i] += rate", "Uphill, or downhill?"),
        ("(step + decay * w[i])", "step", "What pulls the weight towards 0?"),
        ("(step + decay * w[i])", "(step - decay * w[i])", "Does the decay make a weight smaller, "
         "or larger?"),
        ("    m[i] = m_new;\n    v[i] = v_new;\n", "", "The next step needs both averages. Who "
         "keeps them?"),
        ("    m[i] = m_new;\n", "", "Is m kept for the next step?"),
        ("    v[i] = v_new;\n", "", "Is v kept for the next step?"),
        ("(sqrt(v_new * correction2) + epsilon)", "sqrt(v_new * correction2 + epsilon)",
         "Does epsilon stand under the root, or beside it?"),
        ("(sqrt(v_new * correction2) + epsilon)", "sqrt(v_new * correction2) + epsilon",
         "Is epsilon added to what the step is divided by? That takes brackets."),
        ("take1 * (g - m[i])", "take1 * g", "The average keeps nine tenths of the old, and not all "
         "of it. What is missing?"),
        ("w[i] -= rate", "w[i] = rate", "Is the step the new weight, or does it change the old?"),
        ("m_new * correction1 / (sqrt(v_new * correction2) + epsilon)",
         "m_new / correction1 / (sqrt(v_new / correction2) + epsilon)", "The host has divided "
         "already: `correction1` is 1 / (1 - beta1^t). Multiply by it, or divide?"),
    ],
)  # fmt: skip

PACKAGE = KernelTask(
    kernel_file("adamw"), "adamw", _launch_package, _update_want, cases=[_kernel_case(7, 6, 10)]
)

CLIP_TEXT = """
__kernel void clip_all(__global float *grad,
                       __global const float *norm,      // (1)
                       const float max_norm, const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    if (norm[0] > max_norm) grad[i] *= max_norm / norm[0];
}
"""


def _launch_clip(engine, kernel, grad, max_norm):
    norm = np.sqrt((_exact(grad) ** 2).sum()).astype(np.float32).reshape(1)
    there, norm = engine.from_host(grad), engine.from_host(norm)
    kernel((grad.size,), (4,), there, norm, max_norm, grad.size)
    return engine.to_host(there)


def _clip_want(grad, max_norm):
    (want,) = _clip([_exact(grad)], max_norm)
    return want, 8 * bounds.U * np.abs(want)


CLIP = KernelTask(
    CLIP_TEXT,
    "clip_all",
    _launch_clip,
    _clip_want,
    cases=[
        (np.array([3, 4, 12], np.float32), 1.0),
        (np.array([-3, 0.5, 4], np.float32), 1.0),
        (np.array([0.3, 0.4], np.float32), 1.0),
        (np.zeros(5, np.float32), 2.0),
        (np.array([6, 8, 0, 0, 0], np.float32), 5.0),
    ],
    mistakes=[
        ("norm[0] > max_norm", "norm[0] < max_norm", "Which gradient is to be shortened: the long "
         "one, or the short one?"),
        ("norm[0] > max_norm", "norm[0] > 0.0f", "No division by 0 any more. But is a short "
         "gradient left as it is?"),
        ("norm[0] > max_norm", "grad[i] > max_norm", "What is above the limit: one number, or the "
         "length of all of them?"),
        ("*= max_norm / norm[0]", "/= norm[0]", "How long is the gradient afterwards: 1, or the "
         "limit?"),
        ("*= max_norm / norm[0]", "= max_norm", "Does every number become the limit?"),
        ("if (norm[0] > max_norm) grad[i] *= max_norm / norm[0];",
         "grad[i] *= max_norm / (norm[0] + 1e-6f);", "No division by 0 any more. But is a short "
         "gradient left as it is?"),
        ("if (norm[0] > max_norm) grad[i] *= max_norm / norm[0];",
         "if (norm[i] > max_norm) grad[i] *= max_norm / norm[i];", "How many numbers does `norm` "
         "hold?"),
    ],
    given=("if (norm[0] > max_norm) grad[i] *=", "grad[i] *="),
)  # fmt: skip


# ---- what the lesson asks ----

EXERCISES = {
    "09.2": Exercise(
        _adamw,
        cases=[
            _update_case(11, 3),
            _update_case(13, 1),
            _update_case(15, 50, rate=0.01, decay=0.5),
            _update_case(17, 2, scale=1e-5),
        ],
        mistakes=[
            (_wrong(correct="no"), "Both averages began at 0. Where are they corrected?"),
            (_wrong(correct="m"), "Which of the two averages is not corrected?"),
            (_wrong(correct="v"), "Which of the two averages is not corrected?"),
            (_wrong(correct="once"), "How many steps have there been? The zeros weigh beta to the "
             "power of t."),
            (_wrong(root="inside"), "Does epsilon stand under the root, or beside it?"),
            (_wrong(root="none"), "v is an average of squares. How does it become the usual size?"),
            (_wrong(square=False), "v is the average of what?"),
            (_wrong(decayed="gradient"), "Is the pull added to the gradient, or beside the step?"),
            (_wrong(decayed="none"), "What pulls the weight towards 0?"),
            (_wrong(decayed="bare"), "Does the rate multiply the pull, too?"),
            (_wrong(decayed="away"), "Does the decay make a weight smaller, or larger?"),
            (_wrong(sign=1), "Uphill, or downhill?"),
            (_wrong(old=True), "Is the step made with the averages before this gradient, or with "
             "it?"),
            (_wrong(swapped=True), "Which beta belongs to which average?"),
            (_wrong(bare=True), "How long is a step? Where is the rate?"),
            (_wrong(decayed="bare away"), "Which brackets does the pull need, so that the rate "
             "multiplies it and the minus takes it away?"),
            (_wrong(swapped="new"), "beta is what an average keeps. What share is new?"),
            (_wrong(correct="times"), "Both averages are too small at first. Multiplied by a "
             "number below 1, do they grow?"),
            (_wrong(stored="fair"), "Is what you return the average, or the corrected one? The "
             "next step would correct it again."),
            (_wrong(square="signed"), "v is the average of what: the gradients, or their squares?"),
            (_wrong(stored="w"), "The next step needs both averages. Who keeps them?"),
        ],
    ),
    "09.3": Exercise(
        _clip,
        cases=[
            # Arrays of one shape: lists of others cannot be compared number by number.
            ([np.array([3.0, 4.0]), np.array([12.0, 0.0])], 1.0),
            ([np.array([0.3]), np.array([0.4])], 1.0),
            ([np.array([6.0]), np.array([2.0]), np.array([9.0])], 5.0),
        ],
        mistakes=[
            (_clip_each, "One norm for all arrays, or one for each?"),
            (_clip_always, "What happens to a gradient that is short enough?"),
            (_clip_by_sum_of_norms, "Is the sum taken over squares, or over lengths?"),
            (_clip_without_root, "The length of an arrow is the root of what?"),
            (_clip_to_one, "How long is the gradient afterwards: 1, or the limit?"),
            (lambda grads, max_norm: [np.clip(g, -max_norm, max_norm) for g in grads],
             "Each number cut by itself: does the arrow keep its direction?"),
            (lambda grads, max_norm: [g / _norm(grads) for g in grads], "That gives every gradient "
             "the length 1. Which length is wanted, and for which gradients?"),
            (lambda grads, max_norm: [g * max_norm / _norm([g]) for g in grads], "One norm for all "
             "arrays, or one for each? And what happens to a short gradient?"),
            (lambda grads, max_norm: [
                g * (max_norm / _norm(grads) if _norm(grads) < max_norm else 1) for g in grads
             ], "Which gradient is to be shortened: the long one, or the short one?"),
            (lambda grads, max_norm: grads, "Nothing has changed. What becomes of a long one?"),
        ],
    ),
    "09.4": ADAMW,
    "09.5": Exercise(
        _rate_at,
        cases=[(1, 0.003, 150, 10), (10, 0.003, 150, 10), (80, 0.003, 150, 10),
               (150, 0.003, 150, 10), (25, 0.1, 40, 4)],
        mistakes=[
            (lambda *a: _rate_at(*a, line=False), "Where is the warm-up?"),
            (lambda *a: _rate_at(*a, floor=0.0), "Does the rate fall to 0, or to a tenth?"),
            (lambda *a: _rate_at(*a, since="start"), "Where does `done` begin: at step 0, or after "
             "the warm-up?"),
            (lambda *a: _rate_at(*a, high=False), "How large is 0.1 plus a whole cosine?"),
            (lambda step, rate, steps, warmup: _rate_at(step, rate, steps, warmup) / rate,
             "That is the share. Where is the rate?"),
            (lambda *a: _rate_at(*a, line="flat"), "In the warm-up the rate climbs. How much of it "
             "is there at step 1?"),
            (lambda *a: _rate_at(*a, line="long"), "At which step is the line to reach the rate?"),
            (lambda *a: _rate_at(*a, since="late"), "How many steps are left after the warm-up, "
             "and what is `done` at the last one?"),
            (lambda *a: _rate_at(*a, fall=lambda done: 1 - done), "That is a straight fall. Where "
             "is the cosine?"),
            (lambda *a: _rate_at(*a, fall=lambda done: 0.5 * (1 - math.cos(math.pi * done))),
             "Does the rate fall, or climb? What is your cosine where `done` is 0?"),
            (lambda *a: _rate_at(*a, fall=lambda done: 0.5 * (1 + math.cos(done))), "What is half "
             "a turn, for `math.cos`?"),
            (lambda *a: _rate_at(*a, fall=lambda done: 1 + math.cos(math.pi * done)), "What is one "
             "plus a cosine where `done` is 0: 1, or 2?"),
            (lambda *a: _rate_at(*a, last=lambda rate, share: rate * 0.9 * share), "Where is the "
             "tenth that remains?"),
            (lambda *a: _rate_at(*a, last=lambda rate, share: 0.1 + 0.9 * share * rate), "A tenth "
             "of what remains? Which brackets does the rate need?"),
        ],
    ),
    "09.6": CLIP,
    "09.7": Exercise(
        lambda: "BAECF",
        cases=[()],
        mistakes=[
            (lambda: "BACEF", "Can a gradient be measured before backward has made it?"),
            (lambda: "BEACF", "Backward goes back from what?"),
            (lambda: "BAEFC", "What does the update need to know about the whole gradient?"),
            (lambda: "ABECF", "The loss on which batch?"),
            *(
                (lambda order=order: order, "Can a gradient be measured before backward has made "
                 "it?")
                for order in ("BCAEF", "CBAEF", "ABCEF")
            ),
            *(
                (lambda at=at: "BAECF"[:at] + "D" + "BAECF"[at:], "One line makes all weights "
                 "random again. In each step?")
                for at in range(6)
            ),
        ],
        secret=True,
    ),
}  # fmt: skip

QUESTIONS = {
    "09.q1": Question("A", {
        "A": "it is on its way, and far from jumping; ten times more is worth a try",
        "B": "it is slow already; too large a rate shows as bumps and a loss that is stuck high",
        "C": "clipping shortens steps that are too long; these are too short",
    }),
    "09.q2": Question("B", {
        "A": "that is gradient descent; Adam divides by the usual size, which is 0.001 as well",
        "B": "average by usual size is 1: quiet or loud, who always pulls the same way moves alike",
        "C": "a small gradient is no reason; one that swings would hardly move it",
    }),
    "09.q3": Question("C", {
        "A": "the other one is needed, too: both ends change the loss",
        "B": "ways add up; nothing is divided",
        "C": "used twice, added twice",
    }),
    "09.q4": Question("A", {
        "A": "or last step's gradient pushes on, and the loss swings",
        "B": "then nothing would ever be learned",
        "C": "a pile that is shortened is still a pile",
    }),
    "09.q5": Question("B", {
        "A": "that is what goes in and what comes out",
        "B": "d_ff is four times as wide",
        "C": "that is 96 times 96",
    }),
}  # fmt: skip

BROKEN = {
    "09.no_correction": Broken(
        PACKAGE,
        "(m_new * correction1 / (sqrt(v_new * correction2) + epsilon) + pull)",
        "(m_new / (sqrt(v_new) + epsilon) + pull)",
        tries=[
            ("step 1, from zero", _kernel_case(21, 6, 1)),
            ("step 10", _kernel_case(23, 6, 10)),
        ],
        finder="check",
        reason="At step 1 with these betas, both averages are too small by the same factor.",
    ),
}  # fmt: skip
