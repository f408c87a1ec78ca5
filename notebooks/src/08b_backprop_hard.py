# ---
# jupyter:
#   llmcl:
#     title: "Backprop: the hard ones"
#     needs: ["00", "03", "06", "07", "08a", "cross-entropy", "padding", "layer norm", "embedding", "one-hot", "race", "atomic"]
#     introduces:
#       - share minus one-hot
#       - scatter
#       - gather
#       - rstd
#       - llmcl.check.Case
#     minutes: {core: 80, full: 110}
#     numpy: true
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 08b · Backprop: the hard ones
#
# In this lesson you take the way back through three harder parts of the model: softmax with the loss, layer
# norm, and the look-up. Each is small steps and one line at the end.
#
# | | |
# |---|---|
# | **After this you can** | write backward of softmax with loss, of layer norm, and of the look-up with repeated tokens; say why a work-item gathers and does not scatter |
# | **You need** | lessons 06, 07 and 08a |
# | **Time** | 80 minutes; 110 with the exercises |
# | **New words** | share minus one-hot, rstd, scatter, gather |

# %%
from llmcl import lab

lab.start("08b")

# %% [markdown] id="idea"
# ## The idea: nudge one score, watch the loss
#
# The way back begins at the loss. Three tokens could come next. Their scores are 2, 1 and 0, and token 1
# is the right one. Lesson 07 has the loss: the logarithm of the sum of exponentials, minus the right
# score.

# %%
import numpy as np

scores, right = np.array([2.0, 1.0, 0.0]), 1

def loss_of(scores):
    return np.log(np.exp(scores).sum()) - scores[right]

shares = np.exp(scores) / np.exp(scores).sum()
print("shares", shares.round(2), "loss", loss_of(scores).round(2))

# %% [markdown] id="idea-slopes"
# If a score grows a little, what does the loss do? We need no rule to find out. The `slopes` of lesson 08a nudge
# every number up and down:

# %%
def slopes(f, x, h=1e-5):
    """The slope of f in every number of x, by central differences."""
    found = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        nudge = np.zeros_like(x)
        nudge[at] = h
        found[at] = (f(x + nudge) - f(x - nudge)) / (2 * h)
    return found

slope = slopes(loss_of, scores)
print("token 0:", slope[0].round(2), "  token 2:", slope[2].round(2))

# %% [markdown] id="idea-guess"
# Have you seen these two numbers before? Look at the shares.
#
# **Exercise 08b.1** · easy · 2 minutes. Token 1 is the right one. What is the slope of its score? Write
# your guess into the cell.
#
# <details><summary>Hint</summary>
#
# Raise all three scores by the same amount: no share changes, and no loss. So the three slopes sum to 0.
#
# </details>

# %%
lab.predict("08b.1", guess=None)

# %% tags=["slide"]
lab.reveal("08b.1", slope[right])
one_hot = np.array([0.0, 1.0, 0.0])
print("shares ", shares.round(2))
print("one-hot", one_hot)
print("slopes ", slope.round(2))
assert np.allclose(slope, shares - one_hot, atol=1e-8)

# %% [markdown] id="idea-name" tags=["slide"]
# **Share minus one-hot.** That is the whole gradient. Read it as an order to the model: each wrong token
# is pushed down by the share that it took, and the right one is pulled up by the share that it lacks.
# When the right share is 1, nobody is moved any more.

# %% [markdown] id="idea-why"
# ## Why is it so?
#
# Follow one nudge through the formula. Score 0 grows by a tiny `h`. What does each step do with it?

# %%
h = 1e-4
e = np.exp(scores)
more = np.exp(scores[0] + h) - e[0]
print("its exponential grows by", (more / h).round(2), "h, and it is", e[0].round(2))
print("as a part of the whole sum, that is", (more / e.sum() / h).round(2), "h")
print("the logarithm of the sum grows by", ((np.log(e.sum() + more) - np.log(e.sum())) / h).round(2), "h")

# %% [markdown] id="idea-why-2"
# Three steps, three rules:
#
# 1. An exponential grows by `h` times itself.
# 2. So the sum grows by `h · exp(score)`. As a part of the whole sum, that is `h` times the **share**.
# 3. A logarithm turns parts into amounts: if a number grows by a tiny part, its logarithm grows by that
#    tiny part. So it grows by `h` times the share.
#
# What is left is "minus the right score". It moves only if the nudged score is the right one, and then by
# `-h`. This is the one-hot. Share minus one-hot, and nothing is hidden.
#
# Why not take softmax and logarithm apart, and go back through one after the other? The slope of a logarithm is
# 1 / share. A share may be so small that float32 has only a 0 for it. Kept together, they need no division.

