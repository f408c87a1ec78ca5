# ---
# jupyter:
#   llmcl:
#     title: "Backprop: the whole"
#     needs: ["00", "04a", "04b", "05", "06", "07", "08a", "08b", "attention", "GELU", "residual", "tied weights", "chain rule", "central difference", "gather", "share minus one-hot"]
#     introduces:
#       - weighted average
#       - direction
#       - localise
#       - halving
#       - vanish
#       - llmcl.lab.lessons.lesson_08c.break_part
#       - llmcl.lab.lessons.lesson_08c.hide_fault
#     minutes: {core: 60, full: 95}
#     numpy: true
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 08c · Backprop: the whole
#
# In this lesson you close the last two gaps, attention and GELU, and put all parts in a row. Then you test
# the gradient of a whole model, and find the one part that is wrong.
#
# | | |
# |---|---|
# | **After this you can** | write backward of softmax inside attention, and GELU's slope; check a whole model's gradient with two runs; say what tied weights need; find a wrong part by halving |
# | **You need** | lessons 07, 08a and 08b |
# | **Time** | 60 minutes; 95 with the exercises |
# | **New words** | weighted average, direction, vanish, localise, halving |

# %%
from llmcl import lab

lab.start("08c")

# %% [markdown] id="idea"
# ## The idea: who is heard more leaves less for the others
#
# In `The sun warms`, the place of `warms` listens to three words. Its scores 0, 2, 1 become shares as in lesson
# 04a. This softmax has no loss right behind it. Values come next, then other layers. All that comes back from
# there is one slope for each share:

# %%
import numpy as np

from llmcl import reference

scores = np.array([0.0, 2.0, 1.0])     # The, sun, warms
shares = reference.softmax(scores)
dshares = np.array([1.0, -2.0, 0.5])   # how fast the loss grows with each share
print("shares", shares.round(2))

# %% [markdown] id="idea-slopes"
# More of `sun` would lower the loss. But what can a score do? The `slopes` of lesson 08b nudge each of them.
# As there, the loss is invented: each share times its slope, added up.

# %%
def slopes(f, x, h=1e-5):
    """The slope of f in every number of x, by central differences."""
    found = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        nudge = np.zeros_like(x)
        nudge[at] = h
        found[at] = (f(x + nudge) - f(x - nudge)) / (2 * h)
    return found

def invented(scores):
    return (dshares * reference.softmax(scores)).sum()

measured = slopes(invented, scores)
print("slopes of the scores", measured.round(2))

# %% [markdown] id="idea-guess"
# **Exercise 08c.1** · easy · 2 minutes. Suppose all three `dshares` were 5. What would be the slope of the
# first score? Write your guess into the cell.
#
# <details><summary>Hint</summary>
#
# The shares sum to 1, whatever the scores are. Then what is 5 times each share, added up?
#
# </details>

# %%
lab.predict("08c.1", guess=None)

# %%
all_alike = slopes(lambda scores: (5 * reference.softmax(scores)).sum(), scores)
lab.reveal("08c.1", abs(all_alike[0].round(6)))
assert np.allclose(all_alike, 0, atol=1e-8)

# %% [markdown] id="idea-average" tags=["slide"]
# Nothing at all. Shares can only be moved from one word to another. So the size of a slope does not count,
# only how far it is above or below the others. Above or below what, exactly? The average of the slopes,
# where each word counts as much as its share. That is a **weighted average**.

# %% tags=["slide"]
average = (shares * dshares).sum()
print("average     ", average.round(2))
print("above it by ", (dshares - average).round(2))
print("times share ", (shares * (dshares - average)).round(2))
assert np.allclose(shares * (dshares - average), measured, atol=1e-8)

# %% [markdown] id="idea-why"
# The last line is what was measured. Why? Take two steps of lesson 08b. Score 1, that of `sun`, grows by a
# tiny `h`.
#
# 1. Its exponential grows by `h` times itself. If the sum stayed, its share would grow by `h · share[1]`.
# 2. But the sum grows as well, by the part `h · share[1]`. So **every** share shrinks by that part of itself.

# %%
h, up = 1e-5, np.array([0, 1e-5, 0])
moves = (reference.softmax(scores + up) - reference.softmax(scores - up)) / (2 * h)
itself = np.array([0, shares[1], 0])
everybody = -shares * shares[1]
print(moves.round(3), "=", itself.round(3), "+", everybody.round(3))
assert np.allclose(moves, itself + everybody, atol=1e-8)

# %% [markdown] id="idea-why-2"
# Now the chain rule: each move times the slope of its share, added up. The first step gives
# `share[1] · dshares[1]`. The second gives `-share[1]` times the sum of `share · dshares`, which is the
# average. Together: `share[1] · (dshares[1] − average)`.
#
# Does that agree with lesson 08b? Its loss is minus the logarithm of the right share, and the slope of a
# logarithm is 1/x. So `dshares` is −1/share for the right word, and 0 for the others:

# %%
right = 1
minus_log = np.array([0, -1 / shares[right], 0])
minus_log_average = (shares * minus_log).sum()
print("average", minus_log_average.round(6), " slopes", (shares * (minus_log - minus_log_average)).round(2))
assert np.allclose(shares * (minus_log - minus_log_average), shares - np.eye(3)[right])

