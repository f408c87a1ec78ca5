# ---
# jupyter:
#   llmcl:
#     title: Norm and residual
#     needs: ["00", "01a", "02", "03", "04a", "04b", "05", "kernel", "work-item", "bound", "feed-forward", "GELU"]
#     introduces:
#       - layer norm
#       - variance
#       - epsilon
#       - gamma
#       - beta
#       - residual
#       - pre-norm
#       - transformer block
#     minutes: {core: 55, full: 75}
#     numpy: true
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 06 · Norm and residual
#
# In this lesson you build the two small parts that make depth possible. Then you put all parts so
# far together: a whole transformer block.
#
# | | |
# |---|---|
# | **After this you can** | write layer norm in two passes; place epsilon; predict what depth does without norm and without residual; assemble a block and count its parameters |
# | **You need** | lessons 04b and 05 |
# | **Time** | 55 minutes; 75 with the exercises |
# | **New words** | layer norm, variance, epsilon, gamma, beta, residual, pre-norm, transformer block |

# %%
from llmcl import lab

lab.start("06")

# %% [markdown] id="idea"
# ## The idea: depth multiplies
#
# A model stacks blocks; the largest GPT-2 has 48. What happens to a row of numbers on such a way?
# Take the plainest layer there is, a product with random weights, 24 times in a row. The **spread**
# of a row, its standard deviation, says how far its numbers usually are from their mean. It is 1 at
# the start. Weights with a spread of 0.05, 0.1 or 0.2: which bring it out nearest to 1?

# %% tags=["slide"]
import numpy as np

rng = np.random.default_rng(6)

def after(depth, weights_spread, C=96):
    row = rng.normal(size=C)
    for _ in range(depth):
        row = row @ rng.normal(0, weights_spread, (C, C))
    return row.std()

for spread in (0.05, 0.1, 0.2):
    print(f"weights that spread by {spread}: {after(24, spread):.0e} after 24 layers")

# %% [markdown] id="idea-2"
# Each layer multiplies the spread by a factor, here about 0.5, 1 and 2: the weights'
# spread times the root of 96, because 96 products are added up (lesson 04a). Twenty-four layers multiply
# it by the 24th power of that. Weights that are twice as large are ten million times too loud.
# Nobody can keep weights on this edge, and training moves them.
#
# There are two remedies, and a model uses both. **Measure each row, and bring it back to one
# size.** That is the norm. And **do not replace what you have; add to it.** That is the residual.
#
# First the norm. Here is a row of four:

# %% tags=["slide"]
row = np.array([1.0, 2.0, 3.0, 4.0])
away = row - row.mean()          # how far each number is from the mean
variance = (away**2).mean()      # the mean of the squares
print(away, variance)
print((away / np.sqrt(variance)).round(2))

# %% [markdown] id="idea-3"
# That is **layer norm**. The mean of the squared distances is called the **variance**, and its root
# is the spread. Taking the mean away brings the row to mean 0; dividing by the spread brings it to
# spread 1.
#
# **Exercise 06.1** · easy · 2 minutes. What is the *first* number of the norm of `[10, 20, 30,
# 40]`? Write your guess into the cell.
#
# <details><summary>Hint</summary>
#
# All distances are ten times as large as above. And the spread?
#
# </details>

# %%
lab.predict("06.1", guess=None)

# %%
tenfold = 10 * row
normed = (tenfold - tenfold.mean()) / tenfold.std()
lab.reveal("06.1", normed[0])
assert np.allclose(normed, away / np.sqrt(variance))
print("✓ ten times as loud, and the same norm")

# %% [markdown] id="gamma"
# The norm forgets how loud a row was, and where its mean lay. What remains is the pattern. May the
# model never again make a column louder than the others? It may: after the norm, each column is
# stretched by a number **gamma** and shifted by a number **beta**. Both are learned, one for each
# column, and begin as 1 and 0. In the package they are called `weight` and `bias` of the norm.

# %% [markdown] id="epsilon"
# ## A row that says nothing
#
# What if all numbers of a row are equal? Then the spread is 0, and 0/0 is NaN. In a machine it can
# be worse. Here is such a row, added up as a kernel does it, in float32:

# %%
flat = np.full(96, 0.3, np.float32)
total = np.float32(0)
for number in flat:
    total += number
away = flat - total / np.float32(96)
spread = np.sqrt((away.astype(float) ** 2).mean())
print((away / spread)[:3], "spread below a millionth:", spread < 1e-6)

# %% [markdown] id="epsilon-2"
# The mean was off by rounding. So every number is a tiny step away from it, all by the same amount,
# and the division makes a loud row of 1s out of nothing. The cure is a small number under the root,
# **epsilon**, here 0.00001:

# %% tags=["slide"]
epsilon = 1e-5
print((away / np.sqrt(spread**2 + epsilon))[:3].round(2))
print("largest factor inside:", round(1 / np.sqrt(epsilon)), "outside:", round(1 / epsilon))

# %% [markdown] id="epsilon-3"
# Inside of the root, the factor can never be more than 316. Outside, in `1 / (spread + epsilon)`,
# it could reach 100,000. GPT-2 and llama.cpp have it inside. How large epsilon is, a GGUF file says
# (you saw `layer_norm_epsilon` in lesson 05). Where it stands, no file says.

# %% [markdown] id="numpy"
# ## In NumPy
#
# **Exercise 06.2** · medium · 8 minutes. Write `layer_norm` for rows, with gamma, beta and epsilon.
# Do not use `std` or `var`; write it out.
#
# <details><summary>Hint 1: shapes</summary>
#
# `x` is (rows, C). `x.mean(axis=-1, keepdims=True)` is one mean for each row, as a column (rows,
# 1), so it can be taken away from `x`.
#
# </details>
#
# <details><summary>Hint 2: the order</summary>
#
# Mean, distances, mean of their squares, epsilon, root, division, gamma, beta.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Three of these five, in the right order:
#
# - `away = x - x.mean(axis=-1, keepdims=True)`
# - `away = x - x.mean(axis=0)`
# - `variance = (away**2).mean(axis=-1, keepdims=True)`
# - `return away / np.sqrt(variance + epsilon) * gamma + beta`
# - `return away / (np.sqrt(variance) + epsilon) * gamma + beta`
#
# </details>

# %%
@lab.exercise("06.2")
def layer_norm(x, gamma, beta, epsilon):
    """Each row at mean 0 and spread 1, times gamma, plus beta: (rows, C) -> (rows, C)."""
    ### BEGIN SOLUTION
    away = x - x.mean(axis=-1, keepdims=True)
    variance = (away**2).mean(axis=-1, keepdims=True)
    return away / np.sqrt(variance + epsilon) * gamma + beta
    ### END SOLUTION

# %%
loud = rng.normal(50, 20, size=(3, 96))
quiet = layer_norm(loud, 1, 0, epsilon)
assert np.allclose(quiet.mean(axis=1), 0) and np.allclose(quiet.std(axis=1), 1)
print("spreads before:", loud.std(axis=1).round(), "after:", quiet.std(axis=1).round())

# %% [markdown] id="item"
# ## One element at a time
#
# A row needs its mean before its distances, and its distances before its variance. So we give a
# whole row to one work-item. How often will it have to read the row?

# %%
from llmcl.lab import get_global_id

def one_norm(x, gamma, beta, y, mean, rstd, rows, C, epsilon):
    row = get_global_id(0)
    if row >= rows:
        return
    its, out = x + row * C, y + row * C
    sum = 0.0
    for c in range(C):
        sum += its[c]
    m = sum / C
    squares = 0.0
    for c in range(C):
        d = its[c] - m
        squares += d * d
    r = 1 / np.sqrt(squares / C + epsilon)
    for c in range(C):
        out[c] = (its[c] - m) * r * gamma[c] + beta[c]
    mean[row] = m
    rstd[row] = r

