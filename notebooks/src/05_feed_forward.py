# ---
# jupyter:
#   llmcl:
#     title: Feed-forward
#     needs: ["00", "01a", "01b", "03", "04a", "04b", "kernel", "work-item", "bound", "attention"]
#     introduces:
#       - linear layer
#       - ReLU
#       - feed-forward
#       - d_ff
#       - GELU
#       - tanh
#       - erf
#     minutes: {core: 50, full: 70}
#     numpy: true
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 05 · Feed-forward
#
# In this lesson each place works alone on what it has heard. You write the two layers for that, and
# the curve between them. There are two curves of one name, and you learn to tell them apart.
#
# | | |
# |---|---|
# | **After this you can** | write a linear layer with bias, and GELU; tell both GELUs apart by a test; count the parameters of a feed-forward; prove that it works on each place by itself |
# | **You need** | lessons 01b, 03 and 04b |
# | **Time** | 50 minutes; 70 with the exercises |
# | **New words** | linear layer, ReLU, feed-forward, d_ff, GELU, tanh, erf |

# %%
from llmcl import lab

lab.start("05")

# %% [markdown] id="idea"
# ## The idea: a question that no sum answers
#
# Attention fetches. At ` land` in `The sun warms the land`, a place can hear of a sun, and of a
# warming. What comes out is a weighted sum of what they tell: so much of this, and so much of that.
# Now the place should draw a conclusion. Only if there was a sun **and** a warming, the land is
# warm.
#
# Two numbers say what was heard, 0 or 1 each. There are four cases:

# %%
import numpy as np

heard = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])  # was there a sun? a warming?
warm = np.array([0, 0, 0, 1])                       # what we want to conclude

# %% [markdown] id="idea-sum"
# Which sum gives that? Take so much of the first number, so much of the second, and add a fixed
# number. NumPy can find the best three amounts there are; `lstsq` means least squares of the error.

# %% tags=["slide"]
with_one = np.hstack([heard, np.ones((4, 1))])  # how much of the 1s: the fixed number
amounts = np.linalg.lstsq(with_one, warm, rcond=None)[0]
print((with_one @ amounts).round(2))

# %% [markdown] id="idea-bend"
# Every case is off by a quarter: −0.25 and 0.25 where it should be 0, and 0.75 where it should be 1.
# More training will not help: there is no better sum. What is missing? A **bend**. Take both
# numbers, take 1 away, and then cut off what is below 0:

# %% tags=["slide"]
total = heard.sum(axis=1) - 1
print(total, np.maximum(total, 0))
assert (np.maximum(total, 0) == warm).all()

# %% [markdown] id="idea-names"
# Both ingredients have names. The fixed number, here −1, is a **bias**. Lesson 04b added one to
# each column; now you see what it is good for. It says how much must come together before anything
# counts. Cutting off below 0 is called **ReLU**.
#
# One question is one column of weights and one bias. Several questions are several columns.
# `x @ W + b` asks them all; the field calls it a **linear layer**. Can you say what each of these three
# columns asks?

# %%
W = np.array([[1, 1, -1],
              [1, -1, -1]])
b = np.array([-1, 0, 1])  # one for each column
print(np.maximum(heard @ W + b, 0))

# %% [markdown] id="idea-columns"
# The first asks "both?", the second "a sun without a warming?", the third "neither?". Each row of
# the result is one case, and the three biases are added to every row.
#
# A second linear layer then takes the answers and turns them into something to say. Why not leave
# the bend out, and take two layers all the same? Try:

# %% tags=["slide"]
rng = np.random.default_rng(5)
x, w1, b1, w2, b2 = (rng.normal(size=s) for s in ((4, 2), (2, 3), 3, (3, 2), 2))
two_layers = (x @ w1 + b1) @ w2 + b2
one_layer = x @ (w1 @ w2) + (b1 @ w2 + b2)
assert np.allclose(two_layers, one_layer)
print("✓ two linear layers without a bend are one linear layer")

# %% [markdown] id="numpy"
# ## In NumPy
#
# Two linear layers with a bend between them are a **feed-forward** network. The first goes up, to
# many questions; the second comes down, to the width of the row. `d_model`, or `C` in the code, is
# that width. **`d_ff`**, or `F`, is how many questions there are.

# %% tags=["slide"]
def relu(x):
    return np.maximum(x, 0)

