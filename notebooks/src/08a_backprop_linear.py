# ---
# jupyter:
#   llmcl:
#     title: "Backprop: linear"
#     needs: ["00", "01a", "05", "07", "kernel", "work-item", "bound", "gradient", "linear layer", "GELU"]
#     introduces:
#       - backpropagation
#       - chain rule
#       - nudge
#       - central difference
#       - truncation
#       - rounding
#       - eps
#       - clear
#       - llmcl.reference.gelu
#       - llmcl.reference.gelu_backward
#       - llmcl.reference.linear_backward
#     minutes: {core: 70, full: 100}
#     numpy: true
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 08a · Backprop: linear
#
# In this lesson you find out what a bit more of any number of a linear layer does to the loss. And you
# learn to test such a result with nothing but the way forward.
#
# | | |
# |---|---|
# | **After this you can** | derive dx, dW and db on paper; write dW as a kernel; choose a step for central differences; find a gradient that was not cleared, a missing transpose, a wrong axis |
# | **You need** | lessons 01a and 05; warm-up 07b if slopes are long ago |
# | **Time** | 70 minutes; 100 with the exercises |
# | **New words** | nudge, chain rule, backpropagation, central difference, truncation, rounding, eps, clear |

# %%
from llmcl import lab

lab.start("08a")

# %% [markdown] id="idea"
# ## The idea: what does one number move?
#
# Training needs the gradient: for every weight, by how much the loss changes if the weight grows a
# bit (lesson 00). You could try it out: make one weight larger, run the model, look at the loss. With a
# million weights that is a million runs for one step. **Backpropagation**, or backprop, gets them all
# for the price of about two. How?
#
# Begin with one layer, and whole numbers. The three rows are three places of a text, such as `The`,
# ` sun` and ` warms`.

# %%
import numpy as np

def linear(x, w, b):
    return x @ w + b                             # (rows, k) @ (k, n) + (n) -> (rows, n)

x = np.array([[1, 2], [3, 4], [5, 6]])           # rows = 3 places, k = 2 numbers each
w = np.array([[1, 0, 2, 1], [0, 1, 1, 3]])       # n = 4 columns
b = np.array([0, 1, 0, 2])
print(linear(x, w, b))

# %% [markdown] id="idea-nudge"
# Now **nudge** one number: change it a little, and watch. `w[1][2]` goes up by 1. Which of the twelve
# numbers of `y` will move, and how far? Guess, then run. (1 is not little. But a linear layer is a
# straight line in each of its numbers, so here the size of the nudge does not matter.)

# %% tags=["slide"]
tiny = {"x": x, "w": w, "b": b}

def moves(name, place):
    """How far each number of y moves when one number of x, w or b goes up by 1."""
    nudged = {key: array.copy() for key, array in tiny.items()}
    nudged[name][place] += 1
    return linear(**nudged) - linear(**tiny)     # the stars say: x=…, w=…, b=…

print(moves("w", (1, 2)))

# %% [markdown] id="idea-column"
# Only column 2 moves, by 2, 4 and 6. Where have you seen these three? They are column 1 of `x`: every
# place multiplies its own number with this weight.
#
# Move the slider through all eighteen numbers. What does a number of `x` move? And a bias?

# %%
def words_of(name, place):
    change = moves(name, place)
    where = f"row {place[0]}" if name == "x" else f"column {place[-1]}"
    far = change[place[0]] if name == "x" else change[:, place[-1]]
    number = name + "".join(f"[{i}]" for i in place)
    return f"{number} goes up by 1. In y, {where} moves by {far.tolist()}, and nothing else moves."

def draw_moves(axes, which):
    name, place = which
    left = np.atleast_2d(tiny[name])
    at = (0, *place)[-2:]
    lab.cells(axes[0], left, title=f"nudged: {name}", highlight=[at])
    change = moves(name, place)
    colors = np.where(change != 0, "sky", "")
    lab.cells(axes[1], change, colors=colors, title="how far y moves")

# %% tags=["slide"]
choices = [(words_of(name, place).split()[0], (name, place))
           for name, array in tiny.items() for place in np.ndindex(array.shape)]  # every place
assert len(choices) == 18
lab.explore(draw_moves, choices, lambda which: words_of(*which), "number", ("w", (1, 2)),
            columns=2, height=2.9)

# %% [markdown] id="idea-blame"
# That is one half of the answer. The other half: what do the numbers of `y` do to the loss? Suppose somebody
# has told us the slope of each: how far the loss moves for each bit that it grows. We call this table `dy`.

# %%
dy = np.array([[1, 0, -1, 2], [0, 2, 1, 0], [1, 1, 0, -1]])   # the shape of y: one slope for each
print((moves("w", (1, 2)) * dy)[:, 2], "sum", (moves("w", (1, 2)) * dy).sum())

