"""Lesson 12b, In the wild."""

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize

from ...data import prompt_text
from . import Broken, Exercise, KernelTask, Question, blank

U = 2.0**-24  # the largest relative error of one float32 operation
BLOCK = 34  # bytes of a Q8_0 block: a half, and 32 numbers of eight bits


# ---- the gap between two rows of logits ----


def _gap(theirs, ours):
    d = theirs - ours
    return (d.max(axis=-1) - d.min(axis=-1)).max() / 2


def _from_the_mean(theirs, ours):
    d = theirs - ours
    return np.abs(d - d.mean(axis=-1, keepdims=True)).max()


def _rows(seed, rows=3, V=7, shift=5.0):
    rng = np.random.default_rng(seed)
    ours = rng.normal(0, 3, (rows, V))
    return ours + shift * rng.normal(size=(rows, 1)) + 0.1 * rng.normal(size=(rows, V)), ours


def _gaps(theirs, candidates):
    return np.array([_gap(theirs, logits) for logits in candidates])


def _nearest(theirs, candidates, band):
    gaps = _gaps(theirs, candidates)
    return int(gaps.argmin()) if gaps.min() <= band else -1


def _nearest_case(seed, right, band):
    theirs, ours = _rows(seed)
    rng = np.random.default_rng(seed + 100)
    # Without regard to the shift, the others are nearer.
    others = [theirs + rng.normal(0, 0.5, ours.shape) for _ in range(3)]
    return theirs, np.array([*others[:right], ours, *others[right:]]), band


def _two_near(far_off, near_first=False):
    """Two candidates that one row alone takes for the other way round; both may be near."""
    theirs, ours = _rows(7)
    near, far = ours.copy(), ours.copy()
    far[1, 2] += far_off
    near[0, 0] += 0.3
    return theirs, np.array([near, far] if near_first else [far, near]), 1.5


def _nearest_without_shift(theirs, candidates, band):
    gaps = np.abs(theirs - candidates).max(axis=(1, 2))
    return int(gaps.argmin()) if gaps.min() <= band else -1


def _first_within(theirs, candidates, band):
    found = np.flatnonzero(_gaps(theirs, candidates) <= band)
    return int(found[0]) if len(found) else -1


def _last_within(theirs, candidates, band):
    found = np.flatnonzero(_gaps(theirs, candidates) <= band)
    return int(found[-1]) if len(found) else -1


def _farthest(theirs, candidates, band):
    return int(_gaps(theirs, candidates).argmax())


def _farthest_within(theirs, candidates, band):
    gaps = _gaps(theirs, candidates)
    return int(gaps.argmax()) if gaps.max() <= band else -1


def _smallest_gap(theirs, candidates, band):
    gaps = _gaps(theirs, candidates)
    return gaps.min() if gaps.min() <= band else -1


def _number_within(theirs, candidates, band):
    best = int(_gaps(theirs, candidates).argmin())
    return best if best <= band else -1


def _only_outside(theirs, candidates, band):
    gaps = _gaps(theirs, candidates)
    return -1 if gaps.min() <= band else int(gaps.argmin())


def _always_one(theirs, candidates, band):
    return int(_gaps(theirs, candidates).argmin())


def _always_first(theirs, candidates, band):
    return 0


def _first_row_only(theirs, candidates, band):
    return _nearest(theirs[:1], candidates[:, :1], band)


# ---- the chat template ----


def _message(role, content):
    return {"role": role, "content": content}


def _render(messages):
    last = messages[-1]
    return last["content"] if last["role"] == "assistant" else prompt_text(last["content"])


def _asked(form, start=""):
    """A renderer that puts the last question into a form, and start before an answer begun."""

    def render(messages):
        last = messages[-1]
        answering = last["role"] == "assistant"
        return start + last["content"] if answering else form.format(last["content"])

    return render


def _render_all_but_system(messages):
    return _render_all([m for m in messages if m["role"] != "system"])