# %% [markdown] id="numpy"
# ## In NumPy
#
# A batch has many places, and its loss is the *mean* over the places with a target. So every row is
# divided by their count. What belongs into the row of a pad?
#
# **Exercise 08b.2** · medium · 6 minutes. Write `logits_backward` for rows of logits. The targets may hold
# `IGNORED`, which is -1.
#
# <details><summary>Hint 1: a pad</summary>
#
# No logit of a pad changes the loss. So its row is 0, all of it.
#
# </details>
#
# <details><summary>Hint 2: one-hot without a table</summary>
#
# `d[places, tokens] -= 1` takes 1 away from one element of each of these places.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Five of these seven, in the right order:
#
# - `seen = np.flatnonzero(targets != IGNORED)`
# - `d = np.zeros_like(logits)`
# - `d[seen] = reference.softmax(logits[seen])`
# - `d[seen, targets[seen]] -= 1`
# - `d[:, targets] -= 1`
# - `return d / len(seen)`
# - `return d / len(logits)`
#
# </details>

# %%
from llmcl import reference
from llmcl.data import IGNORED

@lab.exercise("08b.2")
def logits_backward(logits, targets):
    """The gradient of the mean loss: logits (rows, V), targets (rows) -> (rows, V)."""
    ### BEGIN SOLUTION
    seen = np.flatnonzero(targets != IGNORED)
    d = np.zeros_like(logits)
    d[seen] = reference.softmax(logits[seen])
    d[seen, targets[seen]] -= 1
    return d / len(seen)
    ### END SOLUTION

# %% [markdown] id="numpy-check"
# Does the measured slope agree, for every logit of five places? In float64 and with steps of 0.00001, central
# differences are off by less than 1e-8 here (lesson 08a). So that is the bound.

# %%
rng = np.random.default_rng(8)
logits, targets = rng.normal(0, 2, (5, 7)), np.array([2, IGNORED, 0, 6, IGNORED])

def mean_loss(logits):
    return reference.cross_entropy(logits, targets)[0][0]  # it returns ([loss], log_sum)

measured = slopes(mean_loss, logits)
lab.check("softmax with loss", logits_backward(logits, targets), measured, 1e-8)
print("rows that are all 0:", np.flatnonzero((measured == 0).all(axis=1)))

# %% [markdown] id="item"
# ## One element at a time
#
# One work-item takes one row. On the way forward, lesson 07's kernel has kept `log_sum`, the logarithm of
# the sum of exponentials. What is it good for now? exp(score) / sum is exp(score − log_sum). So a share
# costs one exponential, and no row is added up again.

# %%
from llmcl.lab import get_global_id

def one_row_back(logits, targets, log_sum, dlogits, rows, V, count):
    row = get_global_id(0)
    if row >= rows:
        return
    target = targets[row]
    log_total = log_sum[row]
    for v in range(V):
        share = np.exp(logits[row * V + v] - log_total)
        hit = 1.0 if v == target else 0.0
        dlogits[row * V + v] = 0.0 if target < 0 else (share - hit) / count

# %%
log_sum = reference.cross_entropy(logits, targets)[1]
dlogits = np.zeros((5, 7))
run = lab.run_items(one_row_back, 5, logits, targets, log_sum, dlogits, 5, 7, 3, group=2)
run.report()
assert np.allclose(dlogits, logits_backward(logits, targets))

# %% [markdown] id="opencl"
# ## In OpenCL
#
# **Exercise 08b.3** · hard · 9 minutes. Your first backward kernel. Write `one_row_back` in C. `a ? b : c` is
# C for "b if a, else c" (lesson 01b).
#
# <details><summary>Hint</summary>
#
# Line for line. `exp` is the exponential; floats are written `1.0f` and `0.0f`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Eight of these ten, in the right order; the loop's `}` goes to the end:
#
# - `const int row = get_global_id(0);`
# - `if (row >= rows) return;`
# - `const int target = targets[row];`
# - `const float log_total = log_sum[row];`
# - `for (int v = 0; v < V; ++v) {`
# - `const float share = exp(logits[row * V + v] - log_total);`
# - `const float share = exp(logits[row * V + v]) - log_total;`
# - `const float hit = v == target ? 1.0f : 0.0f;`
# - `dlogits[row * V + v] = target < 0 ? 0.0f : (share - hit) / count;`
# - `dlogits[row * V + v] = target < 0 ? 0.0f : (share - hit) / rows;`
#
# </details>