# %% [markdown] id="numpy"
# ## In NumPy
#
# It does. That average is −1, and `share · (slope + 1)` is share minus one-hot, as in lesson 08b.
#
# **Exercise 08c.2** · medium · 5 minutes. Write `softmax_backward` for many rows. The last axis is the row.
#
# <details><summary>Hint</summary>
#
# Each row has an average of its own, and the shares are 1 in total already: `.sum(axis=-1, keepdims=True)`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Two of these four, in the right order:
#
# - `average = (shares * dshares).sum(axis=-1, keepdims=True)`
# - `average = dshares.mean(axis=-1, keepdims=True)`
# - `return shares * (dshares - average)`
# - `return dshares - average`
#
# </details>

# %%
@lab.exercise("08c.2")
def softmax_backward(shares, dshares):
    """shares and dshares (..., n) -> dscores (..., n)."""
    ### BEGIN SOLUTION
    average = (shares * dshares).sum(axis=-1, keepdims=True)
    return shares * (dshares - average)
    ### END SOLUTION

# %% [markdown] id="numpy-head"
# The rest of attention is two products, and lesson 08a has what they need. For `y = x @ w`:
# `dx = dy @ w.T` and `dw = x.T @ dy`. A head says `y = shares @ v`, and `scores = q @ k.T * scale`. Which of
# them is `x`, and which is `w`, each time? (For the scores, `w` is `k.T`. So `x.T @ dscores` is the slope of
# `k.T`; turned back, it is `dscores.T @ x`.)

# %% tags=["slide"]
from llmcl.reference.softmax import causal_softmax

def head(q, k, v):
    return causal_softmax(q @ k.T / np.sqrt(q.shape[1])) @ v

def head_backward(q, k, v, dy):
    """dq, dk and dv (T, d) for y = head(q, k, v)."""
    scale = 1 / np.sqrt(q.shape[1])
    shares = causal_softmax(q @ k.T * scale)
    dshares, dv = dy @ v.T, shares.T @ dy             # y = shares @ v: shares are x, v is w
    dscores = softmax_backward(shares, dshares) * scale
    return dscores @ k, dscores.T @ q, dv             # scores = q @ k.T: q is x, k.T is w

# %%
rng = np.random.default_rng(8)
q, k, v, dy = rng.normal(size=(4, 5, 3))  # five places, three channels
dq, dk, dv = head_backward(q, k, v, dy)
lab.check("dq", dq, slopes(lambda a: (dy * head(a, k, v)).sum(), q), 1e-8)
lab.check("dk", dk, slopes(lambda a: (dy * head(q, a, v)).sum(), k), 1e-8)
lab.check("dv", dv, slopes(lambda a: (dy * head(q, k, a)).sum(), v), 1e-8)

# %% [markdown] id="numpy-mask"
# Must `dscores` be masked, too? No: a hidden word has the share 0, and its score's slope is the share times
# something.

# %% [markdown] id="gelu"
# ### GELU's slope
#
# Lesson 05: gelu(x) = x · s. Here `s` is the share that is kept, 1 / (1 + exp(−2u)), and `u` is
# √(2/π) · (x + 0.044715 x³). If x grows, `u` moves, then `s`, then x · s. Here are the first two slopes,
# measured, and a formula beside each:

# %%
root = np.sqrt(2 / np.pi)

def u_of(x):
    return root * (x + 0.044715 * x**3)

def s_of(u):
    return 1 / (1 + np.exp(-2 * u))

x = np.array(0.7)
u, s = u_of(x), s_of(u_of(x))
print("u:", slopes(u_of, x).round(4), "=", (root * (1 + 3 * 0.044715 * x**2)).round(4))
print("s:", slopes(s_of, u).round(4), "=", (2 * s * (1 - s)).round(4))

# %% [markdown] id="gelu-why"
# - `u`: the slope of x³ is 3x².
# - `s` is 1/z, where z = 1 + exp(−2u). The slope of 1/z is −1/z², and that of z is −2 exp(−2u). Multiplied:
#   2 · (1/z) · (exp(−2u)/z). The first fraction is `s`. The second is (z − 1)/z, which is `1 − s`.
#
# Last, the product x · s. A nudge of x moves it in two ways: x itself grows, and s grows.
#
# **Exercise 08c.3** · medium · 4 minutes. Add up the two ways. You get `x`, `s`, and `du`, the slope of u.
#
# <details><summary>Hint</summary>
#
# If x grows by h and s stays, x · s grows by h · s. If s grows by something, x · s grows by x times that. And
# how much does s grow? That is a chain of two slopes.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# One of these three:
#
# - `return s * x * 2 * s * (1 - s) * du`
# - `return s + x * 2 * s * (1 - s) * du`
# - `return s + 2 * s * (1 - s) * du`
#
# </details>

# %%
@lab.exercise("08c.3")
def gelu_slope(x, s, du):
    """The slope of x · s(u(x)), number by number."""
    ### BEGIN SOLUTION
    return s + x * 2 * s * (1 - s) * du
    ### END SOLUTION

