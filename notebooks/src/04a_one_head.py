# ---
# jupyter:
#   llmcl:
#     title: One head of attention
#     needs: ["00", "01a", "02", "02b", "03", "softmax", "kernel", "work-item"]
#     introduces:
#       - attention
#       - head
#       - query
#       - key
#       - value
#       - share
#       - causal mask
#       - leak test
#       - NaN
#       - llmcl.lab.heat
#     minutes: {core: 60, full: 90}
#     numpy: true
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 04a · One head of attention
#
# In this lesson each place in a sentence listens to the places before it. You compute that by hand,
# in NumPy and in OpenCL, and you prove that no place hears the future.
#
# | | |
# |---|---|
# | **After this you can** | compute a head by hand; write a softmax that cannot overflow; prove that nothing leaks from the future |
# | **You need** | lessons 01a and 03; softmax from lesson 00 |
# | **Time** | 60 minutes; 90 with the exercises |
# | **New words** | attention, head, query, key, value, share, causal mask, leak test, NaN |

# %%
from llmcl import lab

lab.start("04a")

# %% [markdown] id="idea"
# ## The idea: a place listens to other places
#
# After lesson 03, every token is a row of numbers. But each row knows only its own token and its
# own place. `The sun warms the`: what comes next? Whoever stands at the last `the` must know about
# the sun. So a place has to fetch something from other places. From which ones, and how much?
#
# Take three words. Each one carries three pairs of numbers. They are made up, and this is how to
# read them: the first number of a pair is about articles, the second about things.

# %%
import numpy as np

words = ["The", "sun", "warms"]
looks_for = np.array([[0, 0], [2, 0], [0, 2]])  # warms looks for a thing
label = np.array([[1, 0], [0, 1], [0, 0]])      # The is an article, sun is a thing
tells = np.array([[8, 0], [0, 8], [2, 2]])      # what whoever listens will hear

# %% [markdown] id="idea-score"
# How well does what `warms` looks for fit the label of a word? Multiply the two pairs number by
# number, and add up (a dot product). That is one **score** for each word. NumPy does all three
# labels in one line.

# %%
scores = (looks_for[2] * label).sum(axis=1)
print(dict(zip(words, scores.tolist())))

# %% [markdown] id="idea-share"
# `sun` fits. Now the scores must become **shares**: so much of this, so much of that, one in total.
# Softmax does it, as in lesson 00.
#
# **Exercise 04a.1** · easy · 2 minutes. The scores are 0, 2 and 0, and e² is about 7.4. Which share
# will `sun` get? Write your guess into the cell.
#
# <details><summary>Hint</summary>
#
# The three exponentials are 1, 7.4 and 1. A share is one of them divided by their sum.
#
# </details>

# %%
lab.predict("04a.1", guess=None)

