# ---
# jupyter:
#   llmcl:
#     title: The GGUF file
#     needs: ["00", "01b", "02", "05", "07", "float32", "rounding", "race"]
#     introduces:
#       - little-endian
#       - hex dump
#       - magic number
#       - key-value pair
#       - tensor table
#       - offset
#       - alignment
#       - half
#       - F16
#       - F32
#       - quantize
#       - Q8_0
#       - llmcl.errors.GgufError
#       - llmcl.lab.checkpoint
#       - llmcl.lab.explore_file
#       - llmcl.lab.gguf_parts
#     minutes: {core: 80, full: 100}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 12a · The GGUF file
#
# In this lesson you write a GGUF file byte by byte, quantize weights to the last bit as the makers of the
# format do, and give every byte of your model's file its place in one picture.
#
# | | |
# |---|---|
# | **After this you can** | decode the header of a file by hand; quantize a block of Q8_0 and bound its error; write a file with `gguf` and read it with another reader; say what a wrong count, offset or type does |
# | **You need** | lessons 01b, 02, 05 and 07 |
# | **Time** | 80 minutes; 100 with the exercises |
# | **New words** | little-endian, hex dump, magic number, key-value pair, tensor table, offset, alignment, half, F16, F32, quantize, Q8_0 |

# %%
from llmcl import lab

lab.start("12a")

# %% [markdown] id="idea"
# ## The idea: a file says how long its parts are
#
# A file is a row of bytes, and nothing else. Lesson 00 wrote one, and other programs opened it. How did
# they know which bytes are a weight, and which are a letter? Put a number and a text into bytes. Python's
# `struct` does it, as `BinaryWriter` does in C#; `I` asks for a whole number of four bytes.

# %% tags=["slide"]
import struct

print(struct.pack("<I", 3).hex(" "))
word = "sea"
print(word.encode("utf-8").hex(" "))

# %% [markdown] id="idea-hex"
# Each byte is shown by two digits of base 16: 0 to 9, then a to f for ten to fifteen. So `73` is 7 · 16 +
# 3 = 115, the letter s.
#
# Why does 3 come first, and then the zeros? In a number of several bytes, each byte counts 256 times as
# much as the one before. The little end comes first: **little-endian**. The `<` asks for that.
#
# **Exercise 12a.1** · easy · 2 minutes. A file holds `e8 03 00 00`. Which number is that?
#
# <details><summary>Hint</summary>
#
# e8 is 14 · 16 + 8. The 3 counts 256 each.
#
# </details>

# %%
lab.predict("12a.1", guess=None)

# %%
lab.reveal("12a.1", struct.unpack("<I", bytes.fromhex("e8 03 00 00"))[0])

# %% [markdown] id="idea-text"
# And the text? Whoever meets `73 65 61` cannot tell where it ends. So its length goes before it, as a
# number of eight bytes (`Q`):

# %%
def text(words):
    """A text as GGUF has it: its length in bytes, then its bytes in UTF-8."""
    raw = words.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw

print(text("sea").hex(" "))
assert len(text("태양")) == 8 + 6

# %% [markdown] id="idea-parts"
# That is the whole idea of the format: **what comes is announced before it comes**. Why the length in bytes,
# not letters? A reader must know how far to jump, and two Korean letters are six bytes.
#
# ## A file by hand
#
# A GGUF file has five parts: a header, key-value pairs, a table of tensors, a gap, and the numbers. We
# write the smallest one: one pair, one tensor. The header has 24 bytes:

# %% tags=["slide"]
header = b"GGUF" + struct.pack("<IQQ", 3, 1, 1)  # version, how many tensors, how many pairs
print(header.hex(" "))

# %% [markdown] id="hand-pair"
# The four letters in front are the **magic number**: a reader that finds others stops at once. Then a **key-value
# pair**: the key, a number for the type of the value, the value. Type 8 is a text, 4 a whole number of
# four bytes, 6 a float, 9 a list.

# %%
pair = text("general.architecture") + struct.pack("<I", 8) + text("gpt2")

# %% [markdown] id="hand-table"
# The **tensor table** has one entry for each tensor: name, how many dimensions, the dimensions, the type of its
# numbers, and its **offset**: how far behind the beginning of the data it lies. Types count anew here: 0 is
# **F32**, your float32. Our tensor has the shape (2, 3). Which comes first in the entry: 2 or 3?

# %%
import numpy as np

tensor = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
entry = text("token_embd.weight") + struct.pack("<I", 2)  # two dimensions
entry += struct.pack("<QQIQ", 3, 2, 0, 0)                 # a row's length, how many rows, F32, offset