def linear(x, w, b):
    return x @ w + b                       # (rows, k) @ (k, n) + (n) -> (rows, n)

def feed_forward(x, curve, w1, b1, w2, b2):
    wide = curve(linear(x, w1, b1))        # (T, C) -> (T, F)
    return linear(wide, w2, b2)            # (T, F) -> (T, C)

# %% [markdown] id="numpy-run"
# `F` is four times `C`. That is a habit since the first paper on such models, not a law; other
# models take other factors. Here are nine places of 24 numbers.

# %%
T, C = 9, 24
F = 4 * C
x = rng.normal(size=(T, C))
w1, b1 = rng.normal(size=(C, F)) / np.sqrt(C), rng.normal(size=F)
w2, b2 = rng.normal(size=(F, C)) / np.sqrt(F), rng.normal(size=C)
y = feed_forward(x, relu, w1, b1, w2, b2)
print(x.shape, "->", (x @ w1).shape, "->", y.shape)

# %% [markdown] id="numpy-alone"
# Does a place see its neighbors here? Take any place out of the text, and give it to the
# feed-forward alone. Its result is the same. And if the places are shuffled, the results are
# shuffled in the same way:

# %% tags=["slide"]
alone = [feed_forward(x[t], relu, w1, b1, w2, b2) for t in range(T)]
assert np.allclose(y, alone)
order = rng.permutation(T)
assert np.allclose(feed_forward(x[order], relu, w1, b1, w2, b2), y[order])
print("✓ each place works by itself")

# %% [markdown] id="count"
# So attention is where places talk, and feed-forward is where each one works alone, with the same
# weights at every place.
#
# **Exercise 05.1** · easy · 3 minutes. How many parameters (lesson 04b) do these two layers have, for
# `C` = 96 and `F` = 384? Write your guess into the cell. A rough one will do.
#
# <details><summary>Hint</summary>
#
# A table of `C` rows and `F` columns, one number for each column, and the same again on the way
# down: 2·C·F + F + C.
#
# </details>

# %%
lab.predict("05.1", guess=None)

# %%
from math import prod

from llmcl.config import Config

shapes = Config(d_model=96, n_heads=3, d_ff=384).parameter_shapes()
parts = {name: shapes[f"blk.0.{name}"] for name in
         ("ffn_up.weight", "ffn_up.bias", "ffn_down.weight", "ffn_down.bias")}
lab.reveal("05.1", sum(prod(shape) for shape in parts.values()))
for name, shape in parts.items():
    print(f"{name:16} {shape!s:10} {prod(shape):6}")

# %% [markdown] id="count-after"
# That is the layout of the package: `ffn_up` and `ffn_down`. Attention had 4·C² + 4·C parameters
# (lesson 04b). With `F` = 4·C, the feed-forward has 8·C² + 5·C, twice as many. Two thirds of what a
# model learns in its blocks lie here.

# %%
up_and_down = sum(prod(shape) for shape in parts.values())
attention = sum(prod(shape) for name, shape in shapes.items() if name.startswith("blk.0.attn_")
                and "norm" not in name)
assert up_and_down == 8 * 96**2 + 5 * 96 and attention == 4 * 96**2 + 4 * 96
print(up_and_down, "and", attention)

# %% [markdown] id="gelu"
# ## A bend without a corner
#
# ReLU has a flaw. Below 0 it is flat. Suppose a question has a total below 0 for every text. Now
# change its weights a little. What happens to the answer? Nothing. So training finds no direction
# (warm-up 07b is about such slopes), and this question is dead for good.
#
# So people took a curve without a flat half. The idea: keep only a share of `x`. How large a
# share? As many as there are random numbers (normal ones, with a spread of 1) below `x`, among all
# of them.

# %% tags=["slide"]
drawn = rng.normal(size=1_000_000)
for number in (-3.0, -1.0, 0.0, 1.0, 3.0):
    share = (drawn < number).mean()
    print(f"{number:4}: share {share:.2f}, keep {number * share:5.2f}")

# %% [markdown] id="gelu-erf"
# Far above 0 everything is kept, far below nothing (-0.00 is a small negative number, rounded), and in between there is a soft bend. This is
# **GELU**. Nobody draws random numbers for it. Every library of mathematics has
# **erf**, and (1 + erf(x/√2)) / 2 is this share. (`np.vectorize` calls it once for each number.)