# %%
backward_text = lab.kernel_exercise("08b.3", r"""
__kernel void share_minus_one_hot(__global const float *logits,   // (rows, V)
                                  __global const int *targets,    // (rows)
                                  __global const float *log_sum,  // (rows)
                                  __global float *dlogits,        // (rows, V)
                                  const int rows, const int V, const int count)
{
    // BEGIN SOLUTION
    const int row = get_global_id(0);
    if (row >= rows) return;
    const int target = targets[row];
    const float log_total = log_sum[row];
    for (int v = 0; v < V; ++v) {
        const float share = exp(logits[row * V + v] - log_total);
        const float hit = v == target ? 1.0f : 0.0f;
        dlogits[row * V + v] = target < 0 ? 0.0f : (share - hit) / count;
    }
    // END SOLUTION
}
""")

# %% [markdown] id="opencl-ours"
# And the package's. Pads get a loop of their own. It takes eight logits at a time, as in lesson 04a. Where is
# its one-hot?

# %%
lab.show_kernel("cross_entropy", "cross_entropy_backward")

# %% [markdown] id="opencl-ours-2"
# In the last line: one subtraction for the row, instead of one comparison for each logit.

# %% [markdown] id="see"
# ## See it: who is pushed, who is pulled
#
# The sentence of this book, with whole words as tokens. At six places, the right word's score is raised above
# the others. At one the model is just as sure, but of a wrong word. The last place has no target. Move the
# slider: which cells fade, and which do not?

# %%
words = "The sun warms the land and the sea.".split()
tokens = sorted(set(words))
next_words = np.array([tokens.index(word) for word in words[1:]] + [IGNORED])
believed = np.where(np.arange(8) == 5, tokens.index("land"), next_words)  # at `and`: "land" once more

def logits_when(sure):
    """(8, 7): 0 everywhere, and `sure` at the word that the model believes in."""
    return sure * (believed[:, None] == np.arange(len(tokens)))

# %% tags=["slide"]
def draw_pushes(axes, sure):
    scores_now = logits_when(sure)
    lab.heat(axes[0], reference.softmax(scores_now), tokens, words, "share")
    lab.heat(axes[1], 7 * logits_backward(scores_now, next_words), tokens, words, "share minus one-hot")

def pushes_in_words(sure):
    d = 7 * logits_backward(logits_when(sure), next_words)
    return (f"Two tables, eight places by seven words. Right words are pulled up, shown as a negative number: at The "
            f"{d[0].min():.2f}; at `and`, where the model is wrong, {d[5].min():.2f}, and its wrong word is pushed by "
            f"{d[5].max():.2f}. The last row, without a target, is 0.")

lab.explore(draw_pushes, [0.0, 1.0, 2.0, 4.0, 6.0], pushes_in_words, "how sure", start=2.0, columns=2, height=3.8)

# %% [markdown] id="see-2"
# Whoever is right and sure falls silent. Whoever is wrong and sure is corrected most, by nearly −1 and
# +1. No place can shout louder than that. (The right table is times 7, the count, so that you see the
# shares in it.)

# %% [markdown] id="norm"
# ## Layer norm: who else moves?
#
# Lesson 06: a row minus its mean, divided by its spread. The slope is harder to guess, since every number of
# the result depends on every number of the row. Nudge the 2, number 1 of `[1, 2, 3, 4]`. Which numbers of the
# norm will move?

# %%
epsilon = 1e-5

def norm(row):
    away = row - row.mean()
    return away / np.sqrt((away**2).mean() + epsilon)

row, nudge = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 1e-5, 0, 0])
moves = (norm(row + nudge) - norm(row - nudge)) / 2e-5
print(moves.round(3))

# %% [markdown] id="norm-ways" tags=["slide"]
# All four. There are three ways from one number of the row to the result:
#
# 1. **directly**: number 1 itself grows, and nobody else;
# 2. **through the mean**: it grows by a quarter of the nudge, so all four lose a quarter;
# 3. **through the spread**: number 1 lies below the mean and comes nearer. The spread shrinks, so all four
#    move outward.
#
# The kernel calls the normed row `xhat`, and 1 / spread **`rstd`**. In these names:

# %% tags=["slide"]
away = row - row.mean()
rstd = 1 / np.sqrt((away**2).mean() + epsilon)
xhat = away * rstd
directly = np.array([0, 1, 0, 0])
through_mean = -np.ones(4) / 4
through_spread = -xhat * xhat[1] / 4
for way in (directly, through_mean, through_spread):
    print(way.round(3))
assert np.allclose(rstd * (directly + through_mean + through_spread), moves, atol=1e-8)

# %% [markdown] id="norm-spread"
# The sum of the three, times `rstd`, is what was measured. The first two ways are plain. Why does the third one
# look like that? This is the hardest step of the lesson. It is a chain of three slopes. Two of them and their
# product are measured below.

# %%
def variance(row):
    return ((row - row.mean()) ** 2).mean()