# %% [markdown] id="hand-gap"
# The 3, though NumPy says (2, 3). GGUF lists first the dimension in which neighbours lie side by side:
# the length of a row.
#
# Now the numbers could follow. But they must begin at a multiple of 32. That is the **alignment**. Why?
# Programs do not copy a large file; they map it, so that it appears in memory as it lies on the disk, and
# compute from there. Processors fetch many bytes at once, and do that best, some only, from round addresses.
#
# **Exercise 12a.2** · easy · 3 minutes. Write `gap`: how many bytes are missing at place `at` to the next
# multiple of 32? At a multiple, none.
#
# <details><summary>Hint</summary>
#
# `at % 32` is how far the last multiple lies behind. In Python, `-1 % 32` is 31 (in C# it would be -1).
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# One of these four: `return 32 - at % 32`, `return -at % 32`, `return at % 32`, `return at + -at % 32`.
#
# </details>

# %%
@lab.exercise("12a.2")
def gap(at):
    """How many bytes from `at` to the next multiple of 32, from 0 to 31."""
    ### BEGIN SOLUTION
    return -at % 32
    ### END SOLUTION

# %%
front = header + pair + entry
numbers_as_bytes = tensor.tobytes()
by_hand = front + bytes(gap(len(front))) + numbers_as_bytes + bytes(gap(len(numbers_as_bytes)))
print(len(front), "bytes and a gap of", gap(len(front)), "before the numbers,", len(by_hand), "in all")

# %% [markdown] id="hand-see"
# Why a gap at the end? Another tensor could follow, at a multiple of 32.
#
# Here it is: a **hex dump**, 16 bytes a line. Move the slider from piece to piece. Before which pieces does
# another one announce how long they are?

# %%
pieces = [("magic number", 4), ("version 3", 4), ("1 tensor", 8), ("1 pair", 8), ("20 letters", 8), ("the key", 20),
          ("a text follows", 4), ("4 letters", 8), ("the value", 4), ("17 letters", 8), ("the name", 17),
          ("2 dimensions", 4), ("3 in a row", 8), ("2 rows", 8), ("type F32", 4), ("offset 0", 8),
          ("gap", gap(len(front))), ("six numbers", 24), ("gap at the end", gap(24))]
ends = np.cumsum([size for _, size in pieces])
assert ends[-1] == len(by_hand) and len(by_hand) % 16 == 0
dump_of_all = np.array([f"{byte:02x}" for byte in by_hand], dtype=object).reshape(-1, 16)

# %% tags=["slide"]
def draw_dump(axes, at):
    inside = np.arange(len(by_hand)).reshape(-1, 16)
    chosen = (inside >= ends[at] - pieces[at][1]) & (inside < ends[at])
    lab.cells(axes, np.zeros_like(inside), dump_of_all, np.where(chosen, "orange", ""), title=pieces[at][0])
    axes.set_yticks(range(len(inside)), 16 * np.arange(len(inside)))

def dump_words(at):
    raw = by_hand[ends[at] - pieces[at][1] : ends[at]]
    return f"A hex dump of {len(by_hand)} bytes, 16 a line. {pieces[at][0]}: the bytes {raw.hex(' ')} are orange."

labelled = [(name, at) for at, (name, _) in enumerate(pieces)]
lab.explore(draw_dump, labelled, dump_words, "piece", start=5, height=4.2)

# %% [markdown] id="package"
# ## The same with the package
#
# The package `gguf` counts for you. Does it write the same bytes?

# %%
from gguf import GGUFWriter

def write_with_package(path, tensors):
    writer = GGUFWriter(path, "gpt2")  # the pair general.architecture
    for name, array in tensors.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

# %%
hand_path, package_path = lab.folder("12a") / "hand.gguf", lab.folder("12a") / "package.gguf"
hand_path.write_bytes(by_hand)
write_with_package(package_path, {"token_embd.weight": tensor})
assert package_path.read_bytes() == by_hand
print("✓ all bytes are the same")

# %% [markdown] id="reader"
# ## A reader of your own
#
# Could two writers that agree both be wrong? Yes. So read. Everything is built of two moves: take a few
# bytes, and know where the next thing begins.
#
# **Exercise 12a.3** · medium · 6 minutes. Write `read_text`, the way back from `text`.
#
# <details><summary>Hint</summary>
#
# `struct.unpack_from("<Q", data, at)` gives a tuple with one number. The text begins 8 bytes behind `at`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Three of these five, in the right order:
#
# - `(length,) = struct.unpack_from("<Q", data, at)`
# - `(length,) = struct.unpack_from("<I", data, at)`
# - `start = at + 8`
# - `return data[start : start + length].decode("utf-8"), start + length`
# - `return data[start : start + length].decode("utf-8"), length`
#
# </details>