# %% tags=["slide"]
def softmax(x):
    """Rows of shares: (..., n) -> (..., n), each row sums to 1."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

shares = softmax(scores)
lab.reveal("04a.1", shares[1])
print(dict(zip(words, shares.round(2).tolist())))

# %% [markdown] id="idea-mix"
# Last step: `warms` hears what each word tells, as much of it as its share says.

# %%
heard = shares @ tells
print(heard.round(2))
assert np.allclose(heard, sum(share * told for share, told in zip(shares, tells)))

# %% [markdown] id="names" tags=["slide"]
# Mostly what `sun` tells, and a little of the others. That is all of **attention**: scores, shares,
# a weighted sum. Now the names.
#
# | here | the field says | short |
# |---|---|---|
# | what a place looks for | **query** | `q` |
# | the label it is compared with | **key** | `k` |
# | what it tells | **value** | `v` |
# | **share** | attention weight | `shares` |
#
# This book says share, because a weight is already something else: a number that is learned.
#
# All three words at once is one product of matrices. `k.T` lays the keys down as columns, so that
# every query meets every key. Row: who asks. Column: who is asked.

# %%
q, k, v = looks_for, label, tells
scores = q @ k.T
print(softmax(scores).round(2))

# %% [markdown] id="future"
# ## The future must stay closed
#
# Look at the first row. `The` looks for nothing, so it takes a third from everybody, also from
# `sun` and `warms`. Do you see what is wrong with that?
#
# Think of training (lesson 02b): at `The`, the right answer is `sun`. A place that listens to the
# next one reads the answer there. The loss becomes wonderful, and the model learns nothing. When it
# generates, there is no next token yet, and it writes nonsense.
#
# So a place may only see itself and what stands before it: row `i` sees the columns 0 to `i`.

# %%
seen = np.tril(np.ones((3, 3), bool))  # tril keeps the lower triangle
print(seen.astype(int))

# %% [markdown] id="future-zero"
# How do we hide a score? A first try: multiply the hidden ones by 0. (`seen` counts as 1 and 0 in a
# product.) What will happen to the first row?

# %% tags=["slide"]
print(softmax(scores * seen).round(2))

# %% [markdown] id="future-inf"
# Nothing happens. A score of 0 is an ordinary score, and exp(0) is 1. Which score has the
# exponential 0? Minus infinity.

# %% tags=["slide"]
hidden = np.where(seen, scores, -np.inf)  # the score where seen, else minus infinity
print(softmax(hidden).round(2))
assert np.allclose(softmax(hidden).sum(axis=1), 1)

# %% [markdown] id="future-name"
# This is the **causal mask**. The upper triangle is 0, each row sums to 1, and `The` hears only
# itself. Every row has a score left, its own. A row without any would be 0 divided by 0.

# %% [markdown] id="scale"
# ## Why the scores are divided
#
# Our pairs have two numbers. A real head has 32, 64 or more; call it `d`. A score is a sum of `d`
# products. What does it do when `d` grows? Try a thousand random queries and keys for each `d`. The
# spread is the standard deviation: how far from 0 a score usually is.

# %%
rng = np.random.default_rng(4)
for d in (4, 64, 256):
    many_q, many_k = rng.normal(size=(2, 1000, d))
    score = (many_q * many_k).sum(axis=1)
    spread = score.std()
    print(f"d = {d:3}: scores spread by {spread:2.0f}, divided by root d {spread / d**0.5:.0f}")

# %% [markdown] id="scale-why"
# The spread grows with the root of `d`. Why does that matter? Move the slider. Left are the shares
# of one random query among nine keys; right, its scores were divided by the root of `d`.

# %%
def nine_scores(d):
    """The scores of one random query with nine keys of d numbers."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(9, d)) @ rng.normal(size=d)

def draw_scale(panels, d):
    for axes, divisor, title in zip(panels, (1, d**0.5), ("not divided", "divided by root d")):
        axes.bar(range(9), softmax(nine_scores(d) / divisor))
        axes.set(ylim=(0, 1), xlabel="key", ylabel="share", title=title)

# %% tags=["slide"]
def scale_words(d):
    raw, divided = (softmax(nine_scores(d) / n).max() for n in (1, d**0.5))
    return f"With d = {d}, the largest of nine shares is {raw:.2f}, and {divided:.2f} when divided."

lab.explore(draw_scale, [2, 8, 32, 128, 512], scale_words, name="d", start=128, columns=2)

# %% [markdown] id="scale-after"
# Left, with a large `d`, one key gets nearly everything, by chance. The other shares are so near 0
# that a small change of their scores changes nothing, and training has nothing to hold on to
# (lesson 08b).
#
# **Exercise 04a.2** · medium · 6 minutes. Compute a head by hand, with mask and division. `d` is 4,
# so the root is 2. Return what each place hears: three rows of four numbers, with two digits behind
# the point. e² is about 7.39.
#
# | place | query | key | value |
# |---|---|---|---|
# | 0 | 1, 1, 0, 0 | 1, 0, 0, 0 | 8, 0, 0, 1 |
# | 1 | 4, 0, 0, 0 | 0, 1, 0, 0 | 0, 8, 0, 1 |
# | 2 | 0, 0, 2, 2 | 1, 1, 0, 0 | 0, 0, 8, 1 |
#
# <details><summary>Hint 1: where to begin</summary>
#
# Place 0 sees only itself. Its share is 1, whatever the score is. So its row is its own value.
#
# </details>
#
# <details><summary>Hint 2: place 1</summary>
#
# Its query times the two keys that it sees: 4 and 0. Divided by 2: 2 and 0. The exponentials are
# 7.39 and 1, the shares 7.39/8.39 and 1/8.39.
#
# </details>
#
# <details><summary>I am stuck: give me numbers to choose from</summary>
#
# Place 0 hears `[8, 0, 0, 1]`. Place 1 hears one of `[7.05, 0.95, 0, 1]`, `[7.86, 0.14, 0, 1]`.
# Place 2 hears one of `[0, 0, 8, 1]`, `[2.67, 2.67, 2.67, 1]`.
#
# </details>

# %%
@lab.exercise("04a.2")
def by_hand():
    """What each of the three places hears."""
    ### BEGIN SOLUTION
    return [[8, 0, 0, 1], [7.05, 0.95, 0, 1], [2.67, 2.67, 2.67, 1]]
    ### END SOLUTION