# %% [markdown] id="idea-chain" tags=["slide"]
# A bit more of `w[1][2]` moves three numbers of `y`, 2, 4 and 6 times as far. These change the loss −1,
# 1 and 0 times as much. In all: 2·(−1) + 4·1 + 6·0 = 2. If this weight grows by a thousandth, the loss
# grows by about two thousandths. **Multiply along each way from a number to the loss, and add up the
# ways.** This is the **chain rule**, and it is all of backpropagation.
#
# `dy` is the gradient of the loss with respect to `y`, `dw` that with respect to `w`. (On paper a matrix
# is a capital letter: dW. PyTorch says `grad_output` for `dy`, and `w.grad` for `dw`.) **A gradient has
# the shape of its array**, because each number has one slope.
#
# Where does `dy` come from? From the layer behind. And ours must find `dx`, the `dy` of the layer
# before. So gradients travel from the loss to the first layer, **backward**.

# %% [markdown] id="numpy"
# ## On paper, and in NumPy
#
# Take paper. For each gradient ask: which numbers of `y` does my number move? How far? And what do these
# do to the loss? Begin at one element of the way forward:
#
# `y[row][col] = b[col] + x[row][0]·w[0][col] + x[row][1]·w[1][col] + …`
#
# | number | moves | how far | so its gradient is |
# |---|---|---|---|
# | `w[p][col]` | `y[row][col]` of every row | `x[row][p]` | the sum over rows of `x[row][p]·dy[row][col]` |
# | `b[col]` | `y[row][col]` of every row | 1 | the sum over rows of `dy[row][col]` |
# | `x[row][p]` | `y[row][col]` of every column | `w[p][col]` | yours, soon |
#
# The first line as code, word for word:

# %%
(rows, k), n = x.shape, w.shape[1]
dw = np.zeros((k, n), int)
for p in range(k):
    for col in range(n):
        for row in range(rows):
            dw[p, col] += x[row, p] * dy[row, col]
print(dw)
assert all(dw[place] == (moves("w", place) * dy).sum() for place in np.ndindex(dw.shape))

# %% [markdown] id="numpy-product"
# Three loops, a product and a sum: nearly a matrix product. What does not fit? A product adds over the
# **last** index of its left matrix and the **first** of its right one. Here `row` is the first index of
# both. So `x` has to be turned around: dW = xᵀ dy.

# %% tags=["slide"]
assert (x.T @ dy == dw).all()                    # (k, rows) @ (rows, n) -> (k, n)
db = dy.sum(axis=0)                              # (rows, n) -> (n), down the rows
assert all(db[col] == (moves("b", (col,)) * dy).sum() for col in range(n))
print(x.T.shape, "@", dy.shape, "->", dw.shape, "and db", db)

# %% [markdown] id="numpy-rows"
# The rows are gone: every place has had its say. In a batch, the rows are all places of all sentences.
#
# **Exercise 08a.1** · easy · 2 minutes. A batch has 8 sentences of 64 places; `k` is 96 and `n` is
# 384. How many products are added up in **one** number of dW?
#
# <details><summary>Hint</summary>
#
# Look at the innermost of the three loops. Over what does it run?
#
# </details>

# %%
lab.predict("08a.1", guess=None)

# %%
batch_x, batch_dy = np.ones((8, 64, 96)), np.ones((8, 64, 384))
one_number = (batch_x.reshape(-1, 96).T @ batch_dy.reshape(-1, 384))[0, 0]
lab.reveal("08a.1", one_number)
print("products in one number of dW:", int(one_number))

# %% [markdown] id="numpy-dx"
# Only the rows count. Without the mean in the loss, a larger batch would make a larger gradient.
#
# **Exercise 08a.2** · medium · 6 minutes. Now dx, by yourself. Ask the three questions for `x[row][p]`, write
# down the sum, then find the product. The tests use squares on purpose: no error will tell you.
#
# <details><summary>Hint 1: the sum</summary>
#
# `x[row][p]` moves `y[row][col]` for every `col`, by `w[p][col]`. So add up
# `dy[row][col]·w[p][col]` over the columns.
#
# </details>
#
# <details><summary>Hint 2: the product</summary>
#
# `col` is the last index of `dy`, as it should be on the left. It is the last index of `w`, too, and
# on the right it should be the first.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# One of these four: `return dy @ w`, `return w @ dy.T`, `return dy @ w.T`, `return dy.T @ w`.
#
# </details>

# %%
@lab.exercise("08a.2")
def input_gradient(w, dy):
    """dx: w (k, n) and dy (rows, n) -> (rows, k)."""
    ### BEGIN SOLUTION
    return dy @ w.T
    ### END SOLUTION