# %%
@lab.exercise("12a.3")
def read_text(data, at):
    """(text, where the next thing begins). At `at` stands the text's length."""
    ### BEGIN SOLUTION
    (length,) = struct.unpack_from("<Q", data, at)
    start = at + 8
    return data[start : start + length].decode("utf-8"), start + length
    ### END SOLUTION

# %%
sentence = "The sun warms the land and the sea."
two_texts = text(sentence) + text("sea")
print(read_text(two_texts, 0))
assert read_text(two_texts, 8 + 35) == ("sea", len(two_texts))

# %% [markdown] id="reader-values"
# What else can a value be? Types 0 to 7 and 10 to 12 are numbers. Each has a letter of `struct`: B, H, I and Q are
# whole numbers of 1, 2, 4 and 8 bytes, small letters with a sign; f is a float, d a double, ? true or false. A list
# announces the type of its parts and their count. (In `return *numbers, …` the star hands over the numbers one by
# one.)

# %%
LETTERS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd"))  # 8 is a text, 9 a list

def take(letters, data, at):
    """The numbers at a place, and behind them where the next thing begins."""
    numbers = struct.unpack_from("<" + letters, data, at)
    return *numbers, at + struct.calcsize("<" + letters)

def read_value(kind, data, at):
    if kind == 8:
        return read_text(data, at)
    if kind != 9:
        return take(LETTERS[kind], data, at)
    inner, count, at = take("IQ", data, at)
    found = []
    for _ in range(count):
        value, at = read_value(inner, data, at)
        found.append(value)
    return found, at

# %% [markdown] id="reader-file"
# And the file, part by part, as you wrote it. (On the left, a star takes what is left: `*dims, kind, offset, at = …`
# gives the last three names their numbers, and `dims` the rest.)

# %%
def read_file(data):
    """(values by key, (dimensions, type, offset) by tensor, where the numbers begin)."""
    if data[:4] != b"GGUF":
        raise ValueError("this does not begin with GGUF")
    version, n_tensors, n_pairs, at = take("IQQ", data, 4)
    values, tensors = {}, {}
    for _ in range(n_pairs):
        key, at = read_text(data, at)
        kind, at = take("I", data, at)
        values[key], at = read_value(kind, data, at)
    for _ in range(n_tensors):
        name, at = read_text(data, at)
        count, at = take("I", data, at)
        *dims, kind, offset, at = take(f"{count}QIQ", data, at)
        tensors[name] = dims, kind, offset
    return values, tensors, at + gap(at)

print(read_file(by_hand))

# %% [markdown] id="reader-both"
# The makers' reader is called `GGUFReader`. The two readers share no line. First, its findings in the form of ours.
# It lists the header among the pairs, as `GGUF.…`, and counts offsets from the beginning of the file.

# %%
from gguf import GGUFReader

def read_theirs(path):
    """What GGUFReader finds: values, tensors and where the numbers begin, as from read_file."""
    reader = GGUFReader(path)
    start = reader.data_offset
    values = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    tensors = {t.name: (t.shape.tolist(), t.tensor_type, t.data_offset - start) for t in reader.tensors}
    return values, tensors, start

# %% [markdown] id="reader-agree"
# Do the two find the same, in both files?

# %%
def agree(path):
    """How many pairs and tensors a file has; an AssertionError where the two readers differ."""
    values, tensors, start = read_file(path.read_bytes())
    assert (values, tensors, start) == read_theirs(path)
    return len(values), len(tensors)

for path in (hand_path, package_path):
    print("✓ both readers, pairs and tensors:", agree(path))

# %% [markdown] id="decode"
# **Exercise 12a.4** · medium · 7 minutes. Now without any program. This is the beginning of another file:
#
# ```text
# 00  47 47 55 46 03 00 00 00 2c 01 00 00 00 00 00 00  GGUF....,.......
# 16  11 00 00 00 00 00 00 00 10 00 00 00 00 00 00 00  ................
# 32  67 70 74 32 2e 62 6c 6f 63 6b 5f 63 6f 75 6e 74  gpt2.block_count
# 48  04 00 00 00 02 01 00 00                          ........
# ```
#
# Left stands the place of a line's first byte, right the same bytes as letters. Return six numbers:
# version, tensors, pairs, length of the first key, type of its value, and the value.
#
# <details><summary>Hint: where is what</summary>
#
# 4 bytes of magic number, 4 version, 8 tensors, 8 pairs; then 8 for the length of a text.
#
# </details>
#
# <details><summary>Hint: two digits, two bytes</summary>
#
# `2c` is 2 · 16 + 12. `2c 01` is that, and 1 · 256. `10` is 16, not ten.
#
# </details>

# %%
@lab.exercise("12a.4")
def decoded():
    """version, tensors, pairs, length of the key, type, value."""
    ### BEGIN SOLUTION
    return 3, 300, 17, 16, 4, 258
    ### END SOLUTION

