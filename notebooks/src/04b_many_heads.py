# ---
# jupyter:
#   llmcl:
#     title: Many heads
#     needs: ["00", "01a", "02b", "03", "04a", "head", "query", "key", "value", "causal mask"]
#     introduces:
#       - d_model
#       - n_heads
#       - d_head
#       - split
#       - join
#       - channel
#       - reshape
#       - transpose
#       - bias
#       - output product
#       - llmcl.lab.lessons.lesson_04b.layer_bound
#       - llmcl.layers.Attention
#       - llmcl.reference.softmax.causal_softmax
#     minutes: {core: 55, full: 80}
#     numpy: true
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 04b · Many heads
#
# Three heads listen side by side, and you keep track of which number belongs to which head. That is
# the whole difficulty: a mistake here has the right shape, no error, and wrong numbers.
#
# | | |
# |---|---|
# | **After this you can** | split a row into heads and join it again; scale by the right width; count the parameters of query, key, value and output |
# | **You need** | lesson 04a; warm-up 00b if reshape and transpose are new to you |
# | **Time** | 55 minutes; 80 with the exercises |
# | **New words** | d_model, n_heads, d_head, channel, split, join, reshape, transpose, bias, output product |

# %%
from llmcl import lab

lab.start("04b")

# %% [markdown] id="idea"
# ## The idea: one head listens in one way
#
# `The sun warms the land`. Stand at `land`. You may want two things at once: *which thing* does
# something here, and *what* does it do? `sun` answers the first, `warms` the second. (Leave the other
# words out for now.)
#
# Here are the values of the two, made up again. The first number says which thing, the second which
# deed. Every word has a number in both columns, whether it makes sense or not.

# %%
import numpy as np

values = np.array([[8, -2],   # sun: thing number 8, and -2 where a deed would stand
                   [1, 6]])   # warms: deed number 6, and 1 where a thing would stand

# %% [markdown] id="idea-one"
# `land` would like to hear thing 8 and deed 6. One head has one set of shares: so much for `sun`, the
# rest for `warms`. Is there a share with which it hears `[8, 6]`?

# %% tags=["slide"]
for share in (0, 0.25, 0.5, 0.75, 1):
    print("sun", share, "hears", np.array([share, 1 - share]) @ values)

# %% [markdown] id="idea-why" tags=["slide"]
# No. **A share counts for all numbers of a value.** Whoever takes the thing of `sun` takes its `-2` along.
# Could other values help? They are made once, for everybody who listens, and cannot suit this one place.
# So let two heads listen. Each gets one of the two columns, and has shares of its own:

# %%
thing = np.array([1, 0]) @ values[:, :1]  # head 0 has column 0, and listens to sun
deed = np.array([0, 1]) @ values[:, 1:]   # head 1 has column 1, and listens to warms
print(np.concatenate([thing, deed]))

# %% [markdown] id="idea-after"
# Is the result wider now? No. The two columns of one head are shared out between two, and the
# results lie side by side, in a row as wide as before.

# %% [markdown] id="sizes"
# ## Three sizes
#
# Our default model does this with 96 numbers for each place and three heads.

# %%
from llmcl.config import Config

config = Config()
C, H, d = config.d_model, config.n_heads, config.d_head
print(f"d_model {C}, n_heads {H}, d_head {d}")
assert C == H * d

# %% [markdown] id="sizes-names" tags=["slide"]
# | name | letter | what it counts |
# |---|---|---|
# | **d_model** | `C` | the numbers of one place; each is called a **channel** |
# | **n_heads** | `H` | the heads |
# | **d_head** | `d` | the channels of one head: `C / H` |
#
# What does the package say if `C` is not divisible by `H`?

# %%
try:
    Config(d_model=96, n_heads=5)
except Exception as error:
    print(error)

# %% [markdown] id="tables"
# ## One table for all heads
#
# In lesson 04a a head had three tables of weights, for query, key and value. Three heads have nine. We
# take small sizes: 4 places, 6 channels, 3 heads of 2. Each table turns 6 channels into 2.

# %%
rng = np.random.default_rng(4)
x = rng.normal(size=(4, 6))
tables = rng.normal(size=(9, 6, 2))  # q of heads 0, 1, 2, then k of all three, then v

# %% [markdown] id="tables-one"
# Nine small products? A device likes one large one better. A column of the result needs one column
# of the table and nothing else. So lay the nine tables side by side, and multiply once:

# %%
w_qkv = np.concatenate(tables, axis=1)  # (6, 18): (C, 3C)
qkv = x @ w_qkv                         # (4, 18): (T, 3C)
assert np.allclose(qkv, np.concatenate([x @ table for table in tables], axis=1))
print(w_qkv.shape, qkv.shape)

# %% [markdown] id="tables-row"
# One row of `qkv` now holds everything that one place needs, in this order:
#
# `| q head 0 | q head 1 | q head 2 | k head 0 | k head 1 | k head 2 | v head 0 | v head 1 | v head 2 |`
#
# Some models order it by heads: query, key and value of head 0, then those of head 1. Both work, but whoever
# reads a file must know which. Ours is GPT-2's order.

