# ---
# jupyter:
#   llmcl:
#     title: Embeddings
#     needs: ["00", "01a", "01b", "02", "02b", "tokenizer", "kernel", "buffer"]
#     introduces:
#       - embedding
#       - look-up
#       - one-hot
#       - position
#       - channel
#       - llmcl.data.read_sentences
#       - llmcl.lab.device_answer
#       - llmcl.lab.kernel_exercise
#       - llmcl.lab.run_broken
#       - llmcl.lab.run_items
#       - llmcl.lab.cells
#       - llmcl.errors.LlmclError
#       - llmcl.reference
#       - llmcl.reference.embedding
#     minutes: {core: 40, full: 60}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 03 · Embeddings
#
# A token is a number, and that number means nothing. Here it gets something that can mean
# something: a row of numbers of its own. You write the look-up, and you meet a fault that no shape
# and no error message shows.
#
# | | |
# |---|---|
# | **After this you can** | write the look-up of tokens and positions; say why a position is needed; find out that ids had the wrong type |
# | **You need** | lessons 01a and 02 |
# | **Time** | 40 minutes; 60 with the exercises |
# | **New words** | embedding, look-up, channel, one-hot, position |

# %%
from llmcl import lab

lab.start("03")

# %% [markdown] id="idea"
# ## The idea: a row for each token
#
# Take the sentence of this book, and for a moment let whole words be the tokens:

# %%
words = "The sun warms the land and the sea.".split()
tokens = sorted(set(words))
ids = [tokens.index(word) for word in words]
for word, i in zip(words, ids):
    print(f"{word:>6} → {i}")

# %% [markdown] id="idea-names"
# `warms` has a larger number than `sun`. Does that mean that it is more of anything? No. The numbers
# are names, and came from the alphabet, capitals first. A model that computed with them would compute
# nonsense.
#
# So each token gets a row of numbers instead, in a table. Three numbers a row are enough for now.
# They are random; training will move them, so that tokens that are used alike come to lie near each
# other.

# %% tags=["slide"]
import numpy as np

rng = np.random.default_rng(3)
table = rng.normal(size=(len(tokens), 3)).round(1)
for token, row in zip(tokens, table):
    print(f"{token:>6} {row}")

# %% [markdown] id="idea-words" tags=["slide"]
# Such a row is the **embedding** of its token; its numbers are called **channels**, and fetching it
# is a **look-up**. The table has a row for each token of the vocabulary and a column for each
# channel: (V, C). It belongs to the weights. In the finished file it is called `token_embd.weight`.

# %% [markdown] id="numpy"
# ## In NumPy
#
# A list of ids as an index fetches all rows at once:

# %%
x = table[ids]
assert x.shape == (8, 3)
assert all((x[t] == table[ids[t]]).all() for t in range(8))
print("✓ place by place, the row of its token")

# %% [markdown] id="numpy-shape"
# **Exercise 03.1** · easy · 2 minutes. `ids2` holds two sentences of eight tokens, (2, 8). The table
# has seven rows of three channels, (7, 3). What is the shape of `table[ids2]`?
#
# <details><summary>Hint</summary>
#
# Every id is replaced by a row. So the shape of the ids stays, and something comes after it.
#
# </details>

# %%
@lab.exercise("03.1")
def shape_of_rows():
    """The shape of table[ids2], as a tuple."""
    ### BEGIN SOLUTION
    return 2, 8, 3
    ### END SOLUTION

# %%
ids2 = np.array([ids, ids[::-1]])
assert table[ids2].shape == shape_of_rows()
print("✓ NumPy agrees")

# %% [markdown] id="one-hot"
# You may read elsewhere that an embedding is a matrix product. Is that true as well? Yes. Write each
# id as a row that is 0 everywhere but for a single 1 at the place of the id. This is called
# **one-hot**. `np.eye(7)` is a square of such rows, one for each id. Their product with the table
# picks the same rows:

# %% tags=["slide"]
one_hot = np.eye(len(tokens))[ids]
assert (one_hot @ table == table[ids]).all()
print(f"✓ the same rows, with {one_hot.size * 3} multiplications instead of none")

# %% [markdown] id="position"
# ## Who stands where?
#
# Our sentence says `the` twice in small letters, at places 3 and 6. What is the difference between
# their rows?

# %%
assert (x[3] == x[6]).all()
print("✓ none at all")

# %% [markdown] id="position-second" tags=["slide"]
# The model cannot tell the two apart. It is worse than that: shuffle the words, and the same rows
# come out in another order. "The sea warms the land" and "The land warms the sea" would be the same
# bag of rows.
#
# The remedy is a second table, with a row for each **position**: place 0, place 1, and so on. Both
# rows are added.

# %% tags=["slide"]
positions = rng.normal(size=(10, 3)).round(1)
x = table[ids] + positions[:8]
assert (x[3] != x[6]).any()
print("✓ now `the` at place 3 and `the` at place 6 differ")

# %% [markdown] id="position-why"
# Why add them, and not put them side by side? Side by side would also work, and would make every
# row twice as wide. With many channels there is room enough for training to keep the two apart. GPT-2
# does it this way, and so does llama.cpp with the files of such models.
#
# **Exercise 03.2** · medium · 6 minutes. Write `embed`. `tokens` and `positions` are the two tables
# here, not words. `first` is the position of the first id. It is 0 so far. Lesson 11 reads a text bit
# by bit, and then a bit begins further on.
#
# <details><summary>Hint</summary>
#
# You need as many rows of `positions` as there are ids, beginning at `first`.
#
# </details>
#
# <details><summary>I am stuck: give me pieces to choose from</summary>
#
# Two of these four belong in the answer, with a `+` in between: `tokens[ids]` ·
# `positions[ids]` · `positions[first : first + len(ids)]` · `positions[: len(ids)]`
#
# </details>

# %%
@lab.exercise("03.2")
def embed(ids, tokens, positions, first=0):
    """tokens (V, C), positions (P, C), ids (T) -> (T, C)."""
    ### BEGIN SOLUTION
    return tokens[ids] + positions[first : first + len(ids)]
    ### END SOLUTION

# %%
assert (embed(ids, table, positions) == x).all()
late = embed(ids[3:], table, positions, first=3)
assert (late == x[3:]).all()
print("✓ the second part of the sentence, read for itself, gives the same rows")

# %% [markdown] id="item"
# ## One element at a time
#
# The result for a batch has three lengths: sentences `B`, places `T`, channels `C`. How would you
# deal this out? One work-item for each number of the result is easy, because each stands alone. It
# needs two numbers to know who it is: one for the channel, and one that counts the places of all
# sentences.

# %%
from llmcl.lab import get_global_id

def embedding_item(ids, tokens, positions, x, B, T, C, first):
    c = get_global_id(0)
    place = get_global_id(1)          # b * T + t
    if c >= C or place >= B * T:
        return
    t = place % T
    x[place * C + c] = tokens[ids[place] * C + c] + positions[(first + t) * C + c]

# %% [markdown] id="item-run"
# `place % T` is the rest after whole sentences are taken away: the place within its own sentence.
# The function runs for each work-item, in a shuffled order. Does the order matter here?

# %%
from llmcl import reference

B, T, C, V, P = 2, 3, 4, 5, 6
small = rng.integers(0, V, (B, T)).astype(np.int32)
tok, pos = (rng.normal(size=(n, C)).astype(np.float32) for n in (V, P))
out = np.zeros((B, T, C), np.float32)
run = lab.run_items(embedding_item, (C, B * T), small, tok, pos, out, B, T, C, 0, group=(4, 4))
run.report()
assert np.allclose(out, reference.embedding(small, tok, pos))

# %% [markdown] id="opencl"
# ## In OpenCL
#
# The kernel in the folder `kernels/` has the same lines:

# %% tags=["slide"]
lab.show_kernel("embedding", "embedding_forward")

# %% [markdown] id="opencl-read"
# What is new is small. `ids` is a pointer to ints, the others are pointers to floats.
# `tokens[ids[place] * C + c]` is a look-up inside of a look-up: first the id, then, from the
# beginning of its row, channel `c`.
#
# Why are channels dimension 0, and places dimension 1? Work-items next to each other in dimension 0
# have the same place and neighbouring channels. So they read the same id, and numbers of the tables
# that lie side by side. Lesson 01b showed why a graphics card likes that.

# %% [markdown] id="check"
# ## Check
#
# Five lengths, all different, none of them even. Why different? If `T` were equal to `C`, a kernel
# that takes one for the other would pass. `bounds` gives a list, one bound for each result; `[0]` is
# the only one.

# %%
from llmcl.engine import get_engine
from llmcl.reference import bounds

engine = get_engine()
B, T, C, V, P = 3, 7, 13, 11, 9
ids3 = rng.integers(0, V, (B, T)).astype(np.int32)
tok, pos = (rng.normal(size=(n, C)).astype(np.float32) for n in (V, P))
got = engine.embedding(*(engine.from_host(a) for a in (ids3, tok, pos)))
exact = ids3, tok.astype(np.float64), pos.astype(np.float64)
lab.check("embedding", engine.to_host(got), reference.embedding(*exact), bounds.embedding(*exact)[0])

# %% [markdown] id="see"
# ## See it
#
# Run the cell, and move the slider along the sentence. On the left the row of the token, in the
# middle the row of the position, on the right their sum, which is row `t` of `x`. At which two places
# is the left one the same?

# %% tags=["slide"]
def draw(axes, t):
    left, middle, right = axes
    lab.cells(left, table, title=f"tokens: row {ids[t]}", highlight=[(ids[t], c) for c in range(3)])
    lab.cells(middle, positions, title=f"positions: row {t}", highlight=[(t, c) for c in range(3)])
    lab.cells(right, x[t : t + 1], title="their sum")

def in_words(t):
    return f"Place {t}, {words[t]}: row {ids[t]} of the tokens plus row {t} of the positions."

lab.explore(draw, range(8), in_words, name="place", start=3, columns=3, width=6.4, height=4.2)

# %% [markdown] id="break"
# ## Break it: ids of the wrong type
#
# NumPy makes whole numbers of 64 bits, unless you say otherwise. The kernel says `int`, which is 32
# bits. What happens if somebody hands the wide ones over?

# %% tags=["slide"]
wide = np.array([3, 1, 4, 2], np.int64)
print(wide.view(np.int32))

# %% [markdown] id="break-view"
# `view` shows the same bytes, read as 32-bit numbers. Each id has become two: itself, and a 0, which
# is the empty upper half of the wide number. A kernel that is told to look at four ids takes the
# first four of these: 3, 0, 1, 0. All of them are valid rows. So nothing fails.
#
# Plain PyOpenCL does exactly that. It hands over bytes and asks nothing:

# %%
import pyopencl as cl

text = r"""
__kernel void look_up(__global const int *ids, __global const float *table, __global float *x,
                      const int n, const int C)
{
    const int c = get_global_id(0), place = get_global_id(1);
    if (c < C && place < n) x[place * C + c] = table[ids[place] * C + c];
}
"""
context, queue = engine.device.context, engine.device.queue
plain = cl.Kernel(cl.Program(context, text).build(), "look_up")

# %%
def look_up(ids):
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    x = np.empty((len(ids), C), np.float32)
    on_device = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, x.nbytes)
    inputs = [cl.Buffer(context, flags, hostbuf=array) for array in (ids, tok)]
    sizes = np.int32(len(ids)), np.int32(C)
    plain(queue, (C, len(ids)), (1, 1), *inputs, on_device, *sizes)
    cl.enqueue_copy(queue, x, on_device)
    return x