def rstd_of(v):
    return 1 / np.sqrt(v + epsilon)

v = variance(row)
print("variance:", slopes(variance, row)[1].round(3), "=", (2 * away[1] / 4).round(3))
print("rstd:    ", slopes(rstd_of, np.array(v)).round(3), "=", (-(rstd**3) / 2).round(3))
print("the two: ", slopes(lambda x: rstd_of(variance(x)), row)[1].round(3), "=", (-(rstd**2) * xhat[1] / 4).round(3))

# %% [markdown] id="norm-spread-2"
# - The square of a distance grows by twice the distance, and the variance is the mean of four squares. (The mean
#   of the row moves too. That changes nothing here, as the distances sum to 0.)
# - `rstd` is 1 / root. Its slope is minus a half, times `rstd³`.
# - Multiply both. The 2 and the half cancel, and `away · rstd` is `xhat`: minus `rstd² · xhat[1] / 4`.
#
# Last, each number of the result is `away · rstd`. So number c moves by `away[c]` times that, which is
# `-rstd · xhat[c] · xhat[1] / 4`. There it is.
#
# Now turn around. From above, the side of the loss, comes `g`: for each number of the norm, how fast the loss
# grows with it. Number 1 of the row reaches all four, so multiply, and add over all (lesson 08a). What do the sums become?

# %%
g = np.array([0.5, -1.0, 2.0, 0.0])
one_by_one = (g * moves).sum()
in_one_line = rstd * (g[1] - g.mean() - xhat[1] * (g * xhat).mean())
print(one_by_one.round(4), in_one_line.round(4))
assert np.isclose(one_by_one, in_one_line)

# %% [markdown] id="norm-write" tags=["slide"]
# Directly gives `g[1]`. Through the mean, the mean of g is taken away; through the spread, `xhat[1]` times the
# mean of `g · xhat`. So for every number of a row:
#
# **dx = rstd · (g − mean(g) − xhat · mean(g · xhat))**
#
# **Exercise 08b.4** · medium · 5 minutes. Write it for many rows.
#
# <details><summary>Hint</summary>
#
# Each row has means of its own: `.mean(axis=-1, keepdims=True)`, as in lesson 06.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Three of these five, in the right order:
#
# - `common = g.mean(axis=-1, keepdims=True)`
# - `common = g.mean(axis=0)`
# - `louder = xhat * (g * xhat).mean(axis=-1, keepdims=True)`
# - `louder = xhat * g.mean(axis=-1, keepdims=True)`
# - `return rstd * (g - common - louder)`
#
# </details>

# %%
@lab.exercise("08b.4")
def norm_backward(g, xhat, rstd):
    """g and xhat (rows, C), rstd (rows, 1) -> dx (rows, C)."""
    ### BEGIN SOLUTION
    common = g.mean(axis=-1, keepdims=True)
    louder = xhat * (g * xhat).mean(axis=-1, keepdims=True)
    return rstd * (g - common - louder)
    ### END SOLUTION

# %% [markdown] id="norm-gamma"
# Layer norm has a last step, `y = gamma · xhat + beta`. You can do this one by now. `dy` comes from above.
# Then `g` is `gamma · dy`. And gamma and beta serve every row, so their gradients are sums over the rows:

# %%
def layer_norm_backward(x, gamma, dy):
    """(dx, dgamma, dbeta) for x and dy (rows, C), gamma (C)."""
    away = x - x.mean(axis=-1, keepdims=True)
    rstd = 1 / np.sqrt((away**2).mean(axis=-1, keepdims=True) + epsilon)
    xhat = away * rstd
    dx = norm_backward(gamma * dy, xhat, rstd)
    return dx, (dy * xhat).sum(axis=0), dy.sum(axis=0)

# %% [markdown] id="norm-check"
# How do you check a part from the middle, which has no loss? Invent one: random numbers `dy`, times the
# result, added up. Its slope at the result is `dy`.

# %%
x, dy, gamma, beta = rng.normal(size=(3, 5)), rng.normal(size=(3, 5)), rng.normal(size=5), rng.normal(size=5)

def invented(x, gamma, beta):
    return (dy * reference.layer_norm(x, gamma, beta, epsilon)[0]).sum()

dx, dgamma, dbeta = layer_norm_backward(x, gamma, dy)
lab.check("dx", dx, slopes(lambda a: invented(a, gamma, beta), x), 1e-8)
lab.check("dgamma", dgamma, slopes(lambda a: invented(x, a, beta), gamma), 1e-8)
lab.check("dbeta", dbeta, slopes(lambda a: invented(x, gamma, a), beta), 1e-8)