# %%
dx = input_gradient(w, dy)                       # (rows, n) @ (n, k) -> (rows, k)
assert dx.shape == x.shape
assert all(dx[place] == (moves("x", place) * dy).sum() for place in np.ndindex(x.shape))
print("✓ dx agrees with all six nudges")

# %% [markdown] id="numpy-three"
# Forward is one product, backward two of the same size: the price of about two runs. And if the sizes
# differ, there is only one way to make the shapes fit.

# %% tags=["slide"]
def linear_backward(x, w, dy):
    """dx (rows, k), dw (k, n) and db (n) for y = x w + b."""
    return dy @ w.T, x.T @ dy, dy.sum(axis=0)

assert [g.shape for g in linear_backward(x, w, dy)] == [x.shape, w.shape, b.shape]

# %% [markdown] id="step"
# ### Is it right? Ask the way forward
#
# Nudging again could test a formula. But a loss is no straight line, so we need a small step h, and
# divide by it. How well does that work for `exp` at 0, where the slope is 1?

# %%
h = 0.1
print(f"one step up: {(np.exp(h) - np.exp(0)) / h:.3f}")
print(f"up and down: {(np.exp(h) - np.exp(-h)) / (2 * h):.3f}")

# %% [markdown] id="step-central"
# Why is the second one better? The curve bends upward. The step up is too steep, the step down too
# flat by nearly the same, and the errors nearly cancel. This is a **central difference**.
#
# **Exercise 08a.3** · medium · 7 minutes. Write it for one number of an array. `f` takes an array
# like `w` and gives the loss. `place` is a tuple; `w[place]` is the number to nudge. Leave `w` as it
# was.
#
# <details><summary>Hint</summary>
#
# Two copies of `w`. In one, the number at `place` grows by h, in the other it shrinks by h. Then
# the difference of `f`, divided by the distance between the two.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Four of these six, in the right order:
#
# - `return (f(up) - f(down)) / (2 * h)`
# - `return (f(up) - f(down)) / 2 * h`
# - `up, down = w.copy(), w.copy()`
# - `up = down = w`
# - `up[place] += h`
# - `down[place] -= h`
#
# </details>

# %%
@lab.exercise("08a.3")
def slope(f, w, place, h):
    """The slope of f in the number w[place], by a central difference."""
    ### BEGIN SOLUTION
    up, down = w.copy(), w.copy()
    up[place] += h
    down[place] -= h
    return (f(up) - f(down)) / (2 * h)
    ### END SOLUTION

# %% [markdown] id="step-loss"
# We need a loss. Let it be half the sum of squares of what `y` misses from some `wanted`. The slope of
# z²/2 is z, so `dy` is `y - wanted`. (Lesson 08b takes the loss of a language model.) Every number of
# all three arrays is nudged, up and down:

# %%
def slopes(f, array, h):
    """The slope of f in every number of an array, one after the other."""
    found = [slope(f, array, place, h) for place in np.ndindex(array.shape)]
    return np.array(found).reshape(array.shape)

def miss(y, wanted):
    return ((y - wanted) ** 2).sum() / 2

# %%
rng = np.random.default_rng(8)
x, w, b, wanted = (rng.normal(size=s) for s in ((5, 3), (3, 4), 4, (5, 4)))
dx, dw, db = linear_backward(x, w, linear(x, w, b) - wanted)
assert np.allclose(slopes(lambda x: miss(linear(x, w, b), wanted), x, 1e-4), dx, atol=1e-8)
assert np.allclose(slopes(lambda w: miss(linear(x, w, b), wanted), w, 1e-4), dw, atol=1e-8)
assert np.allclose(slopes(lambda b: miss(linear(x, w, b), wanted), b, 1e-4), db, atol=1e-8)
print("✓ central differences agree with dx, dW and db")

# %% [markdown] id="step-price"
# Two runs forward for each of 31 numbers: fine for a test, too slow for training. And it knows nothing
# of transposes, so it cannot share a mistake with our formula.

# %% [markdown] id="item"
# ## One element at a time
#
# How should dW be shared among work-items? A first thought: one for each place, which brings its
# products to every number of dW. What will `run_items` say?

# %%
from llmcl.lab import get_global_id

def one_place(x, dy, dw, k, n):
    row = get_global_id(0)
    for p in range(k):
        for col in range(n):
            dw[p * n + col] += x[row * k + p] * dy[row * n + col]

lab.run_items(one_place, 5, x, linear(x, w, b) - wanted, np.zeros((3, 4)), 3, 4).report()

# %% [markdown] id="item-owner"
# A race (lesson 01b): all places add to the same number. Turn it around. One work-item **owns** one
# number of dW, and gathers what all places bring. Id 0 is the column, so work-items side by side read
# side by side.