# %%
from math import erf

def gelu_erf(x):
    return x / 2 * (1 + np.vectorize(erf, otypes=[float])(x / np.sqrt(2)))

print(gelu_erf(np.array([-3.0, -1.0, 0.0, 1.0, 3.0])).round(2))

# %% [markdown] id="gelu-tanh"
# `erf` used to be slow. So the same paper gave a second formula, which is nearly the same curve. It
# uses **tanh**, an S-shaped function that goes from −1 to 1. The 0.044715 was found by fitting.

# %%
def u_of(x):
    return np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)

def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(u_of(x)))

for number in (-1.0, 1.0, 3.0):
    print(f"{number:4}: erf form {gelu_erf(number):.4f}, tanh form {gelu_tanh(number):.4f}")

# %% [markdown] id="gelu-two"
# Two formulas, one name, and they agree in three digits. **Which one is yours?** GPT-2 was trained
# with the tanh form, and llama.cpp computes the tanh form for such models. So this book takes it.
# PyTorch's `nn.GELU()` is the other one, unless you write `approximate="tanh"`.
#
# The kernel will write the tanh form in a third way, with one exponential:
#
# gelu(x) = x / (1 + exp(−2u)), and `u` is `u_of(x)` from above.
#
# Why is that the same? tanh(u) is (eᵘ − e⁻ᵘ) / (eᵘ + e⁻ᵘ). Add 1 and take half: eᵘ / (eᵘ + e⁻ᵘ).
# Divide above and below by eᵘ, and it is 1 / (1 + e⁻²ᵘ).
#
# **Exercise 05.2** · medium · 5 minutes. Write it in NumPy.
#
# <details><summary>Hint</summary>
#
# `u` is in `u_of(x)`. The whole sum `1 + exp(−2u)` stands below the bar.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# One of these three:
#
# - `return x / (1 + np.exp(-u_of(x)))`
# - `return x / (1 + np.exp(-2 * u_of(x)))`
# - `return 1 / (1 + np.exp(-2 * u_of(x)))`
#
# </details>

# %%
@lab.exercise("05.2")
def gelu(x):
    """GELU in its tanh form, with one exponential: any shape -> the same shape."""
    ### BEGIN SOLUTION
    return x / (1 + np.exp(-2 * u_of(x)))
    ### END SOLUTION

# %%
line = np.linspace(-6, 6, 1201)  # from -6 to 6 in steps of 0.01
assert np.allclose(gelu(line), gelu_tanh(line), rtol=0, atol=1e-12)
print("✓ the formula with one exponential is the tanh form")

# %% [markdown] id="item"
# ## One element at a time
#
# GELU needs nobody else: one work-item, one number. A linear layer is the matrix product of lesson
# 01a, and the sum does not begin at 0. At what does it begin?

# %%
from llmcl.lab import get_global_id

def one_gelu(x, y, n):
    i = get_global_id(0)
    if i >= n:
        return
    v = x[i]
    y[i] = v / (1 + np.exp(-2 * u_of(v)))

def one_output(x, w, b, y, rows, n, k):
    row, col = get_global_id(0), get_global_id(1)
    if row >= rows or col >= n:
        return
    sum = b[col]  # the bias of this column
    for p in range(k):
        sum += x[row * k + p] * w[p * n + col]
    y[row * n + col] = sum

# %% [markdown] id="item-run"
# Both, in shuffled order, make the way up. Then look at a small one: three rows, `k` = 4, five
# columns. Move from work-item (1, 3) to (2, 3). What stays, and what changes?

# %%
wide, bent = np.zeros((T, F)), np.zeros((T, F))
lab.run_items(one_output, (T, F), x, w1, b1, wide, T, F, C)
lab.run_items(one_gelu, T * F, wide, bent, T * F).report()
assert np.allclose(bent, gelu(linear(x, w1, b1)))

# %%
parts = [rng.normal(size=s) for s in ((3, 4), (4, 5), 5)]
run = lab.run_items(one_output, (3, 5), *parts, np.zeros((3, 5)), 3, 5, 4)
lab.view_items(run, start=(1, 3))

# %% [markdown] id="item-after"
# The column of `w` and the one element of `b` stay. Who else reads `b[3]`? Everybody in column 3.
# **A bias belongs to a column**, which is one question, and all rows share it.

