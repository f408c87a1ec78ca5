# ---
# jupyter:
#   llmcl:
#     title: Faster
#     needs: ["00", "01a", "01b", "04a", "04b", "07", "kernel", "work-item", "local memory", "barrier", "tile", "bound", "matrix product"]
#     introduces:
#       - arithmetic intensity
#       - roofline
#       - bandwidth
#       - peak
#       - register
#       - register block
#       - cache
#       - vector
#       - fused attention
#       - online softmax
#       - median
#       - llmcl.bench.bench_config
#       - llmcl.bench.make_step
#       - llmcl.bench.roofline
#       - llmcl.lab.launches
#       - llmcl.lab.medians
#     minutes: {core: 100, full: 125}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 13 · Faster
#
# How fast could a kernel be at most, how fast is it, and what stands between? In this lesson you find out, make one
# several times as fast, and prove it right before you time it.
#
# | | |
# |---|---|
# | **After this you can** | place a kernel on your device's roofline; make one faster and prove it right; say what fused attention does not store; compare honestly with NumPy, PyTorch and cuBLAS |
# | **You need** | lessons 01b, 04b and 07, and an OpenCL device. This lesson is an elective |
# | **Time** | 100 minutes; 125 with the hard exercise at the end |
# | **New words** | bandwidth, peak, arithmetic intensity, roofline, register block, vector, cache, fused attention, online softmax |

# %%
from llmcl import lab

lab.start("13")

# %% [markdown] id="idea"
# ## The idea: carry, then compute
#
# A device does two things: it carries numbers from memory, and it computes with them. Take a made-up
# one. It carries 40 thousand million bytes a second, and makes 200 thousand million operations. An
# operation is one addition or one multiplication.
#
# Give it two tasks: add two lists of a million numbers, and multiply two matrices of 384 x 384. How
# long does each half of the work take?

# %% tags=["slide"]
bandwidth, peak = 40e9, 200e9

def halves(operations, numbers):
    """Microseconds of carrying and of computing; a float32 has four bytes."""
    return 4 * numbers / bandwidth * 1e6, operations / peak * 1e6

tasks = {"addition": (1e6, 3e6),                 # a million sums; two lists and the result
         "product": (2 * 384**3, 3 * 384**2)}    # 384 · 384 sums of 384 terms; three matrices
for name, (operations, numbers) in tasks.items():
    carrying, computing = halves(operations, numbers)
    print(f"{name:>8}: {carrying:3.0f} µs of carrying, {computing:3.0f} µs of computing")

# %% [markdown] id="idea-2"
# A device does both at the same time, so the larger of the two decides. No kernel adds these lists in less than
# 300 µs here. And in the product the carrying is hardly felt, *if* every number is carried only once. That "if"
# is this lesson.
#
# Bytes a second are the **bandwidth**, operations a second at best the **peak**.
#
# **Exercise 13.1** · easy · 2 minutes. For some task between the two, carrying and computing take equally long. How many
# operations does it make for each byte?
#
# <details><summary>Hint</summary>
#
# In one second it carries 40, and computes 200.
#
# </details>

# %%
lab.predict("13.1", guess=None)

# %%
lab.reveal("13.1", peak / bandwidth)
print(peak / bandwidth, "operations per byte")

# %% [markdown] id="idea-3" tags=["slide"]
# Operations per byte: that is a task's **arithmetic intensity**. Below 5, this device waits for memory
# (*memory-bound*). Above 5, it waits for its own arithmetic (*compute-bound*).

# %% [markdown] id="numpy"
# ## In NumPy: by hand first
#
# **Exercise 13.2** · medium · 5 minutes. What is the intensity of a product of (m, k) and (k, n)? Count
# every number of the three matrices once, in float32.
#
# <details><summary>Hint</summary>
#
# There are m · n sums of k terms. A term is multiplied, and then added.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Three of these five, in order:
#
# - `operations = 2 * m * n * k`
# - `operations = m * n * k`
# - `numbers = m * k + k * n + m * n`
# - `return operations / numbers`
# - `return operations / (4 * numbers)`
#
# </details>

# %%
@lab.exercise("13.2")
def intensity(m, k, n):
    """Operations per byte of (m, k) times (k, n) -> a number."""
    ### BEGIN SOLUTION
    operations = 2 * m * n * k
    numbers = m * k + k * n + m * n
    return operations / (4 * numbers)
    ### END SOLUTION

# %% tags=["slide"]
print("addition of two lists      ", round(1 / 12, 3))
print("384 x 384 times 384 x 384  ", intensity(384, 384, 384))
print("one row times 4096 x 4096  ", round(intensity(1, 4096, 4096), 3))
assert 0.49 < intensity(1, 4096, 4096) < 0.5

# %% [markdown] id="numpy-2"
# For squares it is the side divided by six. The last line is what generating a text does (lesson 11): one new token, so
# one row, and every weight is carried for two operations. Which of the three would profit from a cleverer kernel?
#
# <details><summary>An answer</summary>
#
# The product of the squares: 64 is far above 5. The two others lie below 5. They wait for memory, and the best
# kernel can do no more than keep that busy. Further down you measure how far yours are from it.
#
# </details>
#
# The most that a task can reach:

# %%
import numpy as np