# %% [markdown] id="rows"
# ## Rows out, columns in
#
# One thing has to be turned first. Our layers of lesson 05 compute `x @ W`, with `W` as (in, out). Which
# numbers of `W` make output 1, counted from 0?

# %% tags=["slide"]
x, W = np.array([1.0, 10.0]), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])  # 2 in, 3 out
print(x @ W, "  output 1 uses", W[:, 1])
in_file = np.ascontiguousarray(W.T)  # (out, in)
print(in_file @ x, "  output 1 uses", in_file[1])

# %% [markdown] id="rows-2"
# A column: numbers that do not lie side by side. GGUF wants **rows out, columns in**: whatever makes one
# output lies in one row. So our matrices are transposed. The two embeddings stay; they have a row for each
# token, or place. What if you forget it? With 2 by 3, the shapes do not fit, and a program says so. With a
# square matrix, nobody does, and the model is wrong. Lesson 12b hunts that fault.

# %% [markdown] id="numpy"
# ## In NumPy: fewer bytes for a number
#
# An F32 has four bytes. **F16**, also called **half**, has two: 11 binary digits instead of 24, and nothing
# above 65,504. Can we have less than two bytes? Take four weights. The largest, whatever its sign, becomes 127
# or −127, and the others are counted in the same steps:

# %% tags=["slide"]
print(f"the largest F16: {np.finfo(np.float16).max:,.0f}")
w = np.array([0.3, -1.27, 0.018, 0.5], np.float32)
step = np.abs(w).max() / 127
counts = np.round(w / step)
print(f"step {step:.3f}, counts {counts}, back {(counts * step).round(3)}")

# %% [markdown] id="numpy-q8" tags=["slide"]
# Now there are four whole numbers from -127 to 127, a byte for each, and one step. That is what to **quantize**
# means. What got lost? 0.018 became
# 0.02. No number moves by more than half a step.
#
# **Q8_0** does this to every 32 numbers of a row, a **block**: two bytes for the step, which it calls `d`, as a
# half; then 32 bytes. That is 34 bytes, or 8.5 bits a number. Why not one step for the whole matrix? Because
# one large weight makes the steps long. With blocks, only its neighbours suffer:

# %%
calm = np.random.default_rng(12).normal(size=(64, 32)).astype(np.float32)
calm[0, 0] = 100
largest_of = {"one step for all": np.abs(calm).max(), "a step for each block": np.abs(calm).max(axis=1, keepdims=True)}
for name, largest in largest_of.items():
    d = largest / 127
    print(f"{name}: off by {np.abs(np.round(calm / d) * d - calm).mean():.3f} on average")

# %% [markdown] id="numpy-round"
# "Equal to the last bit" needs care about a number halfway between two steps. NumPy's `round` goes to the
# even one, `gguf` away from zero:

# %%
def round_away(x):
    """Rounded to whole numbers, half away from zero."""
    size = np.abs(x)
    whole = np.floor(size)
    return np.sign(x) * (whole + (size - whole >= 0.5))

halves = np.array([-1.5, -0.5, 0.5, 1.5, 2.5], np.float32)
print(np.round(halves), round_away(halves))

# %% [markdown] id="numpy-write"
# **Exercise 12a.5** · medium · 9 minutes. Write the quantizer of one block. `x` is 32 numbers of float32; stay in
# float32. First `d`, then `round_away` of the numbers times `1 / d` (or 0 if `d` is 0), as `gguf` does it, then the
# bytes. Only *store* `d` as a half.
#
# <details><summary>Hint: bytes</summary>
#
# `np.array([d], np.float16).view(np.uint8)` is the two bytes of a half. `q.astype(np.int8).view(np.uint8)`
# turns the counts into bytes.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Four of these seven, in the right order:
#
# - `d = np.abs(x).max() / np.float32(127)`
# - `d = x.max() / np.float32(127)`
# - `inverse = np.float32(1) / d if d else np.float32(0)`
# - `q = round_away(x * inverse).astype(np.int8)`
# - `q = np.round(x * inverse).astype(np.int8)`
# - `return np.concatenate([np.array([d], np.float16).view(np.uint8), q.view(np.uint8)])`
# - `return np.concatenate([q.view(np.uint8), np.array([d], np.float16).view(np.uint8)])`
#
# </details>

# %%
@lab.exercise("12a.5")
def q8_block(x):
    """32 float32 -> the 34 bytes of their Q8_0 block, as uint8."""
    ### BEGIN SOLUTION
    d = np.abs(x).max() / np.float32(127)
    inverse = np.float32(1) / d if d else np.float32(0)
    q = round_away(x * inverse).astype(np.int8)
    return np.concatenate([np.array([d], np.float16).view(np.uint8), q.view(np.uint8)])
    ### END SOLUTION