def _render_system(messages):
    first, text = messages[0], _render(messages)
    return f"{first['content']}\n{text}" if first["role"] == "system" else text


def _render_last_question(messages):
    return prompt_text([m for m in messages if m["role"] == "user"][-1]["content"])


def _render_all(messages):
    names = {"user": "User", "assistant": "Assistant", "system": "System"}
    lines = [f"{names[m['role']]}: {m['content']}\n" for m in messages]
    return "".join(lines) + "Assistant:"


def _render_first(messages):
    return prompt_text(next(m["content"] for m in messages if m["role"] == "user"))


CHATS = [
    [_message("user", "Hello")],
    [_message("system", "Be brief."), _message("user", "Why?")],
    [_message("user", "Why?"), _message("assistant", "So."), _message("user", "Hello")],
    [_message("user", "Hello"), _message("assistant", "User: x\nAssistant: y")],
]

# ---- a row of the file ----


def _words(raw):
    """Bytes, filled up to a multiple of four, as a device gets them: four to an int."""
    return np.frombuffer(raw + bytes(-len(raw) % 4), np.int32)


def _q8_case(seed, V, C, before=8, positive=False):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(V, C)).astype(np.float32)
    table = np.abs(table) if positive else table
    raw = bytes(range(before)) + quantize(table, GGMLQuantizationType.Q8_0).tobytes()
    return _words(raw), rng.normal(size=C).astype(np.float32), before, V, C


