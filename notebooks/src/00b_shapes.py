# ---
# jupyter:
#   llmcl:
#     title: Shapes
#     needs: ["00"]
#     introduces:
#       - shape
#       - channel
#       - matrix product
#       - bias
#       - broadcasting
#       - reshape
#       - transpose
#       - llmcl.lab.COLORS
#     numpy: true
#     minutes: {core: 25, full: 40}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 00b · Warm-up: Shapes
#
# Many mistakes in a language model are not wrong formulas. They are right numbers in the wrong
# places, and the shape looks fine. This warm-up trains the eye for that.
#
# | | |
# |---|---|
# | **After this you can** | predict the shape of a product; say what broadcasting does; tell a reshape from a transpose |
# | **You need** | lesson 00; some NumPy |
# | **Time** | 25 minutes; 40 with the exercises |
# | **New words** | shape, channel, matrix product, bias, broadcasting, reshape, transpose |

# %%
from llmcl import lab

lab.start("00b")

# %% [markdown] id="idea"
# ## The idea: how many, in which direction
#
# Here are the words of our sentence, and four made-up numbers for each of them:
#
# <details><summary>Little NumPy so far? The signs in this lesson</summary>
#
# | sign | says |
# |---|---|
# | `np.array`, `np.ones((8, 4))`, `np.zeros((8, 4))` | a table from numbers; of ones; of zeros |
# | `np.arange(6)` | the numbers 0 to 5 |
# | `rng.integers(0, 10, (8, 4))`, `rng.normal(size=(5, 3))` | a table of random numbers |
# | `a * b`, `a @ b` | element by element; the matrix product |
# | `a[i, j]`, `a[t]`, `a[:3]` | one element; one row; the first three rows |
# | `a.shape` | how many rows, how many columns; `T, C = a.shape` takes both |
# | `a.sum()`, `a.mean(axis=-1)` | the sum of all; the mean along the last axis |
# | `a.ravel()` | the line in which the numbers stand, row after row |
# | `lambda t: t.T` | a small function: from `t`, it makes `t.T` |
#
# </details>

# %%
import numpy as np

words = "The sun warms the land and the sea.".split()
rng = np.random.default_rng(0)
x = rng.integers(0, 10, (len(words), 4))
for word, numbers in zip(words, x):
    print(f"{word:>6} {numbers}")

# %% [markdown] id="idea-shape" tags=["slide"]
# The **shape** of such a table says how many rows it has, and how many columns: (8, 4). Rows come
# first. Throughout this book, the rows are places in a text, and the columns are called
# **channels**. The letters for their lengths are `T`, for time, because a text is read one place
# after the other, and `C`.

# %%
T, C = x.shape
print(T, "places,", C, "channels")

# %% [markdown] id="product"
# ## A product of two matrices
#
# A model works in steps, its layers. A layer makes new channels out of old ones. Each new channel is
# a mixture: so much of channel 0, so much of channel 1, and so on. How would you compute that for one
# word and one new channel?

# %% tags=["slide"]
word = np.array([2.0, 1.0, 0.0, 3.0])
recipe = np.array([0.5, 1.0, 2.0, 1.0])
print(word * recipe)
print((word * recipe).sum())

# %% [markdown] id="product-many"
# Multiply channel by channel, then add. With six new channels there are six recipes. Put them next
# to each other, as the columns of a matrix `w` of shape (4, 6). With eight words there are eight
# rows. Every row meets every column, and that is the **matrix product**, written `@`. As a formula,
# for word $t$ and new channel $j$ (the sign $\sum$ adds up over all old channels $c$):
#
# $$y_{t,j} = \sum_{c} x_{t,c}\, w_{c,j}$$
#
# **Exercise 00b.1** · easy · 2 minutes. What is the shape of `x @ w`, for (8, 4) and (4, 6)?
#
# <details><summary>Hint</summary>
#
# How many words go in, and how many come out? How many new channels does each of them get?
#
# </details>

# %%
@lab.exercise("00b.1")
def shape_of_product():
    """The shape of x @ w, as a tuple such as (1, 2)."""
    ### BEGIN SOLUTION
    return 8, 6
    ### END SOLUTION

# %%
w = rng.integers(0, 3, (4, 6))
assert (x @ w).shape == shape_of_product()
print("✓ NumPy agrees")

# %% [markdown] id="product-rule" tags=["slide"]
# The two lengths in the middle, 4 and 4, have to agree, because they are multiplied pair by pair.
# They disappear in the sum. The outer two remain. What if the middle ones do not agree, as in (4, 6)
# times (8, 4)? The end of NumPy's message names them:

# %%
try:
    w @ x
except ValueError as error:
    print("NumPy says:", str(error).rpartition("(")[2].rstrip(")"))

# %% [markdown] id="numpy"
# ## The same with loops
#
# `@` hides three loops: over rows, over columns, and along the sum. A kernel will have to write them
# down, so you should have done it once.
#
# **Exercise 00b.2** · medium · 8 minutes. Write the product of `a`, of shape (m, k), and `b`, of
# shape (k, n), with three loops and without `@`.
#
# <details><summary>Hint</summary>
#
# The two outer loops choose an element of the result. The inner one walks along a row of `a` and
# down a column of `b`, and adds.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Four of these five belong in the answer, each further in than the one before; then `return c`:
#
# `for i in range(m):` · `for j in range(n):` · `for p in range(k):` ·
# `c[i, j] += a[i, p] * b[p, j]` · `c[i, j] = a[i, p] * b[p, j]`
#
# </details>

# %%
@lab.exercise("00b.2")
def product(a, b):
    """a b: (m, k) times (k, n) -> (m, n)."""
    m, k = a.shape
    n = b.shape[1]
    c = np.zeros((m, n))
    ### BEGIN SOLUTION
    for i in range(m):
        for j in range(n):
            for p in range(k):
                c[i, j] += a[i, p] * b[p, j]
    return c
    ### END SOLUTION

# %% [markdown] id="check"
# A loop over the wrong length is easily written: `range(m)` where `range(n)` should be. With square
# matrices nobody would notice, because all three lengths are equal. So these are not square. The last
# argument, the bound, is far above the rounding of numbers with sixteen digits, and far below a
# mistake. Which two lengths would have to be equal to hide `range(m)` in the second loop?

# %%
a, b = rng.normal(size=(5, 3)), rng.normal(size=(3, 7))
lab.check("product with loops", product(a, b), a @ b, 1e-12)

# %% [markdown] id="broadcast"
# ## Adding what does not fit
#
# A layer also adds a **bias**: one number for each channel, the same for every word. So (8, 6) and
# (6,) are added, and the shapes differ. NumPy lines shapes up **from the right**, and what is
# missing, or has length 1, is repeated. This is called **broadcasting**.

# %% tags=["slide"]
bias = np.array([10, 20, 30, 40, 50, 60])
y = x @ w + bias
assert all((y[t] == (x @ w)[t] + bias).all() for t in range(T))
print("✓ every row got the same bias:", y.shape)

# %% [markdown] id="broadcast-trap"
# It is practical, and it is a trap. Broadcasting also makes something of shapes that were never
# meant to meet.
#
# **Exercise 00b.3** · easy · 3 minutes. `mean` has the shape (4,), and `scale`, by oversight, the
# shape (4, 1). What is the shape of `mean * scale`?
#
# <details><summary>Hint</summary>
#
# Write the two under each other, aligned at the right. Then repeat what is missing or 1.
#
# </details>

# %%
@lab.exercise("00b.3")
def shape_of_scaled():
    """The shape of (4,) times (4, 1), as a tuple."""
    ### BEGIN SOLUTION
    return 4, 4
    ### END SOLUTION

# %% tags=["slide"]
mean, scale = np.ones(4), np.ones((4, 1))
assert (mean * scale).shape == shape_of_scaled()
print("✓ no error, and sixteen numbers instead of four")

# %% [markdown] id="reshape"
# ## Reshape, or transpose?
#
# In memory there are no rows. There is one long line, row after row. A **reshape** cuts the same
# line at other places. A **transpose** turns the table: rows become columns, and the line gets
# another order. `.T` is NumPy's transpose, and `.ravel()` shows the line.

# %% tags=["slide"]
table = np.arange(6).reshape(2, 3)
print("reshaped: ", table.reshape(3, 2).ravel())
print("transposed:", table.T.ravel())

# %% [markdown] id="see"
# Both have the shape (3, 2). Below are the first three words: `The` is blue, `sun` is orange, `warms`
# is green. Run the cell and move the slider. Where do a word's numbers go?

# %% tags=["slide"]
owners = np.repeat(list(lab.COLORS)[:3], 4).reshape(3, 4)
small = x[:3]
views = {
    "as it is": lambda t: t,
    "transpose": lambda t: t.T,
    "reshape": lambda t: t.reshape(4, 3),
}