# %%
def one_weight(x, dy, dw, rows, k, n):
    col, p = get_global_id(0), get_global_id(1)
    if col >= n or p >= k:
        return
    sum = 0.0
    for row in range(rows):
        sum += x[row * k + p] * dy[row * n + col]
    dw[p * n + col] += sum

# %% [markdown] id="item-run"
# Go from work-item (2, 1) to its neighbors in both directions. Which column of `x` and which of `dy`
# belong to a number of dW?

# %%
ys, gathered = linear(x, w, b) - wanted, np.zeros((3, 4))
run = lab.run_items(one_weight, (4, 3), x, ys, gathered, 5, 3, 4)
assert not run.findings and np.allclose(gathered, dw)
lab.view_items(run, start=(2, 1))

# %%
print("neighbors read x", lab.gaps(run, "x"), "apart, and dy", lab.gaps(run, "dy"), "apart")

# %% [markdown] id="item-pattern" tags=["slide"]
# Two columns, read down the rows. So here is a picture for all three:
#
# - forward: a **row** of `x` meets a **column** of `w`
# - dx: a **row** of `dy` meets a **row** of `w`
# - dW: a **column** of `x` meets a **column** of `dy`
#
# A transpose moves no number here. It says which way to walk. And why `+=` in the last line, not `=`?
# *Break it* answers.

# %% [markdown] id="opencl"
# ## In OpenCL
#
# The naive product of lesson 01a walks along a row of `a` and down a column of `b`. What must change,
# so that it computes dW?

# %%
lab.show_kernel("matmul", "matmul_naive")

# %% [markdown] id="opencl-write"
# **Exercise 08a.4** · medium · 10 minutes. Write dW as a kernel that does what `one_weight` does: one
# work-item, one number, column from id 0, `p` from id 1. Sizes are rounded up at the launch.
#
# <details><summary>Hint 1: the frame</summary>
#
# Two ids, a guard with both, a sum that begins at 0, a loop over the rows, one line that adds to `dw`.
#
# </details>
#
# <details><summary>Hint 2: the flat index</summary>
#
# A row of `x` has k numbers, a row of `dy` has n. Row number `row` of both is wanted, in column `p` of
# `x` and column `col` of `dy`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Six of these nine, in the right order:
#
# - `const int col = get_global_id(0), p = get_global_id(1);`
# - `if (col >= n || p >= k) return;`
# - `if (col >= rows || p >= k) return;`
# - `float sum = 0.0f;`
# - `for (int row = 0; row < rows; ++row)`
# - `sum += x[row * k + p] * dy[row * n + col];`
# - `sum += x[p * k + row] * dy[row * n + col];`
# - `dw[p * n + col] += sum;`
# - `dw[p * n + col] = sum;`
#
# </details>

# %%
weight_text = lab.kernel_exercise("08a.4", r"""
__kernel void weight_gradient(__global const float *x,    // (rows, k)
                              __global const float *dy,   // (rows, n)
                              __global float *dw,         // (k, n), added to
                              const int rows, const int k, const int n)
{
    // BEGIN SOLUTION
    const int col = get_global_id(0), p = get_global_id(1);
    if (col >= n || p >= k) return;
    float sum = 0.0f;
    for (int row = 0; row < rows; ++row)
        sum += x[row * k + p] * dy[row * n + col];
    dw[p * n + col] += sum;
    // END SOLUTION
}
""")

# %% [markdown] id="opencl-columns"
# db needs sums down the columns only. (The kernel's `x` is our `dy`.) When a work-item reads
# `x[row * n + col]`, what does its neighbor read?

# %%
lab.show_kernel("column_sum", "column_sum")

# %% [markdown] id="opencl-engine"
# The number beside it: as it should be on a graphics card. The engine's `linear_backward` does all three: it
# returns dx, and adds to the `dw` and `db` that it is given. (Its dW comes from faster products in
# `matmul.cl`.)

# %%
from llmcl.engine import get_engine

engine = get_engine()

def on_engine(x, w, dy, dw, db):
    """The three gradients: dw and db are what the engine has made of those given."""
    there = [engine.from_host(array) for array in (x, w, dy, dw, db)]
    dx = engine.linear_backward(*there)
    return [engine.to_host(tensor) for tensor in (dx, there[3], there[4])]

# %% [markdown] id="check"
# ## Check
#
# 37 rows, `k` = 13, `n` = 29. And `dw` and `db` begin with random numbers, not with zeros. Why is that
# the better test? A kernel that writes where it should add is right only if it begins at 0.

# %%
from llmcl.reference import bounds

def floats(*shape):
    return rng.normal(size=shape).astype(np.float32)