# %%
rows, C = 3, 5
x, gamma, beta = rng.normal(size=(rows, C)), rng.normal(size=C), rng.normal(size=C)
y, mean, rstd = np.zeros((rows, C)), np.zeros(rows), np.zeros(rows)
run = lab.run_items(one_norm, rows, x, gamma, beta, y, mean, rstd, rows, C, epsilon)
run.report()
assert np.allclose(y, layer_norm(x, gamma, beta, epsilon))
print("every number of x is read", lab.touch_counts(run)["x"].reads // x.size, "times")

# %% [markdown] id="item-2"
# Three times: for the mean, for the variance, and for the result. People speak of **two passes**,
# and mean the first two. Could one pass do for both? It could, and *Break it* shows at what price.
# (`mean` and `rstd`, 1 by the spread, are kept because training needs them again, in lesson 08b.)

# %%
lab.view_items(run, start=1)

# %% [markdown] id="opencl"
# ## In OpenCL
#
# Line for line the same. Which of the lines would you have to change to move epsilon outside?

# %%
lab.show_kernel("layer_norm", "layer_norm_forward")

# %% [markdown] id="opencl-2"
# The one that computes `r`: the bracket of `sqrt` would have to close before `+ epsilon`. As with GELU, there is a
# version for processors that takes eight columns at a time (`layer_norm_forward_wide`), and one for
# graphics cards in which a group shares a row (`layer_norm_gpu.cl`). The engine picks.

# %%
from llmcl.engine import get_engine

engine = get_engine()
x = rng.normal(size=(37, 53)).astype(np.float32)  # odd, and not a multiple of eight
gamma, beta = rng.normal(size=(2, 53)).astype(np.float32)
results = engine.layer_norm(*map(engine.from_host, (x, gamma, beta)), epsilon)
print([result.shape for result in results])

# %% [markdown] id="check"
# ## Check
#
# Twice: rows around 0, and rows around 1000. The second try looks odd. It is where norms go wrong.

# %% tags=["slide"]
from llmcl.reference import bounds

for middle in (0, 1000):
    moved = (x + middle).astype(np.float32)
    got = engine.layer_norm(*map(engine.from_host, (moved, gamma, beta)), epsilon)[0]
    exact = [array.astype(np.float64) for array in (moved, gamma, beta)]
    want, bound = layer_norm(*exact, epsilon), bounds.layer_norm(*exact, epsilon)[0]
    lab.check(f"layer norm around {middle}", engine.to_host(got), want, bound)

# %% [markdown] id="residual"
# ## The bypass
#
# The second remedy is one line. A layer does not hand on its result; it hands on its input **plus**
# its result:
#
# output = input + block(input)
#
# This is the **residual connection**; others say skip connection. Why does that help? Follow a row
# through three layers that have learned nothing yet, and say next to nothing.

# %% tags=["slide"]
def little(row):
    """A layer whose weights are small, as those of a fresh model."""
    return row @ rng.normal(0, 0.02, (96, 96))

start = rng.normal(size=96)
replaced = little(little(little(start)))
added = start.copy()
for _ in range(3):
    added = added + little(added)
print(f"replaced: {replaced.std() / start.std():.2f} of the spread is left, "
      f"added: {added.std() / start.std():.2f}")

# %% [markdown] id="residual-2"
# What comes out at the end is the first row, plus what the first layer said, plus what the second
# said, and so on. Nothing in between can lose it. And a layer that has nothing to say writes 0, and
# is no obstacle.
#
# The way back profits as well: a gradient goes through a sum unchanged (lesson 08a). So the first
# layer hears what the last one needs.
#
# In OpenCL it is one addition a work-item. The comment says that `y` may be `x` itself; why is that
# safe here?

# %%
lab.show_kernel("residual", "residual_add")

# %% [markdown] id="residual-3"
# Because each work-item reads only the element that it writes. Usually, no kernel is launched for
# it at all: the matrix product adds it on its way out. That is the `plus` of lesson 05's
# `matmul_tiled`. Both ways:

# %%
a, w, b = (rng.normal(size=s).astype(np.float32) for s in ((37, 53), (53, 53), 53))
x_there, a_there, w_there, b_there = map(engine.from_host, (x, a, w, b))
apart = engine.residual(x_there, engine.linear(a_there, w_there, b_there))
at_once = engine.linear(a_there, w_there, b_there, x_there)
exact = [array.astype(np.float64) for array in (a, w, b, x)]
want = exact[0] @ exact[1] + exact[2] + exact[3]
lab.check("residual, apart", engine.to_host(apart), want, bounds.linear(*exact)[0])
lab.check("residual, at once", engine.to_host(at_once), want, bounds.linear(*exact)[0])

# %% [markdown] id="see"
# ## See it: depth
#
# Now the experiment. Twenty-four real blocks, attention and feed-forward, random weights as a fresh
# model has them: spread 0.02, and less in the layers that end in a sum. Norm and residual can be
# switched off. `llmcl.reference` holds the NumPy twins of the lessons so far.

# %%
from llmcl import reference

C, T, DEPTH = 96, 9, 24

def one_branch(x, branch, norm, residual):
    y = branch(layer_norm(x, 1, 0, epsilon) if norm else x)
    return x + y if residual else y

def one_block(x, rng, norm, residual, louder):
    """One random block; its weights are `louder` times as large as a fresh model's."""
    out = louder * 0.02 / np.sqrt(2 * DEPTH)  # smaller, as 2 * DEPTH of them are added
    qkv, output = rng.normal(0, louder * 0.02, (C, 3 * C)), rng.normal(0, out, (C, C))
    up, down = rng.normal(0, louder * 0.02, (C, 4 * C)), rng.normal(0, out, (4 * C, C))

    def attention(x):
        return (reference.attention((x @ qkv)[None], 3)[0] @ output)[0]

    def feed_forward(x):
        return reference.gelu(x @ up) @ down

    return one_branch(one_branch(x, attention, norm, residual), feed_forward, norm, residual)

# %% [markdown] id="see-2"
# Two things are measured after each block. The spread, as before. And **how alike the places are**:
# the cosine between the rows of two places, which is 1 when they point the same way, taken over all
# pairs. Nine places begin as nine different rows. If they become one and the same, the text is
# lost.

# %%
def alike(x):
    """The mean cosine between the rows of different places."""
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return (unit @ unit.T)[np.triu_indices(T, 1)].mean()

def journey(norm, residual, louder):
    """Spread and likeness at the start, and after each of the blocks."""
    rng = np.random.default_rng(24)
    x = rng.normal(size=(T, C))
    stations = [(x.std(), alike(x))]
    for _ in range(DEPTH):
        x = one_block(x, rng, norm, residual, louder)
        stations.append((x.std(), alike(x)))
    return np.array(stations).T

# %% [markdown] id="see-3"
# The switches stand in the slider, first for a fresh model, then for weights ten times as large, as
# training may make them. **Predict before you move it:** which one loses the loudness, which one
# the text, and which one explodes? (The left picture ends at 10⁻¹² below; the line under it says
# how far down it really goes.)

# %%
def draw_depth(panels, switches):
    spreads, likeness = journey(*switches)
    panels[0].semilogy(np.maximum(spreads, 1e-12), "o-", markersize=3)
    panels[0].set(ylim=(1e-12, 1e6), xlabel="block", title="spread")
    panels[1].plot(likeness, "o-", color=lab.COLORS["red"], markersize=3)
    panels[1].set(ylim=(-0.05, 1.05), xlabel="block", title="how alike the places are")

def depth_words(switches):
    spreads, likeness = journey(*switches)
    on = [name for name, is_on in zip(("norm", "residual"), switches) if is_on]
    return (f"With {' and '.join(on) or 'neither'}, weights of {0.02 * switches[2]:.2f}: after 24 blocks the "
            f"spread is {spreads[-1]:.1e}, and the places are alike by {likeness[-1]:.2f}.")

# %% tags=["slide"]
names = {"neither": (False, False), "norm only": (True, False),
         "residual only": (False, True), "both": (True, True)}
choices = [(f"{name}, {size}", (*on, louder))
           for size, louder in (("fresh", 1), ("ten times", 10)) for name, on in names.items()]
lab.explore(draw_depth, choices, depth_words, name="switches",
            start=(True, False, 1), columns=2, height=3)

# %%
spread, likeness = ({name: journey(*on, 10)[i][-1] for name, on in names.items()} for i in (0, 1))
assert spread["neither"] < 1e-6 and journey(False, False, 1)[0][-1] < 1e-30
assert likeness["norm only"] > 0.99 and 0.1 < spread["norm only"] < 10
assert spread["residual only"] > 1000
assert likeness["both"] < 0.7 and spread["both"] < 10
print("✓ with neither, the signal dies; norm alone loses the text; residual alone explodes")

# %% [markdown] id="see-4" tags=["slide"]
# Did you expect the second one? The norm keeps the loudness steady, and still the text is gone
# after six blocks. Attention takes a mean over places. Again and again a mean, and all places are
# one. With the residual, each place keeps its own row and only adds what it heard.
#
# And residual alone looks perfect in a fresh model. That is what makes it dangerous: with larger
# weights, each block makes the row louder, and the next block hears a louder row, until what the
# blocks say drowns what the places were. The norm before each branch stops that. With both, the
# spread grows slowly, and after 24 blocks the places are still apart.

# %% [markdown] id="block" tags=["slide"]
# ## The whole block
#
# Where does the norm go? **Before** each branch, and not on the road itself, the sum that runs
# through all blocks (others say residual stream): `x +
# attention(norm(x))`, then `h + feed_forward(norm(h))`. This is called **pre-norm**, and it is what
# GPT-2 does. The first transformer had it on the road, after each sum (post-norm). Then nothing
# passes unchanged any more, and deep models become hard to train.
#
# **Exercise 06.3** · medium · 5 minutes. Write the **transformer block**. You get `x` and four
# functions. What goes into the second branch, and what is it added to?
#
# <details><summary>Hint</summary>
#
# Two lines. The first makes `h`, what stands on the road between the two branches.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Two of these four, in the right order:
#
# - `h = x + attention(norm1(x))`
# - `h = norm1(x + attention(x))`
# - `return h + feed_forward(norm2(h))`
# - `return x + feed_forward(norm2(h))`
#
# </details>

# %%
@lab.exercise("06.3")
def block(x, norm1, attention, norm2, feed_forward):
    """A pre-norm transformer block: (T, C) -> (T, C)."""
    ### BEGIN SOLUTION
    h = x + attention(norm1(x))
    return h + feed_forward(norm2(h))
    ### END SOLUTION

# %% [markdown] id="block-2"
# Now with real parts. The sentence becomes rows, as in lesson 03. The weights come from a fresh model;
# then everything in it gets a random push. Do you see why? In a fresh model, all gammas are 1, all
# biases are 0, and many mistakes are invisible (lesson 05).

# %%
from llmcl.config import Config
from llmcl.data import read_sentences
from llmcl.model import GPT
from llmcl.resources import data_dir
from llmcl.tokenizer import ByteBPE

tokenizer = ByteBPE.train(read_sentences(data_dir() / "pretrain.txt"), vocab_size=512)
ids = tokenizer.encode("The sun warms the land and the sea.")
model = GPT(Config(), engine)
model.initialize(seed=1)
model.load_weights({name: array + rng.normal(0, 0.1, array.shape).astype(np.float32)
                    for name, array in model.weights().items()})
w = {name.removeprefix("blk.0."): array.astype(np.float64)
     for name, array in model.weights().items()}

# %% [markdown] id="block-3"
# The four parts in NumPy. `reference.attention` is lesson 04b: it splits the heads, masks, mixes
# and joins.

# %%
def norm_named(name):
    return lambda x: layer_norm(x, w[f"{name}.weight"], w[f"{name}.bias"], epsilon)

def linear(name, x):
    return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

def attention(x):
    qkv = linear("attn_qkv", x)
    return linear("attn_output", reference.attention(qkv[None], 3)[0][0])

def feed_forward(x):
    return linear("ffn_down", reference.gelu(linear("ffn_up", x)))

x = w["token_embd.weight"][ids] + w["position_embd.weight"][: len(ids)]
y = block(x, norm_named("attn_norm"), attention, norm_named("ffn_norm"), feed_forward)
print(x.shape, "->", y.shape)

# %% [markdown] id="block-4"
# And the package's own block, on the engine. `model.blocks[0]` is a `Block` of `llmcl/layers.py`;
# look at its `forward`, it has two lines.

# %%
x_there = engine.from_host(x[None])  # a batch of one sentence
got = engine.to_host(model.blocks[0].forward(x_there))
assert np.allclose(got[0], y, atol=1e-3)
print("✓ Block on the engine: the same to three digits")

# %% [markdown] id="block-5"
# Three digits are a first look, and no proof; lesson 05 has told you why. What is the bound of a
# whole block? Hard to say: an early error passes through all that follows. But each **link** of the
# chain has one. So take the chain apart, and check every link on the very numbers that it got:

# %%
def link(name, *args):
    """Runs the engine's operation of this name, and checks it on the numbers that it got."""
    got = getattr(engine, name)(*args)
    got = got[0] if isinstance(got, tuple) else got
    exact = [engine.to_host(a).astype(np.float64) if hasattr(a, "shape") else a for a in args]
    want = getattr(reference, name)(*exact)
    want = want[0] if isinstance(want, tuple) else want
    lab.check(name, engine.to_host(got), want, getattr(bounds, name)(*exact)[0])
    return got

def of(name):
    """Weight and bias of a part of the block, on the engine."""
    return [model.parameters[f"blk.0.{name}.{kind}"] for kind in ("weight", "bias")]

# %%
heard = link("layer_norm", x_there, *of("attn_norm"), epsilon)
heard = link("fused_attention", link("linear", heard, *of("attn_qkv")), 3)
h = link("linear", heard, *of("attn_output"), x_there)
wide = link("layer_norm", h, *of("ffn_norm"), epsilon)
wide = link("gelu", link("linear", wide, *of("ffn_up")))
out = link("linear", wide, *of("ffn_down"), h)

# %%
assert np.array_equal(engine.to_host(out), got)
print("✓ the chain of checked links is the block, to the last bit")

# %% [markdown] id="block-6"
# Every link is right, and the chain is the block. That is the proof. It also tells *which* link is
# wrong when one is. (`fused_attention` is the attention that never stores its table of shares;
# lesson 13 is about it.)
#
# **Exercise 06.4** · medium · 5 minutes. Write `block_weights(C)`: how many parameters a block has,
# norms included, when the feed-forward is four times as wide as the row.
#
# <details><summary>Hint</summary>
#
# Attention has 4·C² + 4·C, feed-forward 8·C² + 5·C (lesson 05). Each norm has a gamma and a beta.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# One of these three: `return 12 * C * C + 13 * C`, `return 12 * C * C + 11 * C`,
# `return 12 * C * C + 9 * C`.
#
# </details>

# %%
@lab.exercise("06.4")
def block_weights(C):
    """How many numbers a block of width C learns."""
    ### BEGIN SOLUTION
    return 12 * C * C + 13 * C
    ### END SOLUTION

# %%
counted = sum(array.size for name, array in model.weights().items() if name.startswith("blk.0."))
assert block_weights(96) == counted
print(f"{counted:,} parameters in a block of width 96")

# %% [markdown] id="break"
# ## Break it
#
# Epsilon outside of the root. Three tries, from loud rows to quiet ones. Which one will notice?

# %%
lab.run_broken("06.epsilon_outside")

# %% [markdown] id="break-2"
# The quieter a row, the more epsilon counts. The rows of a fresh model spread by 0.03, so this
# fault is there from the first step, and only a test with quiet rows sees it. Here are both curves:
# how loud a row is after the norm, against how loud it was.

# %% tags=["slide"]
before = np.logspace(-5, 1, 200)
fig, axes = lab.figure(
    "Spread after the norm against spread before. Both curves rise from 0 to 1. Epsilon inside: half of it at about "
    "0.002, nearly all above 0.03. Epsilon outside: the same far to the left, at a spread of 0.00001 already half.")
axes.semilogx(before, before / np.sqrt(before**2 + epsilon), label="inside of the root")
axes.semilogx(before, before / (before + epsilon), "--", label="outside")
axes.set(xlabel="spread before", ylabel="spread after")
axes.legend()
lab.show(fig)

# %% [markdown] id="break-3"
# Next, `n - 1`. Statistics divides by it when a few numbers stand for many, and some libraries do
# so unless told otherwise: PyTorch's `std` divides by n − 1, NumPy's by n. In which row is the
# difference large?

# %%
lab.run_broken("06.n_minus_1")

# %% [markdown] id="break-4"
# In a row of 4096, the fault is smaller than what rounding may do at worst, and the bound lets it
# pass. In a row of 7 it is plain, and in a row of 1 it is 0/0. **Test with small odd sizes.**
#
# Last, the single pass. On paper, the variance is the mean of the squares minus the square of the
# mean. Then sum and squares can be added up in the same loop. Watch what is left of it in float32,
# where `add_up` adds as a kernel does:

# %%
def add_up(numbers):
    total = np.float32(0)
    for number in numbers:
        total += number
    return total

def one_pass(row):
    n = np.float32(len(row))
    mean = add_up(row) / n
    return add_up(row * row) / n - mean * mean

def two_passes(row):
    n = np.float32(len(row))
    away = row - add_up(row) / n
    return add_up(away * away) / n

# %% tags=["slide"]
noise = rng.normal(size=96)
noise = (noise - noise.mean()) / noise.std()  # a variance of 1
for middle in (0, 100, 1000, 10_000):
    moved = (middle + noise).astype(np.float32)
    print(f"around {middle:6}: one pass {one_pass(moved):8.3f}, two passes {two_passes(moved):.3f}")

# %% [markdown] id="break-5"
# The true variance is 1 each time. At 1000 the squares are a million. A float32 has seven digits,
# so a million is known to about a tenth, and the 1 that we are looking for drowns in it. The result
# can even be below 0. What is its root then? NaN. In the kernel:

# %%
lab.run_broken("06.one_pass")

# %% [markdown] id="break-6"
# Around 0 nothing is to be seen, and rows of a fresh model do lie around 0. The strict device finds
# nothing in any of the three. Why not? Every access is right; the formula is not.

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 06.5** · easy · 2 minutes. Put the steps of the kernel in order. One does not belong.
# Return the letters as one word.
#
# - **A** Add up the squares of the distances.
# - **B** Write each distance times `r`, times gamma, plus beta.
# - **C** Add up the row.
# - **D** Divide by C, add epsilon, and take 1 by the root: that is `r`.
# - **E** Add up the squares of the numbers.
# - **F** Divide by C: that is the mean.
#
# <details><summary>Hint</summary>
#
# One line is for those who do it in one pass.
#
# </details>

# %%
@lab.exercise("06.5")
def steps():
    """The letters of five steps, in order."""
    ### BEGIN SOLUTION
    return "CFADB"
    ### END SOLUTION

# %% [markdown] id="exercises-mend"
# **Exercise 06.6** · medium · 5 minutes. This kernel passes all tests on a fresh model. After a day
# of training, its results differ from everybody else's. Find the fault, and mend it with the
# smallest change.
#
# <details><summary>Hint</summary>
#
# What is special about a fresh model's gamma? Look at which gamma each number gets.
#
# </details>

# %%
norm_text = lab.kernel_exercise("06.6", r"""
__kernel void norm_row(__global const float *x, __global const float *gamma,
                       __global const float *beta, __global float *y,
                       const int rows, const int C, const float epsilon)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    __global const float *in = x + row * C;
    __global float *out = y + row * C;

    float sum = 0.0f;
    for (int c = 0; c < C; ++c) sum += in[c];
    const float m = sum / C;

    float squares = 0.0f;
    for (int c = 0; c < C; ++c) squares += (in[c] - m) * (in[c] - m);
    const float r = 1.0f / sqrt(squares / C + epsilon);

    // BEGIN SOLUTION
    for (int c = 0; c < C; ++c) out[c] = (in[c] - m) * r * gamma[c] + beta[c];
    // INSTEAD
    for (int c = 0; c < C; ++c) out[c] = (in[c] - m) * r * gamma[row] + beta[c];
    // END SOLUTION
}
""")

# %% [markdown] id="exercises-rms"
# **Exercise 06.7** · hard · 8 minutes. Newer models use a smaller norm, RMS norm. It takes no mean
# away and has no beta: each number is divided by the root of the mean of the squares, epsilon
# inside, and stretched by gamma. Write the kernel, one work-item for a row.
#
# <details><summary>Hint</summary>
#
# Take `layer_norm_forward`, and leave out the first loop, `m` and `beta`. Two loops remain.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Six of these eight, in the right order:
#
# - `const int row = get_global_id(0);`
# - `if (row >= rows) return;`
# - `float squares = 0.0f;`
# - `for (int c = 0; c < C; ++c) squares += x[row * C + c] * x[row * C + c];`
# - `const float r = 1.0f / sqrt(squares / C + epsilon);`
# - `const float r = 1.0f / (sqrt(squares / C) + epsilon);`
# - `for (int c = 0; c < C; ++c) y[row * C + c] = x[row * C + c] * r * gamma[c];`
# - `for (int c = 0; c < C; ++c) y[row * C + c] = x[row * C + c] * r * gamma[row];`
#
# </details>

# %%
rms_text = lab.kernel_exercise("06.7", r"""
__kernel void rms_norm(__global const float *x,        // (rows, C)
                       __global const float *gamma,    // (C)
                       __global float *y,              // (rows, C)
                       const int rows, const int C, const float epsilon)
{
    // BEGIN SOLUTION
    const int row = get_global_id(0);
    if (row >= rows) return;
    float squares = 0.0f;
    for (int c = 0; c < C; ++c) squares += x[row * C + c] * x[row * C + c];
    const float r = 1.0f / sqrt(squares / C + epsilon);
    for (int c = 0; c < C; ++c) y[row * C + c] = x[row * C + c] * r * gamma[c];
    // END SOLUTION
}
""")

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - **Layer norm** brings each row to mean 0 and spread 1, then stretches and shifts its columns.
#   Variance by C, **epsilon** inside of the root, two passes.
# - A **residual** connection adds: output = input + block(input).
# - Neither: the signal dies. Norm alone: all places become one. Residual alone: it explodes once
#   weights have grown.
# - A pre-norm **transformer block**: `h = x + attention(norm(x))`, then `h +
#   feed_forward(norm(h))`. It has 12·C² + 13·C parameters.
#
# In `llmcl`: `kernels/layer_norm.cl` and `kernels/residual.cl`, the operations in `llmcl/ops/`,
# their NumPy twins in `llmcl/reference/`, and `LayerNorm` and `Block` in `llmcl/layers.py`.
#
# Five questions, three of them about earlier lessons.
#
# **q1.** Where does epsilon stand?
#
# - **A** under the root, beside the variance
# - **B** behind the root, beside the spread
# - **C** at the end, beside beta

# %%
lab.quiz("06.q1")

# %% [markdown] id="recap-2"
# **q2.** Twenty-four blocks with norms and without residual connections. What goes wrong?
#
# - **A** The numbers become too small.
# - **B** The numbers become too large.
# - **C** All places become the same row.

# %%
lab.quiz("06.q2")

# %% [markdown] id="recap-3"
# **q3.** (Lesson 05) What does a feed-forward *not* do?
#
# - **A** use the same weights at every place
# - **B** let one place hear another
# - **C** bend its numbers between two layers

# %%
lab.quiz("06.q3")

# %% [markdown] id="recap-4"
# **q4.** (Lesson 04a) Why are scores divided by the root of `d`?
#
# - **A** So that no key gets nearly all of the share by chance.
# - **B** So that the future gets the share 0.
# - **C** So that the shares sum to 1.

# %%
lab.quiz("06.q4")

# %% [markdown] id="recap-5"
# **q5.** (Lesson 02) Two pairs of tokens occur equally often. Why does the tokenizer need a rule
# which of them to merge first?
#
# - **A** Because it is faster.
# - **B** Because otherwise the same data could give different tokens.
# - **C** Because otherwise bytes would be lost.

# %%
lab.quiz("06.q5")

# %%
lab.summary("06")

# %% [markdown] id="bridge"
# **Next:** lesson 07, *The model*. Embeddings at the bottom, blocks on top of one another, one more
# norm, and scores at the end. Then you can count every weight of a model, and explain the first
# loss that it has.