# %% [markdown] id="overflow"
# ## A softmax that cannot overflow
#
# The softmax above takes the largest score away first. Lesson 00 promised a reason. Here it is, in
# float32 (`np.errstate` keeps NumPy from printing a warning):

# %%
with np.errstate(over="ignore"):
    print(np.exp(np.float32(88)) < np.inf, np.exp(np.float32(89)))

# %% [markdown] id="overflow-nan"
# Not far above 88, the exponential is too large for float32 and becomes infinity: it **overflows**.
# What is a share then?

# %%
large = np.array([1000, 999, 998], np.float32)
with np.errstate(over="ignore", invalid="ignore"):
    print(np.exp(large) / np.exp(large).sum())

# %% [markdown] id="overflow-cure"
# Infinity divided by infinity is **NaN**, "not a number". Whatever is computed with a NaN is NaN.
# One of them in one share, and after one step of training all weights are NaN.
#
# The cure is cheap. Softmax cares for differences only: take the same number away from all scores,
# and all exponentials shrink by one factor, which the division removes. Take away the largest, and
# no exponential is larger than 1.

# %% tags=["slide"]
def plain(x):
    return np.exp(x) / np.exp(x).sum()

small = np.array([2.0, 1.0, 0.0])
assert np.allclose(plain(small), plain(small - 2))
print(softmax(small).round(2), softmax(large).round(2))

# %% [markdown] id="numpy"
# ## In NumPy
#
# **Exercise 04a.3** · medium · 8 minutes. Write `causal_shares`: a table of scores in, shares out.
# Row `i` sees the columns 0 to `i`. No exponential may overflow, not even with a score of 2000, wherever
# it stands. Do not use `softmax`; write it out.
#
# <details><summary>Hint: which largest?</summary>
#
# Each row has its own. And a score in the future is not there for this row, however large it is.
# Hide first, then look for the largest. `keepdims=True` keeps the result as a column, (T, 1), so
# that it can be taken away from the rows.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Five of these seven, in the right order:
#
# - `e = np.exp(scores)`
# - `seen = np.tril(np.ones(scores.shape, bool))`
# - `return e / e.sum(axis=1, keepdims=True)`
# - `hidden = np.where(seen, scores, -np.inf)`
# - `largest = scores.max(axis=1, keepdims=True)`
# - `largest = hidden.max(axis=1, keepdims=True)`
# - `e = np.exp(hidden - largest)`
#
# </details>

# %%
@lab.exercise("04a.3")
def causal_shares(scores):
    """Shares of the scores (T, T): row i sees the columns 0 .. i."""
    ### BEGIN SOLUTION
    seen = np.tril(np.ones(scores.shape, bool))
    hidden = np.where(seen, scores, -np.inf)
    largest = hidden.max(axis=1, keepdims=True)
    e = np.exp(hidden - largest)
    return e / e.sum(axis=1, keepdims=True)
    ### END SOLUTION

# %% [markdown] id="head"
# With it, the whole of attention is three lines. This is the formula that papers write as
# softmax(QKᵀ/√d)·V.

# %% tags=["slide"]
def attend(q, k, v):
    """What each place hears (T, d), and the shares (T, T), from q, k, v of (T, d) each."""
    scores = q @ k.T / np.sqrt(q.shape[1])  # (T, T)
    shares = causal_shares(scores)          # (T, T), each row sums to 1
    return shares @ v, shares               # (T, d)

assert np.allclose(attend(q, k, v)[1], causal_shares(scores / np.sqrt(2)))

# %% [markdown] id="weights"
# Where do query, key and value come from? Each is the place's row of numbers, multiplied with a
# table of weights. There are three tables, the same ones for all places, and training finds them.
# The three tables with this formula are one **head**.
#
# The tokenizer is that of lesson 02. The rows are those of lesson 03: one for the token and one for
# the place, added.

# %%
from llmcl.data import read_sentences
from llmcl.resources import data_dir
from llmcl.tokenizer import ByteBPE

sentences = read_sentences(data_dir() / "pretrain.txt")
tokenizer = ByteBPE.train(sentences, vocab_size=512)
ids = tokenizer.encode("The sun warms the land and the sea.")
tokens = [tokenizer.decode([i]) for i in ids]
print("|".join(tokens))

# %% [markdown] id="random"
# Nothing is trained yet, so all tables are random, with a fixed seed. The arithmetic is that of a
# real head. **The pattern means nothing yet.**

# %%
C, d, T = 24, 8, len(ids)  # numbers in a row, in a head; places
token_rows = rng.normal(size=(tokenizer.vocab_size, C))
position_rows = rng.normal(size=(T, C))
wq, wk, wv = rng.normal(size=(3, C, d)) / np.sqrt(C)  # the root keeps results near 1