assert (look_up(wide.astype(np.int32)) == tok[wide]).all()
assert not (look_up(wide) == tok[wide]).all()
print("✓ right with 32 bits; wrong with 64, and no error")

# %% [markdown] id="break-diagnose"
# How would you find that out, with a model that learns badly and no message? Ask which rows were
# really fetched.
#
# **Exercise 03.3** · medium · 6 minutes. Write `diagnose`: for each fetched row, the number of the
# table's row that is nearest to it.
#
# <details><summary>Hint</summary>
#
# For one row: `np.abs(table - row).sum(axis=1)` is its distance from every row of the table. Where
# is the smallest one? `argmin` tells.
#
# </details>
#
# <details><summary>I am stuck: give me pieces to choose from</summary>
#
# Three of these four belong in the answer, `[int(…) for row in rows]`, one behind the other:
# `np.abs(table - row)` · `.sum(axis=1)` · `.sum(axis=0)` · `.argmin()`
#
# </details>

# %%
@lab.exercise("03.3")
def diagnose(rows, table):
    """rows (n, C), table (V, C) -> a list of n ids."""
    ### BEGIN SOLUTION
    return [int(np.abs(table - row).sum(axis=1).argmin()) for row in rows]
    ### END SOLUTION

# %% tags=["slide"]
print("asked for:", [int(i) for i in wide])
print("fetched:  ", [int(i) for i in diagnose(look_up(wide), tok)])

# %% [markdown] id="break-ours"
# A zero behind every id: once you have seen that pattern, you will know it again.
#
# The engine of this book looks before it launches. `from_host` turns whole numbers into 32 bits, and
# says so if one does not fit. An operation refuses a tensor of another type than its kernel reads:

# %%
from llmcl.errors import LlmclError

try:
    floats = engine.from_host(np.array([[3.0, 1.0]]))
    engine.embedding(floats, engine.from_host(tok), engine.from_host(pos))
except LlmclError as error:
    print("the engine says:", error)

# %% [markdown] id="break-kernel"
# Here is another one, in the kernel itself. It forgets that each sentence begins at position 0. Does
# a test with a single sentence see it?

# %% tags=["slide"]
lab.run_broken("03.place_for_time")

# %% [markdown] id="break-why"
# Why does Oclgrind see nothing? Every read lies inside its table; it is only the wrong row. A strict
# device finds wrong places, not wrong formulas. And the single sentence? There, `place` and `t` are
# the same number. Only the check on two sentences can tell. So test with more than one.

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 03.4** · medium · 10 minutes. Write the look-up kernel, for tokens alone: row `place` and
# column `c` of `x` is channel `c` of the row that `ids[place]` names. Dimension 0 counts channels,
# dimension 1 places. Your lines replace the one with `#error`.
#
# <details><summary>Hint</summary>
#
# Four lines: two to learn who you are, one for those who have no element, one that copies.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Four of these six belong in the answer:
#
# `const int c = get_global_id(0);` · `const int place = get_global_id(1);` ·
# `if (c >= C || place >= n) return;` · `if (c >= C && place >= n) return;` ·
# `x[place * C + c] = table[ids[place] * C + c];` · `x[place * C + c] = table[place * C + c];`
#
# </details>

# %%
look_up_text = lab.kernel_exercise("03.4", r"""
__kernel void look_up(__global const int *restrict ids,       // (n)
                      __global const float *restrict table,   // (V, C)
                      __global float *restrict x,             // (n, C)
                      const int n, const int C)
{
    // BEGIN SOLUTION
    const int c = get_global_id(0);
    const int place = get_global_id(1);
    if (c >= C || place >= n) return;
    x[place * C + c] = table[ids[place] * C + c];
    // END SOLUTION
}
""")

