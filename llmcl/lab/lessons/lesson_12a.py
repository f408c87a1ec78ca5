"""Lesson 12a, The GGUF file."""

import struct

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import quantize

from . import Broken, Exercise, KernelTask, Question

Q8_0 = GGMLQuantizationType.Q8_0
BLOCK_BYTES = 34


def _numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# ---- bytes of a file ----


def _gap(at):
    return -at % 32


def _read_text(data, at):
    (length,) = struct.unpack_from("<Q", data, at)
    return data[at + 8 : at + 8 + length].decode("utf-8"), at + 8 + length


def _text(words):
    raw = words.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def dump() -> str:
    """The hex dump of exercise 12a.4: 16 bytes a line, with their letters at the right."""
    raw = b"GGUF" + struct.pack("<IQQ", 3, 300, 17)
    raw += _text("gpt2.block_count") + struct.pack("<II", 4, 258)
    lines = []
    for start in range(0, len(raw), 16):
        part = raw[start : start + 16]
        letters = "".join(chr(b) if 32 < b < 127 else "." for b in part)
        lines.append(f"{start:02}  {part.hex(' '):47}  {letters}")
    return "\n".join(lines)


def _read_text_bytes(length_bytes=8, skip=True, big=False, forward=True):
    """A read_text that goes wrong in a known way."""

    def read(data, at):
        start = at + 8
        length = int.from_bytes(data[at : at + length_bytes], "big" if big else "little")
        found = data[start : start + length].decode("utf-8", errors="replace")
        return found, at + length if not skip else at if not forward else start + length

    return read


# ---- Q8_0 ----


def _away(x):
    """Rounded, half away from zero."""
    a = np.abs(x)
    whole = np.floor(a)
    return np.sign(x) * (whole + (a - whole >= 0.5))


def _block(x, steps=127, round_to=_away, size=np.abs, half_first=False, zero=True, order="d first",
           times=True, wide=False):  # fmt: skip
    x = x.astype(np.float64) if wide else x
    with np.errstate(all="ignore"):
        d = size(x).max() / x.dtype.type(steps)
        stored = np.array([d], np.float16)
        d = x.dtype.type(stored[0]) if half_first else d
        inverse = x.dtype.type(0) if zero and d == 0 else x.dtype.type(1) / d
        scaled = x * inverse if times or d == 0 else x / d
        q = round_to(scaled).astype(np.int8).view(np.uint8)
    parts = [stored.view(np.uint8), q]
    return np.concatenate(parts if order == "d first" else parts[::-1])


def _counts(x):
    return _block(x)[2:].view(np.int8)


def ties() -> np.ndarray:
    """A block (1, 32) whose step is 1, and in which half of the numbers lie between two steps."""
    return np.array([[127.0, *np.arange(-15, 16) / 2]], np.float32)


def near_ties() -> np.ndarray:
    """A block (1, 32) whose numbers lie so near to half steps that the last digit decides."""
    return np.array([[1.9, *((np.arange(31) + 0.5) * 1.9 / 127)]]).astype(np.float32)


def _with_zeros(seed, blocks):
    x = _numbers(seed, blocks, 32)
    x[1] = 0
    return x


def _negative(seed):
    x = np.abs(_numbers(seed, 1, 32))
    x[0, 5] = -4
    return x