x = token_rows[ids] + position_rows
y, shares = attend(x @ wq, x @ wk, x @ wv)
assert y.shape == (T, d) and shares.shape == (T, T)

# %% [markdown] id="item"
# ## One element at a time
#
# Three kernels run one after the other: scores, shares, mix. Why not one? A share needs the total
# of its row, and one work-item here has one score only. When the next launch begins, all scores are
# there.
#
# The kernels want query, key and value of a place side by side, in a row of 3·d numbers.
#
# First kernel: **one work-item, one score.** `i` asks, `j` is asked, `e` counts the `d` numbers.
# `qkv + …` is a pointer, as in lesson 01a: `q[0]` is then the first number of this query. `scale` is
# 1 by the root of `d`.

# %%
from llmcl.lab import get_global_id

def one_score(qkv, scores, T, d, scale):
    j, i = get_global_id(0), get_global_id(1)
    if j >= T or i >= T:
        return
    q = qkv + i * 3 * d      # where the query of place i begins
    k = qkv + j * 3 * d + d  # where the key of place j begins
    sum = 0.0
    for e in range(d):
        sum += q[e] * k[e]
    scores[i * T + j] = sum * scale

# %% [markdown] id="item-row"
# Second kernel: **one work-item, one row of softmax.** It looks for the largest score that it may
# see, adds up exponentials, divides, and writes 0 where the future is. Where is the mask?

# %%
def one_row(scores, shares, rows, T, n, first):  # a row is n long, here T
    row = get_global_id(0)
    if row >= rows:
        return
    its, out = scores + row * n, shares + row * n  # its: C calls it in; Python may not
    seen = first + row % T + 1                     # how many columns are not in the future
    largest = its[0]
    for j in range(1, seen):
        largest = max(largest, its[j])
    total = 0.0
    for j in range(seen):
        e = np.exp(its[j] - largest)
        out[j] = e
        total += e
    for j in range(seen):
        out[j] /= total
    for j in range(seen, n):
        out[j] = 0.0

# %% [markdown] id="item-row-after"
# There is no minus infinity. The loops end at `seen`, and a hidden score is not even read. When
# several sentences lie below each other, `row % T` is the row inside its own. `first` is 0 until
# lesson 11.
#
# Third kernel: **one work-item, one element of y.** It takes column `c` of the values.

# %%
def one_mix(qkv, shares, y, T, d):
    c, i = get_global_id(0), get_global_id(1)
    if c >= d or i >= T:
        return
    p = shares + i * T     # the shares of place i
    v = qkv + 2 * d + c    # column c of the values, at place 0
    sum = 0.0
    for j in range(i + 1):
        sum += p[j] * v[j * 3 * d]
    y[i * d + c] = sum

# %% [markdown] id="item-run"
# All three on the sentence, in shuffled order. The result must be that of `attend`.

# %%
qkv = np.concatenate([x @ wq, x @ wk, x @ wv], axis=1)  # (T, 3d)
by_scores, by_shares, by_items = np.zeros((T, T)), np.zeros((T, T)), np.zeros((T, d))
lab.run_items(one_score, (T, T), qkv, by_scores, T, d, d**-0.5)
lab.run_items(one_row, T, by_scores, by_shares, T, T, T, 0)
lab.run_items(one_mix, (d, T), qkv, by_shares, by_items, T, d).report()
assert np.allclose(by_shares, shares) and np.allclose(by_items, y)

# %% [markdown] id="item-view"
# Who reads what? Here is the third kernel with four places and `d` = 2. The picture shows work-item
# (0, 2): column 0 for place 2. Which values does it leave out? Move on to (0, 3): what comes in?
#
# <details><summary>Found it?</summary>
#
# The row of place 3, which is the future of place 2. For place 3 itself it is the present, and comes
# in. Columns 0 to 3 of `qkv` are queries and keys, which nobody needs here.
#
# </details>

# %%
few = rng.normal(size=(4, 6))
p, out = causal_shares(rng.normal(size=(4, 4))), np.zeros((4, 2))
run = lab.run_items(one_mix, (2, 4), few, p, out, 4, 2)
lab.view_items(run, start=(0, 2))

# %% [markdown] id="opencl"
# ## In OpenCL
#
# The first kernel. It is `one_score`, line for line, but it can do more: `B` sentences at once, and
# `H` heads. We use one head, so `H` is 1 and `h` is always 0; read over them. Lesson 04b explains
# them. `first` is 0 and `length` is `T`, so `Q`, the number of rows that ask, is `T` too.