# %% [markdown] id="norm-see"
# ## See it: what a norm is deaf to
#
# Shift a whole row, or make it twice as loud: its norm stays (lesson 06). So whatever `g` wishes, a shift or more
# loudness is in vain, and backward takes both out. The mean of `g` is the wish for a shift. The part along `xhat`,
# the black dots, is the wish to be louder. Four wishes stand in the slider. Which two leave nothing over?

# %%
six = norm(np.array([-1.0, 2.0, 0.5, -2.0, 1.5, -0.5]))
wishes = {"one number": np.eye(6)[1] * 2, "all alike": np.ones(6), "louder": six,
          "anything": np.array([1.5, -0.5, 1.0, 0.5, -1.5, 2.0])}

def parts_of(g):
    """What is common, what only asks for more of the row, and what is left over."""
    common, louder = np.full(6, g.mean()), six * (g * six).mean()
    return common, louder, g - common - louder

# %% tags=["slide"]
def draw_wish(axes, name):
    titles = "g", "common", "louder", "left over"
    for panel, title, bars, color in zip(axes, titles, (wishes[name], *parts_of(wishes[name])), lab.COLORS.values()):
        panel.bar(range(6), bars, color=color)
        panel.set(title=title, ylim=(-2.2, 2.2), xticks=range(6))
    axes[2].plot(range(6), six, "k.")

def wish_words(name):
    common, louder, left = (np.abs(part).max() for part in parts_of(wishes[name]))
    return (f"Wish: {name}. Four panels of six bars: g, and the three parts that add up to it. The longest bars: "
            f"common {common:.2f}, louder {louder:.2f}, left over {left:.2f}. Black dots: the normed row.")

lab.explore(draw_wish, list(wishes), wish_words, "wish", start="one number", columns=4, height=2.4)

# %%
for name in ("all alike", "louder"):
    assert np.abs(parts_of(wishes[name])[2]).max() < 1e-4
print("✓ a common wish and a louder wish leave nothing over")

# %% [markdown] id="norm-two"
# **Exercise 08b.5** · easy · 2 minutes. A row of only *two* numbers, 3 and 8, without epsilon. From above comes
# `g` = (1, 0). What is `dx` of the first number?
#
# <details><summary>Hint</summary>
#
# What is the norm of (3, 8)? And of (3.1, 8)?
#
# </details>

# %%
lab.predict("08b.5", guess=None)

# %%
two = np.array([[3.0, 8.0]])
xhat_of_two = (two - two.mean()) / two.std()
left = norm_backward(np.array([[1.0, 0.0]]), xhat_of_two, 1 / two.std())
lab.reveal("08b.5", abs(left[0, 0].round(6)))
print("the norm of two numbers:", xhat_of_two[0], "whatever they are; so dx is", abs(left[0].round(6)))

# %% [markdown] id="norm-item"
# ## Layer norm, one row at a time
#
# Why does forward keep `mean` and `rstd`? Here they are needed again. One loop for both means, one loop to
# write:

# %%
def one_norm_back(x, gamma, mean, rstd, dy, dx, rows, C):
    row = get_global_id(0)
    if row >= rows:
        return
    its, up = x + row * C, dy + row * C
    m, r = mean[row], rstd[row]
    g_sum, gx_sum = 0.0, 0.0
    for c in range(C):
        g = gamma[c] * up[c]
        g_sum += g
        gx_sum += g * (its[c] - m) * r
    g_mean, gx_mean = g_sum / C, gx_sum / C
    for c in range(C):
        xhat = (its[c] - m) * r
        dx[row * C + c] = r * (gamma[c] * up[c] - g_mean - xhat * gx_mean)

# %%
mean, rstd = reference.layer_norm(x, gamma, beta, epsilon)[1:]
out = np.zeros((3, 5))
run = lab.run_items(one_norm_back, 3, x, gamma, mean, rstd, dy, out, 3, 5, group=2)
run.report()
assert np.allclose(out, dx)

# %% [markdown] id="norm-kernel"
# The kernel, line for line. In which line do the three ways stand?

# %%
lab.show_kernel("layer_norm", "layer_norm_backward_input")

# %% [markdown] id="norm-kernel-2"
# In the last line of the last loop: directly, mean, spread. A second kernel, `layer_norm_backward_parameters`,
# adds down the columns for gamma and beta.

# %% [markdown] id="lookup"
# ## The look-up: one row, many places
#
# The last part is the first of the model: `x = table[ids]`. `dx` has one row for each place. Where do they
# belong? To make it visible, let the row of `dx` at place `t` be (t, 1). And we measure:

# %% tags=["slide"]
ids = np.array([tokens.index(word) for word in words])
table = rng.normal(size=(len(tokens), 2))
dx = np.array([[t, 1.0] for t in range(8)])
measured = slopes(lambda a: (dx * a[ids]).sum(), table)
for token, row_of_d in zip(tokens, measured.round(6)):
    print(f"{token:>6} {row_of_d}")

# %% [markdown] id="lookup-read"
# Every token got the row of its place. Only `the` got (9, 2). Why? It stands at places 3 and 6. Nudge a
# number of its row, and both places move. **Used twice, added twice.**
#
# You could have derived it without any new step. A look-up is a product with one-hot rows (lesson 03). And for
# a product, lesson 08a has `dW = xᵀ dy`:

# %%
one_hot = np.eye(len(tokens))[ids]
assert (one_hot @ table == table[ids]).all()
assert np.allclose(one_hot.T @ dx, measured)
print("✓ one-hot, transposed, times dx")

# %% [markdown] id="lookup-add"
# Nobody multiplies by all these zeros. Adding each row to its token's row does the same:

# %%
dtable = np.zeros((len(tokens), 2))
np.add.at(dtable, ids, dx)
assert np.allclose(dtable, measured)
print("the:", dtable[tokens.index("the")])

# %% [markdown] id="lookup-wrong"
# `np.add.at` looks clumsy. Would `dtable[ids] += dx` not do?

# %% tags=["slide"]
dtable = np.zeros((len(tokens), 2))
dtable[ids] += dx
print("the:", dtable[tokens.index("the")])
try:
    lab.check("look-up", dtable, measured, 1e-8)
except lab.CheckFailed:
    print("✗ the check found it")

# %% [markdown] id="lookup-why"
# Place 3 is lost. NumPy reads all rows, adds to all, and writes all back. Both `the` read 0; the later one
# wrote last. No shape is wrong, and a text without a repeated token passes. The mistake is often made in the
# *reference*. Then a right kernel is accused by a wrong judge.

# %% [markdown] id="lookup-item"
# ## The look-up, in parallel
#
# Give every place to a work-item, and let it add its row where it belongs. That is called **scatter**. On many
# devices, a group's work-items take each step at the same time: all read, then all write. A `yield` between the
# two steps shows what may happen then:

# %%
def scatter_item(ids, dx, dtable, places, C):
    c, place = get_global_id(0), get_global_id(1)
    if c >= C or place >= places:
        return
    at = ids[place] * C + c
    old = dtable[at]
    yield
    dtable[at] = old + dx[place * C + c]

# %%
dtable = np.zeros((len(tokens), 2))
run = lab.run_items(scatter_item, (2, 8), ids, dx, dtable, 8, 2, group=(2, 8))
run.report()
assert np.abs(dtable - measured)[tokens.index("the")].max() > 1
print("✗ one of the two places of `the` is lost")

# %% [markdown] id="lookup-gather"
# A race: a place is lost, as in NumPy. Lesson 02 had it too, and an atomic helped. Why not here? OpenCL 1.2 has
# atomic addition for whole numbers only. People build one for floats in a loop. Then nothing is lost, but the
# *order* of the additions is luck, and with it the last digits. Lesson 09 wants the same bits each time.
#
# So turn it around. One work-item **owns** one number of the table. It walks over all places and collects what
# is meant for its row. That is called **gather**. Who else writes there now?

# %%
def gather_item(ids, dx, dtable, places, V, C):
    c, v = get_global_id(0), get_global_id(1)
    if c >= C or v >= V:
        return
    for place in range(places):
        if ids[place] == v:
            dtable[v * C + c] += dx[place * C + c]

dtable = np.zeros((len(tokens), 2))
run = lab.run_items(gather_item, (2, 7), ids, dx, dtable, 8, 7, 2, group=(2, 2))
run.report()
assert np.allclose(dtable, measured)

# %% [markdown] id="lookup-kernel"
# Nobody. The price: all look at all ids. The package's kernel lets a work-item own `width` numbers, on a
# processor a whole row, so that the ids are read less often. (Graphics cards have another one, in
# `embedding_gpu.cl`, which gathers as well.)

# %%
lab.show_kernel("embedding", "embedding_backward_tokens")

# %% [markdown] id="check"
# ## Check
#
# All three on your device. Odd sizes, a pad among the targets, and 21 places with a vocabulary of 11. Why so
# few tokens? So that some must repeat. A `Case` of `llmcl.check` runs an operation on any engine, and asks for
# its bounds.

# %%
from llmcl.check import Case
from llmcl.engine import get_engine

engine, exact = get_engine(), reference.Engine()  # float32, and NumPy in float64

def floats(*shape):
    return rng.normal(size=shape).astype(np.float32)