# %% [markdown] id="exercises-count"
# **Exercise 03.5** · easy · 3 minutes. How many numbers do both tables hold together? The vocabulary
# has `vocab_size` tokens, a text may have up to `context_length` places, and a row has `d_model`
# channels.
#
# <details><summary>Hint</summary>
#
# How many rows has each of the tables? How many numbers has a row?
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# One of these three is the answer: `return vocab_size * context_length * d_model` ·
# `return (vocab_size + context_length) * d_model` · `return vocab_size + context_length * d_model`
#
# </details>

# %%
@lab.exercise("03.5")
def embedding_parameters(vocab_size, context_length, d_model):
    """The count of numbers in the tables of tokens and positions."""
    ### BEGIN SOLUTION
    return (vocab_size + context_length) * d_model
    ### END SOLUTION

# %%
from llmcl.config import Config

config = Config()
shapes = config.parameter_shapes()
stored = sum(np.prod(shapes[name]) for name in ("token_embd.weight", "position_embd.weight"))
assert embedding_parameters(config.vocab_size, config.context_length, config.d_model) == stored
share = stored / config.parameter_count()
print(f"{stored:,} of the default model's {config.parameter_count():,} weights: {share:.0%}")

# %% [markdown] id="exercises-order"
# **Exercise 03.6** · easy · 3 minutes. Four of these five lines make the heart of the kernel, with
# the id in a name of its own. One does not belong. Return the letters in order, as one word.
#
# - **A** `x[place * C + c] = tokens[id * C + c] + positions[t * C + c];`
# - **B** `if (c >= C || place >= B * T) return;`
# - **C** `const int t = place % T, id = ids[place];`
# - **D** `const int c = get_global_id(0), place = get_global_id(1);`
# - **E** `const int t = place, id = ids[place];`
#
# <details><summary>Hint</summary>
#
# Which line reads memory, and may it do so in a work-item that has no place?
#
# </details>

# %%
@lab.exercise("03.6")
def lines():
    """The letters of four lines, in order."""
    ### BEGIN SOLUTION
    return "DBCA"
    ### END SOLUTION

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# Ids became rows that a model can compute with: (B, T) → (B, T, C). In the package this is
# `engine.embedding`, with `kernels/embedding.cl` behind it and `llmcl.reference.embedding` to judge
# it. The tables are called `token_embd.weight` and `position_embd.weight`.
#
# Five questions to keep it.
#
# **q1.** What does an embedding do with the id 200?
#
# - **A** It multiplies the table by 200.
# - **B** It copies row 200 of the table.
# - **C** It takes twice what it takes for 100.

# %%
lab.quiz("03.q1")

# %% [markdown] id="recap-2"
# **q2.** Plain PyOpenCL hands ids of 64 bits to a kernel that expects 32. What do you see?
#
# - **A** An error about the shape.
# - **B** An error of the kernel, when it is launched.
# - **C** No error; row 0 turns up at every second place.

# %%
lab.quiz("03.q2")

# %% [markdown] id="recap-3"
# **q3.** From lesson 02b: what does a bigram model look at to guess the next token?
#
# - **A** The last token.
# - **B** All tokens so far.
# - **C** The position in the sentence.

# %%
lab.quiz("03.q3")

# %% [markdown] id="recap-4"
# **q4.** From lesson 01b: what is a barrier for?
#
# - **A** It keeps work-items without an element out.
# - **B** It ends a launch.
# - **C** It makes the work-items of a group wait for each other.

# %%
lab.quiz("03.q4")

# %% [markdown] id="recap-5"
# **q5.** From lesson 00: where does the bound of a check come from?
#
# - **A** A thousandth of the result, as a rule of thumb.
# - **B** From what rounding can do in this calculation.
# - **C** It is zero: a right result is equal.

# %%
lab.quiz("03.q5")

# %%
lab.summary("03")

# %% [markdown] id="bridge"
# **Next:** lesson 04a, *One head of attention*. So far every row knows its own token only. There the
# rows begin to listen to each other.