# %%
lab.show_kernel("attention", "attention_scores")

# %% [markdown] id="opencl-softmax"
# The second kernel. Compare it with `one_row`: the loop with the exponentials is there twice. The
# first of the two is for speed only. `float8u` is eight floats in a row, `*(… *)(in + j)` takes the
# eight that begin at place `j`, and `exp` of them is eight exponentials at a time. What is left,
# fewer than eight, goes through the second loop, one by one. (In `for (; …)`, `j` goes on
# from where it stands.)

# %%
lab.show_kernel("softmax", "softmax_causal")

# %% [markdown] id="opencl-mix"
# And the third. What tells the loop to stop before the future?

# %%
lab.show_kernel("attention", "attention_mix")

# %% [markdown] id="opencl-after"
# Right: `j <= first + i`. The shares behind it are 0, so this saves half the work.
#
# `engine.attention` launches all three; its second argument is the number of heads.

# %%
from llmcl.engine import get_engine

engine = get_engine()
many = rng.normal(size=(3, 19, 3 * 11)).astype(np.float32)  # 3 sentences of 19 places, d = 11
on_device = engine.from_host(many)
got_y, got_shares = engine.attention(on_device, 1)
print(got_y.shape, got_shares.shape)

# %% [markdown] id="check"
# ## Check
#
# The judge is `attend`, in numbers with sixteen digits, one sentence at a time.

# %%
exact = many.astype(np.float64)
pairs = [attend(*np.split(sentence, 3, axis=1)) for sentence in exact]  # *: as q, k and v
want_y = np.stack([y for y, _ in pairs])
want_shares = np.stack([shares for _, shares in pairs])[:, None]  # (3, 1, 19, 19): one head

# %% tags=["slide"]
from llmcl.reference import bounds

y_bound, shares_bound = bounds.attention(exact, 1)
lab.check("shares", engine.to_host(got_shares), want_shares, shares_bound)
lab.check("attention", engine.to_host(got_y), want_y, y_bound)

# %% [markdown] id="check-bound"
# The bound adds up what the three steps may round: the products of a score, the exponentials and
# their total, the sum over the values. For a share in the future it is exactly 0. Why? Nothing is
# computed there.

# %% [markdown] id="leak"
# ## The leak test
#
# That no place hears the future can be tested directly. Change one token. Everything before it must
# stay as it was.
#
# How equal is "as it was"? Equal to the last bit. An output before the change is computed from the
# same numbers in the same order, so nothing is rounded differently. No bound is needed.
#
# **Exercise 04a.4** · medium · 8 minutes. Write `leaks`. It gets a function `attend_x` that turns
# `x` (T, C) into what each place hears (T, d). For every place `t`, change row `t` of a copy of
# `x`, and see whether any output before `t` differs. Return the list of all `t` for which one does.
#
# <details><summary>Hint</summary>
#
# `np.array_equal(a, b)` is true when all numbers are the same. `y[:t]` are the outputs before `t`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Put the lines in order and indent them. One of the eight does not belong.
#
# - `if not np.array_equal(attend_x(changed)[:t], before[:t]):`
# - `for t in range(len(x)):`
# - `changed[t] += 1`
# - `before, found = attend_x(x), []`
# - `found.append(t)`
# - `changed = x.copy()`
# - `changed = x`
# - `return found`
#
# </details>

# %%
@lab.exercise("04a.4")
def leaks(attend_x, x):
    """The places t where changing x[t] changes an output before t."""
    ### BEGIN SOLUTION
    before, found = attend_x(x), []
    for t in range(len(x)):
        changed = x.copy()
        changed[t] += 1
        if not np.array_equal(attend_x(changed)[:t], before[:t]):
            found.append(t)
    return found
    ### END SOLUTION

# %% [markdown] id="leak-run"
# Now our head on the engine, with all its kernels. (`row[None]` makes it a batch of one sentence.)

# %%
def engine_head(x):
    """What each place hears, computed on the engine."""
    row = np.concatenate([x @ wq, x @ wk, x @ wv], axis=1)
    y, _ = engine.attention(engine.from_host(row[None]), 1)
    return engine.to_host(y)[0]

assert leaks(engine_head, x) == []
print(f"✓ {T} tokens changed one after the other: no output before them differs in a single bit")

# %% [markdown] id="leak-doubt"
# Is that a proof? The test says it for these numbers, and the kernels say why: no loop goes beyond
# `seen` or `i`.
#
# A test that never fails is worth nothing. Would this one notice a leak? `with_shares` makes a head
# from any function that turns scores into shares. Give it one without a mask:

# %%
def with_shares(shares_of):
    """A head whose shares come from this function."""
    def head(x):
        scores = (x @ wq) @ (x @ wk).T / np.sqrt(d)
        return shares_of(scores) @ (x @ wv)
    return head

print(leaks(with_shares(softmax), x))  # without 0: no place stands before it
assert leaks(with_shares(causal_shares), x) == []

# %% [markdown] id="see"
# ## See it
#
# The shares of the sentence: a row for each place that asks. `0` is exactly 0, `0.00` only small.
# Which triangle is empty? Read one row from left to right; its shares sum to 1.

# %%
fig, axes = lab.figure(
    "Shares of nine tokens. The upper right triangle, the future, is 0 everywhere; the first row "
    "gives all to itself; lower rows spread over the past without a pattern.", height=4.6)
lab.heat(axes, shares, tokens, tokens, title="row: who asks   column: who is asked")
lab.show(fig)

# %% [markdown] id="see-chance"
# Look: ` warms` listens almost only to ` sun`. Has the head understood the sentence? No. Its tables
# are random; this is chance, and another seed gives another pattern. People are quick to read
# meaning into such a picture. What is real is the shape: the empty triangle, and the sum of each
# row.

# %% [markdown] id="see-leak"
# And the leak test as a picture. One token is replaced by ` ice`. Below it are the outputs of three
# heads: with the mask, with one that is open a place too far, and without. Move the slider. Where
# may something change, and where does it?

# %%
ice = tokenizer.encode(" ice")[0]

def one_too_far(scores):
    open_too_far = np.tril(np.ones(scores.shape, bool), 1)  # 1: one diagonal more
    return softmax(np.where(open_too_far, scores, -np.inf))

heads = {"mask": causal_shares, "1 too far": one_too_far, "no mask": softmax}

# %%
def changes(head, t):
    """For each place, whether its output differs when token t becomes ` ice`."""
    other = [*ids[:t], ice, *ids[t + 1 :]]
    before, after = (with_shares(head)(token_rows[i] + position_rows) for i in (ids, other))
    return (before != after).any(axis=1)

def leak_cells(t):
    """The four rows of the picture: its words and their colors."""
    words = [[" ice" if i == t else token for i, token in enumerate(tokens)]]
    colors = [["orange" if i == t else "" for i in range(T)]]
    for head in heads.values():
        new = changes(head, t)
        words.append([("LEAK" if i < t else "new") if new[i] else "same" for i in range(T)])
        colors.append([("red" if i < t else "sky") if new[i] else "" for i in range(T)])
    return words, colors

# %% tags=["slide"]
def draw_leak(axes, t):
    words, colors = leak_cells(t)
    words = [[word.replace(" ", "␣") for word in row] for row in words]
    lab.cells(axes, np.zeros((4, T)), words, colors)
    axes.set_yticks(range(4), ["token", *heads])

def leak_words(t):
    counts = [f"{name} {sum(changes(head, t)[:t])}" for name, head in heads.items()]
    return f"Token {t} becomes ice. Outputs before it that change: " + ", ".join(counts) + "."

places = [(f"{t} {token.strip()}", t) for t, token in enumerate(tokens)]
lab.explore(draw_leak, places, leak_words, name="token", start=4, height=2.9)

# %%
assert not any(changes(causal_shares, t)[:t].any() for t in range(T))
assert all(changes(softmax, t)[:t].all() for t in range(1, T))
print("✓ with the mask, no past changes; without it, all of it does")

# %% [markdown] id="see-after"
# With the mask the red never comes. Open by one place, the mask leaks into a single output. It is
# the worst one: the place that should predict this very token.

# %% [markdown] id="break"
# ## Break it
#
# Three wrong masks. The first multiplies scores by 0. The second cuts the future off after softmax.
# The third is open one place too far. Two quick tests, and the leak test. Guess first: which test
# finds which?

# %%
def times_zero(scores):
    return softmax(scores * np.tril(np.ones(scores.shape)))

def cut_after(scores):
    return softmax(scores) * np.tril(np.ones(scores.shape))

masks = {"right": causal_shares, "times 0": times_zero,
         "cut after": cut_after, "1 too far": one_too_far}

# %% tags=["slide"]
for name, shares_of in masks.items():
    table = shares_of(by_scores)
    sums, future = np.allclose(table.sum(axis=1), 1), (np.triu(table, 1) == 0).all()
    print(f"{name:9}  sums to 1: {sums!s:5}  future is 0: {future!s:5}  "
          f"leaks at {leaks(with_shares(shares_of), x)}")