arrays = floats(37, 13), floats(13, 29), floats(37, 29), floats(13, 29), floats(29)
exact = [array.astype(np.float64) for array in arrays]
want = linear_backward(*exact[:3])
want = want[0], exact[3] + want[1], exact[4] + want[2]

# %% tags=["slide"]
for name, got, right, off in zip(("dx", "dW", "db"), on_engine(*arrays), want,
                                 bounds.linear_backward(*exact)):
    lab.check(name, got, right, off)

# %% [markdown] id="chain"
# ## A chain of three
#
# One layer is not much of a chain. Take a small feed-forward: up, GELU, down.

# %%
from llmcl.reference import gelu, gelu_backward

def forward(x, net):
    wide = linear(x, net["w1"], net["b1"])       # (rows, C) -> (rows, F)
    bent = gelu(wide)                            # (rows, F)
    return wide, bent, linear(bent, net["w2"], net["b2"])   # y (rows, C)

def loss_of(x, net, goal):
    return miss(forward(x, net)[2], goal)

# %% [markdown] id="chain-backward"
# Backward, the same road is walked from its end. Each line takes the `d…` that the line before has
# made. GELU moves each number by itself, so its backward multiplies by its slope; `gelu_backward` of
# the package does that. Why does it need `wide`? And who needs `bent`?

# %%
def backward(x, net, goal):
    wide, bent, y = forward(x, net)
    dy = y - goal
    d_bent, dw2, db2 = linear_backward(bent, net["w2"], dy)
    d_wide = gelu_backward(wide, d_bent)
    dx, dw1, db1 = linear_backward(x, net["w1"], d_wide)
    return {"w1": dw1, "b1": db1, "w2": dw2, "b2": db2}

# %% [markdown] id="chain-kept"
# A slope depends on where you stand, and dW on what came in. So a layer keeps its input until the way
# back, and training takes much more memory than reading.
#
# Is the chain right? Ask the way forward again, for all 59 numbers.

# %%
C, F = 3, 8
net = {"w1": rng.normal(size=(C, F)), "b1": rng.normal(size=F),
       "w2": rng.normal(size=(F, C)) / np.sqrt(F), "b2": rng.normal(size=C)}
inputs, goal = rng.normal(size=(5, C)), rng.normal(size=(5, C))
gradients = backward(inputs, net, goal)
for name, array in net.items():
    # net | {name: new}: net with one array replaced
    by_steps = slopes(lambda new, name=name: loss_of(inputs, net | {name: new}, goal),
                      array, 1e-5)
    assert np.abs(by_steps - gradients[name]).max() < 1e-7 * np.abs(gradients[name]).max()
    print(f"✓ {name} {array.shape}: central differences agree")

# %% [markdown] id="see"
# ## See it: the V-curve
#
# We took h = 1e-5. Would a smaller step not be better still? Here is the test for 49 steps, once all
# in float32 and once all in float64. The error is that of the worst slope of `w1`, divided by the
# largest slope.
#
# **Exercise 08a.5** · easy · 3 minutes. Which step will be best in float64? Write it as a power of
# ten: `-3` for 1e-3.
#
# <details><summary>Hint</summary>
#
# A step of 1e-12 leaves float64's 16 digits few for the difference; at 1 the curve bends. Try between.
#
# </details>

# %%
lab.predict("08a.5", guess=None)

# %%
def worst(dtype, h, wanted=gradients["w1"]):
    """The largest error of w1's slopes by steps of h, in parts of the largest slope."""
    own = {name: array.astype(dtype) for name, array in net.items()}
    given, to = inputs.astype(dtype), goal.astype(dtype)
    found = slopes(lambda new: loss_of(given, own | {"w1": new}, to), own["w1"], h)
    return np.abs(found - wanted).max() / np.abs(wanted).max()

steps = 10.0 ** np.arange(-12, 0.1, 0.25)
errors = {t: np.array([worst(t, h) for h in steps]) for t in (np.float32, np.float64)}

# %% [markdown] id="see-wrong"
# And a third curve, of a **wrong** gradient: the way forward has GELU's tanh form, and the way back
# the slope of the other form (lesson 05).

# %%
from math import erf

def other_slope(v, d):
    share = (1 + np.vectorize(erf)(v / np.sqrt(2))) / 2
    return d * (share + v * np.exp(-v * v / 2) / np.sqrt(2 * np.pi))

wide, _, y = forward(inputs, net)
d_bent = linear_backward(forward(inputs, net)[1], net["w2"], y - goal)[0]
wrong_w1 = linear_backward(inputs, net["w1"], other_slope(wide, d_bent))[1]
errors["wrong"] = np.array([worst(np.float64, h, wrong_w1) for h in steps])