def _table(words, start, V, C):
    raw = np.ascontiguousarray(words).view(np.uint8)[start : start + V * C // 32 * BLOCK]
    return dequantize(raw.reshape(V, -1), GGMLQuantizationType.Q8_0).astype(np.float64)


def _logits(engine, kernel, words, h, start, V, C):
    logits = blank(engine, V)
    kernel((V,), (4,), engine.from_host(words), engine.from_host(h), logits, start, V, C)
    return engine.to_host(logits)


def _logits_want(words, h, start, V, C):
    table, exact = _table(words, start, V, C), np.asarray(h, np.float64)
    # Every number is in C products and sums, and in one product with its block's scale.
    return table @ exact, (C + 2) * U * (np.abs(table) @ np.abs(exact))


Q8_LOGITS = KernelTask(
    """
__kernel void q8_logits(__global const int *file,    // the file's bytes, four to an int
                        __global const float *h,     // (C)
                        __global float *logits,      // (V)
                        const int start, const int V, const int C)
{
    const int v = get_global_id(0);
    if (v >= V) return;
    __global const char *block = (__global const char *)file + start + v * (C / 32) * 34;
    float logit = 0.0f;
    for (int c = 0; c < C; c += 32) {
        const float scale = vload_half(0, (__global const half *)block);
        float sum = 0.0f;
        for (int i = 0; i < 32; ++i) sum += block[2 + i] * h[c + i];
        logit += scale * sum;
        block += 34;
    }
    logits[v] = logit;
}
""",
    "q8_logits",
    _logits,
    _logits_want,
    cases=[_q8_case(1, 5, 96), _q8_case(2, 7, 32, before=0)],
    mistakes=[
        ("(C / 32) * 34", "(C / 32) * 32", "How many bytes has a block, its scale included?"),
        ("v * (C / 32) * 34", "v * 34", "How many blocks has a row?"),
        ("block[2 + i]", "block[i]", "What lies in the first two bytes of a block?"),
        ("h[c + i]", "h[i]", "Which numbers of h belong to the second block?"),
        ("logit += scale", "logit = scale", "What happens to the blocks before this one?"),
        ("scale * sum", "sum", "Where does the scale come in?"),
        ("        block += 34;\n", "", "Who moves on to the next block?"),
        ("block += 34", "block += 32", "How far is it to the next block: 32 bytes, or more?"),
        ("    if (v >= V) return;\n", "", "Which work-items have no row of their own, and do they "
         "leave?"),
        ("__global const char *block = (__global const char *)", "__global const uchar *block = "
         "(__global const uchar *)", "May a weight be negative? Which bytes have a sign?"),
        (" + start", "", "Does the table begin at the first byte of the file?"),
        ("block[2 + i] * h[c + i]", "block[i] * h[i]", "What lies in the first two bytes of a "
         "block? And which numbers of h belong to the second block?"),
        ("float sum", "int sum", "What does an `int` keep of 0.7?"),
        ("float logit", "int logit", "What does an `int` keep of 0.7?"),
        ("(__global const char *)file + start + v * (C / 32) * 34", "(__global const char *)(file "
         "+ start + v * (C / 32) * 34)", "How many bytes further is `file + 1`, as long as it "
         "points to int?"),
        ("(__global const char *)file + start", "(__global const char *)(file + start)", "How many "
         "bytes further is `file + 1`, as long as it points to int?"),
        ("c += 32", "++c", "How many numbers has a block, and how far does c "
         "go in one turn?"),
        ("i < 32", "i < C", "How many numbers has a block, and how far does c "
         "go in one turn?"),
        ("    logits[v] = logit;", "", "Where does the sum go in the end?"),
    ],
)  # fmt: skip


def _row(engine, kernel, words, h, start, V, C):
    row = blank(engine, C)
    kernel((C,), (8,), engine.from_host(words), row, start, C)
    return engine.to_host(row)


def _row_want(words, h, start, V, C):
    row = _table(words, start, V, C)[0]
    return row, U * np.abs(row)


ONE_ROW = KernelTask(
    """
__kernel void one_row(__global const int *file,    // the file's bytes, four to an int
                      __global float *row,         // (C)
                      const int start, const int C)
{
    const int c = get_global_id(0);
    if (c >= C) return;
    __global const char *block = (__global const char *)file + start + c / 32 * 34;
    const float scale = vload_half(0, (__global const half *)block);
    row[c] = scale * block[2 + c % 32];
}
""",
    "one_row",
    _row,
    _row_want,
    cases=[_q8_case(3, 1, 96), _q8_case(4, 2, 64, before=12)],
    mistakes=[
        ("c / 32 * 34", "c / 32 * 32", "How many bytes has a block, its scale included?"),
        ("2 + c % 32", "2 + c", "The pointer is at the block already. Which number of the block?"),
        ("2 + c % 32", "c % 32", "What lies in the first two bytes of a block?"),
        ("scale * block", "block", "Where does the scale come in?"),
        ("* block[2", "* (uchar)block[2", "The byte 200 stands for -56. Which type reads it so?"),
        ("block[2 + c % 32]", "((uchar)block[2 + c % 32] - 256)", "Which bytes are to be moved by "
         "256: all, or those above 127 only?"),
        ("block[2 + c % 32]", "((uchar)block[2 + c % 32] - 128)", "The byte 5 stands for 5, the "
         "byte 200 for -56. What do you make of them?"),
        ("char *block = (__global const char *)", "int *block = (__global const int *)", "How many "
         "bytes further is `block + 1` if block points to int?"),
    ],
    given=("__global const char *block = (__global const char *)",
           "__global const uchar *block = (__global const uchar *)"),
)  # fmt: skip

# ---- what the lesson asks ----

EXERCISES = {
    "12b.2": Exercise(
        _gap,
        cases=[_rows(1), _rows(2, rows=2, V=5), (np.zeros((1, 3)), np.array([[0.0, 2.0, -1.0]]))],
        mistakes=[
            (lambda theirs, ours: np.abs(theirs - ours).max(), "Their numbers may all be shifted "
             "by one number a row. Is that a difference?"),
            (lambda theirs, ours: np.abs(theirs - ours).max() / 2, "Their numbers may all be "
             "shifted by one number a row. Where do you take that away?"),
            (lambda theirs, ours: np.ptp(np.abs(theirs - ours), axis=-1).max() / 2, "One logit is "
             "too high by 0.3, another too low by 0.3. How large is the range, and what does "
             "`np.abs` make of it?"),
            (_from_the_mean, "You shift by the mean. Is it the middle between lowest and highest?"),
            (lambda theirs, ours: (np.ptp(theirs, axis=-1) - np.ptp(ours, axis=-1)).max() / 2,
             "First the difference, then its range; you have it the other way round. May two rows "
             "have the same range and other logits?"),
            (lambda theirs, ours: np.ptp(theirs - ours, axis=-1).min() / 2, "Which row decides: "
             "the best, or the worst?"),
            (lambda theirs, ours: np.ptp(theirs - ours, axis=-1).sum() / 2, "Is the sum of the "
             "rows asked for, or the largest?"),
            (lambda theirs, ours: 2 * _gap(theirs, ours), "The range is from the lowest to the "
             "highest; the best shift lies in its middle. How far is it from there to the ends?"),
            (lambda theirs, ours: _gap(theirs.reshape(1, -1), ours.reshape(1, -1)), "Has each row "
             "a shift of its own?"),
            (lambda theirs, ours: (theirs - ours).max(axis=-1).max() / 2, "Where are the logits "
             "that are too low?"),
            (lambda theirs, ours: np.ptp(theirs - ours, axis=-1) / 2, "That is a number for each "
             "row. Which one counts?"),
            (lambda theirs, ours: np.ptp(theirs - ours, axis=-1).mean() / 2, "Does a mean show one "
             "row that is far off?"),
            (lambda theirs, ours: np.ptp(theirs - ours, axis=0).max() / 2, "Is the range taken "
             "over the tokens of a row, or over the rows?"),
        ],
    ),
    "12b.3": ONE_ROW,
    "12b.4": Q8_LOGITS,
    "12b.5": Exercise(
        _render,
        cases=[(chat,) for chat in CHATS],
        mistakes=[
            (lambda m: _render(m) + " ", "Does a question end with a space, or does the answer "
             "begin with one?"),
            (_asked("User: {}\nAssistant: "), "Does a question end with a space, or does the "
             "answer begin with one?"),
            (lambda m: prompt_text(m[-1]["content"]) + " ", "Does a question end with a space? And "
             "what if the last message is an answer that somebody has begun?"),
            (_asked("User: {}\nAssistant:\n"), "What comes behind `Assistant:`: a new line, or the "
             "answer?"),
            (_asked("User: {} Assistant:"), "What stands between the question and `Assistant:`?"),
            (_asked("User: {}"), "What tells the model that it is its turn?"),
            (_asked("user: {}\nassistant:"), "Large or small letters: is a role spelled as in the "
             "training text?"),
            (_asked("User:{}\nAssistant:"), "What stands between `User:` and the question?"),
            (_asked("User: {}\nAssistant:", "Assistant: "), "An answer that was begun stays as it "
             "is. What do you put before it?"),
            (_render_all, "Has the model ever seen two turns in one text, or a system message?"),
            (_render_all_but_system, "Has the model ever seen two turns in one text?"),
            (_render_system, "Has the model ever seen a system message?"),
            (_render_first, "Which question is the one to be answered?"),
            (lambda m: prompt_text(m[0]["content"]), "Is the first message the one to be answered, "
             "or the last?"),
            (_render_last_question, "What if the last message is an answer that somebody has "
             "begun?"),
            (lambda m: prompt_text(m[-1]["content"]), "What if the last message is an answer that "
             "somebody has begun?"),
            (lambda m: _render(m).replace("\n", " "), "What stands between the question and "
             "`Assistant:`?"),
            (lambda m: m[-1]["content"], "Where are `User:` and `Assistant:`?"),
        ],
    ),
    "12b.6": Exercise(
        _nearest,
        cases=[_nearest_case(11, 1, 0.5), _nearest_case(12, 2, 0.5), _nearest_case(13, 1, 0.001),
               _two_near(1.5), _two_near(9.0), _two_near(1.5, near_first=True)],
        mistakes=[
            (_always_one, "What if even the nearest is outside of the band?"),
            (_first_within, "Two may be within the band. Which one do you take?"),
            (_last_within, "Two may be within the band. Which one do you take?"),
            (_farthest, "Is the culprit the one with the smallest gap, or with the largest?"),
            (_farthest_within, "Is the culprit the one with the smallest gap, or with the "
             "largest?"),
            (_smallest_gap, "That is its gap. Which number has the candidate, counted from 0?"),
            (_number_within, "What must lie within the band: the candidate's number, or its gap?"),
            (_only_outside, "When is it -1: when the smallest gap is inside of the band, or "
             "outside?"),
            (_always_first, "`gap(theirs, candidates)` is one number for all candidates together. "
             "How do you get one for each?"),
            (_nearest_without_shift, "Do you compare with `gap`, which knows of the shift?"),
            (_first_row_only, "Do you look at all rows?"),
        ],
    ),
    "12b.7": Exercise(
        lambda: "DBFAE",
        cases=[()],
        mistakes=[
            (lambda: "BDFAE", "What does a program send: a chat, or a text?"),
            (lambda: "DBFCE", "Temperature 0: is anything drawn?"),
            (lambda: "DBFCAE", "Temperature 0: is anything drawn?"),
            (lambda: "DBFACE", "Temperature 0: is anything drawn?"),
            (lambda: "DBFAEC", "One line does not belong. Is anything drawn at temperature 0?"),
            (lambda: "FDBAE", "What is cut into tokens, and is it there at the beginning?"),
            (lambda: "BFDAE", "What does a program send: a chat, or a text?"),
            (lambda: "FBDAE", "What does a program send: a chat, or a text?"),
            (lambda: "DBAFE", "The model takes ids. Where do they come from?"),
            (lambda: "DBFA", "What tells the program to stop?"),
            (lambda: "DFBAE", "What is cut into tokens: the chat, or the text made of it?"),
            (lambda: "DBFEA", "What tells the program to stop?"),
        ],
        secret=True,
    ),
}  # fmt: skip

QUESTIONS = {
    "12b.q1": Question("C", {
        "A": "a text takes the largest logit only; 4 heads for 3 wrote every sentence right",
        "B": "it says only that names and shapes are as the format wants them",
        "C": "all of them, and within a band that rounding explains",
    }),
    "12b.q2": Question("B", {
        "A": "the weights are the same for every format of the question",
        "B": "it has seen one form only; in another, it goes on with a text that it never read",
        "C": "the tokenizer loses nothing, whatever it is given",
    }),
    "12b.q3": Question("A", {
        "A": "34 bytes for 32 weights: a half for the scale, and a byte each",
        "B": "that leaves out the scale",
        "C": "that is F16",
    }),
    "12b.q4": Question("C", {
        "A": "the end token is learned from the answers, and it is not masked",
        "B": "it costs the same time",
        "C": "the user asks; the model is to answer, and learns that only",
    }),
    "12b.q5": Question("B", {
        "A": "that is the forward pass",
        "B": "two places may hold the same token; one adds, and the other must add to that",
        "C": "it is long, but it has a shape",
    }),
}  # fmt: skip

_ROW_START = "(C / 32) * 34"
_SIGNED = "__global const char *block = (__global const char *)"
BROKEN = {
    "12b.forgotten_scale": Broken(
        Q8_LOGITS,
        _ROW_START,
        "(C / 32) * 32",
        tries=[
            ("a table of one row", _q8_case(21, 1, 96)),
            ("a table of five rows", _q8_case(21, 5, 96)),
        ],
        finder="check",
        reason="Row 0 begins at the same byte either way.",
    ),
    "12b.no_sign": Broken(
        Q8_LOGITS,
        _SIGNED,
        _SIGNED.replace("char", "uchar"),
        tries=[
            ("no weight is negative", _q8_case(22, 5, 96, positive=True)),
            ("weights of both signs", _q8_case(22, 5, 96)),
        ],
        finder="check",
        reason="Up to 127, a byte with a sign and one without mean the same.",
    ),
}