# %% [markdown] id="break-after"
# Each of the quick tests lets a wrong mask pass. The leak test finds all three. `cut_after` is the
# sly one: its future is 0, and still it leaks. Its total was taken over the whole row, so every
# share of the past knows how large the future was.
#
# And does the check against the bound find it?

# %%
try:
    lab.check("cut after softmax", cut_after(by_scores), shares, 1e-6)
except lab.CheckFailed:
    print("✗ cut after softmax: the check found it")

# %% [markdown] id="break-kernel"
# Now a broken kernel. 1 has become 2, and a `min` keeps it inside the row: each row sees one column
# more. In the first try a single row asks, the last one, as it is when a model generates. What will
# the strict device find?

# %%
lab.run_broken("04a.leaks")

# %% [markdown] id="break-kernel-after"
# On the last place nothing is wrong: its future is empty. The strict device has nothing to say
# either: every access is inside its array. **A leak is a wrong formula, not a wrong access.**
# Without the check on a whole sentence, you would meet it only as a loss that is too good.
#
# And the softmax that forgets the largest score:

# %%
lab.run_broken("04a.overflow")

# %% [markdown] id="break-overflow-after"
# Right on small scores. And at the beginning of training, all scores are small. When does the NaN
# come? Later, when some have grown: after hours, on the machine of somebody who trusts the kernel.

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 04a.5** · easy · 3 minutes. Put these lines in the order in which a head computes. One
# does not belong. Return the letters as one word.
#
# - **A** `y = shares @ v`
# - **B** `scores = q @ k.T / np.sqrt(d)`
# - **C** `q, k, v = x @ wq, x @ wk, x @ wv`
# - **D** `scores = scores * seen`
# - **E** `scores = np.where(seen, scores, -np.inf)`
# - **F** `shares = softmax(scores)`
#
# <details><summary>Hint</summary>
#
# Which of the two masks gives the future the share 0?
#
# </details>

# %%
@lab.exercise("04a.5")
def order():
    """The letters of five lines, in order."""
    ### BEGIN SOLUTION
    return "CBEFA"
    ### END SOLUTION

# %% [markdown] id="exercises-mend"
# **Exercise 04a.6** · medium · 5 minutes. This kernel passes every check on small random scores.
# Then one score in the *future* of row 2 becomes 200, and row 2 turns into NaN, though its future
# is hidden. Find the line, and mend it with the smallest change.
#
# <details><summary>Hint 1: what is divided by what</summary>
#
# NaN comes from 0/0 here. When is every exponential of a row 0? When something much too large was
# taken away.
#
# </details>
#
# <details><summary>Hint 2: which loop</summary>
#
# There are four loops. Three of them know where the future begins.
#
# </details>

# %%
row_text = lab.kernel_exercise("04a.6", r"""
__kernel void causal_row(__global const float *restrict scores, __global float *restrict shares,
                         const int T)
{
    const int row = get_global_id(0);
    if (row >= T) return;
    __global const float *in = scores + row * T;
    __global float *out = shares + row * T;
    const int seen = row + 1;

    float largest = in[0];
    // BEGIN SOLUTION
    for (int j = 1; j < seen; ++j) largest = fmax(largest, in[j]);
    // INSTEAD
    for (int j = 1; j < T; ++j) largest = fmax(largest, in[j]);
    // END SOLUTION

    float total = 0.0f;
    for (int j = 0; j < seen; ++j) {
        out[j] = exp(in[j] - largest);
        total += out[j];
    }
    for (int j = 0; j < seen; ++j) out[j] /= total;
    for (int j = seen; j < T; ++j) out[j] = 0.0f;
}
""")

# %% [markdown] id="exercises-kernel"
# **Exercise 04a.7** · medium · 8 minutes. Many libraries put the mask into the scores. Write that
# kernel: one work-item, one score, q·k times `scale`, or minus infinity where the future is. In
# OpenCL C it is written `-INFINITY`. The check puts your scores through a plain softmax without any
# mask.
#
# <details><summary>Hint: begin with the Python item</summary>
#
# It is `one_score`, with `q` and `k` in arrays of their own: row `i` of `q` begins at `i * d`. The
# mask is one more decision at the end.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Two of these seven do not belong.
#
# - `const int j = get_global_id(0), i = get_global_id(1);`
# - `if (j >= T || i >= T) return;`
# - `float sum = 0.0f;`
# - `for (int e = 0; e < d; ++e) sum += q[i * d + e] * k[j * d + e];`
# - `for (int e = 0; e < T; ++e) sum += q[i * T + e] * k[j * T + e];`
# - `scores[i * T + j] = j > i ? -INFINITY : sum * scale;`
# - `scores[i * T + j] = j > i ? 0.0f : sum * scale;`
#
# The form `a ? b : c` is C's `b if a else c`.
#
# </details>