# %%
line = np.linspace(-4, 4, 81)
found = gelu_slope(line, s_of(u_of(line)), root * (1 + 3 * 0.044715 * line**2))
lab.check("GELU's slope", found, (reference.gelu(line + h) - reference.gelu(line - h)) / (2 * h), 1e-8)
print("at -4:", abs(found[0].round(2)), " at 0:", found[40].round(2), " at 4:", found[-1].round(2))

# %% [markdown] id="item"
# ## One element at a time
#
# Back to softmax. One work-item takes one row: a loop for the average, a loop to write. How often does it read
# each array?

# %%
from llmcl.lab import get_global_id

def one_row_back(shares, dshares, dscores, rows, n):
    row = get_global_id(0)
    if row >= rows:
        return
    average = 0.0
    for j in range(n):
        average += shares[row * n + j] * dshares[row * n + j]
    for j in range(n):
        dscores[row * n + j] = shares[row * n + j] * (dshares[row * n + j] - average)

# %%
some_shares, some_slopes = reference.softmax(rng.normal(size=(5, 7))), rng.normal(size=(5, 7))
dscores = np.zeros((5, 7))
run = lab.run_items(one_row_back, 5, some_shares, some_slopes, dscores, 5, 7, group=2)
run.report()
assert np.allclose(dscores, softmax_backward(some_shares, some_slopes))
assert np.allclose(dscores.sum(axis=1), 0)

# %%
counts = lab.touch_counts(run)
print("reads for 35 shares and 35 slopes:", counts["shares"].reads, "and", counts["dshares"].reads)
lab.view_items(run, start=(2,))

# %% [markdown] id="opencl"
# ## In OpenCL
#
# Both are read twice. And nothing is written before the whole row was read.
#
# **Exercise 08c.4** · medium · 8 minutes. Write it as a kernel.
#
# <details><summary>Hint</summary>
#
# Line for line. A sum of floats begins at `0.0f`. Two loops, one after the other: the average must be whole
# before anything is written.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Seven of these nine, in the right order. The loop's line is there twice, as it is needed twice.
#
# - `const int row = get_global_id(0);`
# - `if (row >= rows) return;`
# - `float average = 0.0f;`
# - `for (int j = 0; j < n; ++j)`
# - `for (int j = 0; j < n; ++j)`
# - `average += shares[row * n + j] * dshares[row * n + j];`
# - `average += dshares[row * n + j] / n;`
# - `dscores[row * n + j] = shares[row * n + j] * (dshares[row * n + j] - average);`
# - `dscores[row * n + j] = dshares[row * n + j] - average;`
#
# </details>

# %%
softmax_text = lab.kernel_exercise("08c.4", r"""
__kernel void softmax_back(__global const float *shares,    // (rows, n)
                           __global const float *dshares,   // (rows, n)
                           __global float *dscores,         // (rows, n)
                           const int rows, const int n)
{
    // BEGIN SOLUTION
    const int row = get_global_id(0);
    if (row >= rows) return;
    float average = 0.0f;
    for (int j = 0; j < n; ++j)
        average += shares[row * n + j] * dshares[row * n + j];
    for (int j = 0; j < n; ++j)
        dscores[row * n + j] = shares[row * n + j] * (dshares[row * n + j] - average);
    // END SOLUTION
}
""")

# %% [markdown] id="opencl-scores"
# The package's `softmax_backward` is the same with shorter names. Behind it comes the kernel for `dq` and `dk`.
# One loop runs over `j <= t`, the other over `i >= t`. Why?

# %%
lab.show_kernel("attention", "attention_scores_backward")

# %% [markdown] id="opencl-scores-2"
# Place `t` asks itself and earlier places: a row of the table. It is asked by itself and by later places: a
# column. All other `dscores` are 0, and the loops save themselves the reading. (The model runs a faster
# version, which fuses these kernels; lesson 13 shows its way there.)

# %% [markdown] id="whole"
# ## The whole way
#
# All parts have their way back. What is the order?
#
# **Exercise 08c.5** · easy · 3 minutes. Five of these six lines are the backward of a GPT. Return the letters
# in order, as one word.
#
# - **A** `for block in reversed(blocks): dx = block.backward(dx)`
# - **B** `dx = head.backward(cross_entropy_backward(logits, targets, log_sum))`
# - **C** `embedding.backward(dx)`
# - **D** `dx = output_norm.backward(dx)`
# - **E** `fill(gradients, 0.0)`
# - **F** `for block in blocks: dx = block.backward(dx)`
#
# <details><summary>Hint</summary>
#
# Gradients are added, so something comes first (lesson 08a). Then the way there, in reverse.
#
# </details>

# %%
@lab.exercise("08c.5")
def order_of_lines():
    """The letters of five lines, in order."""
    ### BEGIN SOLUTION
    return "EBDAC"
    ### END SOLUTION

# %% [markdown] id="whole-model"
# Now a real one: eight blocks, awkward sizes, and five of our sentences. Every weight gets a push (lesson 07
# says why). The engine is NumPy in float64.

# %%
from llmcl.config import Config
from llmcl.data import batch, pretrain_rows, read_sentences
from llmcl.model import GPT
from llmcl.resources import data_dir
from llmcl.tokenizer import ByteBPE

sentences = read_sentences(data_dir() / "pretrain.txt")
tokenizer = ByteBPE.train(sentences, vocab_size=512)
ids, targets = batch(pretrain_rows(sentences[:5], tokenizer), tokenizer.end_id)
config = Config(vocab_size=512, context_length=40, d_model=21, n_heads=3, n_layers=8, d_ff=50)