# %% tags=["slide"]
fig, axes = lab.figure(
    "Error against step, both axes in powers of ten. float32 makes a V with its lowest point near a step of "
    "0.01, at an error below 0.0001. float64 makes a V too, with its lowest point near 0.00001, at an error "
    "below 1e-9. Their right sides lie on one line. The wrong formula makes no V: for all small steps it "
    "stays a little below 0.001.", height=4.0)
for key, marker, size, name in ((np.float32, "o-", 7, "float32"), (np.float64, "s-", 4, "float64"),
                                ("wrong", "^-", 3, "float64, wrong slope of GELU")):
    axes.loglog(steps, errors[key], marker, markersize=size, label=name)
axes.loglog(steps[24:], 0.15 * steps[24:] ** 2, "k:", label="goes with h²")
axes.loglog(steps[:40], 1e-15 / steps[:40], "k--", label="goes with eps / h")
axes.set(xlabel="step h", ylabel="error of the slope", ylim=(1e-12, 1e3))
axes.legend(fontsize=8, ncol=2)
lab.show(fig)

# %% [markdown] id="see-right"
# Smaller is not better. There are two sides, each with its own reason.
#
# **The right side is truncation.** The curve bends between the two places, and a central difference
# cuts off what it does not know of that. A step ten times smaller makes this error a hundred times
# smaller: it goes with h², in float32 as in float64.

# %%
ratio = worst(np.float64, 1e-2) / worst(np.float64, 1e-3)
assert 95 < ratio < 105
print("a step ten times smaller, an error", round(ratio / 10) * 10, "times smaller")

# %% [markdown] id="see-left"
# **The left side is rounding.** The two losses are nearly equal, and each of them is rounded. How far
# apart are float32 numbers near our loss, and how far does a small step move it?

# %%
loss, middling = loss_of(inputs, net, goal), np.median(np.abs(gradients["w1"]))
gap = np.spacing(np.float32(loss))
print(f"the loss is near {loss:.0f}; the next float32 is {gap:.1e} away")
print(f"a step of 1e-6, up and down, moves it by {2e-6 * middling / gap:.1f} gaps, for a middling weight")

# %% [markdown] id="see-left-2"
# Less than one gap: the rest is rounding, a few gaps or none, divided by 2h. This error goes with eps/h, where
# **eps** is the gap near 1. In the end `w + h` is `w`, and the slope is 0: all of it is error.
#
# Where is the best step? Where both sides meet: h² is about eps/h, so h³ is about eps. **Take the cube
# root of eps.**

# %%
for dtype in (np.float32, np.float64):
    eps = np.finfo(dtype).eps
    print(f"{dtype.__name__}: eps {eps:.0e}, cube root {eps ** (1 / 3):.0e}")
lab.reveal("08a.5", np.log10(np.finfo(np.float64).eps) / 3)

# %%
best = {t: steps[errors[t].argmin()] for t in (np.float32, np.float64)}
assert 1e-3 < best[np.float32] < 1e-1 and 1e-6 < best[np.float64] < 1e-4
assert errors[np.float32].min() > 1e-6 and errors[np.float64].min() < 1e-9
assert all(2e-4 < worst(np.float64, h, wrong_w1) < 5e-3 for h in (1e-3, 1e-4, 1e-5, 1e-6))
print("✓ float32 is best near 0.01, float64 near 0.00001; the wrong formula has no V")

# %% [markdown] id="see-rule" tags=["slide"]
# In float32 even the best step leaves four or five digits. At 1e-5 it reports errors of 2 percent for a
# gradient that is right. And most steps there are worse than the wrong slope, which could hide behind them. So:
#
# - **Test formulas in float64,** with h near 1e-5. Kernels are then tested against the formula, with a
#   bound.
# - **In doubt, change the step.** A right formula makes a V. A wrong one stays where it is.

# %% [markdown] id="break"
# ## Break it
#
# **Not cleared.** Back to the `+=`. Why add at all? A weight may be used twice: lesson 08c has a table
# that is used at both ends of the model, and both gradients count. But what lies there before? Call the
# engine twice, with the same batch:

# %%
dw_there, db_there = engine.zeros(arrays[1].shape), engine.zeros(arrays[4].shape)
sent = [engine.from_host(array) for array in arrays[:3]]
engine.linear_backward(*sent, dw_there, db_there)
once = engine.to_host(dw_there)
engine.linear_backward(*sent, dw_there, db_there)
print("the second time, dW is", np.median(engine.to_host(dw_there) / once).round(2), "times as large")

# %% [markdown] id="break-clear"
# So **somebody must clear it**, set it to 0, before each step. Lesson 00's training never did. Who did?
# These two lines of the model's own `backward`:

# %%
import inspect