# %% [markdown] id="opencl"
# ## In OpenCL
#
# GELU first. `TWO_ROOT` is 2·√(2/π) and `CUBE` is 0.044715; the file's head names them (`#define`). The
# comment holds measured times; we come back to them.

# %%
lab.show_kernel("gelu", "gelu_forward")

# %% [markdown] id="opencl-engine"
# The engine launches it, here for ten numbers. What should GELU of 3 be, roughly?

# %%
from llmcl.engine import get_engine

engine = get_engine()
ten = engine.to_host(engine.gelu(engine.from_host(np.full(10, 3.0))))
assert ten.shape == (10,) and np.allclose(ten, gelu(3.0))
print(ten[:3].round(3))

# %% [markdown] id="opencl-linear"
# **Exercise 05.3** · medium · 7 minutes. Now write the linear layer. One work-item, one element of
# `y`: row from id 0, column from id 1, as in `one_output`.
#
# <details><summary>Hint: what is new since lesson 01a</summary>
#
# One thing: the sum begins at the bias of the column. The rest is `matmul_naive`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Six of these eight, in the right order:
#
# - `const int row = get_global_id(0), col = get_global_id(1);`
# - `if (row >= rows || col >= n) return;`
# - `float sum = b[col];`
# - `float sum = b[row];`
# - `for (int p = 0; p < k; ++p)`
# - `sum += x[row * k + p] * w[p * n + col];`
# - `sum += b[col] + x[row * k + p] * w[p * n + col];`
# - `y[row * n + col] = sum;`
#
# </details>

# %%
linear_text = lab.kernel_exercise("05.3", r"""
__kernel void linear(__global const float *x,    // (rows, k)
                     __global const float *w,    // (k, n)
                     __global const float *b,    // (n)
                     __global float *y,          // (rows, n)
                     const int rows, const int n, const int k)
{
    // BEGIN SOLUTION
    const int row = get_global_id(0), col = get_global_id(1);
    if (row >= rows || col >= n) return;
    float sum = b[col];
    for (int p = 0; p < k; ++p)
        sum += x[row * k + p] * w[p * n + col];
    y[row * n + col] = sum;
    // END SOLUTION
}
""")

# %% [markdown] id="opencl-tiled"
# The package's kernels do the same on the way out of their tiles (lesson 01b). Why there, and not
# in a kernel of its own? The sum is still at hand. A second kernel would have to read every number
# from memory and write it back, for one addition. (Read from `if (bias)` on; what
# stands above is lesson 01b. `plus` is for lesson 06. `NULL` means that there is none.)

# %%
lab.show_kernel("matmul", "matmul_tiled")

# %% [markdown] id="ladder"
# ### Eight at a time
#
# There is a second GELU kernel, with `_wide` in its name. A work-item takes eight numbers with it,
# as you saw in lesson 04a. Where is the case that fewer than eight are left?

# %%
lab.show_kernel("gelu", "gelu_forward_wide")

# %% [markdown] id="ladder-helper"
# It calls a small function of the same file, the formula for eight numbers. A `float8` holds eight
# floats, and every operation on it happens eight times. (`(float8)(x[j])` is eight copies of one
# number, and `.s0` takes the first of eight results.)

# %%
from llmcl.resources import kernels_dir

text = (kernels_dir() / "gelu.cl").read_text(encoding="utf-8")
start = text.index("float8 gelu8(")
print(text[start : text.index("}", start) + 1])

# %% [markdown] id="ladder-why"
# Why two kernels for one formula? Many processors have registers for eight floats, and one
# instruction for all of them. `exp` is not one instruction but dozens, and the dozens work on eight
# numbers as fast as on one. Measure it on your device:

# %% tags=["varies"]
from time import perf_counter

def milliseconds(name, items, x, n):
    y, times = engine.empty((n,)), []
    for _ in range(5):
        engine.finish()
        begin = perf_counter()
        engine.launch("gelu", name, items, x, y, n)
        engine.finish()
        times.append(1000 * (perf_counter() - begin))
    return min(times)

n = 2**21
if getattr(engine, "device", None) is None:
    print("NumPy computes here, and no OpenCL device; so nothing was launched")
else:
    many = engine.from_host(np.random.default_rng(0).normal(size=n))
    print(f"one number an item:    {milliseconds('gelu_forward', n, many, n):.2f} ms")
    print(f"eight numbers an item: {milliseconds('gelu_forward_wide', n // 8, many, n):.2f} ms")