# %%
def fresh_model(config, engine, push):
    """A model with the first weights of seed 8, and `push` of noise on all of them."""
    model, noise = GPT(config, engine), np.random.default_rng(8)
    model.initialize(seed=8)
    model.load_weights({name: (array + push * noise.normal(size=array.shape)).astype(np.float32)
                        for name, array in model.weights().items()})
    return model

model = fresh_model(config, reference.Engine(), push=0.1)
print(f"{config.parameter_count():,} numbers in {len(model.parameters)} arrays")

# %% [markdown] id="whole-halves"
# A block is two halves of one form, `x + branch(norm(x))` (lesson 06). So our model is a chain of 16 halves.
# We keep `x` before each of them, and behind the last: 17 points.

# %%
def halves(model):
    """Pairs (norm, branch) from the first block to the last, two for each block."""
    return [half for b in model.blocks
            for half in ((b.attn_norm, b.attention), (b.ffn_norm, b.feed_forward))]

def points_of(model):
    points = [model.embedding.forward(ids)]
    for norm, branch in halves(model):
        x = points[-1]
        points.append(x + branch.forward(norm.forward(x)))
    return points

# %% [markdown] id="whole-back"
# And back. In `x + branch(norm(x))`, x has two ways to the loss: straight through the sum, and through the
# branch. What does the chain rule say to two ways?

# %%
def way_back(model):
    """points, and the slope of the loss at each of them; adds to the model's gradients."""
    points = points_of(model)
    logits = model.head.forward(model.output_norm.forward(points[-1]))
    log_sum = reference.cross_entropy(logits, targets)[1]
    d = model.head.backward(reference.cross_entropy_backward(logits, targets, log_sum))
    d = model.output_norm.backward(d)
    found = [d]
    for norm, branch in reversed(halves(model)):
        d = d + norm.backward(branch.backward(d))
        found.append(d)
    model.embedding.backward(d)
    return points, found[::-1]

# %% [markdown] id="whole-same"
# Add them up: `d + …`. Is that all of it? The package's own `backward` clears, and then goes the same way.

# %%
model.loss(ids, targets)
model.backward()
by_package = {name: array.copy() for name, array in model.gradients.items()}
model.flat_gradients[0][:] = 0          # all gradients lie in one long array, the first of this list
points, point_slopes = way_back(model)
assert all(np.allclose(model.gradients[name], by_package[name], atol=1e-14) for name in by_package)
print("✓ 17 points, 16 halves, and the same gradient of", len(by_package), "arrays")

# %% [markdown] id="tied"
# ## One table, two gradients
#
# Two calls in `way_back` add to the same array: `backward` of the head, and `backward` of the embedding. The head
# compares with the table of tokens, and the look-up reads from it (tied weights, lesson 07). A nudge of the table
# moves the loss in both ways. To see them apart, give the look-up a table of its own to add to:

# %%
both = by_package["token_embd.weight"]
from_look_up = np.zeros_like(both)
reference.embedding_backward(ids, point_slopes[0], from_look_up, np.zeros((40, 21)))
from_head = both - from_look_up
used = np.unique(ids)
print(len(used), "tokens occur; rows with something from the look-up:", np.any(from_look_up != 0, axis=1).sum())
print("rows with something from the head:", np.any(from_head != 0, axis=1).sum())

# %% [markdown] id="tied-see"
# The look-up speaks for the tokens that occur. (All but one: as an input, the end token stands only in pads.)
# The head speaks for all 512, as each of them got a share. How large are the two for the tokens of our
# sentence, and for three that do not occur?

# %% tags=["slide"]
sentence = tokenizer.encode("The sun warms the land and the sea.")
# Each token once, in the order of the text, and behind them three that do not occur.
shown = list(dict.fromkeys(sentence)) + np.setdiff1d(np.arange(512), used)[-3:].tolist()

fig, axes = lab.figure(
    "The size of each row's gradient on an axis of powers of ten, for the sentence's tokens and three others. Every "
    "token has a blue dot, from the head. Only the tokens of the sentence have an orange square, from the look-up.")
for part, marker, name in ((from_head, "o", "from the head"), (from_look_up, "s", "from the look-up")):
    size = np.linalg.norm(part[shown], axis=1)
    axes.plot(np.flatnonzero(size), size[size > 0], marker, label=name)
names = [tokenizer.decode([i]).replace(" ", "␣") for i in shown[:-3]] + ["unused"] * 3
axes.set(yscale="log", ylabel="size of the row's gradient")
axes.set_xticks(range(len(shown)), names, rotation=45)
axes.legend(fontsize=8)
lab.show(fig)

# %%
assert not (targets == sentence[0]).any()
print("✓ `The` is nobody's target here, so the head says little about it")

# %% [markdown] id="check" tags=["slide"]
# ## Check: all numbers at once
#
# One number after the other, as in lesson 08a, takes two runs for each of 44,458. Can we ask about all in two?
# Nudge **every** number at once, each by an amount of its own, drawn at random. These amounts are a
# **direction**. The chain rule knows how fast the loss must move: each slope times its amount, added up. One
# wrong slope, and the sum is wrong. Could two wrong ones cancel? With random amounts that would be a strange
# accident, and a second direction would tell.
#
# How near is near enough? Central differences in float64 are off by about a billionth here (lesson 08a). A
# millionth of the gradient's size leaves room.