def draw(axes, view):
    lab.cells(axes, views[view](small), colors=views[view](owners), title=view)

def in_words(view):
    return {
        "as it is": "Three words, a row of one color for each, four channels.",
        "transpose": "Three columns of one color each: a word has become a column.",
        "reshape": "Four rows with mixed colors: the numbers of different words stand together.",
    }[view]

lab.explore(draw, list(views), in_words, name="view", start="reshape")

# %% [markdown] id="break"
# ## Break it
#
# Suppose that a layer wants channels as rows: (C, T). Somebody writes `x.reshape(C, T)`. The shape is
# right. Here is a test that looks fair:

# %% tags=["slide"]
def channels_first(x):
    return x.reshape(x.shape[1], x.shape[0])

ones = np.ones((8, 4))
lab.check("wrong channels_first on ones", channels_first(ones), ones.T, 0.0)

# %% [markdown] id="break-after"
# Passed, and wrong. In a table of ones nobody can tell who is who. What would you test with?

# %% tags=["slide"]
try:
    lab.check("wrong channels_first on our words", channels_first(x), x.T, 0.0)
except lab.CheckFailed:
    print("✗ wrong channels_first on our words: the check found it")

# %% [markdown] id="break-where"
# You meet this mistake again in lesson 04b. There, the channels of a word are dealt out to several
# heads, and a reshape in the wrong place gives each head a part of some other word. The model still
# trains, only badly. No error ever comes.

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 00b.4** · easy · 4 minutes. Here is `channels_first` again. Mend it with the smallest
# change.
#
# <details><summary>Hint</summary>
#
# The line has to get another order. Which of the two words above does that?
#
# </details>

# %%
@lab.exercise("00b.4")
def channels_first(x):
    """(T, C) -> (C, T): row c holds channel c of every word."""
    ### BEGIN SOLUTION
    return x.T
    ### INSTEAD
    return x.reshape(x.shape[1], x.shape[0])
    ### END SOLUTION

# %% [markdown] id="exercises-batch"
# Several sentences at once have a third length in front: (B, T, C), with `B` for batch. Which axis
# do the channels have now? The last one, as before. That is why code in this book counts axes from
# the end: `axis=-1`.
#
# **Exercise 00b.5** · medium · 4 minutes. Return the mean over the channels, for every word in every
# sentence.
#
# <details><summary>Hint</summary>
#
# `x.mean(axis=…)` takes the mean along one axis, and that axis disappears from the shape.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# One of these three is the answer: `return x.mean()` · `return x.mean(axis=-1)` ·
# `return x.mean(axis=1)`
#
# </details>

# %%
@lab.exercise("00b.5")
def channel_means(x):
    """(B, T, C) -> (B, T): the mean over the channels."""
    ### BEGIN SOLUTION
    return x.mean(axis=-1)
    ### END SOLUTION

# %%
batch = rng.normal(size=(2, 5, 3))
assert channel_means(batch).shape == (2, 5)
print("✓ one number for each of ten words")

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# | | shapes |
# |---|---|
# | product | (m, k) @ (k, n) → (m, n): the middle agrees and disappears |
# | broadcasting | aligned at the right; what is missing or 1 is repeated |
# | reshape | the same line of numbers, cut elsewhere |
# | transpose | the line in another order: (T, C) → (C, T) |
# | test | odd, not square, all numbers different |
#
# Three questions to keep it.
#
# **q1.** Which of these products exists?
#
# - **A** (5, 7) @ (5, 3)
# - **B** (3, 5) @ (7, 3)
# - **C** (5, 3) @ (3, 7)

# %%
lab.quiz("00b.q1")

# %% [markdown] id="recap-2"
# **q2.** `t` has the shape (2, 6). What is true of `t.reshape(3, 4)`?
#
# - **A** Its rows are columns of `t`.
# - **B** `t.ravel()` and its `ravel()` are equal.
# - **C** Every number has other neighbours in memory than before.

# %%
lab.quiz("00b.q2")

# %% [markdown] id="recap-3"
# **q3.** You add a bias of shape (4,) to a table of shape (8, 4). What happens?
#
# - **A** Each of the eight rows gets the same four numbers added.
# - **B** Each of the eight rows gets one number of the four, again and again.
# - **C** An error, because the shapes differ.

# %%
lab.quiz("00b.q3")

# %%
lab.summary("00b")

# %% [markdown] id="bridge"
# **Next:** lesson 01a, *A first kernel*. There the three loops of the product are dealt out to many
# work-items.