# %% [markdown] id="ladder-gpu"
# On a graphics card it goes the other way: the comment above `gelu_forward` says 44 µs by ones and
# 86 by eights. There, the work-items themselves run side by side, and what counts is how far apart
# neighbors read (lesson 01b). Predict the two gaps before you run the cell.

# %%
def eight_gelus(x, y, n):
    i = 8 * get_global_id(0)
    for j in range(i, min(i + 8, n)):
        y[j] = x[j] / (1 + np.exp(-2 * u_of(x[j])))

xs, by_ones, by_eights = rng.normal(size=29), np.zeros(29), np.zeros(29)
ones = lab.run_items(one_gelu, 29, xs, by_ones, 29)
eights = lab.run_items(eight_gelus, 4, xs, by_eights, 29)
assert (by_ones == by_eights).all()
print("neighbors read", lab.gaps(ones, "x"), "and", lab.gaps(eights, "x"), "apart")

# %% [markdown] id="check"
# ## Check
#
# On the engine, the whole way: up, bend, down. Each step is compared with NumPy on the very numbers
# that the step got. 37 rows and a width of 13 leave a rest when you take eights. (`getattr` finds
# the operation by its name; `map` sends each array to the engine, and the star makes arguments of
# them.)

# %%
from llmcl.reference import bounds

def checked(name, function, bound_of, *arrays):
    """Runs the engine's operation of this name, and checks it against the function."""
    got = engine.to_host(getattr(engine, name)(*map(engine.from_host, arrays)))
    exact = [array.astype(np.float64) for array in arrays]
    lab.check(name, got, function(*exact), bound_of(*exact)[0])
    return got

# %% tags=["slide"]
def floats(*shape):
    return rng.normal(size=shape).astype(np.float32)

up = checked("linear", linear, bounds.linear, floats(37, 13), floats(13, 52), floats(52))
curved = checked("gelu", gelu, bounds.gelu, up)
down = checked("linear", linear, bounds.linear, curved, floats(52, 13), floats(13))
assert down.shape == (37, 13)

# %% [markdown] id="check-overflow"
# And large numbers? At −100 the exponential overflows: it is infinity, as in lesson 04a. There the
# result was NaN. What is it here?

# %%
far = np.array([-1000, -100, -20, 0, 20, 100, 1000], np.float32)
with np.errstate(over="ignore"):
    far_bent = checked("gelu", gelu, bounds.gelu, far)
print(np.abs(far_bent).round(3).tolist())

# %% [markdown] id="check-overflow-after"
# −100 divided by infinity is 0, and 0 is right. On the other side, exp(−2u) is 0, and x / 1 is x.
# Overflow is harmless as long as infinity only stands **below** the bar. Written as x·exp(2u) /
# (1 + exp(2u)), which on paper is the same, infinity would stand on both sides. Which of the seven
# numbers would be NaN? (NumPy computes this line in float64, where `exp` overflows above 709 only.)

# %%
with np.errstate(over="ignore", invalid="ignore"):
    e = np.exp(2 * u_of(far))
    print(np.isnan(far * e / (1 + e)).tolist())

# %% [markdown] id="see"
# ## See it
#
# Left, the three bends. Right, tanh form minus erf form. At which `x` would you look, if you wanted
# to tell them apart?

# %% tags=["slide"]
gap = gelu(line) - gelu_erf(line)
worst = np.abs(gap).argmax()
fig, (left, right) = lab.figure(
    "Left: ReLU with its corner at 0, and both GELUs, which lie on one another, with a soft bend. Right: their "
    f"difference, 0 at 0 and far out, largest near 2.7 on both sides: {gap[worst]:.6f}.", columns=2)
for curve, style, name in ((relu, "-", "ReLU"), (gelu_erf, "-", "erf"), (gelu, "--", "tanh")):
    left.plot(line, curve(line), style, label=name)
left.legend()
right.plot(line, gap)
right.plot(line[[worst, -1 - worst]], gap[[worst, -1 - worst]], "o")
left.set(xlabel="x", title="bends", xlim=(-3, 3), ylim=(-0.5, 3))
right.set(xlabel="x", title="tanh form minus erf form", xticks=range(-6, 7, 2))
lab.show(fig)