# %%
scores_text = lab.kernel_exercise("04a.7", r"""
__kernel void masked_scores(__global const float *restrict q,    // (T, d)
                            __global const float *restrict k,    // (T, d)
                            __global float *restrict scores,     // (T, T)
                            const int T, const int d, const float scale)
{
    // BEGIN SOLUTION
    const int j = get_global_id(0), i = get_global_id(1);
    if (j >= T || i >= T) return;
    float sum = 0.0f;
    for (int e = 0; e < d; ++e) sum += q[i * d + e] * k[j * d + e];
    scores[i * T + j] = j > i ? -INFINITY : sum * scale;
    // END SOLUTION
}
""")

# %% [markdown] id="exercises-window"
# **Exercise 04a.8** · hard · 8 minutes. Some models save work: a place listens only to the last
# `window` places, itself included. Extend the mask. Write `window_shares(scores, window)`. You may
# use `softmax`.
#
# <details><summary>Hint</summary>
#
# `np.tril(table, -window)` keeps what lies at least `window` columns to the left of the diagonal.
# That is what a place no longer sees.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Four of these five, in the right order:
#
# - `ones = np.ones(scores.shape, bool)`
# - `past = np.tril(ones)`
# - `too_far = np.tril(ones, -window)`
# - `too_far = np.triu(ones, window)`
# - `return softmax(np.where(past & ~too_far, scores, -np.inf))`
#
# </details>

# %%
@lab.exercise("04a.8")
def window_shares(scores, window):
    """Shares (T, T): row i sees the columns i - window + 1 .. i, as far as there are any."""
    ### BEGIN SOLUTION
    ones = np.ones(scores.shape, bool)
    past = np.tril(ones)
    too_far = np.tril(ones, -window)
    return softmax(np.where(past & ~too_far, scores, -np.inf))
    ### END SOLUTION

# %%
def near_head(x):
    return with_shares(lambda scores: window_shares(scores, 3))(x)

assert leaks(near_head, x) == []
assert (window_shares(by_scores, 1) == np.eye(T)).all()
print("✓ a window leaks nothing; with a window of 1, each place hears only itself")

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - A place compares its **query** with the **keys** that it may see, and takes of their **values** by
#   **shares**.
# - Scores are divided by the root of `d`, so that no key wins by chance.
# - Softmax takes the largest *visible* score away first. Then nothing overflows.
# - The **causal mask** hides the future before softmax. The **leak test** shows it, to the last bit.
#
# In `llmcl`: the kernels in `kernels/attention.cl` and `kernels/softmax.cl`, the operations in
# `llmcl/ops/attention.py`, their NumPy twins in `llmcl/reference/attention.py`.
#
# Five questions, three of them about earlier lessons.
#
# **q1.** How do you hide the future?
#
# - **A** Its scores become 0.
# - **B** Its scores become minus infinity.
# - **C** Its shares become 0, after softmax.

# %%
lab.quiz("04a.q1")

# %% [markdown] id="recap-2"
# **q2.** Which of the three is added up to make the output?
#
# - **A** the queries
# - **B** the keys
# - **C** the values

# %%
lab.quiz("04a.q2")

# %% [markdown] id="recap-3"
# **q3.** (Lesson 03) ` the` stands at places 3 and 6 of the sentence. What does the model get for
# the two?
#
# - **A** Two rows that differ: the same row for the token, plus different rows for the places.
# - **B** Twice the same row.
# - **C** Two rows of the token table, one for each time that it occurs.

# %%
lab.quiz("04a.q3")

# %% [markdown] id="recap-4"
# **q4.** (Lesson 02) A byte-level tokenizer was trained on English only. What happens to 태양?
#
# - **A** It becomes `<unk>`.
# - **B** It is left out.
# - **C** It becomes more tokens than an English word would, and comes back whole.

# %%
lab.quiz("04a.q4")

# %% [markdown] id="recap-5"
# **q5.** (Lesson 00) A model with V tokens has learned nothing yet. What is its loss, about?
#
# - **A** 0
# - **B** the logarithm of V
# - **C** 1

# %%
lab.quiz("04a.q5")

# %%
lab.summary("04a")

# %% [markdown] id="bridge"
# **Next:** lesson 04b, *Many heads*. One head listens in one way. Several heads listen in several
# ways, and the work is all in knowing which number belongs to which head.