# %%
def fits(f, x, told, h=1e-5):
    """Whether the slopes `told` say how f moves when all of x moves along a random direction."""
    direction = np.random.default_rng(0).normal(size=x.shape)
    measured = (f(x + h * direction) - f(x - h * direction)) / (2 * h)
    return abs((told * direction).sum() - measured) < 1e-6 * np.linalg.norm(told)

# %% tags=["slide"]
def loss_with(flat):
    """The model's loss when its parameters are those in one long array."""
    own = model.flat_parameters[0].copy()
    model.flat_parameters[0][:] = flat
    loss = model.loss(ids, targets)[0]
    model.flat_parameters[0][:] = own
    return loss

parameters, gradient = model.flat_parameters[0].copy(), model.flat_gradients[0].copy()
print("two runs, all numbers:", "✓ agrees" if fits(loss_with, parameters, gradient) else "✗")
assert fits(loss_with, parameters, gradient)

# %% [markdown] id="check-sharp"
# Would it notice? Take a single array of 21 numbers, the shift of one norm, and make its gradient 1% too large:

# %%
wrong = gradient.copy()
# Where these 21 numbers lie in the one long array.
at = np.flatnonzero(np.isin(gradient, by_package["blk.3.ffn_norm.bias"]))
wrong[at] *= 1.01
print(len(at), "numbers, 1% too large:", "✓" if fits(loss_with, parameters, wrong) else "✗ does not agree")
assert not fits(loss_with, parameters, wrong)

# %% [markdown] id="check-device"
# So the formulas are right. Is your device? As in lesson 07, count the terms of all sums on the way, now there
# and back. The yardstick is that count times 2⁻²⁴; each array's bound is that times its largest number.

# %%
from llmcl.engine import get_engine

engine = get_engine()
C, F, V, T, d_head = 21, 50, 512, ids.shape[1], 7
half_terms = (2 * C + C + d_head + T + C) + (2 * C + C + F)   # as in lesson 07
yardstick = (2 * (8 * half_terms + 2 * C + C + V) + (targets >= 0).sum()) * 2**-24

on_device = GPT(config, engine)
on_device.load_weights(model.weights())
on_device.loss(ids, targets)
on_device.backward()

# %%
for name in ("token_embd.weight", "blk.0.attn_qkv.weight", "blk.7.ffn_up.bias", "output_norm.weight"):
    want = by_package[name]
    lab.check(name, engine.to_host(on_device.gradients[name]), want, yardstick * np.abs(want).max())

off = {name: np.abs(engine.to_host(on_device.gradients[name]) - want).max() / np.abs(want).max()
       for name, want in by_package.items()}
assert max(off.values()) < yardstick
print("✓ and all", len(off), "arrays")

# %% [markdown] id="see"
# ## See it: its size, layer by layer
#
# A gradient may be right and useless. Take a fresh model of 12 blocks, and look at how large the slope is at
# each point, back from the loss at the right. Lesson 06 switched norm and residual off on the way there. What
# will that do on the way back?

# %%
deep = fresh_model(Config(512, 40, d_model=48, n_layers=12, d_ff=192), reference.Engine(), push=0.0)

def sizes_back(residual, with_norm):
    """The size of the slope at each of the 25 points."""
    x = deep.embedding.forward(ids)
    for norm, branch in halves(deep):
        x = residual * x + branch.forward(norm.forward(x) if with_norm else x)
    logits = deep.head.forward(deep.output_norm.forward(x))
    log_sum = reference.cross_entropy(logits, targets)[1]
    d = deep.head.backward(reference.cross_entropy_backward(logits, targets, log_sum))
    d = deep.output_norm.backward(d)
    sizes = [np.linalg.norm(d)]
    for norm, branch in reversed(halves(deep)):
        back = branch.backward(d)
        d = residual * d + (norm.backward(back) if with_norm else back)
        sizes.append(np.linalg.norm(d))
    return np.array(sizes[::-1])

# %%
curves = {"norm and residual": sizes_back(1, True), "residual only": sizes_back(1, False),
          "norm only": sizes_back(0, True), "neither": sizes_back(0, False)}
deep.loss(ids, targets)
deep.backward()  # for the second picture: the gradients of its weights

# %% tags=["slide"]
fig, (left, right_side) = lab.figure(
    "Two pictures. Left, the size of the slope at 25 points, in powers of ten. With a residual it is a flat line; with "
    "norm only it stays between 0.1 and 10. With neither it falls to the left along a straight line, and leaves the picture "
    "below 1e-30. Right, the size of four weights' gradients in each of 12 blocks: four nearly flat lines.",
    columns=2, height=3.6)
for (name, curve), style in zip(curves.items(), ("-", "--", "-.", ":")):
    left.semilogy(curve, style, label=name)
left.set(ylim=(1e-30, 1e3), xlabel="point", title="slope of x")
left.legend(fontsize=8, loc="center left")
for kind, marker in (("attn_qkv", "o-"), ("attn_output", "s-"), ("ffn_up", "^-"), ("ffn_down", "v-")):
    own = [np.linalg.norm(deep.gradients[f"blk.{i}.{kind}.weight"]) for i in range(12)]
    right_side.semilogy(own, marker, markersize=4, label=kind)