# %%
print(f"the largest gap is {abs(gap[worst]):.6f}, at {abs(line[worst]):.1f} and its negative")
assert 4.7e-4 < abs(gap[worst]) < 4.8e-4

# %% [markdown] id="see-tell"
# **Exercise 05.4** · medium · 6 minutes. Write the test. `which_gelu` gets a function and returns
# `"tanh"`, `"erf"` or `"neither"`. The function takes an array, and may compute in float32, so it
# may be off by a few millionths.
#
# <details><summary>Hint 1: how near is near enough</summary>
#
# Rounding is about 1e-6, the gap 4.7e-4. Take a tolerance between the two, such as 1e-5.
#
# </details>
#
# <details><summary>Hint 2: at which numbers</summary>
#
# At all of `line`. A curve that is right at 2.7 may be wrong at −1.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Put the lines in order and indent them. One of the five does not belong.
#
# - `if np.abs(curve(line) - form(line)).max() < 1e-5:`
# - `if np.allclose(curve(line), form(line), atol=1e-3):`
# - `for name, form in (("tanh", gelu), ("erf", gelu_erf)):`
# - `return name`
# - `return "neither"`
#
# </details>

# %%
@lab.exercise("05.4")
def which_gelu(curve):
    """Which of the two GELUs the function computes: "tanh", "erf" or "neither"."""
    ### BEGIN SOLUTION
    for name, form in (("tanh", gelu), ("erf", gelu_erf)):
        if np.abs(curve(line) - form(line)).max() < 1e-5:
            return name
    return "neither"
    ### END SOLUTION

# %%
def on_the_engine(x):
    return engine.to_host(engine.gelu(engine.from_host(x)))

print([which_gelu(f) for f in (on_the_engine, gelu_tanh, gelu_erf, relu)])

# %% [markdown] id="see-places"
# And a picture of "by itself". One token's row of numbers is
# changed. (The rows are the random `x` from above; any will do.) Below it, the outputs of an
# attention (lesson 04b) and of a feed-forward, both with random weights. Where can a change at
# place 3 be seen in each of them? Guess, then move the slider.

# %%
from llmcl.data import read_sentences
from llmcl.resources import data_dir
from llmcl.tokenizer import ByteBPE

tokenizer = ByteBPE.train(read_sentences(data_dir() / "pretrain.txt"), vocab_size=512)
ids = tokenizer.encode("The sun warms the land and the sea.")
tokens = [tokenizer.decode([i]).replace(" ", "␣") for i in ids]
assert len(tokens) == T
print("|".join(tokens))

# %%
w_qkv = rng.normal(size=(C, 3 * C)) / np.sqrt(C)

def attend(x):
    qkv = engine.from_host((x @ w_qkv)[None])  # a batch of one sentence
    return engine.to_host(engine.attention(qkv, 2)[0])[0]

def think(x):
    up = engine.gelu(engine.linear(*map(engine.from_host, (x, w1, b1))))
    return engine.to_host(engine.linear(up, engine.from_host(w2), engine.from_host(b2)))

# %%
def changes(layer, t):
    """For each place, whether its output differs when row t of x changes."""
    changed = x.copy()
    changed[t] += 1
    return (layer(changed) != layer(x)).any(axis=1)

def draw_places(axes, t):
    rows = [np.arange(T) == t, changes(attend, t), changes(think, t)]
    words = [tokens] + [["new" if new else "same" for new in row] for row in rows[1:]]
    colors = [[("orange" if row is rows[0] else "sky") if new else "" for new in row] for row in rows]
    lab.cells(axes, np.zeros((3, T)), words, colors)
    axes.set_yticks(range(3), ["token", "attention", "feed-forward"])

# %% tags=["slide"]
def place_words(t):
    heard, own = (np.flatnonzero(changes(layer, t)).tolist() for layer in (attend, think))
    return f"Token {t} changes. New outputs of the attention: {heard}, of the feed-forward: {own}."

lab.explore(draw_places, range(T), place_words, name="token", start=3, height=2.4)

# %%
assert all(np.flatnonzero(changes(think, t)).tolist() == [t] for t in range(T))
assert all(np.flatnonzero(changes(attend, t)).tolist() == list(range(t, T)) for t in range(T))
print("✓ attention carries a change to later places; a feed-forward keeps it where it is")