from llmcl.model import GPT

print(*inspect.getsource(GPT.backward).splitlines()[2:4], sep="\n")

# %% [markdown] id="break-descend"
# And if that is forgotten? Here a layer learns another one, by moving against its gradient, a little
# each time. Cleared or not, the first step is the same. How will the loss go on?

# %%
from llmcl import reference

true_w, true_b, places = rng.normal(size=(3, 2)), rng.normal(size=2), rng.normal(size=(12, 3))

def descend(clear, rate=0.02):
    w, b, dw, db = np.zeros((3, 2)), np.zeros(2), np.zeros((3, 2)), np.zeros(2)
    losses, sizes = [], []
    for _ in range(60):
        if clear:
            dw[:], db[:] = 0, 0
        dy = linear(places, w, b) - linear(places, true_w, true_b)
        reference.linear_backward(places, w, dy, dw, db)  # adds to dw and db
        losses.append((dy**2).sum() / 2)
        sizes.append(np.abs(dw).max())
        w, b = w - rate * dw, b - rate * db
    return np.array(losses), np.array(sizes)

# %% tags=["slide"]
histories = {"cleared": descend(True), "not cleared": descend(False)}
fig, (left, right) = lab.figure(
    "Two pictures over 60 steps. Left, the loss: cleared, it falls to nearly 0; not cleared, it falls, rises "
    "again, and swings up and down without end. Right, the largest number of dW: cleared, it shrinks to 0; not "
    "cleared, it first grows beyond its start and then swings, too.", columns=2)
for (name, (losses, sizes)), style in zip(histories.items(), ("-", "--")):
    left.plot(losses, style, label=name)
    right.plot(sizes, style)
left.set(xlabel="step", ylabel="loss")
fig.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncol=2, fontsize=8)
right.set(xlabel="step", ylabel="largest number of dW")
lab.show(fig)

# %%
(clear_loss, clear_size), (pile_loss, pile_size) = histories.values()
assert clear_loss[-1] < 0.01 * clear_loss[0] and pile_loss[20:].max() > 0.3 * pile_loss[0]
assert pile_size[1] > 1.2 * clear_size[0]
print("✓ cleared, the loss falls below a hundredth; not cleared, it comes back")

# %% [markdown] id="break-descend-after"
# The pile pushes on past the goal, as a ball rolls through a valley and up the other side. **If the loss
# falls and then swings, look for a gradient that was not cleared.** (Lesson 09 lets a ball roll on
# purpose, with a brake.)
#
# Next, a kernel that counts twice what lies there. Which of the two tries will find it?

# %%
lab.run_broken("08a.twice")

# %% [markdown] id="break-transpose"
# **A transpose that is missing.** On squares, NumPy takes it without a word:

# %%
square_x, square_dy = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
missing = square_x @ square_dy                   # should be square_x.T @ square_dy
assert missing.shape == (4, 4)
try:
    lab.check("dW without transpose", missing, square_x.T @ square_dy, 1e-9)
except lab.CheckFailed:
    print("✗ dW without transpose: the shape fits, and the numbers do not")

# %% [markdown] id="break-transpose-kernel"
# With other sizes NumPy refuses. Does a kernel? It knows no shapes. Three tries:

# %%
lab.run_broken("08a.no_transpose")

# %% [markdown] id="break-axis"
# **The wrong axis.** `dy.sum(axis=1)` gives one number for each place, not for each bias. On a square
# the shape fits. Here is the kernel, and what your device makes of it:

# %%
lab.run_broken("08a.wrong_axis")

# %% tags=["varies"]
lab.device_answer("08a.wrong_axis", engine)

# %%
ones = np.ones((4, 4))
assert (ones.sum(axis=0) == ones.sum(axis=1)).all()
assert floats(3, 7).sum(axis=0).shape != floats(3, 7).sum(axis=1).shape
print("✓ a square of ones hides both faults; 3 x 7 hides none")

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 08a.6** · easy · 3 minutes. One step of training. Put the lines in order, and begin with
# what must come before anything is added. One does not belong. Return the letters as one word.
#
# - **A** `y = linear(x, w, b)`
# - **B** `dw[:], db[:] = 0, 0`
# - **C** `w, b = w - rate * dw, b - rate * db`
# - **D** `dy = y - wanted`
# - **E** `dx = reference.linear_backward(x, w, dy, dw, db)`
# - **F** `x = x - rate * dx`
#
# <details><summary>Hint</summary>
#
# What is `x` at the very first layer: something that the model may change?
#
# </details>

# %%
@lab.exercise("08a.6")
def order_of_lines():
    """The letters of five lines, in order."""
    ### BEGIN SOLUTION
    return "BADEC"
    ### END SOLUTION

