# ---
# jupyter:
#   llmcl:
#     title: Groups
#     needs: ["01a", "kernel", "work-item", "launch", "global size", "local size", "guard", "flat index", "matrix product", "Oclgrind", "bound"]
#     introduces:
#       - work-group
#       - local memory
#       - barrier
#       - race
#       - tree sum
#       - reduction
#       - tile
#       - llmcl.lab.cells
#       - llmcl.lab.get_group_id
#       - llmcl.lab.get_local_id
#       - llmcl.lab.get_local_size
#       - llmcl.lab.local
#       - llmcl.lab.touch_counts
#     minutes: {core: 60, full: 90}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 01b · Groups
#
# In this lesson work-items become a team: they share memory, wait for each other, and add up a line
# of numbers together. Then you see why two products with the same result can differ tenfold in speed.
#
# | | |
# |---|---|
# | **After this you can** | use work-groups, local memory and a barrier; write a tree sum for a group of any size; say why the order of two ids makes a kernel slow or fast |
# | **You need** | lesson 01a, and an OpenCL device |
# | **Time** | 60 minutes; 90 with the exercises |
# | **New words** | work-group, local memory, barrier, race, tree sum, tile |

# %%
from llmcl import lab

lab.start("01b")

# %% [markdown] id="idea"
# ## The idea: fold the line
#
# You want the sum of sixteen numbers, 0 to 15. One after the other, that is fifteen additions, and
# each of them waits for the one before.
#
# Now take eight helpers. Each adds one number of the upper half to its partner in the lower half.
# Then four helpers do the same with the eight numbers that are left, then two, then one:

# %% tags=["slide"]
numbers = list(range(16))
while len(numbers) > 1:
    half = len(numbers) // 2
    numbers = [numbers[i] + numbers[i + half] for i in range(half)]
    print(numbers)

# %% [markdown] id="idea-2" tags=["slide"]
# Fifteen additions still, but only four rounds. In a round, all additions happen at once. Drawn on
# paper they look like a tree, so this is a **tree sum**. Its other name is **reduction**.
#
# **Exercise 01b.1** · easy · 2 minutes. How many rounds do 1000 numbers take? Write your guess in
# place of `None`.
#
# <details><summary>Hint</summary>
#
# How many are left after one round? After two?
#
# </details>

# %%
lab.predict("01b.1", guess=None)

# %%
def rounds(count):
    """How often a line of numbers is folded until one number is left."""
    folds = 0
    while count > 1:
        count, folds = (count + 1) // 2, folds + 1
    return folds

assert rounds(16) == 4
lab.reveal("01b.1", rounds(1000))
print(rounds(1000), "rounds for a thousand,", rounds(1_000_000), "for a million")

# %% [markdown] id="idea-3"
# In lesson 01a no work-item needed the result of another. Here, the second round needs what the first
# has made. So the helpers need a **place** where they leave numbers for each other, and a way to
# **wait** for each other.

# %% [markdown] id="numpy"
# ## In NumPy: seven numbers, too
#
# Seven cannot be halved. So the upper half begins at place 4, which is 7 / 2 rounded up. The numbers
# 4, 5 and 6 go onto 0, 1 and 2. Number 3 has no partner in this round, and stays as it is.

# %%
import numpy as np