def roof(x, bandwidth, peak):
    """Operations a second at most, for a task of x operations per byte."""
    return np.minimum(peak, x * bandwidth)

assert roof(1 / 12, 40e9, 200e9) < roof(5, 40e9, 200e9) == roof(64, 40e9, 200e9) == 200e9

# %% [markdown] id="see"
# ## See it: the roof
#
# Drawn over the intensity, that is a slanted line and a flat one, so the picture is called a
# **roofline**. Now the "if": `matmul_naive` asks memory for two numbers for each term, four bytes each. That is
# 2 operations for 8 bytes, an intensity of a quarter. With tiles of side `s`, each number fetched is used `s`
# times. Move the slider. From which side on is carrying no longer the limit?

# %% tags=["slide"]
def draw_roof(axes, bandwidth, peak):
    x = np.geomspace(1 / 32, 512, 200)
    axes.loglog(x, roof(x, bandwidth, peak) / 1e9, color="black")
    axes.set(xlabel="operations per byte", ylabel="GFLOP/s: thousand million a second")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")

def draw_side(axes, side):
    draw_roof(axes, 40e9, 200e9)
    axes.plot(side / 4, roof(side / 4, 40e9, 200e9) / 1e9, "o", markersize=12)
    axes.set_title(f"a tile of side {side}: {side / 4:g} operations per byte")

def side_words(side):
    at, limit = side / 4, "carrying" if side / 4 < 5 else "computing"
    return (f"A line that rises until 5 operations per byte, then stays level at 200 GFLOP/s. A point at "
            f"{at:g} operations per byte: at most {roof(at, 40, 200):g} GFLOP/s, and {limit} is the limit.")

lab.explore(draw_side, [1, 2, 4, 8, 16, 32, 64], side_words, name="side", start=1, height=3.4)

# %% [markdown] id="item"
# ## One element at a time: own four rows
#
# Nearer than local memory are the work-item's own variables. The hardware keeps them in **registers**, where the
# arithmetic finds them at once. They are few, and only their owner sees them.
#
# So let a work-item own four results: four rows of one column. It loads a number of `b` *once* and uses it four times.

# %%
from llmcl.lab import get_global_id

def four_rows_item(a, b, c, m, n, k):
    col, row = get_global_id(0), 4 * get_global_id(1)
    if row >= m or col >= n:
        return
    at = [min(row + r, m - 1) * k for r in range(4)]    # where its four rows of a begin
    sums = [0.0] * 4
    for p in range(k):
        right = b[p * n + col]
        for r in range(4):
            sums[r] += a[at[r] + p] * right
    for r in range(4):
        if row + r < m:
            c[(row + r) * n + col] = sums[r]

# %% [markdown] id="item-2"
# What if `m` is 6? Then the second work-item of a column has two rows that do not exist. `min` lets those repeat the
# last row, so nothing is read past the end, and the last `if` does not store them.

# %%
a, b = np.random.default_rng(1).normal(size=(2, 6, 6)).astype(np.float32)
c = np.zeros((6, 6), np.float32)
owned = lab.run_items(four_rows_item, (6, 2), a, b, c, 6, 6, 6, group=(2, 2))
owned.report()
assert np.allclose(c, a @ b, atol=1e-5)

# %%
lab.view_items(owned, start=(2, 0))

# %% [markdown] id="item-count"
# One column of `b`, four rows of `a`. How many reads does that save? Beside it a work-item that owns one result:

# %%
def naive_item(a, b, c, m, n, k):
    row, col = get_global_id(0), get_global_id(1)
    if row < m and col < n:
        c[row * n + col] = sum(a[row * k + p] * b[p * n + col] for p in range(k))

a, b = np.random.default_rng(2).normal(size=(2, 8, 8)).astype(np.float32)
for item, size in ((naive_item, (8, 8)), (four_rows_item, (8, 2))):
    c = np.zeros((8, 8), np.float32)
    counts = lab.touch_counts(lab.run_items(item, size, a, b, c, 8, 8, 8))
    asked = counts["a"].reads + counts["b"].reads
    each = 2 * 8**3 / (4 * asked)
    print(f"{item.__name__}: {asked} reads for {8**3} terms, {each:g} operations per byte")

# %% [markdown] id="item-block"
# 1024 against 640. A **register block** of R rows and C columns loads R + C numbers for R · C terms. What
# would 4 rows of 16 columns give?

# %% tags=["slide"]
for rows, cols in ((1, 1), (4, 1), (4, 16), (6, 16), (16, 8)):
    print(f"{rows:2} x {cols:2}: {2 * rows * cols / (4 * (rows + cols)):.2f} operations per byte asked")