# %% [markdown] id="cut"
# ## Cut, and bring forward
#
# Take only the queries, the first 6 columns. To see who is who, fill them with numbers that say where they
# belong: first digit the place, second the channel. (02 is printed as 2.) Each head has a color.

# %%
q = 10 * np.arange(4)[:, None] + np.arange(6)  # (T, C): a column of tens plus a row of ones
head_colors = ["sky", "orange", "green"]
owners = [[head_colors[c // 2] for c in range(6)] for t in range(4)]

fig, axes = lab.figure(
    "Each head owns two neighbouring columns of every row: columns 0 and 1 have the color of head 0, columns "
    "2 and 3 that of head 1, columns 4 and 5 that of head 2. The four rows are places.", width=4.2, height=2.6)
digits = [[f"{number:02}" for number in row] for row in q]
lab.cells(axes, q, digits, owners, title="row: place   column: channel")
lab.show(fig)

# %% [markdown] id="cut-slices"
# Head 1 owns the channels 2 and 3, at all places. What gets them? A slice:

# %%
print(q[:, 2:4].tolist())

# %% [markdown] id="cut-reshape"
# We want all heads in one array, (H, T, d), so that a single `@` does the work for all. It takes two steps.
# First cut each row into three pieces. A **reshape** keeps the one long line of numbers and only says anew
# where it is cut.

# %%
cut = q.reshape(4, 3, 2)  # (T, H, d)
print(cut[1].tolist())    # place 1: three pieces, one for each head

# %% [markdown] id="cut-transpose"
# Now the first axis is the place. It should be the head. A **transpose** changes the order of the axes:
# with `(1, 0, 2)` the new first axis is the old axis 1, and so on. Now the line has another order.

# %% tags=["slide"]
heads = cut.transpose(1, 0, 2)  # (H, T, d)
print(heads[1].tolist())
assert all((heads[h] == q[:, 2 * h : 2 * h + 2]).all() for h in range(3))

# %% [markdown] id="cut-wrong"
# Why two steps? `q.reshape(3, 4, 2)` has the right shape at once.
#
# **Exercise 04b.1** · easy · 3 minutes. On paper, write the 24 numbers of the picture in one long line, and
# cut it into three parts of 8. How many of them are then with the wrong head? Write your guess into the cell.
#
# <details><summary>Hint</summary>
#
# The first part is 00, 01, 02, 03, 04, 05, 10, 11. Head 0 owns the numbers that end with 0 or 1.
#
# </details>

# %%
lab.predict("04b.1", guess=None)

# %%
wrong = q.reshape(3, 4, 2)
owner = wrong % 10 // 2  # the head to which each number belongs
strangers = sum((owner[h] != h).sum() for h in range(3))
lab.reveal("04b.1", strangers)
print("with the wrong head:", strangers, "· where they belong:", (wrong == heads).sum())
print("head 0:", wrong[0].tolist())

# %% [markdown] id="fly"
# Half of them are with strangers, and of the rest most are in the row of another place. Look at head 0: its
# four rows should be the places 0 to 3. It got place 0 three times, and a bit of place 1.
#
# Now watch them fly. Left, cut and transposed; right, reshaped at once. The color says whose a number is, and
# so does its second digit: 0 and 1, 2 and 3, 4 and 5.

# %%
place, channel = np.divmod(np.arange(24), 6)

def goal(way):
    """Row and column of the picture where each of the 24 numbers lands."""
    if way == "transpose":
        head, row, e = channel // 2, place, channel % 2
    else:
        head, row, e = np.unravel_index(np.arange(24), (3, 4, 2))  # the line, cut anew
    return row, 3 * head + e

# %%
def draw_flight(panels, part):
    for axes, way in zip(panels, ("transpose", "reshape")):
        row, col = goal(way)
        down = (1 - part) * place + part * row
        right = (1 - part) * (channel + 1) + part * col
        colors = [lab.COLORS[head_colors[c // 2]] for c in channel]
        axes.scatter(right, down, s=440, c=colors, marker="s", edgecolors="white")
        for x_at, y_at, p, c in zip(right, down, place, channel):
            axes.text(x_at, y_at, f"{p}{c}", ha="center", va="center")
        for head in range(3 if part == 1 else 0):
            axes.text(3 * head + 0.5, 4, f"head {head}", ha="center", va="center")
        axes.set(xlim=(-0.7, 8.9), ylim=(4.3, -0.7), title=way)
        axes.set_axis_off()

# %% tags=["slide"]
def flight_words(part):
    """The picture in words."""
    if part == 0:
        return "Twice the same table: four places, six channels, two columns of each color."
    if part < 1:
        return "Left, three strips move apart. Right, numbers cross each other's way."
    return ("Left, three heads of one color each, places 0 to 3 from top to bottom. Right, the same shape: "
            "each head has numbers of all three colors, half of them not its own.")

steps = [("as it lies", 0), ("1/4", 0.25), ("1/2", 0.5), ("3/4", 0.75), ("at the heads", 1)]
lab.explore(draw_flight, steps, flight_words, "numbers", start=1, columns=2, height=2.8)

# %% [markdown] id="numpy"
# ## In NumPy
#
# **Exercise 04b.2** · medium · 6 minutes. Write `split_heads` for `B` sentences at once: (B, T, C) becomes
# (B, H, T, d).
#
# <details><summary>Hint</summary>
#
# The same two steps, with one more axis. Cut `C` into `n_heads` and `d`. Which axes change places then?
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Three of these five, in the right order:
#
# - `return cut.transpose(0, 2, 1, 3)`
# - `return cut.transpose(1, 0, 2, 3)`
# - `cut = part.reshape(b, n_heads, t, c // n_heads)`
# - `b, t, c = part.shape`
# - `cut = part.reshape(b, t, n_heads, c // n_heads)`
#
# </details>

# %%
@lab.exercise("04b.2")
def split_heads(part, n_heads):
    """(B, T, C) -> (B, H, T, d): head h gets the channels h * d to (h + 1) * d - 1."""
    ### BEGIN SOLUTION
    b, t, c = part.shape
    cut = part.reshape(b, t, n_heads, c // n_heads)
    return cut.transpose(0, 2, 1, 3)
    ### END SOLUTION

# %% [markdown] id="numpy-join"
# **Exercise 04b.3** · medium · 4 minutes. The way back: `join_heads` lays what the heads heard side by side,
# one row for each place.
#
# <details><summary>Hint</summary>
#
# Undo the two steps, the last one first.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Two of these four, in the right order:
#
# - `return heads.reshape(b, t, h * d)`
# - `b, h, t, d = heads.shape`
# - `return heads.transpose(0, 2, 1, 3).reshape(b, t, h * d)`
# - `return heads.transpose(0, 2, 3, 1).reshape(b, t, h * d)`
#
# </details>

# %%
@lab.exercise("04b.3")
def join_heads(heads):
    """(B, H, T, d) -> (B, T, C), the reverse of split_heads."""
    ### BEGIN SOLUTION
    b, h, t, d = heads.shape
    return heads.transpose(0, 2, 1, 3).reshape(b, t, h * d)
    ### END SOLUTION

# %%
odd = rng.normal(size=(3, 11, 35))  # five heads of 7
assert (join_heads(split_heads(odd, 5)) == odd).all()
print("✓ split and joined, every number is back where it was")

# %% [markdown] id="scale"
# ### Which width?
#
# Lesson 04a divided a score by the root of `d`, because a score is a sum of `d` products. Now there are two
# widths, 96 and 32. Which one is it? Count the products of one score. Then look at the spread of five
# thousand random ones:

# %% tags=["slide"]
many_q, many_k = rng.normal(size=(2, 5000, config.d_head))
score = (many_q * many_k).sum(axis=1)
for width in (config.d_head, config.d_model):
    print(f"divided by the root of {width}: a spread of {score.std() / width**0.5:.1f}")

# %% [markdown] id="scale-why"
# A head adds up 32 products, so the root of **d_head** brings the spread to 1. With d_model the scores are
# too small, and the shares too even.
#
# Does the model break then? No, and that hides the fault so well. It trains. But then somebody opens the file
# in llama.cpp, which divides by the root of d_head, and gets other answers than you.

# %% [markdown] id="attend"
# Here is all of it. `@` works on the last two axes, for every head of every sentence; `swapaxes(-1, -2)` is
# the `.T` of these two. `causal_softmax` is your `causal_shares` of lesson 04a, from the package. The mask is the
# same for each head.

# %%
from llmcl.reference.softmax import causal_softmax

def attend(qkv, n_heads):
    """What each place hears (B, T, C), and the shares (B, H, T, T), from qkv (B, T, 3C)."""
    parts = np.split(qkv, 3, axis=-1)                         # three times (B, T, C)
    q, k, v = (split_heads(part, n_heads) for part in parts)  # (B, H, T, d) each
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])    # (B, H, T, T)
    shares = causal_softmax(scores)
    return join_heads(shares @ v), shares

# %% [markdown] id="attend-one"
# Is that the same as three heads of lesson 04a? Take the small `x` and its nine tables:

# %%
def one_head(q, k, v):
    """Lesson 04a's head: q, k, v (T, d) each -> what each place hears (T, d)."""
    return causal_softmax(q @ k.T / np.sqrt(q.shape[1])) @ v

one_by_one = [one_head(x @ tables[h], x @ tables[3 + h], x @ tables[6 + h]) for h in range(3)]
y, _ = attend(qkv[None], 3)  # a batch of one sentence
assert np.allclose(y[0], np.concatenate(one_by_one, axis=1))
print("✓ three heads at once are three heads one by one")

# %% [markdown] id="output"
# ## The output product
#
# Now the results lie side by side: channels 0 and 1 know only what head 0 heard, and so on. Who brings them
# together? One more product with learned weights, (C, C), the **output product**. Each of its results uses what
# all heads heard.
#
# And both products get a **bias**: one learned number for each column, added at the end, the same for all
# places. Without it, a row of zeros could only become zeros.

# %%
def attention_layer(x, w_qkv, b_qkv, w_out, b_out, n_heads):
    """x (B, T, C) -> the same shape: product to q, k, v, heads, output product."""
    y, _ = attend(x @ w_qkv + b_qkv, n_heads)
    return y @ w_out + b_out

# %% [markdown] id="count"
# ## Count the parameters
#
# A **parameter** is a number that is learned: a weight or a bias.
#
# **Exercise 04b.4** · easy · 3 minutes. Write `attention_count`: how many parameters does this layer have? It has
# two products, each with a table and a bias.
#
# <details><summary>Hint</summary>
#
# The four shapes are (C, 3C), (3C), (C, C) and (C). How many numbers does each hold?
#
# </details>
#
# <details><summary>I am stuck: give me pieces to choose from</summary>
#
# The sum of four of these six: `d_model * 3 * d_model` · `d_model * d_model` · `3 * d_model` · `d_model` ·
# `n_heads * d_model` · `d_model * d_model // n_heads`
#
# </details>

# %%
@lab.exercise("04b.4")
def attention_count(d_model, n_heads):
    """The number of parameters of query, key, value and output, with their biases."""
    ### BEGIN SOLUTION
    return d_model * 3 * d_model + 3 * d_model + d_model * d_model + d_model
    ### END SOLUTION

# %% [markdown] id="count-check"
# The package knows the shape of every parameter by its name. (`blk.0` is the first block of the model; lesson
# 07 builds it.)

# %%
shapes = config.parameter_shapes()
names = [f"blk.0.attn_{part}" for part in ("qkv.weight", "qkv.bias", "output.weight", "output.bias")]
for name in names:
    print(f"{name:24} {str(shapes[name]):10} {np.prod(shapes[name]):6}")

# %%
total = sum(np.prod(shapes[name]) for name in names)
assert attention_count(config.d_model, config.n_heads) == total
print(f"✓ {total} in all")

# %% [markdown] id="count-heads" tags=["slide"]
# Where does `n_heads` come in? Nowhere. Twelve heads of 8 or three of 32: the tables are the same, only cut
# in other places. So a file with the wrong number of heads loads without complaint. No shape in it is wrong.

# %% [markdown] id="item"
# ## One element at a time
#
# Two of lesson 04a's three Python functions change. (Softmax goes row by row. It gets more rows now, and does
# not care whose they are.)
#
# Four numbers say where a score belongs: sentence `b`, head `h`, place `i` that asks, place `j` that is asked.
# A launch has three dimensions at most. So `b`, `h` and `i` are packed into one number, as hours, minutes
# and seconds are into seconds:
#
# `line = (b * H + h) * T + i`
#
# Unpacking is division and remainder. With `H` = 3 and `T` = 4, which place of which head is line 23?

# %%
line, H, T = 23, 3, 4
i, h, b = line % T, line // T % H, line // T // H
print(f"sentence {b}, head {h}, place {i}")
assert (b * H + h) * T + i == line

# %% [markdown] id="item-score"
# The first kernel: **one work-item, one score.** Two terms lead to a query in the long line of `qkv`, three to a
# key. What does each of them skip?

# %%
from llmcl.lab import get_global_id

def one_score(qkv, scores, B, T, H, d, scale):
    j, line = get_global_id(0), get_global_id(1)
    if j >= T or line >= B * H * T:
        return
    i, h, b = line % T, line // T % H, line // T // H
    C = H * d
    q = qkv + (b * T + i) * 3 * C + h * d      # place i of sentence b, then head h
    k = qkv + (b * T + j) * 3 * C + C + h * d  # place j, behind all queries, then head h
    sum = 0.0
    for e in range(d):
        sum += q[e] * k[e]
    scores[line * T + j] = sum * scale

# %% [markdown] id="item-mix"
# First whole rows of `3 * C`; then, for a key, the `C` queries; then the heads before `h`.
#
# The third kernel: **one work-item, one element of y.** Column `c` belongs to head `c // d`, and takes that
# head's shares. Where is the join? Nowhere: the results are written side by side at once.

# %%
def one_mix(qkv, shares, y, B, T, H, d):
    c, place = get_global_id(0), get_global_id(1)
    C = H * d
    if c >= C or place >= B * T:
        return
    i, b, h = place % T, place // T, c // d
    p = shares + ((b * H + h) * T + i) * T  # the shares of place i in head h
    v = qkv + b * T * 3 * C + 2 * C + c     # column c of the values, at place 0
    sum = 0.0
    for j in range(i + 1):
        sum += p[j] * v[j * 3 * C]
    y[place * C + c] = sum

# %% [markdown] id="item-run"
# Two sentences of four places, three heads of two channels:

# %%
B, T, H, d = 2, 4, 3, 2
qkv = rng.normal(size=(B, T, 3 * H * d))
scores, y = np.zeros((B, H, T, T)), np.zeros((B, T, H * d))
lab.run_items(one_score, (T, B * H * T), qkv, scores, B, T, H, d, d**-0.5).report()
shares = causal_softmax(scores)
lab.run_items(one_mix, (H * d, B * T), qkv, shares, y, B, T, H, d).report()
assert np.allclose(y, attend(qkv, H)[0]) and np.allclose(shares, attend(qkv, H)[1])

# %% [markdown] id="item-view"
# Who reads what? One sentence of three places, two heads of two. The picture shows one score of head 1. Move
# the slider to a work-item of head 0. Which columns of `qkv` does it read?
#
# <details><summary>Found them?</summary>
#
# Columns 0 and 1 for the query, 4 and 5 for the key. `C` is 4 here: the queries of both heads come first.
#
# </details>

# %%
small = rng.normal(size=(1, 3, 12))
out = np.zeros((1, 2, 3, 3))
run = lab.run_items(one_score, (3, 6), small, out, 1, 3, 2, 2, 2**-0.5)
lab.view_items(run, start=(0, 5))

# %% [markdown] id="opencl"
# ## In OpenCL
#
# You saw this kernel in lesson 04a, and read over `B` and `H`. Compare it with `one_score`, line by line.
# `first` is still 0, so `length` and `Q` are `T`.

# %%
lab.show_kernel("attention", "attention_scores")

# %% [markdown] id="opencl-mix"
# And the one behind softmax. In which line is it decided whose shares a column takes?

# %%
lab.show_kernel("attention", "attention_mix")

# %% [markdown] id="opencl-run"
# `h = c / d`: two whole numbers, so C drops the remainder. That is Python's `//`.
#
# Now the layer on the engine. `engine.linear` is a product with a bias. The sizes are odd and all different.

# %%
from llmcl.engine import get_engine

engine = get_engine()
B, T, H, d = 3, 11, 5, 7
C = H * d
arrays = [rng.normal(size=s) for s in ((B, T, C), (C, 3 * C), (3 * C,), (C, C), (C,))]
arrays = [a / np.sqrt(C) if a.ndim == 2 else a for a in arrays]  # the tables: keeps results near 1
on_device = [engine.from_host(a) for a in arrays]
x, w_qkv, b_qkv, w_out, b_out = on_device

# %%
qkv = engine.linear(x, w_qkv, b_qkv)
y, shares = engine.attention(qkv, H)
out = engine.linear(y, w_out, b_out)
print(qkv.shape, shares.shape, y.shape, out.shape)

# %% [markdown] id="check"
# ## Check
#
# Each of the three steps is judged by itself, with the numbers that it really got. Why not only compare the end?
# Then you would know that something is wrong, and not where.

# %%
from llmcl.reference import bounds

def exact(tensor):
    """A tensor's numbers in float64."""
    return engine.to_host(tensor).astype(np.float64)

first_step = [exact(t) for t in (x, w_qkv, b_qkv)]
bound = bounds.linear(*first_step)[0]
lab.check("product to q, k, v", exact(qkv), first_step[0] @ first_step[1] + first_step[2], bound)

# %% tags=["slide"]
want_y, want_shares = attend(exact(qkv), H)
y_bound, shares_bound = bounds.attention(exact(qkv), H)
lab.check("shares of five heads", exact(shares), want_shares, shares_bound)
lab.check("what they heard", exact(y), want_y, y_bound)

last_step = [exact(t) for t in (y, w_out, b_out)]
bound = bounds.linear(*last_step)[0]
lab.check("output product", exact(out), last_step[0] @ last_step[1] + last_step[2], bound)

# %% [markdown] id="check-whole"
# And from end to end? What the first product rounds moves the scores, and so the shares, and so all that
# follows. `layer_bound` adds this up.
#
# <details><summary>How does it add up?</summary>
#
# In four steps. The bound of the first product says how far each query, key and value may be off. From that
# follows how far a score may be off: at most `m`. Scores that move by at most `m` change a share by at most
# the factor exp(2·m). Then come the values, which are off a little too, and the last product takes all of it
# in its magnitudes, plus its own rounding. The lines are in `llmcl/lab/lessons/lesson_04b.py`.
#
# </details>

# %%
from llmcl.lab.lessons.lesson_04b import layer_bound

numbers = [exact(t) for t in on_device]
want, bound = attention_layer(*numbers, H), layer_bound(*numbers, H)
lab.check("the layer, from end to end", exact(out), want, bound)

# %% [markdown] id="check-package"
# The package has this layer as a class. It finds its parameters by their names. (The second dictionary is for
# training, and empty. Inside, the layer takes the faster kernel of lesson 13.)

# %%
from llmcl.layers import Attention

parameters = dict(zip(names, on_device[1:]))
layer = Attention(engine, parameters, {}, "blk.0.", n_heads=H)
lab.check("llmcl.layers.Attention", exact(layer.forward(x)), want, bound)

# %% [markdown] id="see"
# ## See it
#
# Three heads of the default model's size, on our sentence. The tables are random, and nothing is trained: **no
# pattern here means anything yet.** What will be the same in all three, and what not?

# %%
from llmcl.data import read_sentences
from llmcl.resources import data_dir
from llmcl.tokenizer import ByteBPE

tokenizer = ByteBPE.train(read_sentences(data_dir() / "pretrain.txt"), vocab_size=512)
ids = tokenizer.encode("The sun warms the land and the sea.")
tokens = [tokenizer.decode([i]) for i in ids]
print("|".join(tokens))

# %%
C, H, T = config.d_model, config.n_heads, len(ids)
token_rows, place_rows = rng.normal(size=(512, C)), rng.normal(size=(T, C))
text = token_rows[ids] + place_rows  # (T, C), as in lesson 03
weights = rng.normal(size=(C, 3 * C)) / np.sqrt(C)
_, shares = attend((text @ weights)[None], H)
assert shares.shape == (1, H, T, T)

# %%
fig, panels = lab.figure(
    "Shares of three untrained heads over the nine tokens. In each, the upper right triangle is empty and the "
    "first row gives all to itself; below, every head spreads its shares in another way.",
    height=2.6, columns=3)
for h, axes in enumerate(panels):
    lab.heat(axes, shares[0, h], tokens, tokens, title=f"head {h}")
lab.show(fig)

# %% [markdown] id="see-after"
# The empty triangle is the same: one mask for all. The shares differ, though all three got the same rows. Each
# has columns of its own in the table, and so its own way to listen. Training decides what that is good for.

# %% [markdown] id="break"
# ## Break it
#
# Five layers, all of the right shape. Guess first: which of them leak from the future?

# %%
def cut_anew(part, n_heads):
    """The wrong split: a reshape alone."""
    b, t, c = part.shape
    return part.reshape(b, n_heads, t, c // n_heads)

def glue_anew(heads):
    """The wrong join: a reshape alone."""
    b, h, t, d = heads.shape
    return heads.reshape(b, t, h * d)

# %%
def layer_of(split, join, width=lambda d, n_heads: d):
    """A layer of these functions: (B, T, 3C), H -> (B, T, C). The root is taken of width(d, H)."""
    def layer(qkv, n_heads):
        q, k, v = (split(part, n_heads) for part in np.split(qkv, 3, axis=-1))
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(width(q.shape[-1], n_heads))
        return join(causal_softmax(scores) @ v)
    return layer

layers = {
    "right": layer_of(split_heads, join_heads),
    "split by reshape": layer_of(cut_anew, join_heads),
    "join by reshape": layer_of(split_heads, glue_anew),
    "both by reshape": layer_of(cut_anew, glue_anew),
    "root of d_model": layer_of(split_heads, join_heads, lambda d, n_heads: d * n_heads),
}

# %% [markdown] id="break-hears"
# The leak test of lesson 04a asks which outputs change when a place changes. Here we keep the whole table. Row:
# who listens. Column: whose row of numbers was changed.

# %%
def hears(layer, n_heads):
    """(T, T), whether place i hears place j: whether its output changes with row j of the text."""
    before = layer((text @ weights)[None], n_heads)[0]
    table = np.zeros((T, T), bool)
    for j in range(T):
        changed = text.copy()
        changed[j] += 1
        after = layer((changed @ weights)[None], n_heads)[0]
        table[:, j] = (after != before).any(axis=1)
    return table

past = np.tril(np.ones((T, T), bool))
assert (hears(layers["right"], H) == past).all()

# %% [markdown] id="break-table"
# Four tests for each. The last one: are the numbers of three heads right?

# %% tags=["slide"]
batch = (text @ weights)[None]
for name, layer in layers.items():
    shape = layer(batch, H).shape == (1, T, C)
    one = np.allclose(layer(batch, 1), layers["right"](batch, 1))
    closed = not (hears(layer, H) & ~past).any()
    right = np.allclose(layer(batch, H), layers["right"](batch, H))
    words = ["ok" if passed else "NO" for passed in (shape, one, closed, right)]
    print(f"{name:17} shape {words[0]}  one head {words[1]}  no leak {words[2]}  numbers {words[3]}")

# %% [markdown] id="break-after"
# Read it column by column. The shape is worth nothing as a test. With one head all five are the same: there is
# nothing to split, and the two widths are equal. **A test of heads needs more than one head.**
#
# Two of them leak, though the mask is right. Row `i` of a head no longer is place `i`: it holds a later one, or
# what it heard lands at an earlier one. The mask closes the wrong door.
#
# And `both by reshape`? It does not leak. What is wrong with it? Move the slider. Blue is heard as it should be;
# white is the future, and closed.

# %% tags=["slide"]
def draw_hears(axes, name):
    heard = hears(layers[name], H)
    words = np.where(heard & ~past, "LEAK", np.where(past & ~heard, "lost", ""))
    colors = np.where(heard & ~past, "red", np.where(past & ~heard, "orange", ""))
    colors[heard & past] = "sky"
    lab.cells(axes, np.zeros((T, T)), words, colors, title=name)
    axes.set_yticks(range(T), tokens)
    axes.set_xticks(range(T), tokens, rotation=90)

def hears_words(name):
    heard = hears(layers[name], H)
    return (f"{name}: {past.sum()} cells should be heard, and {(heard & past).sum()} of them are; "
            f"{(heard & ~past).sum()} leak from the future.")

lab.explore(draw_hears, list(layers), hears_words, "layer", start="both by reshape", height=4.6)

# %% [markdown] id="break-lost"
# The sentence has fallen into three pieces, and no place hears a word of another piece. Nothing leaks, no error
# comes, and at the end of the sentence nobody knows how it began.
#
# What about the check against the bound? It finds each of them:

# %%
want, bound = attend(batch, H)[0], bounds.attention(batch, H)[0]
for name in list(layers)[1:]:
    try:
        lab.check(name, layers[name](batch, H), want, bound)
    except lab.CheckFailed:
        print(f"✗ {name}: the check found it")

# %% [markdown] id="break-kernel"
# Now in the kernels. The keys begin behind *all* queries, `C` numbers on. Somebody wrote `d`, the width of one
# head. What will the check say to one head and to three, and what will Oclgrind?

# %%
lab.run_broken("04b.wrong_key")

# %% [markdown] id="break-owner"
# Every address is inside of `qkv`, so Oclgrind has nothing to say. Head 0 takes the queries of head 1 for its
# keys. Next, the owner of a column, with `%` in place of `/`:

# %%
lab.run_broken("04b.wrong_owner")

# %% [markdown] id="break-width"
# Columns are dealt out like cards: one to head 0, one to head 1, one to head 2, and again. And the wrong
# width:

# %%
lab.run_broken("04b.wrong_width")

# %% [markdown] id="break-end"
# One head hides all three faults. Lesson 01a's habit, odd sizes, has to grow: **more than one head, more than
# one sentence, and all sizes different.**

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 04b.5** · easy · 3 minutes. Put the lines of the layer in order. One does not belong. Return the
# letters as one word.
#
# - **A** `y = join_heads(shares @ v)`
# - **B** `q, k, v = (split_heads(part, H) for part in np.split(qkv, 3, axis=-1))`
# - **C** `qkv = x @ w_qkv + b_qkv`
# - **D** `shares = causal_softmax(scores)`
# - **E** `return y @ w_out + b_out`
# - **F** `scores = q @ k.swapaxes(-1, -2) / np.sqrt(d_head)`
# - **G** `y = (shares @ v).reshape(B, T, C)`
#
# <details><summary>Hint</summary>
#
# Two lines make `y`. Which one brings the numbers of a place together?
#
# </details>

# %%
@lab.exercise("04b.5")
def order():
    """The letters of six lines, in order."""
    ### BEGIN SOLUTION
    return "CBFDAE"
    ### END SOLUTION

# %% [markdown] id="exercises-mend"
# **Exercise 04b.6** · medium · 4 minutes. This kernel lets every head hear its values. It is right for one
# sentence and wrong for two. Mend it with the smallest change.
#
# <details><summary>Hint 1: where to look</summary>
#
# Which lines use `b`? With one sentence, `b` is 0 and `B` is 1.
#
# </details>
#
# <details><summary>Hint 2: the shape</summary>
#
# The shares have the shape (B, H, T, T). Which table do you come to after `H` tables: the next head's, or the
# next sentence's?
#
# </details>

# %%
hear_text = lab.kernel_exercise("04b.6", r"""
__kernel void hear(__global const float *restrict v,        // (B, T, C)
                   __global const float *restrict shares,   // (B, H, T, T)
                   __global float *restrict y,              // (B, T, C)
                   const int B, const int T, const int H, const int d)
{
    const int c = get_global_id(0), place = get_global_id(1);
    const int C = H * d;
    if (c >= C || place >= B * T) return;
    const int i = place % T, b = place / T, h = c / d;
    // BEGIN SOLUTION
    __global const float *p = shares + ((b * H + h) * T + i) * T;
    // INSTEAD
    __global const float *p = shares + ((h * B + b) * T + i) * T;
    // END SOLUTION

    float sum = 0.0f;
    for (int j = 0; j <= i; ++j) sum += p[j] * v[(b * T + j) * C + c];
    y[place * C + c] = sum;
}
""")

# %% [markdown] id="exercises-split"
# **Exercise 04b.7** · medium · 8 minutes. Write the split as a kernel: one work-item moves one number, from `x`
# (B, T, C) to `heads` (B, H, T, d). Id 0 is the column, id 1 the place among all sentences.
#
# <details><summary>Hint 1: five numbers</summary>
#
# From the two ids follow the place `t` in its sentence, the sentence `b`, the head `h`, and the channel `e`
# inside of the head. `c / d` and `c % d` are two of them.
#
# </details>
#
# <details><summary>Hint 2: the new address</summary>
#
# An index into (B, H, T, d) is packed like `line`: `((b * H + h) * T + t) * d + e`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Five of these seven, in order:
#
# - `const int t = place % T, b = place / T, h = c / d, e = c % d;`
# - `const int t = place % T, b = place / T, h = c % H, e = c / H;`
# - `const int C = H * d;`
# - `heads[place * C + c] = x[place * C + c];`
# - `if (c >= C || place >= B * T) return;`
# - `heads[((b * H + h) * T + t) * d + e] = x[place * C + c];`
# - `const int c = get_global_id(0), place = get_global_id(1);`
#
# </details>

# %%
split_text = lab.kernel_exercise("04b.7", r"""
__kernel void split_heads(__global const float *restrict x,   // (B, T, C)
                          __global float *restrict heads,     // (B, H, T, d)
                          const int B, const int T, const int H, const int d)
{
    // BEGIN SOLUTION
    const int c = get_global_id(0), place = get_global_id(1);
    const int C = H * d;
    if (c >= C || place >= B * T) return;
    const int t = place % T, b = place / T, h = c / d, e = c % d;
    heads[((b * H + h) * T + t) * d + e] = x[place * C + c];
    // END SOLUTION
}
""")

# %% [markdown] id="exercises-shared"
# **Exercise 04b.8** · hard · 7 minutes. Some models save memory: each head has queries of its own, but all
# **share one key and one value** (the field says multi-query attention). Write it. `q` is (B, T, C), `k` and `v`
# are (B, T, d).
#
# <details><summary>Hint</summary>
#
# Split only `q`. `k[:, None]` puts an axis of length 1 where the heads are, (B, 1, T, d), and NumPy uses it for
# every head.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Four of these six, in order:
#
# - `k, v = k[:, None], v[:, None]`
# - `k, v = split_heads(k, n_heads), split_heads(v, n_heads)`
# - `scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])`
# - `q = split_heads(q, n_heads)`
# - `return join_heads(causal_softmax(scores) @ v)`
# - `return join_heads(softmax(scores) @ v)`
#
# </details>

# %%
@lab.exercise("04b.8")
def shared_attention(q, k, v, n_heads):
    """q (B, T, C), one k and one v (B, T, d) for all heads -> what each place hears (B, T, C)."""
    ### BEGIN SOLUTION
    q = split_heads(q, n_heads)
    k, v = k[:, None], v[:, None]
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return join_heads(causal_softmax(scores) @ v)
    ### END SOLUTION

# %%
queries, *others = np.split(batch, 3, axis=-1)
one_key, one_value = [part[..., : C // H] for part in others]  # those of head 0
copies = [np.tile(part, H) for part in (one_key, one_value)]   # H times side by side
want, _ = attend(np.concatenate([queries, *copies], axis=-1), H)
assert np.allclose(shared_attention(queries, one_key, one_value, H), want)
print("✓ the same as three heads whose keys and values are copies")

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - One softmax gives one set of shares. **Several heads** listen in several ways, in the same width.
# - **Split** is a reshape *and* a transpose; **join** undoes both; the output product mixes what the heads heard.
# - Scores are divided by the root of **d_head**.
# - The layer has 4 · d_model² weights and 4 · d_model biases, whatever the number of heads.
#
# In `llmcl`: `split_heads` and `join_heads` in `reference/attention.py`, the layer in `layers.py`.
#
# Five questions, three of them about earlier lessons.
#
# **q1.** With d_model 96 and three heads, what is a score divided by?
#
# - **A** the root of 96
# - **B** the root of 32
# - **C** 32

# %%
lab.quiz("04b.q1")

# %% [markdown] id="recap-2"
# **q2.** You go from three heads to four, with the same d_model. How many parameters has the layer now?
#
# - **A** as many as before
# - **B** a third more
# - **C** fewer, because the heads are narrower

# %%
lab.quiz("04b.q2")

# %% [markdown] id="recap-3"
# **q3.** (Lesson 04a) Why does softmax take the largest visible score away first?
#
# - **A** So that each row sums to 1.
# - **B** So that no exponential overflows.
# - **C** So that the future gets the share 0.

# %%
lab.quiz("04b.q3")

# %% [markdown] id="recap-4"
# **q4.** (Lesson 02b) What does a bigram model look at, to say what comes next?
#
# - **A** the last token only
# - **B** all tokens so far
# - **C** the number of the place

# %%
lab.quiz("04b.q4")

# %% [markdown] id="recap-5"
# **q5.** (Lesson 01a) Plain PyOpenCL hands float64 numbers to a kernel that takes `float`. What happens?
#
# - **A** An error says that the types differ.
# - **B** The numbers are converted.
# - **C** The kernel reads the bytes as something else.

# %%
lab.quiz("04b.q5")

# %%
lab.summary("04b")

# %% [markdown] id="bridge"
# **Next:** lesson 05, *Feed-forward*. Attention carries numbers from place to place. Then each place has to do
# something with what it heard, by itself.