# %% [markdown] id="numpy-same"
# The package has a quantizer too. The blocks: random ones, a block of zeros, and one full of halves. Are
# all bytes equal?

# %%
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize

Q8_0 = GGMLQuantizationType.Q8_0
blocks = np.random.default_rng(1).normal(size=(203, 32)).astype(np.float32)
blocks[201], blocks[202] = 0, [127.0, *np.arange(-15, 16) / 2]
ours = np.array([q8_block(block) for block in blocks])
assert (ours == quantize(blocks, Q8_0)).all()
print("✓", ours.size, "bytes, all as the package writes them,", 8 * ours.size / blocks.size, "bits a number")

# %% [markdown] id="bound"
# ## How much is lost?
#
# Let M be the largest size in a block, so `d` = M / 127. A weight is moved twice:
#
# 1. To the nearest step: by half a step at most, `0.5 d`.
# 2. The step itself becomes a half, with 11 binary digits: it is off by a part of 2⁻¹¹ at most (as float32 by
#    2⁻²⁴, lesson 01a). Counted 127 times, at most, that makes `127 d · 2⁻¹¹`, which is M · 2⁻¹¹.
#
# Together **M · (0.5 / 127 + 2⁻¹¹)**. And float32 rounds a little while computing; M · 2⁻²⁰ is more than
# enough for its few roundings, each a part of 2⁻²⁴. Which of the two parts above is larger?

# %% tags=["slide"]
def q8_bound(blocks):
    """The largest error that Q8_0 may make in each number: blocks (n, 32) -> (n, 1)."""
    return np.abs(blocks).max(axis=-1, keepdims=True) * (0.5 / 127 + 2.0**-11 + 2.0**-20)

print(f"half a step {0.5 / 127:.5f} M, the step's own rounding {2.0**-11:.5f} M")
back = dequantize(ours, Q8_0)
lab.check("what comes back", back, blocks, q8_bound(blocks))
print(f"largest error: {(np.abs(back - blocks) / q8_bound(blocks).clip(1e-9)).max():.2f} of its bound")

# %% [markdown] id="bound-tiny"
# <details><summary>Is that true for tiny weights as well?</summary>
#
# Not below M of about 0.008. There `d` is smaller than 2⁻¹⁴, and a half has fewer digits left. Its error is
# then at most 2⁻²⁵, so 127 · 2⁻²⁵ takes the place of M · 2⁻¹¹: less than 0.000004.
#
# </details>

# %% [markdown] id="item"
# ## One element at a time
#
# One work-item takes one block. It reads 32 numbers and writes 34 bytes. Does it need anything of its
# neighbours? (`% 256` in the last line makes a byte of a negative count: -3 becomes 253, as in an int8.)

# %%
from llmcl.lab import get_global_id

def one_block(x, out, blocks):
    block = get_global_id(0)
    if block >= blocks:
        return
    largest = np.float32(0)
    for i in range(32):
        largest = max(largest, abs(x[32 * block + i]))
    d = largest / np.float32(127)
    inverse = np.float32(1) / d if d else np.float32(0)
    out[34 * block], out[34 * block + 1] = np.array([d], np.float16).view(np.uint8)
    for i in range(32):
        out[34 * block + 2 + i] = int(round_away(x[32 * block + i] * inverse)) % 256

# %%
some = np.ascontiguousarray(blocks[-5:])
out = np.zeros(5 * 34, np.uint8)
run = lab.run_items(one_block, 5, some, out, 5, group=2)
run.report()
assert (out.reshape(5, 34) == quantize(some, Q8_0)).all()