# %% [markdown] id="exercises-mend"
# **Exercise 08a.7** · easy · 5 minutes. A kernel for dx. Which way does it walk? Mend it with the
# smallest change.
#
# <details><summary>Hint</summary>
#
# dx: a row of `dy` meets a row of `w`. Which row of `w` belongs to `dx[row][p]`, and how long is it?
#
# </details>

# %%
input_text = lab.kernel_exercise("08a.7", r"""
__kernel void input_gradient(__global const float *w,    // (k, n)
                             __global const float *dy,   // (rows, n)
                             __global float *dx,         // (rows, k)
                             const int rows, const int k, const int n)
{
    const int p = get_global_id(0), row = get_global_id(1);
    if (p >= k || row >= rows) return;
    float sum = 0.0f;
    for (int col = 0; col < n; ++col)
    // BEGIN SOLUTION
        sum += dy[row * n + col] * w[p * n + col];
    // INSTEAD
        sum += dy[row * n + col] * w[col * k + p];
    // END SOLUTION
    dx[row * k + p] = sum;
}
""")

# %% [markdown] id="exercises-both"
# **Exercise 08a.8** · hard · 10 minutes. Extend your dW kernel by db. Each work-item walks down a
# column of `dy` anyway. But many walk down the same one. Which of them may add to `db[col]`?
#
# <details><summary>Hint</summary>
#
# A second sum, `total`, in the same loop. At the end, only the work-item with `p == 0` adds it to
# `db[col]`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Take your kernel from 08a.4, put the loop's body into `{ }`, and add three of these five:
#
# - `float total = 0.0f;`
# - `total += dy[row * n + col];`
# - `total += x[row * k + p];`
# - `if (p == 0) db[col] += total;`
# - `db[col] += total;`
#
# </details>

# %%
both_text = lab.kernel_exercise("08a.8", r"""
__kernel void weight_and_bias(__global const float *x, __global const float *dy,
                              __global float *dw,         // (k, n), added to
                              __global float *db,         // (n), added to
                              const int rows, const int k, const int n)
{
    // BEGIN SOLUTION
    const int col = get_global_id(0), p = get_global_id(1);
    if (col >= n || p >= k) return;
    float sum = 0.0f, total = 0.0f;
    for (int row = 0; row < rows; ++row) {
        sum += x[row * k + p] * dy[row * n + col];
        total += dy[row * n + col];
    }
    dw[p * n + col] += sum;
    if (p == 0) db[col] += total;
    // END SOLUTION
}
""")

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - **The chain rule:** multiply along each way from a number to the loss, and add up the ways.
# - For y = x W + b: **dx = dy Wᵀ, dW = xᵀ dy, db = the sum of dy down the rows.**
# - A **central difference** tests any gradient. Its error is a V: **truncation** goes with h²,
#   **rounding** with eps/h. The best step is near the cube root of eps; use float64.
# - Gradients are added. Somebody must **clear** them before each step.
#
# In `llmcl`: `ops/linear.py`, its twin `reference/linear.py`, and the clearing in `model.py`.
#
# **q1.** `x` is (rows, k) and `dy` is (rows, n). What is dW?
#
# - **A** `x @ dy.T`
# - **B** `x.T @ dy`
# - **C** `x @ dy`

# %%
lab.quiz("08a.q1")

# %% [markdown] id="recap-2"
# **q2.** In float64, a gradient differs from central differences by 0.02, with h = 1e-3, 1e-4, 1e-5 and
# 1e-6. What do you do?
#
# - **A** take a larger step
# - **B** compute with more digits
# - **C** look for the fault in the formula

# %%
lab.quiz("08a.q2")

# %% [markdown] id="recap-3"
# **q3.** (Lesson 07) Short sentences are filled up to the length of the longest. By what is the sum
# of the losses divided?
#
# - **A** all places of the table
# - **B** the places that have a target
# - **C** the number of sentences

# %%
lab.quiz("08a.q3")

# %% [markdown] id="recap-4"
# **q4.** (Lesson 05) How many biases does a linear layer have?
#
# - **A** one for each column of its output
# - **B** one for each row
# - **C** one for each weight

# %%
lab.quiz("08a.q4")

# %% [markdown] id="recap-5"
# **q5.** (Lesson 03) Looking up a row of a table is the same as a product of that table with what?
#
# - **A** a shuffled row
# - **B** a row of zeros with a single 1
# - **C** a row in which all numbers are equal

# %%
lab.quiz("08a.q5")

# %%
lab.summary("08a")

# %% [markdown] id="bridge"
# **Next:** lesson 08b, *Backprop: the hard ones*. In softmax and layer norm a number moves its whole row, and
# in the look-up one row of a table moves several places. The three questions stay.