right_side.set(ylim=(1e-3, 1e2), xlabel="block", title="gradient of the weights", xticks=range(0, 12, 2))
right_side.legend(fontsize=8, ncol=2)
lab.show(fig)

# %%
assert 0.5 < curves["norm and residual"][0] / curves["norm and residual"][-1] < 2
assert curves["neither"][0] < 1e-45 < np.finfo(np.float32).tiny
print("✓ with both, the first block gets as much as the last; with neither, float32 has only a 0 for it")

# %% [markdown] id="see-2"
# With neither, each half makes the slope more than a hundred times smaller. It **vanishes**, and the first
# blocks never learn. The residual adds the slope itself, unchanged: `d + …`. (Norm alone keeps the size as
# well; lesson 06 saw what it loses instead.) **Look at these sizes before you train.** A flat picture is
# healthy, and an array whose gradient is all 0 was never reached.

# %% [markdown] id="break"
# ## Break it: one of two is lost
#
# The table of tokens again. Somebody's look-up *writes* into the gradient instead of adding, and the head's part
# is gone. Somebody else adds to a table that nobody reads. To try it, an engine gets one wrong operation:

# %%
def writes(ids, dx, dtokens, dpositions):
    dtokens[:] = 0
    reference.embedding_backward(ids, dx, dtokens, dpositions)

def elsewhere(ids, dx, dtokens, dpositions):
    reference.embedding_backward(ids, dx, np.zeros_like(dtokens), dpositions)

def lossy(config, operation, push):
    tampered = fresh_model(config, reference.Engine(), push)
    tampered.embedding.engine = reference.Engine()
    tampered.embedding.engine.embedding_backward = operation
    return tampered

# %% [markdown] id="break-rows"
# Which row of the table should a test nudge: one of a token that occurs, or one of a token that does not?

# %%
def row_fits(tampered, token):
    tampered.loss(ids, targets)
    tampered.backward()
    table = tampered.parameters["token_embd.weight"]
    def loss_of_row(row):
        own, table[token] = table[token].copy(), row
        loss = tampered.loss(ids, targets)[0]
        table[token] = own
        return loss
    return fits(loss_of_row, table[token].copy(), tampered.gradients["token_embd.weight"][token])

operations = {"right": reference.embedding_backward, "head lost": writes, "look-up lost": elsewhere}
print("              used   unused")
for name, operation in operations.items():
    verdicts = [row_fits(lossy(config, operation, 0.1), token) for token in (sentence[0], shown[-1])]
    print(f"{name:14}", *("✓     " if verdict else "✗     " for verdict in verdicts))

# %% [markdown] id="break-rows-2"
# The used one finds both faults. A test that took only an unused token would let one pass. Would training
# tell, then? Here are 100 steps against the gradient, for a small model of one block:

# %% tags=["slide"]
def learn(operation, rate=0.3):
    pupil, losses = lossy(Config(512, 40, d_model=21, n_layers=1, d_ff=50), operation, 0.0), []
    for _ in range(100):
        losses.append(pupil.loss(ids, targets)[0])
        pupil.backward()
        pupil.flat_parameters[0][:] -= rate * pupil.flat_gradients[0]
    return np.array(losses)

learned = {name: learn(operation) for name, operation in operations.items()}
fig, axes = lab.figure(
    "The loss over 100 steps. All three curves start at 6.2 and fall. The right one is the lowest at the end, near 0.1. "
    "With the look-up's part lost it falls to about 0.4, with the head's part lost to about 3.")
for (name, losses), style in zip(learned.items(), ("-", "--", ":")):
    axes.plot(losses, style, label=name)
axes.set(xlabel="step", ylabel="loss", ylim=(0, 7))
axes.legend()
lab.show(fig)

# %%
assert all(losses[-1] < 0.6 * losses[0] for losses in learned.values())
assert learned["right"][-1] < 0.5 * min(learned["head lost"][-1], learned["look-up lost"][-1])
print("✓ all three learn; the right one learns most")

# %% [markdown] id="break-kernel"
# **A falling loss is no proof of a right gradient.** So such a fault may stay for months. In a kernel it is one
# character. Which try can see it?

# %%
lab.run_broken("08c.writes")

# %% [markdown] id="break-mean"
# And softmax, with the plain mean in place of the weighted average:

# %%
lab.run_broken("08c.plain_mean")

# %% [markdown] id="break-mean-2"
# Without a mask, the shares of a fresh model are nearly alike. There the two averages are the same, and the
# fault sleeps until the model has learned something. Now you know another reason for the push.

# %% [markdown] id="find"
# ## Find it: which part?
#
# The check of all numbers says "wrong", and not where. Here is a model with one wrong term, in a place that you
# know: the first norm of block 5 forgets the third way (lesson 08b). `break_part` gives it an engine with one
# wrong operation, as you did above.

# %%
from llmcl.lab.lessons.lesson_08c import break_part