def tree_sum(values):
    """The sum of a line of numbers, by folding: (n) -> a number."""
    part = np.array(values)
    width = len(part)
    while width > 1:
        upper = (width + 1) // 2              # where the upper half begins
        part[: width // 2] += part[upper:width]
        width = upper
    return part[0]

assert all(tree_sum(np.arange(n)) == sum(range(n)) for n in range(1, 100))
print("✓ right for every length from 1 to 99")

# %% [markdown] id="numpy-2"
# What if `upper` were `width // 2`, rounded down? For 16 numbers nothing changes. For 7, NumPy refuses
# to add four numbers onto three. A kernel refuses nothing: number 6 is left out. Powers of two hide that,
# as squares did in lesson 01a.

# %% [markdown] id="item"
# ## One element at a time
#
# ### Who am I in my group?
#
# You know groups as something that a launch needs. A **work-group** is more than that: its work-items
# can share memory and wait for each other. Those of different groups cannot.
#
# So a work-item has three numbers: its own among all, its group's, and its place in the group.

# %%
from llmcl.lab import get_global_id, get_group_id, get_local_id, get_local_size

def who(groups, places):
    i = get_global_id(0)
    groups[i] = get_group_id(0)
    places[i] = get_local_id(0)

groups, places = np.zeros((2, 12), np.int32)      # two rows, one for each name
lab.run_items(who, 12, groups, places, group=4).report()
print("its group:", groups)
print("its place:", places)

# %% [markdown] id="item-ids"
# Do you see how the third follows from the other two? Skip the groups before yours, then go to your
# place:

# %%
assert (groups * 4 + places == np.arange(12)).all()
print("✓ global id = group id · local size + local id")

# %% [markdown] id="item-memory" tags=["slide"]
# ### A memory for the group
#
# There are three kinds of memory. You have used two of them already:
#
# | memory | who sees it | how C writes it |
# |---|---|---|
# | private | one work-item | a variable, `float own` |
# | **local memory** | one group | `__local float *part` |
# | global | all, and Python through buffers | `__global float *x` |
#
# On a graphics card, local memory is small, and much faster to reach than global memory. On a
# processor it is memory like any other. Every group gets its own. What lies in it at the start is
# anybody's guess. (CUDA says *shared memory*, *block* and *thread* for local memory, group and
# work-item.)

# %% [markdown] id="item-barrier"
# ### A barrier
#
# A first task, smaller than a sum: every group turns its four numbers around. Each work-item writes
# its number into local memory, and then reads the one of its opposite.

# %% tags=["slide"]
def mirror_item(x, y, part):
    i, me = get_global_id(0), get_local_id(0)
    part[me] = x[i]
    yield                                     # the barrier
    y[i] = part[get_local_size(0) - 1 - me]

x, y = np.arange(12, dtype=np.float32), np.zeros(12, np.float32)
lab.run_items(mirror_item, 12, x, y, lab.local(4), group=4).report()
print(y)

# %% [markdown] id="item-barrier-2"
# `lab.local(4)` is local memory for four numbers. And `yield`, in these Python twins, is the
# **barrier**: nobody of the group goes on before all of the group have come to it. What was written
# before it, all can read behind it. (In C#, `Barrier.SignalAndWait` does that for threads.)
#
# Why must it be there? Guess what is found without it:

# %%
def hasty_item(x, y, part):
    i, me = get_global_id(0), get_local_id(0)
    part[me] = x[i]
    y[i] = part[get_local_size(0) - 1 - me]

findings = lab.run_items(hasty_item, 12, x, y, lab.local(4), group=4).findings
print(findings[0])
print(findings[-1])

# %% [markdown] id="item-race"
# That is a **race** (or *data race*): two work-items use one place, one of them writes, and nothing
# says who comes first.

# %% [markdown] id="item-tree"
# ### The tree
#
# Now the sum. It is `tree_sum`, seen by one work-item:

# %% tags=["slide"]
def sum_item(x, sums, part, n):
    i, me = get_global_id(0), get_local_id(0)
    part[me] = x[i] if i < n else 0.0
    yield
    width = get_local_size(0)
    while width > 1:
        upper = (width + 1) // 2
        if me < width // 2:
            part[me] += part[me + upper]
        yield
        width = upper
    if me == 0:
        sums[get_group_id(0)] = part[0]

# %%
x, sums = np.arange(13, dtype=np.float32), np.zeros(2, np.float32)
lab.run_items(sum_item, 13, x, sums, lab.local(8), 13, group=8).report()
print(sums)
assert sums.tolist() == [sum(range(8)), sum(range(8, 13))]

# %% [markdown] id="item-tree-2"
# Two questions about it:
#
# - **Why does a surplus work-item not leave?** Because it would be missing at the barrier. So it
#   stays, and brings a 0, which changes no sum.
# - **Why does `yield` stand outside of the `if`?** Because *all* must come to it, also those who have
#   nothing to add in this round.

# %% [markdown] id="opencl"
# ## In OpenCL
#
# First the mirror. It has no guard for once, because 12 numbers fill three groups of 4:

# %%
mirror_text = """
__kernel void mirror(__global const float *x, __global float *y, __local float *part)
{
    const int i = get_global_id(0);
    const int me = get_local_id(0);
    part[me] = x[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[i] = part[get_local_size(0) - 1 - me];
}
"""

# %% [markdown] id="opencl-read"
# New in it:
#
# | C | Python | what it says |
# |---|---|---|
# | `__local float *part` | `part` | a pointer to the group's own memory |
# | `get_local_id(0)` | the same | my place in the group |
# | `barrier(CLK_LOCAL_MEM_FENCE);` | `yield` | wait for the group; and what was written to local memory is there for all |
#
# Who says how large `part` is? The launch does, in bytes: four floats are 16 bytes. (Plain PyOpenCL
# wants `cl.LocalMemory(16)` there; in Cloo it is `SetLocalArgument(2, 16)`.)

# %%
from llmcl.engine import get_engine

engine = get_engine()
mirror = lab.build(engine, mirror_text).mirror
x, there = np.arange(12, dtype=np.float32), engine.empty((12,))
mirror((12,), (4,), engine.from_host(x), there, 4 * 4)      # 4 * 4 bytes for part
print(engine.to_host(there))

# %% [markdown] id="opencl-limits"
# How much local memory is there, and how large may a group be? Ask your device:

# %% tags=["varies"]
info = engine.device.info
print(f"{info.local_mem_bytes // 1024} KiB of local memory, up to {mirror.max_group} in a group")

# %%
assert engine.device.info.local_mem_bytes >= 32 * 1024
print("✓ at least 32 KiB, as OpenCL promises")

# %% [markdown] id="opencl-write"
# **Exercise 01b.2** · medium · 10 minutes. Now you: write the tree sum in C. `sum_item` above is your
# model. Python's `x[i] if i < n else 0.0` is `i < n ? x[i] : 0.0f` in C. And `while` can become a
# `for`: `for (int width = get_local_size(0); width > 1; width = (width + 1) / 2) { … }`.
#
# <details><summary>Hint 1: the steps</summary>
#
# Bring a number. Wait. In the loop: fold, wait. Then one of the group writes.
#
# </details>
#
# <details><summary>Hint 2: what is a work-item's, and what is the group's</summary>
#
# `i`, `me`, `width` and `upper` are variables, each work-item has its own. Only `part` is shared.
#
# </details>
#
# <details><summary>It says: data race</summary>
#
# Look at the line that it names. Is it the one that brings the numbers? Then the upper half was
# perhaps not there yet when it was added: where is the barrier behind that line? Is it the one that
# adds? Then a quick work-item is in the next round while another still adds: where is the barrier in
# the loop?
#
# </details>
#
# <details><summary>I get 15 instead of 120</summary>
#
# 15 is the last number alone. Is there `=` where `+=` should be?
#
# </details>
#
# <details><summary>I am stuck: give me lines to put in order</summary>
#
# You add `{` and `}`. One line does not belong, and one is needed twice.
#
# - `if (me == 0) sums[get_group_id(0)] = part[0];`
# - `const int upper = (width + 1) / 2;`
# - `barrier(CLK_LOCAL_MEM_FENCE);`
# - `if (me < width / 2) part[me] += part[me + upper];`
# - `if (i >= n) return;`
# - `part[me] = i < n ? x[i] : 0.0f;`
# - `for (int width = get_local_size(0); width > 1; width = (width + 1) / 2)`
#
# </details>

# %%
sum_text = lab.kernel_exercise("01b.2", """
__kernel void group_sum(__global const float *x, __global float *sums,
                        __local float *part, const int n)
{
    const int i = get_global_id(0);
    const int me = get_local_id(0);
    // BEGIN SOLUTION
    part[me] = i < n ? x[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = get_local_size(0); width > 1; width = (width + 1) / 2) {
        const int upper = (width + 1) / 2;
        if (me < width / 2) part[me] += part[me + upper];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (me == 0) sums[get_group_id(0)] = part[0];
    // END SOLUTION
}
""")

# %% [markdown] id="check"
# ## Check: a sum of all groups
#
# A launch of `group_sum` leaves one sum for each group. How do they become one? Not in the same
# launch: a device may start the last group when the first has long ended. So **groups of one launch
# cannot wait for each other.** A barrier is for one group only.
#
# But a second launch begins when the first has ended. It adds up the sums.

# %%
group_sum = lab.build(engine, sum_text).group_sum

def total(x, group):
    """The sum of a line of numbers in two launches: (n) -> (1)."""
    groups = -(-len(x) // group)              # rounded up
    sums, one = engine.empty((groups,)), engine.empty((1,))
    # A kernel of lab.build rounds its global size up to whole groups by itself.
    group_sum((len(x),), (group,), engine.from_host(x), sums, 4 * group, len(x))
    group_sum((groups,), (groups,), sums, one, 4 * groups, groups)   # a single group
    return engine.to_host(one)

print(total(np.arange(16, dtype=np.float32), 4))

# %% [markdown] id="check-2"
# 1000 random numbers do not fill groups of 48, and 21 groups are no power of two. The bound is the
# one of lesson 01a, n · u · Σ|terms|. It holds for any order of additions:

# %%
x = np.random.default_rng(0).normal(size=1000).astype(np.float32)
exact = x.astype(np.float64)
bound = len(x) * 2.0**-24 * np.abs(exact).sum()
lab.check("two launches of group_sum", total(x, 48), [exact.sum()], bound)

# %% [markdown] id="check-house"
# The folder `kernels/` has such a sum, too: of squares, for the length of the gradient (lesson 09).
# Find your loop in it. What does each work-item do before its first barrier?

# %%
# In C, a comparison that holds is 1. So stretch is n / groups, rounded up.
lab.show_kernel("global_norm", "sum_squares_groups")

# %% [markdown] id="check-house-2"
# It first adds up several numbers by itself: in a group of 64, work-item 0 takes the numbers 0, 64,
# 128 … of a stretch. Exercise 01b.7 uses the same idea.

# %% [markdown] id="see"
# ## See it: the answer is luck
#
# Here the sum of 0 to 15 runs with barriers and without, and `seen` notes what every addition gave. A
# seed decides in which order the work-items get their turn.

# %%
def replay_item(x, seen, part, wait):
    me, turn, width = get_local_id(0), 0, 16
    part[me] = x[me]
    if wait:
        yield
    while width > 1:
        if me < width // 2:
            part[me] += part[me + width // 2]
            seen[8 * turn + me] = part[me]
        if wait:
            yield
        turn, width = turn + 1, width // 2

# %%
def replay(wait, seed):
    """What every addition gave: four rounds, eight work-items; nan where nobody adds."""
    x, seen = np.arange(16, dtype=np.float32), np.full((4, 8), np.nan, np.float32)
    lab.run_items(replay_item, 16, x, seen, lab.local(16), wait, group=16, seed=seed)
    return seen

right = replay(True, seed=0)
assert right[3, 0] == 120

# %% [markdown] id="see-2"
# Rounds go from top to bottom, work-items from left to right; the last sum is at the left of the last
# row. Orange is wrong. Move the slider. Which of the two tables changes?

# %% tags=["slide"]
def draw(axes, seed):
    for panel, wait in zip(axes, (True, False)):
        seen = replay(wait, seed)
        words = [["" if np.isnan(v) else f"{v:.0f}" for v in row] for row in seen]
        colors = np.where(np.isnan(seen), "", np.where(seen == right, "sky", "orange"))
        title = f"{'with' if wait else 'without'} barriers: {seen[3, 0]:.0f}"
        lab.cells(panel, seen, labels=words, colors=colors, title=title)

def in_words(seed):
    seen = replay(False, seed)
    wrong = int((seen[~np.isnan(seen)] != right[~np.isnan(seen)]).sum())
    return (f"Seed {seed}. With barriers all 15 sums are right, and the last one is 120. Without "
            f"them {wrong} of 15 are wrong (orange), and the last one is {seen[3, 0]:.0f}.")

lab.explore(draw, range(20), in_words, name="seed", start=3, columns=2, height=2.2)

# %%
with_barriers = {float(replay(True, seed)[3, 0]) for seed in range(100)}
without = {float(replay(False, seed)[3, 0]) for seed in range(100)}
assert with_barriers == {120} and len(without) > 20
print("✓ 100 seeds with barriers give 120 each time; without, more than 20 different answers")

# %% [markdown] id="break"
# ## Break it: one barrier less
#
# Now the kernel, without the first of its two barriers. What will your device answer for the sum of 0
# to 15? Guess before you run it.

# %% tags=["varies"]
lab.device_answer("01b.no_barrier", engine)

# %% tags=["slide"]
lab.run_broken("01b.no_barrier")

# %% [markdown] id="break-2"
# Oclgrind runs one work-item after the other, each up to its next barrier. So work-items 0 to 7 add
# the upper half before 8 to 15 have written it. What is left is 0 + 1 + … + 7.
#
# Did your device give the right numbers? That is the worse case. A processor's driver often runs one
# piece of the kernel for the whole group before the next piece, and so the fault stays hidden, until
# you change the device. **Think of the barrier; do not trust a test.**

# %% [markdown] id="break-return"
# ## Break it: a guard before a barrier
#
# In lesson 01a every kernel had its guard, `if (i >= n) return;`. Before a barrier it is a fault. In
# Python, 14 numbers in groups of 8:

# %%
def leaving_item(x, y, part, n):
    i, me = get_global_id(0), get_local_id(0)
    if i >= n:
        return
    part[me] = x[i]
    yield
    y[i] = part[0]

x, y = np.arange(14, dtype=np.float32), np.zeros(14, np.float32)
lab.run_items(leaving_item, 14, x, y, lab.local(8), 14, group=8).report()

# %% [markdown] id="break-return-2" tags=["slide"]
# **Every work-item of a group must reach every barrier.** If one leaves, the others may wait for it
# without end. Some devices hang, some give wrong numbers, some do as if nothing were wrong. We do not
# try it on yours. What does the strict device say about such a `group_sum`?

# %%
lab.run_broken("01b.early_return")

# %% [markdown] id="break-return-3"
# So: no `return` before a barrier. The surplus work-items bring something harmless, and an `if` stands
# around what only some may do.
#
# **Exercise 01b.3** · medium · 4 minutes. `group_max` finds the largest number of each group. It has
# such a fault, without any `return`. Mend it with the smallest change. (`fmax` is the larger
# of two; `-INFINITY` is below every number.)
#
# <details><summary>Hint</summary>
#
# In the second round of a group of 8, work-items 2 to 7 have nothing to compare. Where are they when
# the others wait?
#
# </details>

# %%
max_text = lab.kernel_exercise("01b.3", """
__kernel void group_max(__global const float *x, __global float *largest,
                        __local float *part, const int n)
{
    const int i = get_global_id(0);
    const int me = get_local_id(0);
    part[me] = i < n ? x[i] : -INFINITY;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = get_local_size(0); width > 1; width = (width + 1) / 2) {
        const int upper = (width + 1) / 2;
        if (me < width / 2) {
            part[me] = fmax(part[me], part[me + upper]);
        // BEGIN SOLUTION
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        // INSTEAD
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        // END SOLUTION
    }
    if (me == 0) largest[get_group_id(0)] = part[0];
}
""")

# %% [markdown] id="order"
# ## Who reads what?
#
# Lesson 01a left a riddle: two matrix products with equal results, and on a graphics card one is
# several times as fast. They differ in which id counts the rows:

# %%
def naive(a, b, c, m, n, k):
    row, col = get_global_id(0), get_global_id(1)
    if row < m and col < n:
        c[row * n + col] = sum(a[row * k + p] * b[p * n + col] for p in range(k))

def swapped(a, b, c, m, n, k):
    col, row = get_global_id(0), get_global_id(1)
    if row < m and col < n:
        c[row * n + col] = sum(a[row * k + p] * b[p * n + col] for p in range(k))

# %%
a, b = np.random.default_rng(1).normal(size=(2, 6, 6)).astype(np.float32)
run = {}
for item in (naive, swapped):
    c = np.zeros((6, 6), np.float32)
    run[item] = lab.run_items(item, (6, 6), a, b, c, 6, 6, 6)
    assert np.allclose(c, a @ b, atol=1e-5)
print("✓ both are right")

# %% [markdown] id="order-2"
# Look at neighbours at one moment: their first ids follow each other. First `naive`:

# %%
lab.view_items(run[naive], ["a", "b"], by="step", start=2)      # the second term: p is 1

# %% [markdown] id="order-3"
# Now `swapped`. Which matrix do the neighbours share, and how do they lie in the other one?

# %% tags=["slide"]
lab.view_items(run[swapped], ["a", "b"], by="step", start=2)

# %%
for item in (naive, swapped):
    gaps = lab.gaps(run[item], "a"), lab.gaps(run[item], "b")
    print(f"{item.__name__}: neighbours are {gaps[0]} apart in a, {gaps[1]} apart in b")

# %% [markdown] id="pieces"
# ### Memory comes in pieces
#
# Why does that matter? A graphics card runs neighbours in bundles, 32 at a time on NVIDIA's cards (a
# *warp*), 32 or 64 on AMD's (a *wavefront*). A bundle takes each step at the same moment. And global
# memory does not hand out single floats. It hands out pieces, of 32 bytes on many cards: eight floats
# side by side. Whoever wants one float gets all eight.
#
# **Exercise 01b.4** · easy · 4 minutes. Given the places that a bundle reads: how many pieces of
# eight must be fetched? Places 0 to 7 are piece 0, places 8 to 15 are piece 1.
#
# <details><summary>Hint</summary>
#
# `place // 8` is the number of the piece. A piece that several want is fetched once; Python's `set`
# keeps each number once.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Two of these four, in order: `found = {place // 8 for place in places}`,
# `found = [place // 8 for place in places]`, `return len(found)`, `return max(found)`
#
# </details>

# %%
@lab.exercise("01b.4")
def pieces(places):
    """How many pieces of eight numbers hold these places: a list of whole numbers -> a number."""
    ### BEGIN SOLUTION
    return len({place // 8 for place in places})
    ### END SOLUTION

# %% [markdown] id="pieces-see"
# Sixteen neighbours read one number each. Every column below is a piece; memory goes down a column,
# and on with the next. Move the slider, and the gap between neighbours grows. When does it no longer
# get worse?

# %%
def draw_pieces(axes, gap):
    places = {neighbour * gap for neighbour in range(16)}
    colors = np.full((8, 32), "", dtype=object)
    for place in places:
        colors[:, place // 8] = np.where(colors[:, place // 8] == "", "sky", colors[:, place // 8])
        colors[place % 8, place // 8] = "blue"
    lab.cells(axes, np.zeros((8, 32)), np.full((8, 32), ""), colors, title=f"gap {gap}")

def piece_words(gap):
    places = [neighbour * gap for neighbour in range(16)]
    wanted = len(set(places))
    return (f"At a gap of {gap}, numbers that 16 neighbours want: {wanted} (dark blue). Fetched: "
            f"{8 * pieces(places)}, in {pieces(places)} of the columns (the rest is light blue).")

lab.explore(draw_pieces, [0, 1, 2, 4, 8, 16], piece_words, name="gap", start=4, height=2.0)

# %% [markdown] id="pieces-count"
# From a gap of 8 on, every number comes in a piece of its own. Now a bundle of 32, in a product of
# 1024 x 1024, at the first step of the sum. How many pieces?

# %% tags=["slide"]
far_apart, side_by_side, same = [1024 * i for i in range(32)], list(range(32)), [0] * 32
print("naive:  ", pieces(far_apart), "of a +", pieces(same), "of b")
print("swapped:", pieces(same), "of a +", pieces(side_by_side), "of b")

# %% [markdown] id="pieces-after"
# 33 pieces against 5, for the same 32 additions: `swapped` is the fast one. The rule: **neighbours in
# the first id should read neighbouring places.** (The field calls that *coalesced* access.)

# %% [markdown] id="tile"
# ## Tiles: fetch once, use often
#
# `swapped` still fetches each row of `a` for every column of `c`. A group can do better: it loads a
# small square of `a` and one of `b` into local memory, a **tile** each, and all of the group use them.
# Then come the next two. A tile's side is `T`, and a group is `T` by `T`. Who loads what? Each brings
# one number of `a` from its own row, and one of `b` from its own column.

# %%
def tiled_item(a, b, c, ta, tb, m, n, k, T):
    x, y = get_local_id(0), get_local_id(1)
    col, row = get_global_id(0), get_global_id(1)
    total = 0.0
    for start in range(0, k, T):
        pa, pb = start + x, start + y
        ta[y * T + x] = a[row * k + pa] if row < m and pa < k else 0.0
        tb[y * T + x] = b[pb * n + col] if pb < k and col < n else 0.0
        yield
        for p in range(T):
            total += ta[y * T + p] * tb[p * T + x]
        yield
    if row < m and col < n:
        c[row * n + col] = total

# %%
a, b = np.random.default_rng(2).normal(size=(2, 8, 8)).astype(np.float32)
c, tiles = np.zeros((8, 8), np.float32), (lab.local(16), lab.local(16))
shared = lab.run_items(tiled_item, (8, 8), a, b, c, *tiles, 8, 8, 8, 4, group=(4, 4))
shared.report()
assert np.allclose(c, a @ b, atol=1e-5)

# %% [markdown] id="tile-see"
# What does one work-item still fetch by itself, and what does it find in the tiles?

# %%
lab.view_items(shared, start=(1, 2))

# %% [markdown] id="tile-count"
# It brings two numbers of `a` and two of `b`, and uses eight of each: four places, filled twice. Over
# all work-items:

# %%
alone = lab.run_items(swapped, (8, 8), a, b, c, 8, 8, 8)
for name, each in (("swapped", alone), ("tiled", shared)):
    counts = lab.touch_counts(each)
    print(f"{name}: {counts['a'].reads} reads of a, {counts['b'].reads} of b")

# %% [markdown] id="tile-order"
# A quarter, because the side is 4. With a side of 16 it is a sixteenth.
#
# **Exercise 01b.5** · easy · 3 minutes. Put in order what a work-item does; the first four steps are
# repeated for each pair of tiles. One of the six does not belong. Return the letters as one word.
#
# - **A** Wait until all have loaded.
# - **B** Wait until all have added.
# - **C** Load one number of each tile.
# - **D** Add up the products of the tiles' numbers.
# - **E** Write the sum, if `c` has such an element.
# - **F** Leave, if `c` has no such element.

# %%
@lab.exercise("01b.5")
def tile_steps():
    """The letters of five steps, in order."""
    ### BEGIN SOLUTION
    return "CADBE"
    ### END SOLUTION

# %% [markdown] id="speed"
# ## How fast is it here?
#
# `kernels/matmul.cl` begins with all three; its tiles are 16 x 16. We take matrices of 1024 x 1024 on
# a graphics card and 256 x 256 elsewhere. `finish` waits until the device is done; without it, you
# would time the waiting line. The unit is GFLOP/s, a thousand million additions and multiplications a
# second.

# %%
import time
from llmcl.resources import kernels_dir

file_text = (kernels_dir() / "matmul.cl").read_text(encoding="utf-8")
first_three = file_text[: file_text.index("__kernel void matmul_tiled_add")]
kernels = lab.build(engine, first_three)
size = 1024 if engine.device.info.kind == "gpu" else 256
a, b = np.random.default_rng(3).normal(size=(2, size, size)).astype(np.float32)
a_there, b_there = engine.from_host(a), engine.from_host(b)
c_there = engine.empty((size, size))

# %%
def speed(kernel, *args):
    """GFLOP/s, the best of four launches, and the result."""
    seconds = []
    for _ in range(4):
        begin = time.perf_counter()
        kernel((size, size), (16, 16), *args)
        engine.queue.finish()
        seconds.append(time.perf_counter() - begin)
    work = 2 * size**3      # size * size sums of size terms: each is multiplied and added
    return work / min(seconds) / 1e9, engine.to_host(c_there)

# %% [markdown] id="speed-args"
# `matmul_tiled` takes more arguments. Each `None` leaves out something for later; the four numbers at
# the end say how far it is to the next row and the next column, in `a` and in `b`.
#
# Which of the three is the fastest on your device, and by how much? Guess.

# %% tags=["varies"]
plain = a_there, b_there, c_there, size, size, size
extra = a_there, b_there, None, None, c_there, size, size, size, size, 1, size, 1
results = {}
for name, args in (("naive", plain), ("swapped", plain), ("tiled", extra)):
    rate, results[name] = speed(getattr(kernels, f"matmul_{name}"), *args)
    print(f"{name:>8}: {rate:8.1f}")

# %%
from llmcl.reference import bounds

exact_a, exact_b = a.astype(np.float64), b.astype(np.float64)
for name, result in results.items():
    lab.check(name, result, exact_a @ exact_b, bounds.matmul(exact_a, exact_b)[0])

# %% [markdown] id="speed-recorded"
# Recorded on an NVIDIA H200 at 1024 x 1024:
#
# | kernel | GFLOP/s |
# |---|---|
# | `matmul_naive` | 486 |
# | `matmul_swapped` | 5,636 |
# | `matmul_tiled` | 5,792 |
#
# Two ids exchanged: more than ten times as fast. The pieces had said about seven: a count
# tells the direction, a clock tells how far.
#
# On two drivers for processors, PoCL and Intel's, the swap changed nothing. Why? A processor runs
# work-items one by one, or a few at a time. What
# counts is the way of a *single* work-item, along a row of `a` and down a column of `b`, and that is
# the same in both kernels.
#
# And why does the tile add so little? The H200 keeps what it has read lately near at hand, so reading
# it again is cheap. But tiles lead to kernels that are several times as fast: lesson 13.

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 01b.6** · medium · 4 minutes. The tiled product in C, in which Oclgrind finds races. Mend
# it with one line. (`#define T 4` puts a 4 wherever `T` stands. `__local` inside of a kernel is local
# memory of a fixed size, which the launch need not give. And one `int` may begin two variables.)
#
# <details><summary>Hint</summary>
#
# A quick work-item is in the next round of the outer loop already. It loads. What are the slow ones
# still doing?
#
# </details>
#
# <details><summary>I am stuck: give me places to choose from</summary>
#
# The line is `barrier(CLK_LOCAL_MEM_FENCE);`. It belongs to one of these places: before the first
# `for`; behind the line with `sum +=`, inside of the outer loop; behind the outer loop.
#
# </details>

# %%
tiled_text = lab.kernel_exercise("01b.6", """
#define T 4
__kernel void tiled(__global const float *a, __global const float *b,
                    __global float *c, const int m, const int n, const int k)
{
    __local float ta[T * T], tb[T * T];
    const int x = get_local_id(0), y = get_local_id(1);
    const int col = get_global_id(0), row = get_global_id(1);
    float sum = 0.0f;
    for (int start = 0; start < k; start += T) {
        const int pa = start + x, pb = start + y;
        ta[y * T + x] = row < m && pa < k ? a[row * k + pa] : 0.0f;
        tb[y * T + x] = pb < k && col < n ? b[pb * n + col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        // BEGIN SOLUTION
        for (int p = 0; p < T; ++p) sum += ta[y * T + p] * tb[p * T + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        // INSTEAD
        for (int p = 0; p < T; ++p) sum += ta[y * T + p] * tb[p * T + x];
        // END SOLUTION
    }
    if (row < m && col < n) c[row * n + col] = sum;
}
""")

# %% [markdown] id="write"
# **Exercise 01b.7** · hard · 12 minutes. The sum of every row of a matrix, one group for one row. A
# row has `n` numbers; the group may be smaller or larger. So each work-item first adds up numbers of
# its own: those at `me`, `me + size`, `me + 2 · size` …, where `size` is the group's. Then comes the
# tree.
#
# <details><summary>Hint 1: which row?</summary>
#
# A row belongs to a group, so its number is the group's.
#
# </details>
#
# <details><summary>Hint 2: its own numbers</summary>
#
# `for (int j = me; j < n; j += get_local_size(0))`. Who gets no number adds nothing, and brings 0.
#
# </details>
#
# <details><summary>Why not one stretch for each work-item?</summary>
#
# It would be right. But then neighbours would read places far apart. So they take turns, and read
# side by side.
#
# </details>
#
# <details><summary>I am stuck: give me lines to put in order</summary>
#
# The tree between the last two lines is the one of 01b.2, from its first barrier to the end of the
# loop. One of these does not belong.
#
# - `part[me] = own;`
# - `for (int j = me; j < n; j += get_local_size(0)) own += x[row * n + j];`
# - `const int row = get_group_id(0);`
# - `if (me == 0) sums[row] = part[0];`
# - `if (me >= n) return;`
# - `float own = 0.0f;`
# - `const int me = get_local_id(0);`
#
# </details>

# %%
row_text = lab.kernel_exercise("01b.7", """
__kernel void row_sums(__global const float *x, __global float *sums,
                       __local float *part, const int n)
{
    // BEGIN SOLUTION
    const int row = get_group_id(0);
    const int me = get_local_id(0);
    float own = 0.0f;
    for (int j = me; j < n; j += get_local_size(0)) own += x[row * n + j];
    part[me] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = get_local_size(0); width > 1; width = (width + 1) / 2) {
        const int upper = (width + 1) / 2;
        if (me < width / 2) part[me] += part[me + upper];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (me == 0) sums[row] = part[0];
    // END SOLUTION
}
""")

# %% [markdown] id="exercises-run"
# And on your device, 37 rows of 1000, in groups of 48:

# %%
x = np.random.default_rng(4).normal(size=(37, 1000)).astype(np.float32)
exact, sums = x.astype(np.float64), engine.empty((37,))
kernel = lab.build(engine, row_text).row_sums
kernel((37 * 48,), (48,), engine.from_host(x), sums, 4 * 48, 1000)
bound = 1000 * 2.0**-24 * np.abs(exact).sum(axis=1)
lab.check("row_sums", engine.to_host(sums), exact.sum(axis=1), bound)

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - A **group** shares local memory and barriers. Groups of one launch cannot wait for each other.
# - A **barrier** stands between writing a place and reading it by others, and between that and the
#   next writing. All of the group must come to it.
# - A **tree sum** takes few rounds; round the upper half up, and any size is right.
# - On a graphics card, **neighbours in the first id should read neighbouring places**.
#
# **q1.** A group of 8 runs a tree sum. In the last round only one work-item adds. How many come to
# that round's barrier?
#
# - **A** one
# - **B** two
# - **C** eight

# %%
lab.quiz("01b.q1")

# %% [markdown] id="recap-2"
# **q2.** A kernel reads `x[get_global_id(0) * 512]`. What do you expect on a graphics card?
#
# - **A** It is fast, because every work-item reads a single number.
# - **B** It is slow, because every number comes in a piece of its own.
# - **C** It is wrong, because work-items must read neighbouring places.

# %%
lab.quiz("01b.q2")

# %% [markdown] id="recap-3"
# **q3.** You hand a `float64` array to a plain PyOpenCL kernel whose parameter is
# `float *`. What happens?
#
# - **A** PyOpenCL raises an error.
# - **B** The numbers are converted to float32.
# - **C** The bytes are read as if they were float32.

# %%
lab.quiz("01b.q3")

# %% [markdown] id="recap-4"
# **q4.** What is a token?
#
# - **A** a piece of text that has a number
# - **B** a word of the sentence
# - **C** a weight of the model

# %%
lab.quiz("01b.q4")

# %% [markdown] id="recap-5"
# **q5.** What does softmax make?
#
# - **A** the largest of the scores
# - **B** shares: positive, and one in total
# - **C** a score for each token

# %%
lab.quiz("01b.q5")

# %%
lab.summary("01b")

# %% [markdown] id="bridge"
# **Next:** lesson 02, *Tokens*. There text becomes numbers, and many work-items count in one
# table.