# %% [markdown] id="opencl"
# ## In OpenCL
#
# **Exercise 13.3** · hard · 15 minutes. Write `four_rows_item` in C. `int at[4];` makes an array of four,
# each work-item's own.
#
# <details><summary>Hint 1: the shape of it</summary>
#
# Three loops over `r`, one after the other: one to begin, one inside of the loop over `p`, one to store.
#
# </details>
#
# <details><summary>Hint 2: why at[] and not min() in the inner loop?</summary>
#
# Both are right. With `min` in the innermost loop, one driver that we tried made code slower than the naive
# kernel. What does not change in a loop is best done before it.
#
# </details>
#
# <details><summary>I am stuck: give me lines to put in order</summary>
#
# You add `{` and `}`. One line does not belong, and one is needed twice.
#
# - `for (int r = 0; r < 4; ++r) sum[r] += a[at[r] + p] * right;`
# - `for (int r = 0; r < 4; ++r)`
# - `if (row >= m || col >= n) return;`
# - `if (row + 3 >= m || col >= n) return;`
# - `const float right = b[p * n + col];`
# - `const int col = get_global_id(0), row = 4 * get_global_id(1);`
# - `int at[4]; float sum[4];`
# - `at[r] = min(row + r, m - 1) * k; sum[r] = 0.0f;`
# - `if (row + r < m) c[(row + r) * n + col] = sum[r];`
# - `for (int p = 0; p < k; ++p)`
#
# </details>

# %%
four_text = lab.kernel_exercise("13.3", """
__kernel void four_rows(__global const float *restrict a, __global const float *restrict b,
                        __global float *restrict c, const int m, const int n, const int k)
{
    // BEGIN SOLUTION
    const int col = get_global_id(0), row = 4 * get_global_id(1);
    if (row >= m || col >= n) return;
    int at[4];
    float sum[4];
    for (int r = 0; r < 4; ++r) {
        at[r] = min(row + r, m - 1) * k;
        sum[r] = 0.0f;
    }
    for (int p = 0; p < k; ++p) {
        const float right = b[p * n + col];
        for (int r = 0; r < 4; ++r) sum[r] += a[at[r] + p] * right;
    }
    for (int r = 0; r < 4; ++r)
        if (row + r < m) c[(row + r) * n + col] = sum[r];
    // END SOLUTION
}
""")

# %% [markdown] id="opencl-tall"
# A graphics card wants both: tiles for the group, and a block for each work-item. Here a group of T x T work-items
# owns 4 · T rows of T columns. The rows of a work-item are T apart. (`#ifndef`: T is 4, unless it was defined before.
# And `{…}` gives an array its first numbers.)
#
# **Exercise 13.4** · medium · 8 minutes. Fill in the innermost loop: one number of the tile `tb`, used for
# four sums.
#
# <details><summary>Hint</summary>
#
# Step p of the sum needs column p of the tile of `a`, and row p of the tile of `b`. The line that loads `ta`
# shows where the work-item's r-th row lies.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Two of these four:
#
# - `const float right = tb[p * T + x];`
# - `const float right = tb[x * T + p];`
# - `for (int r = 0; r < 4; ++r) sum[r] += ta[(r * T + y) * T + p] * right;`
# - `for (int r = 0; r < 4; ++r) sum[r] += ta[(4 * y + r) * T + p] * right;`
#
# </details>

# %%
tall_text = lab.kernel_exercise("13.4", """
#ifndef T
#define T 4
#endif
__kernel void tall_tiles(__global const float *restrict a, __global const float *restrict b,
                         __global float *restrict c, const int m, const int n, const int k)
{
    __local float ta[4 * T * T], tb[T * T];
    const int x = get_local_id(0), y = get_local_id(1);
    const int col = get_global_id(0), row = 4 * T * get_group_id(1) + y;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int start = 0; start < k; start += T) {
        for (int r = 0; r < 4; ++r) {
            const int at = row + r * T;
            ta[(r * T + y) * T + x] = at < m && start + x < k ? a[at * k + start + x] : 0.0f;
        }
        tb[y * T + x] = start + y < k && col < n ? b[(start + y) * n + col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int p = 0; p < T; ++p) {
            // BEGIN SOLUTION
            const float right = tb[p * T + x];
            for (int r = 0; r < 4; ++r) sum[r] += ta[(r * T + y) * T + p] * right;
            // END SOLUTION
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int r = 0; r < 4; ++r)
        if (row + r * T < m && col < n) c[(row + r * T) * n + col] = sum[r];
}
""")

# %% [markdown] id="check"
# ## Check: first right, then fast
#
# A kernel that leaves out work is always fast. So the check comes before the clock, at sizes that nothing
# divides:

# %%
from llmcl.engine import get_engine
from llmcl.reference import bounds

engine = get_engine()
four_rows = lab.build(engine, four_text).four_rows
tall_tiles = lab.build(engine, "#define T 16\n" + tall_text).tall_tiles