faulty = fresh_model(config, reference.Engine(), push=0.1)
break_part(faulty, 5, "attn_norm")
faulty.loss(ids, targets)
faulty.backward()
differ = [name for name in by_package if not np.allclose(faulty.gradients[name], by_package[name], atol=1e-9)]
print(len(differ), "of", len(by_package), "arrays are wrong")

# %% [markdown] id="find-spread"
# One wrong term, and most arrays are wrong. Why? Its `dx` is passed on, and spoils everything nearer to the
# *input*. Nothing nearer to the loss is touched; even gamma and beta of that norm are right. So the picture has
# an edge. Move the slider; the error of each array is how far it is from the right gradient, as a part of that
# gradient's size:

# %%
way_order = list(config.parameter_shapes())[::-1]  # from the last norm back to the tables

def errors_when(place):
    """The error of each array, in the order of the way back."""
    tried = fresh_model(config, reference.Engine(), push=0.1)
    if place:
        break_part(tried, *place)
    tried.loss(ids, targets)
    tried.backward()
    def error(name):
        return np.linalg.norm(tried.gradients[name] - by_package[name]) / np.linalg.norm(by_package[name])
    return [error(name) for name in way_order]

def draw_errors(axes, place):
    error = np.maximum(errors_when(place), 1e-17)
    axes.semilogy(error, ".", color=lab.COLORS["blue"])
    for block in range(9):
        axes.axvline(1.5 + 12 * block, color="gray", linewidth=0.5)
    axes.set(ylim=(1e-18, 10), ylabel="error", xlabel="array: from the loss (left) to the input (right)")
    axes.set_xticks([7.5 + 12 * i for i in range(8)], [f"blk.{7 - i}" for i in range(8)])

# %% tags=["slide"]
def errors_words(place):
    wrong = int((np.array(errors_when(place)) > 1e-9).sum())
    if not place:
        return f"Nothing is wrong: {wrong} of 100 dots are high, and all lie at the bottom, below 1e-12."
    return (f"{place[1]} of block {place[0]} is wrong. {wrong} of 100 dots are high, above 0.001, and the others lie at "
            "the bottom, below 1e-12. From the loss on, all are low up to an edge; behind it, nearly all are high.")

places = [("nothing", None)] + [(f"block {b}, {part}", (b, part)) for b, part in (
    (7, "feed_forward"), (5, "attn_norm"), (3, "attention"), (1, "ffn_norm"))]
lab.explore(draw_errors, places, errors_words, "wrong", start=(5, "attn_norm"))

# %% [markdown] id="find-look"
# Usually nobody has the right gradient to compare with. But a point can be asked: nudge `x` there along a
# direction, and run only what comes behind it. Two short runs.

# %%
def loss_from(model, i, x):
    """The loss when x stands at point i."""
    for norm, branch in halves(model)[i:]:
        x = x + branch.forward(norm.forward(x))
    logits = model.head.forward(model.output_norm.forward(x))
    return reference.cross_entropy(logits, targets)[0][0]

def agrees(model, i):
    """Whether the slope at point i is what the way there says; prints the answer."""
    points, found = way_back(model)
    verdict = fits(lambda x: loss_from(model, i, x), points[i], found[i])
    print(f"point {i:2}:", "✓" if verdict else "✗")
    return verdict

# %%
assert agrees(faulty, 16) and not agrees(faulty, 0)

# %% [markdown] id="find-halving"
# Where do you look next? In the middle. If point 8 agrees, the halves 8 to 15 are right, and the fault lies
# before it, nearer to the input. If not, behind it. Each look halves what is left. To **localise** a fault by
# **halving**, 16 halves need four looks, and a thousand need ten.
#
# **Exercise 08c.6** · medium · 6 minutes. Write it. `agrees(i)` is True or False; half `i` lies between the
# points `i` and `i + 1`. Ask few points: the check counts them.
#
# <details><summary>Hint</summary>
#
# Keep two points: `wrong`, which does not agree, and `right`, which does. When they are neighbors, one half is
# left: the one that begins at `wrong`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Six of these nine, in the right order:
#
# - `wrong, right = 0, n`
# - `while right - wrong > 1:`
# - `while right - wrong > 2:`
# - `    middle = (wrong + right) // 2`
# - `    if agrees(middle): right = middle`
# - `    if agrees(middle): wrong = middle`
# - `    else: wrong = middle`
# - `    else: right = middle`
# - `return wrong`
#
# </details>

# %%
@lab.exercise("08c.6")
def find_fault(agrees, n):
    """The half whose way back is wrong: point n agrees, and point 0 does not."""
    ### BEGIN SOLUTION
    wrong, right = 0, n
    while right - wrong > 1:
        middle = (wrong + right) // 2
        if agrees(middle):
            right = middle
        else:
            wrong = middle
    return wrong
    ### END SOLUTION

# %% tags=["slide"]
half = find_fault(lambda i: agrees(faulty, i), 16)
print(f"half {half}: block {half // 2},", ("attention with its norm", "feed-forward with its norm")[half % 2])
assert half == 10

# %% [markdown] id="find-inside"
# Four looks. A half is a norm and a branch. One more look, at the point between the two: does the branch's own
# way back agree?

# %%
def branch_agrees(model, half):
    """Whether the slope between the norm and the branch of a half agrees."""
    points, found = way_back(model)
    norm, branch = halves(model)[half]
    x, between = points[half], norm.forward(points[half])
    told = branch.backward(found[half + 1])
    return fits(lambda a: loss_from(model, half + 1, x + branch.forward(a)), between, told)