def words_for(blocks: int) -> int:
    """How many int32 hold that many Q8_0 blocks."""
    return -(-BLOCK_BYTES * blocks // 4)


def _q8(engine, kernel, x):
    blocks = len(x)
    out = engine.from_host(np.full(words_for(blocks), -1, np.int32))
    kernel((blocks,), (4,), engine.from_host(x), out, blocks)
    return engine.to_host(out).view(np.uint8)[: BLOCK_BYTES * blocks].reshape(blocks, BLOCK_BYTES)


def _q8_want(x):
    return quantize(x, Q8_0), 0


QUANTIZE = KernelTask(
    """
// a / b to the last digit; OpenCL allows a device to miss it by a little.
float divide(const float a, const float b)
{
    const float q = a / b;
    return fma(fma(-q, b, a), 1.0f / b, q);
}

__kernel void q8_0(__global const float *x,  // (blocks, 32)
                   __global int *out,        // room for 34 bytes a block
                   const int blocks)
{
    const int block = get_global_id(0);
    if (block >= blocks) return;
    __global const float *from = x + 32 * block;
    __global char *to = (__global char *)out + 34 * block;
    float largest = 0.0f;
    for (int i = 0; i < 32; ++i) largest = fmax(largest, fabs(from[i]));
    const float d = divide(largest, 127.0f);
    const float inverse = d == 0.0f ? 0.0f : divide(1.0f, d);
    vstore_half_rte(d, 0, (__global half *)to);
    for (int i = 0; i < 32; ++i) to[2 + i] = (char)round(from[i] * inverse);
}
""",
    "q8_0",
    _q8,
    _q8_want,
    cases=[(_numbers(1, 5, 32),), (_with_zeros(2, 3),), (ties(),), (near_ties(),), (_negative(3),)],
    mistakes=[
        ("fabs(from[i])", "from[i]", "What is the largest size, if that number is negative?"),
        ("127.0f", "128.0f", "Into how many steps is the largest number divided?"),
        ("round(", "rint(", "Half a step: does gguf go to the even number, or away from zero?"),
        ("(char)round(from[i] * inverse)", "(char)(from[i] * inverse)", "What does a cast to char "
         "do with the digits behind the point?"),
        ("(char)round(from[i] * inverse)", "(char)(from[i] * inverse + 0.5f)", "What does 0.5 more "
         "do to a negative number?"),
        ("round(from[i] * inverse)", "round(divide(from[i], d))", "gguf multiplies by 1 / d. Does "
         "dividing by d give the same last digit?"),
        ("    vstore_half_rte(d, 0, (__global half *)to);\n", "", "Where are the two bytes of d?"),
        ("+ 34 * block", "+ 32 * block", "How many bytes has a block in the file?"),
        ("to[2 + i]", "to[i]", "Whose place are the first two bytes of a block?"),
        ("x + 32 * block", "x + block", "How many numbers of x stand before this block's?"),
        ("    if (block >= blocks) return;\n", "", "Which work-items have no block of their own, "
         "and do they leave?"),
        ("divide(largest, 127.0f)", "largest", "The largest number is 127 steps. How long is one?"),
        ("from[i] * inverse", "from[i] * d", "How often does the step fit into a number?"),
    ],
)  # fmt: skip

# ---- and back ----


def _padded(x):
    raw = quantize(x, Q8_0).tobytes()
    return np.frombuffer(raw + bytes(-len(raw) % 4), np.int32).copy()


def _back(engine, kernel, x):
    y = engine.from_host(np.full(x.size, np.nan, np.float32))
    kernel((x.size,), (4,), engine.from_host(_padded(x)), y, x.size)
    return engine.to_host(y).reshape(x.shape)


def _back_want(x):
    raw = quantize(x, Q8_0)
    d = raw[:, :2].copy().view(np.float16).astype(np.float64)
    return d * raw[:, 2:].view(np.int8), 0  # 11 binary digits by 7: float32 loses nothing


BACK = KernelTask(
    """
__kernel void back(__global const int *file,  // blocks of 34 bytes
                   __global float *y,         // (n) numbers, 32 a block
                   const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    __global const char *block = (__global const char *)file + 34 * (i / 32);
    const float d = vload_half(0, (__global const half *)block);
    y[i] = d * block[2 + i % 32];
}
""",
    "back",
    _back,
    _back_want,
    cases=[(_numbers(4, 3, 32),), (_numbers(5, 1, 32),)],
    mistakes=[
        ("34 * (i / 32)", "34 * (i / 34)", "How many numbers has a block, and how many bytes?"),
        ("34 * (i / 32)", "32 * (i / 32)", "How many bytes has a block?"),
        ("block[2 + i % 32]", "(char)(block[2 + i % 32] + 128)", "What does a byte of 200 stand "
         "for, if it is a number from -128 to 127?"),
        ("block[2 + i % 32]", "block[i % 32]", "Whose place are the first two bytes of a block?"),
        ("__global const char *block", "__global const uchar *block", "How does `block` itself "
         "take a byte: from -128 on, or from 0 on?"),
        ("d * block", "block", "The byte counts steps. How long is a step?"),
    ],
    given=(
        "__global const char *block = (__global const char *)file",
        "__global const uchar *block = (__global const uchar *)file",
    ),
)  # fmt: skip

# ---- what the lesson asks ----

DUMPED = (3, 300, 17, 16, 4, 258)
EXERCISES = {
    "12a.2": Exercise(
        _gap,
        cases=[(125,), (128,), (1,), (0,), (33,), (16193,)],
        mistakes=[
            (lambda at: 32 - at % 32, "How large is the gap at 128, which is a multiple already?"),
            (lambda at: at % 32, "Are these the bytes since the last multiple, or up to the next?"),
            (lambda at: at + -at % 32, "Is that the gap, or the place behind it?"),
            (lambda at: (at // 32 + 1) * 32, "Is that the gap, or the place behind it?"),
            (lambda at: -(-at // 32) * 32, "Is that the gap, or the place behind it?"),
        ],
    ),
    "12a.3": Exercise(
        _read_text,
        cases=[
            (_text("sea"), 0),
            (b"GGUF" + _text("The sun warms the land and the sea.") + _text("more"), 4),
            (_text("태양") + b"\x03", 0),
            (_text("x" * 300), 0),
            (_text(""), 0),
            (struct.pack("<Q", 2**32 + 3) + b"sea", 0),  # more is announced than there is
        ],
        mistakes=[
            (_read_text_bytes(length_bytes=1), "How many bytes has the length?"),
            (_read_text_bytes(length_bytes=4), "How many bytes has the length? `I` reads four."),
            (lambda data, at: _read_text(data, 0), "Does yours begin at `at`, or always at 0?"),
            (lambda data, at: (data[at + 8 : _read_text(data, at)[1] - at - 8].decode(),
                               _read_text(data, at)[1]), "A slice ends at a place, not at a "
             "length. Where does this text end?"),
            (lambda data, at: (_read_text(data, at)[0], _read_text(data, at)[1] - at - 8), "Is "
             "that where the next thing begins, or how long this one was?"),
            (_read_text_bytes(skip=False), "What stands between `at` and the text itself?"),
            (_read_text_bytes(forward=False), "Where does the next thing begin?"),
            (lambda data, at: _read_text(data, at)[0], "Two things are wanted: the text, and where "
             "the next one begins."),
            (lambda data, at: (_read_text(data, at)[0].encode(), _read_text(data, at)[1]),
             "These are bytes. What makes a text of them?"),
            (lambda data, at: (_read_text(data, at)[0], at + 8 + len(_read_text(data, at)[0])),
             "Does the length count letters, or bytes?"),
            (lambda data, at: (_read_text(data, at)[0], _read_text(data, at)[1] - at), "Is that "
             "where the next thing begins, or how long this one was?"),
        ],
    ),
    "12a.4": Exercise(
        lambda: DUMPED,
        cases=[()],
        mistakes=[
            (lambda: (3, 17, 300, 16, 4, 258), "Which of the two counts comes first?"),
            (lambda: (3, 44, 11, 10, 4, 2), "`10` is one sixteen, not ten. And has a number only "
             "one byte?"),
            (lambda: (3, 44, 17, 16, 4, 2), "A number has more than one byte. What does the second "
             "one count?"),
            (lambda: (3, 44, 17, 16, 4, 258), "`2c 01`: how much is each 1 of the second byte?"),
            (lambda: (3, 300, 17, 16, 4, 2), "`02 01 00 00`: how much is each 1 of the second "
             "byte?"),
            (lambda: (3, 300, 17, 16, 4, 513), "`02 01`: which end comes first?"),
            (lambda: (3, 11265, 17, 16, 4, 513), "`2c 01`: which end comes first?"),
            (lambda: (3, 300, 11, 10, 4, 258), "Did you read `11` and `10` as tens? They are "
             "sixteens."),
            (lambda: (3, 300, 17, 10, 4, 258), "Did you read `10` as ten? It is one sixteen."),
            (lambda: (3, 300, 11, 16, 4, 258), "Did you read `11` as eleven? It is one sixteen, "
             "and one."),
        ],
        secret=True,
    ),
    "12a.5": Exercise(
        _block,
        cases=[(_numbers(seed, 32),) for seed in range(11, 15)]
        + [(ties()[0],), (near_ties()[0],), (_negative(3)[0],), (np.zeros(32, np.float32),)],
        mistakes=[
            (lambda x: _block(x, steps=128), "Into how many steps is the largest number divided?"),
            (lambda x: _block(x, round_to=np.round), "Half a step: np.round goes to the even "
             "number. And gguf?"),
            (lambda x: _block(x, round_to=np.trunc), "Is that the nearest step, or the one "
             "nearer to 0?"),
            (lambda x: _block(x, round_to=np.floor), "Is that the nearest step, or the one below?"),
            (lambda x: _block(x, size=lambda a: a), "What is the largest size, if that number is "
             "negative?"),
            (lambda x: _block(x, half_first=True), "Count in the d that was not rounded to a half "
             "yet. Which one did you take?"),
            (lambda x: _block(x, order="numbers first"), "What comes first in a block?"),
            (lambda x: _block(x, times=False), "gguf multiplies by 1 / d. Does dividing by d give "
             "the same last digit?"),
            (lambda x: _block(x, wide=True), "gguf computes in float32. Which type has yours?"),
            (lambda x: np.concatenate([_block(x)[:2], _counts(x)]), "Are the "
             "counts bytes yet? `.view(np.uint8)` looks at them as such."),
            (lambda x: np.concatenate([_block(x)[:2].view(np.float16), _counts(x)]), "How many "
             "bytes has a half? `.view(np.uint8)` shows them."),
            (lambda x: _counts(x), "Where are the two bytes of d?"),
            (lambda x: _block(x)[2:], "Where are the two bytes of d?"),
        ],
        tolerance=0.0,
    ),
    "12a.6": QUANTIZE,
    "12a.7": Exercise(
        lambda: "DBEAF",
        cases=[()],
        mistakes=[
            (lambda: "BDEAF", "What tells a reader how many pairs there will be?"),
            (lambda: "DEBAF", "Which comes first, what the model is, or where its tensors lie?"),
            (lambda: "DBAEF", "How does a reader know where the data begin, before the table?"),
            (lambda: "DBEAFC", "One line is not in the file at all. How does a reader find the end "
             "of a tensor?"),
            (lambda: "DBEACF", "One line is not in the file at all. How does a reader find the end "
             "of a tensor?"),
            (lambda: "DBECAF", "One line is not in the file at all. How does a reader find a "
             "tensor?"),
            (lambda: "DBEFA", "What fills the file up to a multiple of 32?"),
        ],
        secret=True,
    ),
    "12a.8": BACK,
}  # fmt: skip

QUESTIONS = {
    "12a.q1": Question("B", {
        "A": "the header's length is not known when the table is written, so that would not do",
        "B": "and the data begin at the first multiple of 32 behind the table",
        "C": "the numbers of all tensors lie behind the whole table",
    }),
    "12a.q2": Question("A", {
        "A": "half a step; and a little more, since the step itself is kept as a half",
        "B": "that is a whole step; the nearest one is never further than half of it",
        "C": "that would be so if the block had only one step on each side",
    }),
    "12a.q3": Question("C", {
        "A": "it is exact: the same answer, with less to compute",
        "B": "weights stay as they are; what is kept belongs to the text",
        "C": "the past does not change when a token is added, so its keys and values stay",
    }),
    "12a.q4": Question("B", {
        "A": "the step has one length for the whole model, wherever its numbers lie",
        "B": "all parts shrink alike, so the step still points where the gradient points",
        "C": "a limit for each tensor is as easy, and bends the direction",
    }),
    "12a.q5": Question("A", {
        "A": "backward adds; what is left of the last batch counts again",
        "B": "nothing overwrites it: backward adds",
        "C": "the loss falls at first, so nobody looks; the direction is wrong",
    }),
}  # fmt: skip

BROKEN = {
    "12a.rint": Broken(
        QUANTIZE,
        "round(",
        "rint(",
        tries=[("1,000 random blocks", (_numbers(21, 1000, 32),)), ("halves of a step", (ties(),))],
        finder="check",
        reason="rint goes to the even number; only a number halfway between two steps shows it.",
    ),
    "12a.stride": Broken(
        QUANTIZE,
        "+ 34 * block",
        "+ 32 * block",
        tries=[("one block", (_numbers(22, 1, 32),)), ("three blocks", (_numbers(23, 3, 32),))],
        finder="data race",
        reason="A block has 34 bytes, so the last two of each are written by two work-items.",
    ),
}  # fmt: skip