# %% [markdown] id="break"
# ## Break it
#
# The other GELU. First a test as many people write it: "correct to three digits, that will do".
# Will it notice?

# %%
lab.check("erf form, tolerance 0.001", gelu_erf(line), gelu(line), 1e-3)

# %% [markdown] id="break-bound"
# Passed, and it is the wrong curve. The bound knows how much rounding can explain:

# %% tags=["slide"]
try:
    lab.check("erf form, with its bound", gelu_erf(line), gelu(line), bounds.gelu(line)[0])
except lab.CheckFailed:
    print("✗ erf form, with its bound: the check found it")

# %% [markdown] id="break-file"
# What would happen if you had trained with the wrong one? You would export a GGUF file, and
# llama.cpp would open it. Does the file say which curve the model was trained with? Here is all
# that a small model's file says about its formula:

# %%
from gguf import GGUFReader
from llmcl.gguf_file import write_gguf
from llmcl.model import GPT

small = GPT(Config(d_model=32, n_heads=2, n_layers=1, d_ff=128), engine)
small.initialize(seed=1)
path = lab.folder("05") / "small.gguf"
write_gguf(path, small.config, small.weights(), tokenizer, dtype="F32", info=None)
print([name for name in GGUFReader(path).fields if name.startswith("gpt2.")])

# %% [markdown] id="break-file-after"
# Nothing about a curve. The name of the architecture, `gpt2`, stands for all of that. llama.cpp
# would take the tanh form, and every number of the model would be slightly off, without a word. How
# slightly? In our feed-forward:

# %%
with_tanh, with_erf = (feed_forward(x, f, w1, b1, w2, b2) for f in (gelu, gelu_erf))
off = np.abs(with_tanh - with_erf).max()
assert 1e-4 < off < 1e-2
print("✓ off by more than 0.0001 and less than 0.01")

# %% [markdown] id="break-file-doubt"
# Can you find that by comparing scores with llama.cpp at the very end? Hardly. Its own rounding is
# of the same size; on a processor it looks GELU up in a table with three digits. **What cannot be
# seen at the end must be tested where it is made.** That is `which_gelu`.
#
# In a kernel, the wrong curve looks like this. What will the strict device say?

# %%
lab.run_broken("05.other_gelu")

# %% [markdown] id="break-bias"
# Nothing: a wrong formula is no wrong access. And small numbers hide it, too.
#
# Next, a bias that is added by row. Three tries. Before you run the cell: which of them finds it?

# %%
lab.run_broken("05.bias_row")

# %% [markdown] id="break-bias-after"
# Equal biases hide it, and those of a fresh model are equal: all 0. Such a kernel looks right until
# somebody trains. And what does it do with more rows than columns? It reads past the end of the
# bias.
#
# Last, `gelu_forward_wide` without its question whether eight numbers are left. Below it, what your
# own device makes of the same kernel:

# %%
lab.run_broken("05.no_rest")

# %% tags=["varies"]
lab.device_answer("05.no_rest", engine)

# %%
got = engine.to_host(engine.gelu(engine.from_host(floats(13))))
assert got.shape == (13,) and np.isfinite(got).all()
print("✓ the right kernel: 13 numbers, and nothing behind them")

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 05.5** · easy · 3 minutes. Put the lines of a feed-forward in order. Two of the six do
# not belong. Return the letters as one word.
#
# - **A** `y = y + b2`
# - **B** `wide = gelu(wide + b1)`
# - **C** `x = shares @ x`
# - **D** `wide = x @ w1`
# - **E** `y = wide @ w1`
# - **F** `y = wide @ w2`
#
# <details><summary>Hint</summary>
#
# One line lets places listen to each other. One multiplies with a matrix that does not fit.
#
# </details>

# %%
@lab.exercise("05.5")
def order_of_lines():
    """The letters of four lines, in order."""
    ### BEGIN SOLUTION
    return "DBFA"
    ### END SOLUTION

# %% [markdown] id="exercises-mend"
# **Exercise 05.6** · easy · 4 minutes. Here is the tanh form as papers write it. It compiles
# without a complaint, and gives 0 for every number. Why? Mend it with the smallest change.
#
# <details><summary>Hint</summary>
#
# Look for a division of two whole numbers (warm-up 00a).
#
# </details>