print("the branch", "agrees, so it is the norm" if branch_agrees(faulty, half) else "is wrong")
assert branch_agrees(faulty, half)

# %% [markdown] id="find-weights"
# A fault in `dW` alone is another case: nobody reads `dW` on the way back, so only one array is wrong. Then all
# points agree, and you nudge array by array.
#
# **Exercise 08c.7** · hard · 8 minutes. Now you. Somewhere in this model, one part has a wrong term. Find it
# with `find_fault`, `agrees` and `branch_agrees`, in cells of your own. Return its place as text, such as
# `"blk.5.attn_norm"`. The parts are `attn_norm`, `attention`, `ffn_norm` and `feed_forward`.
#
# <details><summary>Hint</summary>
#
# `find_fault(lambda i: agrees(mystery, i), 16)`, and then `branch_agrees(mystery, half)`. Half 7 would be block 3,
# feed-forward.
#
# </details>

# %%
from llmcl.lab.lessons.lesson_08c import hide_fault

mystery = fresh_model(config, reference.Engine(), push=0.1)
hide_fault(mystery, seed=11)
assert mystery.loss(ids, targets) == model.loss(ids, targets)
print("✓ the way there is right: the loss is that of the right model")

# %%
@lab.exercise("08c.7")
def culprit():
    """The place of the fault, such as "blk.5.attn_norm"."""
    ### BEGIN SOLUTION
    return "blk.2.feed_forward"
    ### END SOLUTION

# %% [markdown] id="exercises"
# ## Your turn
#
# Other seeds hide other faults. Try `seed=1` on a fresh model; how many looks do you need? (`where(1, 8)` of
# the same module tells the place.)
#
# **Exercise 08c.8** · easy · 4 minutes. A kernel for `dk` of one head. It never reads past an end, and the
# numbers are wrong. Mend it with the smallest change.
#
# <details><summary>Hint</summary>
#
# `dscores[i][t]`: place i asks, place t is asked. Which of the two does the row name?
#
# </details>

# %%
key_text = lab.kernel_exercise("08c.8", r"""
__kernel void key_gradient(__global const float *q,         // (T, d)
                           __global const float *dscores,   // (T, T)
                           __global float *dk,              // (T, d)
                           const int T, const int d, const float scale)
{
    const int e = get_global_id(0), t = get_global_id(1);
    if (e >= d || t >= T) return;
    float sum = 0.0f;
    for (int i = t; i < T; ++i)
    // BEGIN SOLUTION
        sum += dscores[i * T + t] * q[i * d + e];
    // INSTEAD
        sum += dscores[t * T + i] * q[i * d + e];
    // END SOLUTION
    dk[t * d + e] = sum * scale;
}
""")

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# | part | its backward |
# |---|---|
# | softmax in attention | **share · (slope − weighted average)**; the mask needs no line |
# | GELU | **s + x · 2 s (1 − s) · du** |
# | residual | **d + …**: straight through, and once more through the branch |
# | tied weights | two parts **add** to one table |
#
# - A **direction** checks all numbers of a model in two runs.
# - **Look at the sizes.** A gradient may be right and vanish.
# - A wrong dx spoils what is nearer to the input. So **halve**: four looks for 16 halves.
#
# In `llmcl`: `backward` of `GPT` in `model.py`, each layer's in `layers.py`; `kernels/softmax.cl`, `attention.cl`
# and `gelu.cl`. `tests/model/test_model.py` checks the whole gradient as you did.
#
# Five questions, three of them about earlier lessons.
#
# **q1.** A token does not occur in the batch, and head and look-up share a table. What is the gradient of its row?
#
# - **A** 0: nobody looked it up
# - **B** the look-up's part alone
# - **C** the head's part alone

# %%
lab.quiz("08c.q1")

# %% [markdown] id="recap-2"
# **q2.** Point 8 agrees, point 4 does not. Where is the fault?
#
# - **A** between point 8 and the loss
# - **B** in one of the halves 4 to 7
# - **C** in one of the halves 0 to 3

# %%
lab.quiz("08c.q2")

# %% [markdown] id="recap-3"
# **q3.** (Lesson 08b) Why does the look-up's backward gather, and not scatter?
#
# - **A** so that no two work-items write to the same row
# - **B** so that dx is read less often
# - **C** so that the table may be smaller

# %%
lab.quiz("08c.q3")

# %% [markdown] id="recap-4"
# **q4.** (Lesson 07) The first loss of a fresh model is far above ln V. What is likely?
#
# - **A** it has learned nothing yet
# - **B** its weights are too large
# - **C** the batch has too many pads

# %%
lab.quiz("08c.q4")

# %% [markdown] id="recap-5"
# **q5.** (Lesson 04b) A row of 96 channels, three heads. By what are the scores divided?
#
# - **A** by the root of 96
# - **B** by the root of 3
# - **C** by the root of 32

# %%
lab.quiz("08c.q5")

# %%
lab.summary("08c")

# %% [markdown] id="bridge"
# **Next:** lesson 09, *Training*. You have the gradient, and know that it is right. There you decide how far to
# go against it, and watch a model learn 25 sentences.