def run(kernel, a, b, c, group=(16, 16)):
    (m, k), n = a.shape, b.shape[1]
    kernel((n, -(-m // 4)), group, a, b, c, m, n, k)     # a quarter of the rows, rounded up

# %% tags=["slide"]
def prove(name, run_it, m=37, k=53, n=19):
    """Checks a product on the device against NumPy in float64."""
    rng = np.random.default_rng(13)
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((m, k), (k, n)))
    c = engine.empty((m, n))
    run_it(engine.from_host(a), engine.from_host(b), c)
    a, b = a.astype(np.float64), b.astype(np.float64)
    lab.check(name, engine.to_host(c), a @ b, bounds.matmul(a, b)[0])

prove("four_rows", lambda *matrices: run(four_rows, *matrices))
prove("tall_tiles", lambda *matrices: run(tall_tiles, *matrices))

# %% [markdown] id="ladder"
# ## The ladder, on your device
#
# You know `matmul_naive`, `matmul_swapped` and `matmul_tiled` from lesson 01b. Above them stand your two. The top is
# what the package takes on your device: `matmul_blocked` on a processor, `matmul_group` of `matmul_gpu.cl` on a
# graphics card. Here is the first. Skip the `if`, which is for the last columns. Where is the block?

# %%
lab.show_kernel("matmul", "matmul_blocked")

# %% [markdown] id="ladder-2"
# In `block(…)`, further up in the file: 6 rows by 16 columns or more, and the same three loops as yours. The two
# loops here serve the **cache**, a small and quick memory that keeps what was read lately. A work-item goes down
# several blocks (`STACK`) with one piece of `b` (`DEPTH` rows of it), and finds that piece in the cache each time.
#
# Now the clock. Other programs come and go, so the contestants take turns, five times each, and of each we
# take the **median**, the middle one of its times.
#
# **Exercise 13.5** · easy · 2 minutes. How many times as fast as `matmul_naive` will the top be, on your device?

# %%
lab.predict("13.5", guess=None)

# %%
size = 1024 if engine.device.info.kind == "gpu" else 384
square = np.random.default_rng(3).normal(size=(2, size, size)).astype(np.float32)
A, B = engine.from_host(square[0]), engine.from_host(square[1])
five = "naive", "swapped", "tiled", "four_rows", "tall_tiles"
C = {name: engine.empty((size, size)) for name in five}

def waiting(launch):
    """A function that launches and waits until the device is done."""
    return lambda: (launch(), engine.finish())

# %%
def ours(name, *extra):
    """A launch of one of the file's first three; extra: what matmul_tiled takes besides."""
    kernel = engine.program.kernel("matmul", f"matmul_{name}")
    matrices = (A, B, None, None, C[name]) if extra else (A, B, C[name])
    return waiting(lambda: kernel((size, size), (16, 16), *matrices, size, size, size, *extra))

rungs = {
    "naive": ours("naive"),
    "swapped": ours("swapped"),
    "tiled": ours("tiled", size, 1, size, 1),
    "four_rows": waiting(lambda: run(four_rows, A, B, C["four_rows"])),
    "tall_tiles": waiting(lambda: run(tall_tiles, A, B, C["tall_tiles"])),
    "the package": waiting(lambda: engine.matmul(A, B)),
}

# %% tags=["varies"]
seconds = lab.medians(rungs)
speed = {name: 2 * size**3 / time / 1e9 for name, time in seconds.items()}
print(f"{size} x {size} on {engine.name}")
for name in rungs:
    print(f"{name:>11}: {speed[name]:9.1f} GFLOP/s, {speed[name] / speed['naive']:7.1f} x naive")
lab.reveal("13.5", speed["the package"] / speed["naive"])

# %%
exact_a, exact_b = square.astype(np.float64)
exact, bound = exact_a @ exact_b, bounds.matmul(exact_a, exact_b)[0]
for name, result in C.items():
    lab.check(name, engine.to_host(result), exact, bound)
lab.check("the package", engine.to_host(engine.matmul(A, B)), exact, bound)

# %% [markdown] id="ladder-recorded"
# All six are right. Does your order surprise you? On a processor the swap changes nothing, and a tile may gain
# nothing either: the cache does its work unasked. There the block in registers counts. On a graphics card the swap
# alone is worth several times.
#
# The folder `benchmarks/` has records of other devices. Its `.json` files hold finished kernels only, so no rungs
# were recorded on a processor. `ladder.md` has those of an NVIDIA H200, in thousand GFLOP/s, at 2048 x 2048:

# %% tags=["varies"]
import json
from llmcl.resources import kernels_dir

folder = kernels_dir().parent / "benchmarks"
recorded = {p.stem: json.loads(p.read_text(encoding="utf-8")) for p in sorted(folder.glob("*.json"))}
if recorded:
    table = (folder / "ladder.md").read_text(encoding="utf-8").split("\n\n")[2]
    for line in table.splitlines()[2:]:
        step, where, at_2048 = [cell.strip(" *`") for cell in line.split("|")[1:4]]
        print(f"{at_2048:>5}  {where:<14}  {step}")
else:
    print("the folder benchmarks/ is not here; it is in the project's repository")

# %%
assert all(report["limits"]["flop_per_s"] > 0 for report in recorded.values())
print("✓ every recorded device has its limits beside its results")

# %% [markdown] id="measured"
# ## Your roof, measured
#
# How far is the top from what is possible? Two kernels find out: one only carries, the other only computes. Look at
# the second. A `float16` is a **vector**: sixteen floats that are treated alike (16 is a count here, not bits). Why
# does it keep twelve of them and not one?

# %%
lab.show_kernel("roofline", "roofline_arithmetic")

# %% [markdown] id="measured-2"
# An addition takes a few ticks of the clock. With one sum, each would wait for the one before. With twelve, others
# are under way meanwhile: one more reason for register blocks.
#
# Three kinds of task go under the roof: an addition of two long lists, one row times a large matrix, and the rungs.
# Where do you expect the first two?

# %%
n = 2**24 if engine.device.info.kind == "gpu" else 2**22
x, y = engine.from_host(np.ones(n)), engine.from_host(np.ones(n))
row, large = engine.from_host(np.ones((1, 4096))), engine.from_host(np.ones((4096, 4096)))
others = {
    "addition": (1 / 12, n, waiting(lambda: engine.residual(x, y))),
    "one row": (intensity(1, 4096, 4096), 2 * 4096**2, waiting(lambda: engine.matmul(row, large))),
}
assert (engine.to_host(engine.matmul(row, large)) == 4096).all()
print("✓ a row of ones times a matrix of ones is 4096 everywhere")

# %% tags=["varies"]
from llmcl.bench import roofline

limits = roofline(engine)
slow = lab.medians({name: launch for name, (_, _, launch) in others.items()})
points = {name: (at, work / slow[name] / 1e9) for name, (at, work, _) in others.items()}
points |= {name: (intensity(size, size, size), speed[name]) for name in rungs}
ridge = limits["flop_per_s"] / limits["bytes_per_s"]
print(f"{limits['bytes_per_s'] / 1e9:.0f} GB/s, {limits['flop_per_s'] / 1e9:.0f} GFLOP/s")
print(f"so the roof bends at {ridge:.1f} operations per byte")
for name, (at, reached) in points.items():
    most = roof(at, limits["bytes_per_s"], limits["flop_per_s"]) / 1e9
    print(f"{name:>11}: {at:7.3f} operations per byte, {reached / most:6.1%} of its roof")

# %%
assert limits["bytes_per_s"] > 0 and set(points) == {*others, *rungs}
print("✓ a roof, and a place for every kernel")

# %% tags=["varies"]
alt = "The measured roof of this device, and a point for each kernel; " + ", ".join(
    f"{name} at {reached:.1f} GFLOP/s" for name, (_, reached) in points.items())
picture, axes = lab.figure(alt, height=4.2)
draw_roof(axes, limits["bytes_per_s"], limits["flop_per_s"])
for (name, point), marker in zip(points.items(), "os^vDP*X"):
    axes.plot(*point, marker, markersize=10, fillstyle="none", markeredgewidth=2, label=name)
axes.legend(loc="upper left", fontsize=8)
lab.show(picture)

# %%
assert points["naive"][0] == points["the package"][0]
print("✓ one task, one place across: the rungs stand above each other")

# %% [markdown] id="measured-3"
# Where a point stands across is the task's, counted by hand; how high, the kernel's.
#
# - The addition makes few operations, and its roof is low. A better kernel gains little. Carrying less gains more: add
#   inside a kernel that has the numbers already. `engine.linear` takes a residual as `plus` for this reason.
# - One row: the package is far below even this low roof. Its kernels were made for many rows. Here is something left
#   to gain.
# - A point *above* the roof found its numbers in the cache, or your machine was busy while the roof was measured.

# %% [markdown] id="fused"
# ## Fused attention: never write the table
#
# In lesson 04b, attention takes three kernels: scores, softmax, sum. Between them lie two tables with a
# number for every pair of places, in every head: the scores and the shares. How large are they, with 4 heads?
# Beside them stands what we shall keep instead.

# %%
def table_bytes(T, heads=4):
    """Scores and shares, a float32 for each pair of places."""
    return 2 * heads * T * T * 4

def kept_bytes(T, heads=4):
    """One float32 for each row of each head."""
    return heads * T * 4

for T in (32, 256, 1024, 4096):
    print(f"{T:4} places: tables {table_bytes(T) // 1024:6} KiB, one number a row {kept_bytes(T) / 1024:4} KiB")

# %% [markdown] id="fused-2"
# Twice the places, four times the tables. Each is written and read again, for a few operations a number.
#
# Could a row be finished without ever having it whole? Shares need the total, and a safe exponential needs the
# largest score (lesson 04a). Both are known only at the end. But look at what a *new* largest score changes:

# %% tags=["slide"]
scores = np.array([1.0, 2.0, 4.0])
old, new = scores[:2].max(), scores.max()
before, after = np.exp(scores[:2] - old), np.exp(scores[:2] - new)
print("weights of the first two, by the old largest:", before.round(3))
print("weights of the first two, by the new largest:", after.round(3))
assert np.allclose(after, before * np.exp(old - new))

# %% [markdown] id="fused-3" tags=["slide"]
# All shrink by the same factor, exp(old − new). So a sum of old weights can be scaled afterwards. That is **online
# softmax**: one pass, and a row keeps three things, the largest score, the sum of weights, and the sum of weighted
# values. Attention made with it, in one kernel, is **fused attention** (*flash attention* is the same idea).
#
# **Exercise 13.6** · easy · 4 minutes. Put in order what a row does; the first four steps are repeated for
# each block of keys. One of the six does not belong. Return the letters as one word.
#
# - **A** Scale both sums to the new largest score.
# - **B** Add the block's weights to one sum, and its weighted values to the other.
# - **C** Compute the scores of a block of keys.
# - **D** Store the row's shares.
# - **E** Find the largest score so far.
# - **F** Divide the weighted values by the sum of weights.

# %%
@lab.exercise("13.6")
def online_steps():
    """The letters of five steps, in order."""
    ### BEGIN SOLUTION
    return "CEABF"
    ### END SOLUTION

# %% [markdown] id="fused-mend"
# **Exercise 13.7** · medium · 6 minutes. This one forgets something. Mend it with the smallest change.
#
# <details><summary>Hint</summary>
#
# `heard` was summed with old weights, too.
#
# </details>

# %%
@lab.exercise("13.7")
def one_pass(scores, values):
    """What a row hears: scores (n), values (n, d) -> (d), each looked at once."""
    largest, total, heard = -np.inf, 0.0, np.zeros(values.shape[1])
    for score, value in zip(scores, values):
        larger = max(largest, score)
        shrink, weight = np.exp(largest - larger), np.exp(score - larger)
        largest = larger
        ### BEGIN SOLUTION
        total = total * shrink + weight
        heard = heard * shrink + weight * value
        ### INSTEAD
        total = total * shrink + weight
        heard = heard + weight * value
        ### END SOLUTION
    return heard / total

# %%
from llmcl import reference

rng = np.random.default_rng(5)
scores, values = rng.normal(0, 3, 40), rng.normal(size=(40, 3))
assert np.allclose(one_pass(scores, values), reference.softmax(scores) @ values)
print("✓ one pass gives what softmax and a sum give")

# %% [markdown] id="fused-check"
# The kernel does this for eight rows at once, one in each number (*lane*) of a vector: `lanes` is a `float8`.
# Find `largest`, `shrink`, `total` and `heard`. What does it write besides `y`?

# %%
lab.show_kernel("fused_attention", "fused_attention_forward")

# %% [markdown] id="fused-check-2"
# Only `log_sum`, one number a row. The way back makes each share again as exp(score − log_sum) (lesson 08b). It
# computes more, to carry less. Is it the same attention? 37 places and 3 heads, against three steps in float64:

# %%
qkv32 = rng.normal(size=(2, 37, 3 * 24)).astype(np.float32)
exact_qkv = qkv32.astype(np.float64)
y_bound, log_bound = bounds.fused_attention(exact_qkv, 3)
heard, log_sum = engine.fused_attention(engine.from_host(qkv32), 3)
lab.check("fused attention", engine.to_host(heard), reference.attention(exact_qkv, 3)[0], y_bound)
want_log = reference.fused_attention(exact_qkv, 3)[1]
lab.check("log_sum", engine.to_host(log_sum), want_log, log_bound)

# %% [markdown] id="fused-memory"
# What does each keep for the way back? Ask the tensors:

# %%
T = 256
qkv = engine.from_host(rng.normal(size=(1, T, 3 * 128)))
shares = engine.attention(qkv, 4)[1]
log_sum = engine.fused_attention(qkv, 4)[1]
print("shares ", shares.shape, 4 * shares.size, "bytes")
print("log_sum", log_sum.shape, 4 * log_sum.size, "bytes")
assert 2 * 4 * shares.size == table_bytes(T) and 4 * log_sum.size == kept_bytes(T)

# %% tags=["varies"]
seconds = lab.medians({
    "three kernels": waiting(lambda: engine.attention(qkv, 4)),
    "fused": waiting(lambda: engine.fused_attention(qkv, 4)),
})
print(f"fused is {seconds['three kernels'] / seconds['fused']:.1f} times as fast at {T} places")
for name, report in recorded.items():
    memory = {r["size"]: r["bytes_per_token"] for r in report["scaling"] if r["grows"] == "context"}
    sizes = f"{memory[128]:.0f} bytes a token at 128 places, {memory[1024]:.0f} at 1024"
    print(f"recorded on {name}, memory of a fused training step: {sizes}")

# %% tags=["slide"]
contexts = [2**i for i in range(5, 13)]
picture, axes = lab.figure("Memory against places, both axes in powers: the tables grow with the square, from "
                           "32 KiB at 32 places to 512 MiB at 4096; one number a row grows in step, to 64 KiB.")
axes.loglog(contexts, [table_bytes(T) / 2**20 for T in contexts], "o-", base=2, label="scores and shares")
axes.loglog(contexts, [kept_bytes(T) / 2**20 for T in contexts], "s-", base=2, label="log_sum")
axes.set_xticks(contexts, contexts)
axes.set_yticks([2**-10, 2**-5, 1, 2**5, 2**9], ["1 KiB", "32 KiB", "1 MiB", "32 MiB", "512 MiB"])
axes.set_xlabel("places")
axes.legend()
lab.show(picture)
assert (table_bytes(4096) // 2**20, kept_bytes(4096) // 2**10) == (512, 64)

# %% [markdown] id="launches"
# ## Launches: the third limit
#
# A small kernel neither carries nor computes for long. It is *started*. `lab.launches` notes each started
# kernel's name. How many, do you think, in a training step (forward, backward, optimizer) with one block?

# %%
from llmcl.bench import bench_config, make_step

ids = np.random.default_rng(0).integers(0, 256, (25, 32))
steps = {blocks: make_step(engine, bench_config(blocks), ids) for blocks in (1, 2, 3)}
counts = {}
for blocks, step in steps.items():
    with lab.launches(engine) as names:
        step()
    counts[blocks] = len(names)

# %% tags=["varies"]
print("launches with 1, 2 and 3 blocks:", *counts.values())

# %%
assert counts[3] - counts[2] == counts[2] - counts[1] > 20
print("✓ every further block takes equally many launches")

# %% [markdown] id="launches-2"
# So how many does a model of 12 blocks take? And what does one cost? The smallest task there is: set one number to
# zero, 500 times.

# %% tags=["varies"]
one = engine.empty((1,))
timed = lab.medians({
    "500 launches": waiting(lambda: [engine.fill(one, 0.0) for _ in range(500)]),
    "a step": steps[1],
})
cost = timed["500 launches"] / 500
print(f"a launch takes {1e6 * cost:.1f} µs; {counts[1]} of them {1e3 * counts[1] * cost:.2f} ms")
print(f"the whole step takes {1e3 * timed['a step']:.1f} ms")
print(f"12 blocks: {counts[1] + 11 * (counts[2] - counts[1])} launches")

# %%
assert engine.to_host(one)[0] == 0
print("✓ 500 launches, one zero")

# %% [markdown] id="launches-3"
# If the launches are a small part of the step, better kernels pay. If they are most of it, only *fewer* kernels pay.
# That is so for a small step on a graphics card, and for a single new token on any device.

# %% [markdown] id="honest"
# ## The honest comparison
#
# Fast beside what? NumPy hands its products to a library (often OpenBLAS) that was tuned by hand for years. Here both
# take turns. They rest before each turn, so that the other's threads have gone to sleep.

# %% tags=["varies"]
def ten(multiply):
    return lambda: [multiply() for _ in range(10)]

both = {
    "ours": waiting(ten(lambda: engine.matmul(A, B))),
    "NumPy": ten(lambda: square[0] @ square[1]),
}
turns = lab.medians(both, rest=0.2)
print(f"product of {size} x {size}: ours is {turns['NumPy'] / turns['ours']:.2f} times as fast as NumPy")
share = 20 * size**3 / turns["NumPy"] / limits["flop_per_s"]
print(f"(NumPy reaches {share:.0%} of the measured peak)")
in_numpy = make_step(get_engine("numpy"), bench_config(1), ids)
turns = lab.medians({"ours": steps[1], "NumPy": in_numpy}, turns=3)
print(f"training step: ours is {turns['NumPy'] / turns['ours']:.1f} times as fast as the same step in NumPy")

# %%
lab.check("ours and NumPy: the product", engine.to_host(engine.matmul(A, B)), square[0] @ square[1], 2 * bound)

# %% [markdown] id="honest-2"
# Below 1, ours is slower; say so when you report it. Far above 1 on a processor, be suspicious: does NumPy reach less
# than half of the peak? Then another program held a core, and NumPy's threads waited for each other. Such a victory
# is none. Run it again in a quiet moment.
#
# PyTorch, cuBLAS (NVIDIA's library) and llama.cpp come from the recorded files: every row in which we
# *lose*, and every one beside PyTorch. Where is the largest loss?

# %% tags=["varies"]
for name, report in recorded.items():
    print(name)
    for r in sorted(report["results"], key=lambda r: r["ratio"]):
        if r["ratio"] < 1 or r["peer"].startswith("PyTorch"):
            print(f"    {r['ratio']:.2f}  {r['what']}, beside {r['peer']}")

# %%
rows = [r for report in recorded.values() for r in report["results"]]
assert all(abs(r["ratio"] - r["theirs"] / r["ours"]) < 1e-9 for r in rows)
print("✓ every recorded ratio is the peer's time by ours")

# %% [markdown] id="honest-3"
# Told plainly:
#
# - **cuBLAS** on the H200 is up to about a tenth faster, in float32. In TF32, with fewer digits, cards are much faster
#   still, and plain OpenCL C has no way to that hardware.
# - **NumPy** beats us in most products on PoCL and in none on Intel's driver: the same text, another compiler.
# - **llama.cpp** makes the next token several times as fast on a processor. It pays for no launches.
# - **PyTorch** is slower at our small steps, where launches count, and level at GPT-2 small.
#
# Measured once, on two machines. A ratio within one run tells more than two speeds from two machines.

# %% [markdown] id="break"
# ## Break it: a tile without its second barrier
#
# A barrier costs time, and `tall_tiles` has two for each pair of tiles. The first is needed: who adds must have the
# tile. But who needs the second? Leave it out. What will your device answer?

# %% tags=["varies"]
lab.device_answer("13.one_barrier", engine)

# %% tags=["slide"]
lab.run_broken("13.one_barrier")

# %% [markdown] id="break-2"
# With one pair of tiles nobody loads a next one. With three, a quick work-item loads it while a slow one still reads.
# PoCL runs a group piece by piece, and answers right every time; Intel's driver did not. A faster kernel with an
# innocent answer: that is how this fault gets into programs.
#
# How do fast kernels get by with one barrier? With *two pairs* of tiles in turns: the next is loaded into the other
# pair (`BUFFERS` in `matmul_gpu.cl`). That is not a barrier left out, but a conflict removed.

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 13.8** · hard · 20 minutes. Widen `four_rows`: four rows of *sixteen* columns. A number times a `float16`
# multiplies each of its sixteen. Every `n` is a multiple of 16.
#
# `*(__global const float16u *)(b + i)` loads sixteen floats from place `i` of `b`: it takes the address as one of a
# `float16u`, and fetches what is there. The `typedef` allows any float as a beginning; a plain `float16` must begin
# at a multiple of 64 bytes. `#pragma unroll` above the loops over `r` asks the compiler to write out their rounds, so
# that `sum[0]` to `sum[3]` become registers.
#
# <details><summary>Hint</summary>
#
# Four lines of `four_rows` change: where `col` begins, the type of `sum`, the load of `right`, and the store. The two
# pragmas are for speed only.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Four of these six take the place of their scalar twins:
#
# - `const int col = 16 * get_global_id(0), row = 4 * get_global_id(1);`
# - `const int col = get_global_id(0), row = 4 * get_global_id(1);`
# - `float16 sum[4];`
# - `const float16 right = *(__global const float16u *)(b + p * n + col);`
# - `const float16 right = b[p * n + col];`
# - `if (row + r < m) *(__global float16u *)(c + (row + r) * n + col) = sum[r];`
#
# </details>
#
# <details><summary>It says "invalid write"</summary>
#
# Is the `if` still there that keeps the rows past the end from being stored?
#
# </details>

# %%
wide_text = lab.kernel_exercise("13.8", """
typedef float16 float16u __attribute__((aligned(4)));
__kernel void wide_rows(__global const float *restrict a, __global const float *restrict b,
                        __global float *restrict c, const int m, const int n, const int k)
{
    // BEGIN SOLUTION
    const int col = 16 * get_global_id(0), row = 4 * get_global_id(1);
    if (row >= m || col >= n) return;
    int at[4];
    float16 sum[4];
    for (int r = 0; r < 4; ++r) {
        at[r] = min(row + r, m - 1) * k;
        sum[r] = 0.0f;
    }
    for (int p = 0; p < k; ++p) {
        const float16 right = *(__global const float16u *)(b + p * n + col);
#pragma unroll
        for (int r = 0; r < 4; ++r) sum[r] += a[at[r] + p] * right;
    }
#pragma unroll
    for (int r = 0; r < 4; ++r)
        if (row + r < m) *(__global float16u *)(c + (row + r) * n + col) = sum[r];
    // END SOLUTION
}
""")

# %% [markdown] id="exercises-run"
# First right, then fast. On a processor, expect a leap; on a graphics card, none. Why? There a bundle of neighbours
# is the vector already (lesson 01b).

# %%
wide_rows = lab.build(engine, wide_text).wide_rows

def run_wide(a, b, c):
    (m, k), n = a.shape, b.shape[1]
    wide_rows((n // 16, -(-m // 4)), (1, 1), a, b, c, m, n, k)

prove("wide_rows", run_wide, n=48)

# %% tags=["varies"]
result = engine.empty((size, size))
wide = waiting(lambda: run_wide(A, B, result))
timed = lab.medians({"naive": rungs["naive"], "wide_rows": wide, "the package": rungs["the package"]})
for name, time in timed.items():
    print(f"{name:>11}: {2 * size**3 / time / 1e9:9.1f} GFLOP/s, {timed['naive'] / time:6.1f} x naive")

# %%
lab.check("wide_rows", engine.to_host(result), exact, bound)

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - **Arithmetic intensity** is counted by hand, and says which limit is yours. The **roofline** says how far you are
#   from it.
# - What is loaded should be used often: from a **tile** by a group, from a **register block** by a work-item.
# - **Fused attention** never writes the table. It keeps one number a row.
# - A **launch** costs microseconds. Small work is bound by their number.
# - **First right, then fast**: the check at odd sizes comes before the clock.
#
# The package's rungs stay in `kernels/`; `llmcl bench` compares all but cuBLAS.
#
# **q1.** A kernel makes a tenth of an operation per byte. It reaches 90% of the bandwidth and 2% of the peak.
# What helps?
#
# - **A** a larger register block
# - **B** doing its work inside the kernel before or behind it, so that its numbers are not carried again
# - **C** more work-items

# %%
lab.quiz("13.q1")

# %% [markdown] id="recap-2"
# **q2.** What does fused attention keep for the way back?
#
# - **A** the shares
# - **B** the scores
# - **C** one number for each row of each head

# %%
lab.quiz("13.q2")

# %% [markdown] id="recap-3"
# **q3.** Somebody exported a square weight matrix transposed. What does llama.cpp do with the file?
#
# - **A** It refuses it: the shape is wrong.
# - **B** It loads it, and its logits are wrong.
# - **C** It turns the matrix round.

# %%
lab.quiz("13.q3")

# %% [markdown] id="recap-4"
# **q4.** Why may generation keep the keys and values of earlier places?
#
# - **A** because a later token changes nothing about an earlier place
# - **B** because all places have the same keys
# - **C** because the weights are not trained meanwhile

# %%
lab.quiz("13.q4")

# %% [markdown] id="recap-5"
# **q5.** The token table serves the look-up and the output head. What is its gradient?
#
# - **A** that of the head, which comes first on the way back
# - **B** the mean of both
# - **C** the sum of both

# %%
lab.quiz("13.q5")

# %%
lab.summary("13")

# %% [markdown] id="bridge"
# **Next:** lesson 14, *Beyond one machine*, another elective: one model trained by several processes at once. Or go on to
# lesson 15, *Your own text*: a larger model, on a text of yours.