# %%
half_text = lab.kernel_exercise("05.6", r"""
__kernel void gelu_tanh(__global const float *x, __global float *y, const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    const float v = x[i];
    const float u = 0.79788456f * (v + 0.044715f * v * v * v);
    // BEGIN SOLUTION
    y[i] = 0.5f * v * (1.0f + tanh(u));
    // INSTEAD
    y[i] = 1 / 2 * v * (1.0f + tanh(u));
    // END SOLUTION
}
""")

# %% [markdown] id="exercises-fuse"
# **Exercise 05.7** · hard · 6 minutes. Extend your linear layer: the same work-item bends its
# number at once, before it is written. Then the wide numbers are written once, and not written,
# read and written again. 2·√(2/π) is `1.5957691f`.
#
# <details><summary>Hint</summary>
#
# Take your kernel from 05.3. Only the last line changes. What the formula calls x is your finished
# sum.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# With the sum in `v`, one of these is the last line:
#
# - `y[row * n + col] = v / (1.0f + exp(-1.5957691f * (v + 0.044715f * v * v * v)));`
# - `y[row * n + col] = v / 1.0f + exp(-1.5957691f * (v + 0.044715f * v * v * v));`
#
# </details>

# %%
fused_text = lab.kernel_exercise("05.7", r"""
__kernel void linear_gelu(__global const float *x, __global const float *w,
                          __global const float *b, __global float *y,
                          const int rows, const int n, const int k)
{
    // BEGIN SOLUTION
    const int row = get_global_id(0), col = get_global_id(1);
    if (row >= rows || col >= n) return;
    float v = b[col];
    for (int p = 0; p < k; ++p)
        v += x[row * k + p] * w[p * n + col];
    y[row * n + col] = v / (1.0f + exp(-1.5957691f * (v + 0.044715f * v * v * v)));
    // END SOLUTION
}
""")

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - A **linear layer** is `x @ W + b`. A bias belongs to a column.
# - Two of them need a bend between, or they are one. **ReLU** has a corner, **GELU** has none.
# - There are two GELUs, up to 4.7e-4 apart. A bound tells them apart; a loose tolerance does not,
#   and a file does not say.
# - A **feed-forward** goes from `d_model` up to `d_ff`, four times as wide, and down again, for
#   each place by itself. Two thirds of a block's parameters are here.
#
# In `llmcl`: `kernels/gelu.cl`, the bias in `kernels/matmul.cl`, the operations in
# `llmcl/ops/gelu.py` and `llmcl/ops/linear.py`, their NumPy twins in `llmcl/reference/`, and the
# layer in `llmcl/layers.py` (`FeedForward`).
#
# Five questions, three of them about earlier lessons.
#
# **q1.** Why is there a bend between the two layers?
#
# - **A** So that the numbers do not grow.
# - **B** Without it, two linear layers would be one.
# - **C** Because a bias alone cannot go below 0.

# %%
lab.quiz("05.q1")

# %% [markdown] id="recap-2"
# **q2.** Your kernel computes the erf form by mistake. Who finds it?
#
# - **A** a check with the bound of rounding
# - **B** nobody, because both forms are GELU
# - **C** llama.cpp, when it opens the file

# %%
lab.quiz("05.q2")

# %% [markdown] id="recap-3"
# **q3.** (Lesson 04b) `d_model` is 96, and there are 3 heads. By the root of what are the scores
# divided?
#
# - **A** 96
# - **B** 32
# - **C** 3

# %%
lab.quiz("05.q3")

# %% [markdown] id="recap-4"
# **q4.** (Lesson 03) Small ids lie in a buffer as int64. The kernel takes them for `int`. What does
# it read?
#
# - **A** The right ids; the kernel asks for the type.
# - **B** Nothing; the launch is refused with a message.
# - **C** Every id, followed by a 0.

# %%
lab.quiz("05.q4")

# %% [markdown] id="recap-5"
# **q5.** (Lesson 01b) A tree sum in local memory lacks a barrier. What comes out?
#
# - **A** always a wrong sum
# - **B** an error message
# - **C** the right sum or a wrong one; it is luck

# %%
lab.quiz("05.q5")

# %%
lab.summary("05")

# %% [markdown] id="bridge"
# **Next:** lesson 06, *Norm and residual*. Attention and feed-forward together are a block, and a
# model stacks many blocks. Stack them as they are, and nothing of the text is left after a few. Two
# small parts are missing, and then the block is whole.