def against_numpy(case, *names):
    results = case.run(engine), case.run(exact), case.bounds()
    for name, got, want, bound in zip(names, *results):
        lab.check(name, got, want, bound)

# %%
B, T, C, V, P = 3, 7, 13, 11, 9
z, y = 4 * floats(B, T, V), rng.integers(-1, V, (B, T)).astype(np.int32)
kept = reference.cross_entropy(z.astype(float), y)[1].astype(np.float32)
against_numpy(Case("cross_entropy_backward", (z, y, kept)), "dlogits")

# %%
x3, gamma3 = floats(B, T, C), floats(C)
kept = reference.layer_norm(x3.astype(float), gamma3, gamma3, epsilon)[1:]
mean3, rstd3 = (a.astype(np.float32) for a in kept)
norm_case = Case("layer_norm_backward", (x3, gamma3, mean3, rstd3, floats(B, T, C), floats(C), floats(C)), (5, 6))
against_numpy(norm_case, "dx", "dgamma", "dbeta")

# %%
ids3 = rng.integers(0, V, (B, T)).astype(np.int32)
look_up = Case("embedding_backward", (ids3, floats(B, T, C), floats(V, C), floats(P, C)), (2, 3))
against_numpy(look_up, "dtokens", "dpositions")

# %% [markdown] id="check-added"
# The numbers in brackets, (5, 6) and (2, 3), are the arguments that an operation *adds to*. They were given
# random numbers here, and not zeros. What would zeros hide?
#
# <details><summary>An answer</summary>
#
# A kernel that writes instead of adding. Lesson 08c needs the addition: the table of tokens gets a gradient
# from two sides.
#
# </details>

# %% [markdown] id="break"
# ## Break it: a forgotten term
#
# Somebody forgets the third way of layer norm. The test takes a fresh norm, gamma 1, and the plainest loss that
# can be invented: the sum of the result, so that `dy` is 1 everywhere.

# %% tags=["slide"]
def forgotten(g, xhat, rstd):
    return rstd * (g - g.mean(axis=-1, keepdims=True))

def measured_for(dy):
    return slopes(lambda a: (dy * norm(a[0])).sum(), row[None])

for name, dy_row in (("all 1", np.ones((1, 4))), ("random", rng.normal(size=(1, 4)))):
    off = np.abs(forgotten(dy_row, xhat[None], rstd_of(v)) - measured_for(dy_row)).max()
    print(f"dy {name}: {'✓ agrees' if off < 1e-8 else '✗ does not agree'}")

# %% [markdown] id="break-2"
# Do you see why the first test is blind? "All 1" is a common wish, and a common wish leaves nothing over, with
# or without the third way. Both sides of the test are 0. **A test whose right answer is 0 tests little.** In
# the kernel:

# %%
lab.run_broken("08b.no_spread")

# %% [markdown] id="break-scatter"
# ## Break it: scatter
#
# Let the places do the work instead of the rows, and the kernel becomes shorter and does less. (Its name is still
# `gather`; the right one waits in exercise 08b.7.) On your device:

# %%
lab.show_broken("08b.scatter")

# %% tags=["varies"]
lab.device_answer("08b.scatter", engine)

# %% [markdown] id="break-scatter-2"
# Right or wrong there: it is luck, and on a processor you are often lucky. Which of your tests would have found
# it? The strict device does. It names place 2, whose token stood at place 0 already.

# %%
lab.run_broken("08b.scatter")

# %% [markdown] id="break-count"
# ## Break it: the wrong count
#
# The loss is a mean over the places with a target. Somebody divides by all rows, pads and all.

# %%
lab.run_broken("08b.wrong_count")

# %% [markdown] id="break-count-2"
# A batch without pads hides it. Would training tell? Compare the two gradients, as two arrows:

# %%
d_right = logits_backward(logits, targets)
d_wrong = d_right * 3 / 5  # three places with a target, five rows
cosine = (d_right * d_wrong).sum() / np.linalg.norm(d_right) / np.linalg.norm(d_wrong)
print(f"the same direction: {cosine:.2f}, and {np.linalg.norm(d_wrong) / np.linalg.norm(d_right):.2f} of the length")

# %% [markdown] id="break-count-3"
# The direction is right, so the loss still falls. But a batch with many pads counts for less than one with few,
# and nobody notices. A check by measured slopes does at once.

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 08b.6** · easy · 3 minutes. Four of these five lines are the heart of the gather kernel. One does not
# belong. Return the letters in order, as one word.
#
# - **A** `if (ids[place] == v)`
# - **B** `for (int place = 0; place < places; ++place)`
# - **C** `const int c = get_global_id(0), v = get_global_id(1);`
# - **D** `const int c = get_global_id(0), place = get_global_id(1);`
# - **E** `dtable[v * C + c] += dx[place * C + c];`