# %% [markdown] id="opencl"
# ## In OpenCL
#
# Each line of `one_block` has its counterpart:
#
# | in Python | in C |
# |---|---|
# | `max(a, b)`, `abs(a)`, `round_away(a)` | `fmax(a, b)`, `fabs(a)`, `round(a)` |
# | `a / b` | `divide(a, b)`, written for you |
# | the two bytes of `d` as a half | `vstore_half_rte(d, 0, (__global half *)to);` |
# | `int(…) % 256` | `(char)…` |
#
# A `char` is a whole number of one byte, from -128 to 127; `(char)x` cuts off what stands behind the point. And
# `out`? It is a tensor of numbers of four bytes. `(__global char *)out` means: the same memory, looked at byte by
# byte.
#
# <details><summary>What is wrong with a plain division?</summary>
#
# OpenCL allows a device to miss its last digit. `fma(a, b, c)` is a · b + c, rounded only once, so `divide` finds
# what is left over, and adds it. Without that, a graphics card that we tried wrote a few other bytes in a million.
#
# </details>
#
# **Exercise 12a.6** · hard · 10 minutes. Write the kernel.
#
# <details><summary>Hint</summary>
#
# Line for line as `one_block`. Two pointers save you work: `from`, where this block's numbers begin, and
# `to`, where its bytes begin.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Ten of these thirteen, in the right order:
#
# - `const int block = get_global_id(0);`
# - `if (block >= blocks) return;`
# - `__global const float *from = x + 32 * block;`
# - `__global char *to = (__global char *)out + 34 * block;`
# - `__global char *to = (__global char *)out + 32 * block;`
# - `float largest = 0.0f;`
# - `for (int i = 0; i < 32; ++i) largest = fmax(largest, fabs(from[i]));`
# - `for (int i = 0; i < 32; ++i) largest = fmax(largest, from[i]);`
# - `const float d = divide(largest, 127.0f);`
# - `const float inverse = d == 0.0f ? 0.0f : divide(1.0f, d);`
# - `vstore_half_rte(d, 0, (__global half *)to);`
# - `for (int i = 0; i < 32; ++i) to[2 + i] = (char)round(from[i] * inverse);`
# - `for (int i = 0; i < 32; ++i) to[2 + i] = (char)(from[i] * inverse);`
#
# </details>

# %%
q8_text = lab.kernel_exercise("12a.6", r"""
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
    // BEGIN SOLUTION
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
    // END SOLUTION
}
""")

# %%
from llmcl.engine import get_engine

engine = get_engine()
kernel = lab.build(engine, q8_text).q8_0