# %%
@lab.exercise("08b.6")
def gather_lines():
    """The letters of four lines, in order."""
    ### BEGIN SOLUTION
    return "CBAE"
    ### END SOLUTION

# %% [markdown] id="exercises-mend"
# **Exercise 08b.7** · medium · 4 minutes. This gather has no race. Into a table of zeros, every text without a
# repeated token passes. Mend it with the smallest change.
#
# <details><summary>Hint</summary>
#
# What happens to the first place of a token when the second one comes?
#
# </details>

# %%
gather_text = lab.kernel_exercise("08b.7", r"""
__kernel void gather(__global const int *ids,       // (places)
                     __global const float *dx,      // (places, C)
                     __global float *dtable,        // (V, C), added to
                     const int places, const int V, const int C)
{
    const int c = get_global_id(0), v = get_global_id(1);
    if (c >= C || v >= V) return;
    for (int place = 0; place < places; ++place)
        // BEGIN SOLUTION
        if (ids[place] == v) dtable[v * C + c] += dx[place * C + c];
        // INSTEAD
        if (ids[place] == v) dtable[v * C + c] = dx[place * C + c];
        // END SOLUTION
}
""")

# %% [markdown] id="exercises-positions"
# **Exercise 08b.8** · easy · 3 minutes. Every sentence of a batch uses the same rows of positions. Write their
# gradient. `dx` is (B, T, C); the table has P rows, and P may be more than T.
#
# <details><summary>Hint</summary>
#
# Row t was used once by each sentence. Rows behind the text were used by nobody.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Three of these five, in the right order:
#
# - `d = np.zeros((P, dx.shape[2]))`
# - `d = np.zeros(dx.shape[1:])`
# - `d[: dx.shape[1]] = dx.sum(axis=0)`
# - `d[: dx.shape[1]] = dx.sum(axis=1)`
# - `return d`
#
# </details>

# %%
@lab.exercise("08b.8")
def positions_backward(dx, P):
    """dx (B, T, C) -> the gradient of the table of positions (P, C)."""
    ### BEGIN SOLUTION
    d = np.zeros((P, dx.shape[2]))
    d[: dx.shape[1]] = dx.sum(axis=0)
    return d
    ### END SOLUTION

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# | part | its backward |
# |---|---|
# | softmax with loss | **share minus one-hot**, divided by the number of places with a target; 0 for a pad |
# | layer norm | **rstd · (g − mean(g) − xhat · mean(g · xhat))**, with g = gamma · dy |
# | look-up | each row of the table **gathers** the rows of its places |
#
# In `llmcl`: `cross_entropy_backward`, `layer_norm_backward` and `embedding_backward` of the engine, with
# `kernels/cross_entropy.cl`, `layer_norm.cl` and `embedding.cl` behind them.
#
# What is left? GELU has one slope for each number, and attention is products, and a softmax without a loss
# behind it. Lesson 08c checks them with the rest of the model.
#
# Five questions, three of them about earlier lessons.
#
# **q1.** At a place, the right token has the share 0.9. What is the slope of its score, before the mean?
#
# - **A** 0.9
# - **B** −0.1
# - **C** −0.9

# %%
lab.quiz("08b.q1")

# %% [markdown] id="recap-2"
# **q2.** Why does a work-item own a row of the table, instead of a place of the text?
#
# - **A** Because it is less work.
# - **B** Because there are more rows than places.
# - **C** Because two places of one token would add to the same row at once.

# %%
lab.quiz("08b.q2")

# %% [markdown] id="recap-3"
# **q3.** (Lesson 08a) A linear layer, `y = x @ W`. What is the gradient of `W`?
#
# - **A** `x.T @ dy`
# - **B** `dy @ W.T`
# - **C** `dy.sum(axis=0)`

# %%
lab.quiz("08b.q3")

# %% [markdown] id="recap-4"
# **q4.** (Lesson 06) A row becomes ten times as loud. What does its layer norm do?
#
# - **A** It becomes ten times as loud.
# - **B** It moves by ten.
# - **C** It stays as it is, nearly.

# %%
lab.quiz("08b.q4")

# %% [markdown] id="recap-5"
# **q5.** (Lesson 04a) Softmax takes the largest score away from all of them first. What does that change?
#
# - **A** The largest share becomes 1.
# - **B** No share; but nothing can overflow.
# - **C** The shares become more alike.

# %%
lab.quiz("08b.q5")

# %%
lab.summary("08b")

# %% [markdown] id="bridge"
# **Next:** lesson 08c, *Backprop: the whole*. There attention and GELU get their way back. You put all parts in
# a row, check the whole gradient, and find the one part that is wrong.