def on_device(blocks):
    """(n, 32) float32 -> (n, 34) bytes, from your device."""
    n = len(blocks)
    room = engine.from_host(np.zeros((34 * n + 3) // 4, np.int32))  # four bytes each, rounded up
    kernel((n,), (16,), engine.from_host(blocks), room, n)
    return engine.to_host(room).view(np.uint8)[: 34 * n].reshape(n, 34)

assert (on_device(blocks) == ours).all()
print("✓ your device writes the same bytes")

# %% [markdown] id="check"
# ## Check: a whole model
#
# And trained weights, do they agree? Here is the model of lesson 10, yours if you ran that lesson.

# %% tags=["varies"]
model, tokenizer = lab.checkpoint("10", engine)

# %%
weights = model.weights()
matrices = {n: w for n, w in weights.items() if w.ndim == 2 and n != "position_embd.weight"}
rows_out = {n: w if n == "token_embd.weight" else np.ascontiguousarray(w.T) for n, w in matrices.items()}
for name, rows in rows_out.items():
    blocks_of = rows.reshape(-1, 32)
    assert (on_device(blocks_of) == quantize(blocks_of, Q8_0)).all(), name
print("✓", len(rows_out), "matrices,", sum(rows.size for rows in rows_out.values()) // 32, "blocks, every byte equal")

# %% [markdown] id="check-bound"
# And what got lost? The bound holds for trained weights too.

# %%
all_blocks = np.concatenate([rows.reshape(-1, 32) for rows in rows_out.values()])
lab.check("the model's weights", dequantize(quantize(all_blocks, Q8_0), Q8_0), all_blocks,
          q8_bound(all_blocks) + 127 * 2.0**-25)  # what is added is for tiny weights

# %% [markdown] id="vectors"
# ## Why do norms and biases stay F32?
#
# All tensors with one dimension, and the table of positions, are written as F32. What would it save to
# quantize the vectors as well?

# %%
vectors = sum(w.size for w in weights.values() if w.ndim == 1)
everything = sum(w.size for w in weights.values())
print(f"{vectors:,} of {everything:,} weights, {vectors / everything:.1%}")

# %% [markdown] id="vectors-2"
# Next to nothing. And it would cost. Products have a kernel for each type of matrix; that is where the time
# goes. Norms multiply a row of float32, biases are *added*; for that llama.cpp has no F16. Positions it would
# read in any type; its own tools leave them in F32, and so do we.

# %% [markdown] id="export"
# ## Your model's file
#
# `write_gguf` of lesson 00 does all that you did. Once in each type:

# %%
from llmcl.gguf_file import read_gguf, write_gguf

folder, sizes = lab.folder("12a"), {}
for kind in ("F32", "F16", "Q8_0"):
    file = folder / f"model-{kind}.gguf"
    write_gguf(file, model.config, weights, tokenizer, kind, {"name": "my first GPT"})
    sizes[kind] = file.stat().st_size
    print(f"{kind:>5} {sizes[kind]:>9,} bytes, pairs and tensors:", agree(file))
assert sizes["Q8_0"] <= 442_000

# %% [markdown] id="export-why"
# Your own reader and the makers' read all three alike. (Q8_0 has one pair more: the version of its recipe.)
# F16 is more than half of F32, and Q8_0 more than a quarter. Which bytes do not shrink?
#
# <details><summary>An answer</summary>
#
# Header, pairs and table; the vectors; the positions. And Q8_0 has 8.5 bits a number, not 8.
#
# </details>
#
# Do the bytes of your quantizer stand there? The first block of the first token:

# %%
values, tensors, start = read_file((folder / "model-Q8_0.gguf").read_bytes())
dims, kind, offset = tensors["token_embd.weight"]
in_the_file = (folder / "model-Q8_0.gguf").read_bytes()[start + offset :][:34]
assert in_the_file == q8_block(weights["token_embd.weight"][0, :32]).tobytes()
print("dimensions", dims, "type", kind, "offset", offset)
print("blk.0.ffn_up.weight:", tensors["blk.0.ffn_up.weight"][0], "and ours is", weights["blk.0.ffn_up.weight"].shape)

# %% [markdown] id="export-turned"
# The last line looks as if nothing had been transposed. Look twice. The file says: 96 numbers *in a row*, 384
# rows. Ours has 96 rows of 384. It was turned, and the list begins at the other end.

# %% [markdown] id="see"
# ## See it: the file to scale
#
# One square is 32 bytes, one row 4,096. Move the slider. Find the sizes that begin with `gpt2.`, the merges of
# lesson 02, and the gap. Which tensor takes most?

# %% tags=["slide"]
lab.explore_file(folder / "model-Q8_0.gguf", start="tokenizer.ggml.tokens")

# %%
parts = lab.gguf_parts(folder / "model-Q8_0.gguf")
assert all(a.end == b.start for a, b in zip(parts, parts[1:]))
assert sum(part.size for part in parts) == sizes["Q8_0"]
for part in sorted(parts, key=lambda part: -part.size)[:3]:
    print(f"{part.name}: {part.size / sizes['Q8_0']:.0%}")

# %% [markdown] id="see-2" tags=["slide"]
# The positions are the largest part: 256 rows in F32. And where is the plan of the model, the formula?
# Nowhere. The word `gpt2` stands for it; each program has that formula inside.

# %% [markdown] id="break"
# ## Break it: a count
#
# Wrong files. What does each reader say? First, a header that claims two tensors where there is one:

# %%
def say(name, read):
    try:
        print(f"{name}: reads", read())
    except Exception as error:
        print(f"{name}: {type(error).__name__}")

def both(data):
    bad = lab.folder("12a") / "bad.gguf"
    bad.write_bytes(data)
    say("our reader", lambda: read_file(data)[1])
    say("GGUFReader", lambda: [[float(f"{x:.5g}") for x in t.data.ravel()] for t in GGUFReader(bad).tensors])

both(by_hand[:8] + struct.pack("<Q", 2) + by_hand[16:])

# %% [markdown] id="break-few"
# Both run into the gap, take it for a name, and stumble. That is luck. What about a count that is too *small*?
# Two tensors, and a header that claims one:

# %% tags=["slide"]
two_path = folder / "two.gguf"
write_with_package(two_path, {"token_embd.weight": tensor, "output_norm.weight": np.ones(3, np.float32)})
two = two_path.read_bytes()
both(two)
both(two[:8] + struct.pack("<Q", 1) + two[16:])

# %% [markdown] id="break-few-2"
# No complaint, and wrong numbers. The readers stop after the first entry, and take the second one for
# the numbers. **A count does not only say how much; it says where.**
#
# ## Break it: an offset
#
# Second, an offset that is no multiple of 32: 36 instead of 32. Which numbers will come back for the norm,
# three ones?

# %%
# Behind the name: the count of dimensions, one dimension, the type; then the offset.
entry_at = two.index(b"output_norm.weight") + len(b"output_norm.weight") + 4 + 8 + 4
assert struct.unpack_from("<Q", two, entry_at) == (32,)
both(two[:entry_at] + struct.pack("<Q", 36) + two[entry_at + 8 :])

# %% [markdown] id="break-offset"
# One place too far, without a word: the last one is from the gap. llama.cpp refuses any offset but the expected
# one. A strict reader needs one line more:

# %%
def complaints(data):
    """A sentence for every offset that is no multiple of 32."""
    return [f"{name} has offset {offset}, no multiple of 32"
            for name, (_, _, offset) in read_file(data)[1].items() if offset % 32]

assert complaints(two) == []
print(complaints(two[:entry_at] + struct.pack("<Q", 36) + two[entry_at + 8 :]))

# %% [markdown] id="break-norm"
# ## Break it: a norm in F16
#
# Third, somebody writes the norm as F16:

# %%
write_with_package(folder / "half.gguf", {"output_norm.weight": np.full(3, 0.1, np.float16)})
both((folder / "half.gguf").read_bytes())

# %% [markdown] id="break-norm-2"
# Both read it. It is a good GGUF file, and no good model: a process of llama.cpp ends at its first token, for
# the reason above. **A file can be right by the format and wrong for the program.** So `write_gguf` does not let
# you choose the type of a vector.
#
# Fourth, a file that was cut short. Our package turns what it finds into one sentence:

# %%
from llmcl.errors import GgufError

(folder / "short.gguf").write_bytes((folder / "model-Q8_0.gguf").read_bytes()[:100_000])
try:
    read_gguf(folder / "short.gguf")
except GgufError as error:
    print("…" + str(error).partition("short.gguf")[2])

# %% [markdown] id="break-kernel"
# ## Break it: two kernels
#
# The other rounding. Would you have found it without the block of halves?

# %%
lab.run_broken("12a.rint")

# %% [markdown] id="break-kernel-2"
# And 32 for 34. A single block is right. With more, each block begins inside the one before:

# %%
lab.run_broken("12a.stride")

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 12a.7** · easy · 3 minutes. Put these parts into the order of a file. One of the six is not in
# it. Return the letters as one word.
#
# - **A** the tensor table
# - **B** how many tensors and pairs there are
# - **C** the place of each tensor's last byte
# - **D** the magic number
# - **E** the key-value pairs
# - **F** a gap, and the numbers

# %%
@lab.exercise("12a.7")
def parts_in_order():
    """The letters of five parts, in order."""
    ### BEGIN SOLUTION
    return "DBEAF"
    ### END SOLUTION

# %% [markdown] id="exercises-back"
# **Exercise 12a.8** · medium · 5 minutes. This kernel takes numbers out of Q8_0; `vload_half` reads a
# half. All positive weights are right. Mend it with the smallest change.
#
# <details><summary>Hint</summary>
#
# `uchar` is a byte from 0 to 255.
#
# </details>

# %%
back_text = lab.kernel_exercise("12a.8", r"""
__kernel void back(__global const int *file,  // blocks of 34 bytes
                   __global float *y,         // (n) numbers, 32 a block
                   const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    // BEGIN SOLUTION
    __global const char *block = (__global const char *)file + 34 * (i / 32);
    // INSTEAD
    __global const uchar *block = (__global const uchar *)file + 34 * (i / 32);
    // END SOLUTION
    const float d = vload_half(0, (__global const half *)block);
    y[i] = d * block[2 + i % 32];
}
""")

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# | part of the file | what it announces |
# |---|---|
# | header, 24 bytes | magic number, version, how many tensors and pairs |
# | key-value pairs | sizes, tokenizer and more: key, type, value |
# | tensor table | name, dimensions (row length first), type, offset |
# | gap, numbers | each tensor at a multiple of 32, rows out and columns in |
#
# Q8_0 is 34 bytes for 32 numbers, and an error of at most **M · (0.5 / 127 + 2⁻¹¹)**. In `llmcl`:
# `gguf_file.py` writes and reads; `model-Q8_0.gguf` in this lesson's folder is your model.
#
# Five questions, three of them about earlier lessons.
#
# **q1.** A tensor's offset is 64. From where is that counted?
#
# - **A** From the beginning of the file.
# - **B** From where the numbers begin.
# - **C** From the end of its entry in the table.

# %%
lab.quiz("12a.q1")

# %% [markdown] id="recap-2"
# **q2.** The largest weight of a block is 2.54. By how much may another weight of it be off, about?
#
# - **A** 0.01
# - **B** 0.02
# - **C** 1.27

# %%
lab.quiz("12a.q2")

# %% [markdown] id="recap-3"
# **q3.** (Lesson 11) What does the key-value cache change?
#
# - **A** The text becomes a little different.
# - **B** The weights of keys and values need fewer bytes.
# - **C** Nothing in the answer: what was computed for earlier tokens is kept.

# %%
lab.quiz("12a.q3")

# %% [markdown] id="recap-4"
# **q4.** (Lesson 09) Why is a gradient clipped by the length of the whole, and not tensor by tensor?
#
# - **A** Because it needs less memory.
# - **B** Because the direction stays as it is.
# - **C** Because a tensor's own length is hard to compute.

# %%
lab.quiz("12a.q4")

# %% [markdown] id="recap-5"
# **q5.** (Lesson 08a) The gradients are not cleared between two steps. What do they hold then?
#
# - **A** The sum of both batches.
# - **B** Only the second batch.
# - **C** Nothing that matters; the loss falls all the same.

# %%
lab.quiz("12a.q5")

# %%
lab.summary("12a")

# %% [markdown] id="bridge"
# **Next:** lesson 12b, *In the wild*. There real llama.cpp opens `model-Q8_0.gguf`, and you compare its
# tokens, its text and its scores with your own.
