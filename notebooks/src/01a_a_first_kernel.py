# ---
# jupyter:
#   llmcl:
#     title: A first kernel
#     needs: ["00", "kernel", "work-item", "device", "check", "bound"]
#     introduces:
#       - platform
#       - context
#       - queue
#       - command queue
#       - program
#       - buffer
#       - launch
#       - host
#       - global size
#       - local size
#       - NDRange
#       - pointer
#       - guard
#       - flat index
#       - matrix product
#       - float32
#       - float64
#       - Oclgrind
#       - llmcl.device.choose
#       - llmcl.lab.build
#       - llmcl.lab.device_answer
#       - llmcl.lab.figure
#       - llmcl.lab.gaps
#       - llmcl.lab.get_global_id
#       - llmcl.lab.kernel_exercise
#       - llmcl.lab.lessons.lesson_01a.mystery
#       - llmcl.lab.run_broken
#       - llmcl.lab.run_items
#       - llmcl.lab.show
#       - llmcl.lab.view_items
#       - llmcl.resources.kernels_dir
#     minutes: {core: 50, full: 80}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 01a · A first kernel
#
# In this lesson you write a small function in C and run it on your device, with nothing but
# PyOpenCL in between. Then you do the same for the matrix product, most of a language model's work.
#
# | | |
# |---|---|
# | **After this you can** | launch a kernel unaided; write the naive matrix product; guard it; say how large the error of a float32 sum may be; read OpenCL code in C# |
# | **You need** | lesson 00; an OpenCL device (a processor will do; lesson 00's report says what to install); warm-up 00a if you never saw C |
# | **Time** | 50 minutes; 80 with the exercises |
# | **New words** | host, platform, context, queue, program, buffer, launch, global size, NDRange, pointer, guard |

# %%
from llmcl import lab

lab.start("01a")

# %% [markdown] id="idea"
# ## The idea: take the loop away
#
# Here are seven numbers, and seven more. A loop adds them, pair by pair. Does their order matter?

# %%
ones = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
tens = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0]
sums = [0.0] * 7
for i in range(7):
    sums[i] = ones[i] + tens[i]
print(sums)

# %% [markdown] id="idea-2" tags=["slide"]
# The line with `for` decides **which** `i` comes next. The line below it does the **work** for one
# `i`. No `i` needs the result of another. So the order does not matter, and all seven could happen
# at once.
#
# That is the idea of OpenCL. You write the work for one `i`, and you say how many there are. The
# device hands out the numbers, to work-items that run side by side.

# %% [markdown] id="numpy"
# ## In NumPy
#
# NumPy hides the loop too. Its answer is our reference:

# %%
import numpy as np

a = np.array(ones, dtype=np.float32)
b = np.array(tens, dtype=np.float32)
want = a + b
print(want, a.dtype, a.nbytes, "bytes")

# %% [markdown] id="numpy-2"
# `float32` is a number of four bytes, with about seven digits. Kernels compute with those. NumPy's
# own choice would be `float64`, of eight bytes. That comes back in *Break it*.

# %% [markdown] id="item"
# ## One element at a time
#
# Before any C, the work for one `i` in Python. `get_global_id(0)` answers the only question that a
# work-item has: which one am I? `lab.run_items` plays the device. It calls the function once for each
# number from 0 to 6, in shuffled order, and notes all that is read and written.

# %%
from llmcl.lab import get_global_id

def add_item(a, b, c):
    i = get_global_id(0)       # 0: the first part of the id; a table will need a second one
    c[i] = a[i] + b[i]

c = np.zeros(7, np.float32)
lab.run_items(add_item, 7, a, b, c).report()
assert (c == want).all()

# %% [markdown] id="groups"
# A real device starts work-items in **groups** of one size. The **local size** is how many are in a
# group; you choose it. The **global size** is how many there are in all, and it must be made of whole
# groups. Lesson 01b says what groups are good for.
#
# **Exercise 01a.1** · easy · 2 minutes. Seven numbers, groups of 4: how many work-items have no
# number? Write your guess in place of `None`. And what will they do?

# %%
lab.predict("01a.1", guess=None)

# %% tags=["slide"]
run = lab.run_items(add_item, 7, a, b, c, group=4)
lab.reveal("01a.1", run.size[0] - 7)
print(run.size[0], "work-items for 7 numbers")
run.report()

# %% [markdown] id="guard"
# Work-item 7 has no number of its own, so it went past the end of all three arrays. `run_items`
# catches that. A device does not.
#
# So the function must be told how many numbers there are, and a work-item without one must leave.
# That line is the **guard**:

# %% tags=["slide"]
def add_item(a, b, c, n):
    i = get_global_id(0)
    if i >= n:
        return
    c[i] = a[i] + b[i]

lab.run_items(add_item, 7, a, b, c, 7, group=4).report()
assert (c == want).all()

# %% [markdown] id="opencl"
# ## In OpenCL
#
# Now the same in C. For Python it is only a text. Your program, which is called the **host**, will
# hand it to the device's driver, which compiles it.

# %% tags=["slide"]
add_text = """
__kernel void add(__global const float *a, __global const float *b,
                  __global float *c, const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    c[i] = a[i] + b[i];
}
"""

# %% [markdown] id="opencl-read"
# Line for line:
#
# | C | Python | what it says |
# |---|---|---|
# | `__kernel void add(…)` | `def add_item(…):` | a function that work-items run; `void`: it returns nothing |
# | `__global const float *a` | `a` | where the numbers of `a` begin in the device's memory; `const`: they are only read |
# | `const int n` | `n` | one whole number, which does not change |
# | `{` and `}` | the indent | where the body begins and ends |
# | `const int i = get_global_id(0);` | `i = get_global_id(0)` | C wants to know of what kind `i` is; and `;` ends a statement |
# | `if (i >= n) return;` | `if i >= n: return` | the guard |
#
# C's `float` is `float32`; Python's own is `float64`. The star is the unfamiliar part. `float *a` is a
# **pointer**: it says where numbers begin, not how many there are. (In C#: an array without
# `Length`.) Nobody checks `a[i]`. That is why `n` comes along.

# %% [markdown] id="device"
# ### Platform and device
#
# Who runs the text? A **platform** is one maker's OpenCL, a driver. It offers one device or more.
# `choose` takes the device that lesson 00's report marks with a star, and `.info.handle` is what
# PyOpenCL knows it by. (Some compilers remark on every text. The line with `warnings` keeps that
# quiet.)

# %%
import warnings

import pyopencl as cl
from llmcl.device import choose

warnings.filterwarnings("ignore", category=cl.CompilerWarning)
device = choose().info.handle
assert isinstance(device, cl.Device)

# %% [markdown] id="device-2"
# PyOpenCL lists all that there are; the arrow is yours. Without our package you would pick one of
# them: `cl.get_platforms()[0].get_devices()[0]` is the first of the first platform. Which one is that?
# It depends on luck, so look before you pick. Many examples call `cl.create_some_context()` instead. It
# may stop and ask a question, which a program at night cannot answer.

# %% tags=["varies"]
for platform in cl.get_platforms():
    for each in platform.get_devices():
        print("→" if each == device else " ", platform.name, "·", each.name)

# %% [markdown] id="context"
# ### Context and queue
#
# A **context** is the room in which your buffers and programs live. A **queue**, in full a
# *command queue*, is the line in which your orders to a device wait. It takes them one after the
# other, while Python goes on.

# %%
context = cl.Context([device])
queue = cl.CommandQueue(context)
assert context.devices == [device] and queue.device == device

# %% [markdown] id="program"
# ### Program and kernel
#
# A **program** is the compiled text. A kernel is one function in it. Make it once and keep it:
# `program.add` works too, but it makes a new one each time, and PyOpenCL warns of that.

# %%
program = cl.Program(context, add_text).build()
add = cl.Kernel(program, "add")
assert add.num_args == 4

# %% [markdown] id="buffer"
# ### Buffers
#
# The device has memory of its own. A **buffer** is a piece of it. Two are filled from our arrays.
# Of the third, for the result, only the size in bytes is said.

# %%
flags = cl.mem_flags           # what the kernel may do with a buffer; | joins two flags
a_there = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=a)
b_there = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=b)
c_there = cl.Buffer(context, flags.WRITE_ONLY, c.nbytes)
assert a_there.size == a.nbytes == 28

# %% [markdown] id="launch"
# ### Launch
#
# To **launch** a kernel is to put it into the queue, with the global size, the local size, and its
# arguments in order. The sizes are tuples, because ids can have up to three dimensions. This range of
# ids is the **NDRange**.
#
# Why `np.int32(7)` and not `7`? A number of Python has no fixed size; the kernel wants four bytes. The
# event that comes back is a receipt, which we do not need.

# %% tags=["slide"]
def whole_groups(count, group):
    """The smallest multiple of group that is not below count."""
    return (count + group - 1) // group * group

assert whole_groups(7, 4) == 8 and whole_groups(8, 4) == 8
size = (whole_groups(7, 4),)       # the comma makes it a tuple, of one number
event = add(queue, size, (4,), a_there, b_there, c_there, np.int32(7))

# %% [markdown] id="back"
# Maybe nothing is computed yet; the order waits in the queue. The last step fetches the result, and
# it waits until the orders before it are done. The zeros are there to prove that something came:

# %%
c[:] = 0
cl.enqueue_copy(queue, c, c_there)
print(c)
assert (c == want).all()

# %% [markdown] id="back-2"
# That was a kernel, launched by hand. Three remarks:
#
# - `enqueue_copy(queue, to, from)`: the target comes first, as in an assignment.
# - A global size that is not made of whole groups is refused: `INVALID_WORK_GROUP_SIZE`.
# - Always give a local size. With `None` the driver picks some, and PoCL compiles anew for each.
#
# **Exercise 01a.2** · easy · 3 minutes. Put the steps in order. One of the seven does not belong.
# Return the letters as one word, such as `"GAB"`.
#
# - **A** `cl.Kernel(program, "add")`
# - **B** `cl.enqueue_copy(queue, c, c_there)`
# - **C** `cl.Context([device])`
# - **D** `platform.get_devices()`
# - **E** `add(queue, (8,), (4,), …)`
# - **F** `cl.Program(context, add_text).build()`
# - **G** `cl.create_some_context()`
#
# <details><summary>Hint</summary>
#
# Read what stands in the brackets, or in front of the point. Who has made it?
#
# </details>

# %%
@lab.exercise("01a.2")
def steps():
    """The letters of six steps, in order."""
    ### BEGIN SOLUTION
    return "DCFAEB"
    ### END SOLUTION

# %% [markdown] id="csharp"
# ## From C# to PyOpenCL
#
# OpenCL's functions have the same names everywhere. C# reaches them by `DllImport`, or with
# **Silk.NET.OpenCL**, which leaves out the `cl` in front: `api.CreateContext(…)`. (One is spelled
# differently there: `EnqueueNdrangeKernel`.) **OpenCL.NET** writes `Cl.CreateContext(…)`. **Cloo**
# wraps them in classes, as PyOpenCL does.
#
# | step | OpenCL's name | Cloo | PyOpenCL |
# |---|---|---|---|
# | platforms | `clGetPlatformIDs` | `ComputePlatform.Platforms` | `cl.get_platforms()` |
# | devices | `clGetDeviceIDs` | `platform.Devices` | `platform.get_devices()` |
# | context | `clCreateContext` | `new ComputeContext(…)` | `cl.Context([device])` |
# | queue | `clCreateCommandQueue` | `new ComputeCommandQueue(…)` | `cl.CommandQueue(context)` |
# | program | `clCreateProgramWithSource` | `new ComputeProgram(…)` | `cl.Program(context, text)` |
# | compile | `clBuildProgram` | `program.Build(…)` | `.build()` |
# | kernel | `clCreateKernel` | `program.CreateKernel("add")` | `cl.Kernel(program, "add")` |
# | buffer | `clCreateBuffer` | `new ComputeBuffer<float>(…)` | `cl.Buffer(…)` |
# | argument | `clSetKernelArg` | `SetMemoryArgument`, `SetValueArgument` | in the launch |
# | launch | `clEnqueueNDRangeKernel` | `queue.Execute(…)` | `add(queue, …)` |
# | fetch | `clEnqueueReadBuffer` | `queue.ReadFromBuffer(…)` | `cl.enqueue_copy(…)` |
#
# The kernel's text stays as it is, letter by letter.
#
# <details><summary>What else differs when you carry code over</summary>
#
# - In C# each argument is set by its number, before the launch. PyOpenCL takes them all at once.
# - OpenCL's own functions return an error code that you have to look at. Cloo and PyOpenCL raise an
#   exception.
# - What you create in C# you release (`clReleaseMemObject` and its like, or `Dispose`). Python does it
#   when nothing refers to the object any more.
#
# </details>

# %% [markdown] id="scale"
# ## Your first kernel
#
# **Exercise 01a.3** · easy · 4 minutes. `scale` writes `factor` times `x` into `y`. Put two lines in
# place of the one with `#error`. Run the cell: your kernel is tried on **Oclgrind**, the strict
# device, which reports every step past an end. If C does not understand a line, you are shown which.
#
# <details><summary>Hint</summary>
#
# Two lines, and you have seen both above. First: who leaves? Then: what is written where?
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Two of these four belong there: `if (i > n) return;`, `if (i >= n) return;`,
# `y[i] = factor * x[i];`, `return factor * x[i];`
#
# </details>
#
# <details><summary>It says: should not return a value</summary>
#
# Either there is something behind `return`, or the `;` after it is missing; then C takes the next
# line for what is to be returned.
#
# </details>

# %%
scale_text = lab.kernel_exercise("01a.3", """
__kernel void scale(__global const float *x, __global float *y,
                    const float factor, const int n)
{
    const int i = get_global_id(0);
    // BEGIN SOLUTION
    if (i >= n) return;
    y[i] = factor * x[i];
    // END SOLUTION
}
""")
scale = cl.Kernel(cl.Program(context, scale_text).build(), "scale")

# %% [markdown] id="alone"
# **Exercise 01a.4** · medium · 10 minutes. Now launch it, unaided. `scaled` gets a NumPy array of
# any length, perhaps in `float64`, and a number. It returns a new array that the kernel `scale` has
# computed. `context`, `queue`, `flags`, `scale` and `whole_groups` are there.
#
# <details><summary>Hint 1: the steps</summary>
#
# Make it `float32`. A buffer with it, a buffer for the result, a launch, a copy back, a `return`.
#
# </details>
#
# <details><summary>Hint 2: the numbers</summary>
#
# `factor` is a `float` in the kernel, so it wants `np.float32(factor)`; the length wants `np.int32`.
#
# </details>
#
# <details><summary>I get INVALID_WORK_GROUP_SIZE</summary>
#
# The global size is not made of whole groups. Which function rounds it up?
#
# </details>
#
# <details><summary>I get INVALID_VALUE, invalid kernel argument</summary>
#
# The number after `arg#` says which argument it is, counted from 1. Is it a plain number of Python?
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Put them in order. One does not belong, and the array `y` is still to be made, with
# `np.empty_like(x)`.
#
# - `cl.enqueue_copy(queue, y, y_there)`
# - `x = x.astype(np.float32)`
# - `scale(queue, size, (4,), x_there, y_there, np.float32(factor), np.int32(len(x)))`
# - `size = (whole_groups(len(x), 4),)`
# - `return y_there`
# - `y_there = cl.Buffer(context, flags.WRITE_ONLY, y.nbytes)`
# - `return y`
# - `x_there = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=x)`
#
# </details>

# %%
@lab.exercise("01a.4")
def scaled(x, factor):
    """factor times x, computed by the kernel `scale`: (n) -> (n), float32."""
    ### BEGIN SOLUTION
    x = x.astype(np.float32)
    y = np.empty_like(x)
    x_there = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=x)
    y_there = cl.Buffer(context, flags.WRITE_ONLY, y.nbytes)
    size = (whole_groups(len(x), 4),)
    scale(queue, size, (4,), x_there, y_there, np.float32(factor), np.int32(len(x)))
    cl.enqueue_copy(queue, y, y_there)
    return y
    ### END SOLUTION

# %%
assert scaled(np.array([1.0, 2.0, 3.0]), 2).tolist() == [2, 4, 6]

# %% [markdown] id="product"
# ## The matrix product
#
# Two people go shopping. Each has a list of three goods. There are four shops, each with its own
# prices. Who pays how much where?

# %%
lists = np.array([[2, 1, 0],        # (2, 3): two lists of three goods
                  [1, 0, 4]], dtype=np.float32)
prices = np.array([[3, 2, 4, 3],    # (3, 4): three goods in four shops
                   [1, 2, 1, 1],
                   [2, 2, 1, 3]], dtype=np.float32)
print(lists @ prices)               # (2, 4): two people in four shops

# %% [markdown] id="product-2"
# Each number of the result is one **row** on the left times one **column** on the right: number by
# number, then added up. The first list in the first shop: 2·3 + 1·1 + 0·2 = 7. That is the **matrix
# product**. In a language model a row is a token's numbers, and the columns are weights.
#
# No result needs another. So each gets a work-item, which now has two ids: a row and a column.
#
# A kernel sees no table, only one long line, row after row. Where is row 1, column 2 of `prices`?

# %%
line = prices.reshape(-1)
print(line)
row, col, n = 1, 2, 4
assert line[row * n + col] == prices[row, col]

# %% [markdown] id="product-item"
# `row * n + col`: skip `row` whole rows of `n` numbers, then go `col` further. That is the
# **flat index**. Now the work for one element of `c`, which has `m` rows and `n` columns. It is a sum of `k`
# terms:

# %%
def product_item(a, b, c, m, n, k):
    row = get_global_id(0)
    col = get_global_id(1)
    if row >= m or col >= n:
        return
    total = 0.0
    for p in range(k):
        total += a[row * k + p] * b[p * n + col]
    c[row * n + col] = total

# %%
costs = np.zeros((2, 4), np.float32)
lab.run_items(product_item, (2, 4), lists, prices, costs, 2, 4, 3, group=(4, 4)).report()
assert (costs == lists @ prices).all()

# %% [markdown] id="product-kernel"
# And the kernel, from the folder `kernels/`. What is new in it?

# %% tags=["slide"]
lab.show_kernel("matmul", "matmul_naive")

# %% [markdown] id="product-read"
# Line for line it is the same. New are four things:
#
# - `for (int p = 0; p < k; ++p)` is `for p in range(k)`: the start, how long, and `++p`, one more
#   after each turn. What follows, up to the `;`, is repeated.
# - `||` is `or`: leave if the row **or** the column lies outside.
# - `0.0f` is zero as a `float`. Without the `f` it is a `double`, C's word for float64, which some
#   devices do not have.
# - `restrict` promises that no other pointer leads to the same numbers, which helps the compiler.
#
# It is called naive because it does what the definition says, and nothing to be fast.
#
# The file holds faster kernels too, for later. So we cut this one out, and make it a kernel as
# before:

# %%
from llmcl.resources import kernels_dir

file_text = (kernels_dir() / "matmul.cl").read_text(encoding="utf-8")
start = file_text.index("__kernel void matmul_naive")
matmul_text = file_text[start : file_text.index("\n}", start) + 2]
matmul = cl.Kernel(cl.Program(context, matmul_text).build(), "matmul_naive")
assert matmul.num_args == 6

# %% [markdown] id="product-launch"
# The launch has two sizes now, one for each id. Both are rounded up, and a group is 4 by 4
# work-items. (A buffer that is neither `READ_ONLY` nor `WRITE_ONLY` is for both;
# `*there` hands over all three.)

# %%
def product(a, b):
    """The matrix product on the device: (m, k), (k, n) -> (m, n), all float32."""
    (m, k), n = a.shape, b.shape[1]
    c = np.empty((m, n), np.float32)
    there = [cl.Buffer(context, flags.COPY_HOST_PTR, hostbuf=x) for x in (a, b, c)]
    sizes = whole_groups(m, 4), whole_groups(n, 4)
    matmul(queue, sizes, (4, 4), *there, np.int32(m), np.int32(n), np.int32(k))
    cl.enqueue_copy(queue, c, there[2])
    return c

assert (product(lists, prices) == lists @ prices).all()

# %% [markdown] id="check"
# ## Check
#
# A float holds small whole numbers exactly, and most others not. So how wrong may a right kernel be?
# A float32 has 24 binary digits. At 2²⁴ it can no longer count:

# %%
big = np.float32(2**24)
assert big + np.float32(1) == big
print("✓ 16777216 + 1 is 16777216 in float32")

# %% [markdown] id="check-u"
# The result is rounded to the nearest float. That misses by at most half the gap between two
# neighbours, which is at most 2⁻²⁴ of the number. This share is called **u**.

# %%
u = 2.0**-24
rng = np.random.default_rng(0)
x = rng.normal(size=10_000)
missed = abs(x.astype(np.float32) - x)
assert (missed <= u * abs(x)).all()
print("✓ of 10000 numbers, none is rounded by more than u of itself")

# %% [markdown] id="check-sum"
# Now a sum. After each addition, the total so far is rounded, and misses by at most u of itself. No
# total along the way is larger than the sum of the magnitudes, Σ|terms|. With n terms there are fewer
# than n additions. So the error is at most
#
# **n · u · Σ|terms|**
#
# The magnitudes count, not the result. Why? Watch:

# %% tags=["slide"]
terms = np.array([1e8, 1.0, -1e8], dtype=np.float32)
total = np.float32(0)
for term in terms:
    total += term
print("the sum is", total, "and the bound", round(3 * u * abs(terms.astype(np.float64)).sum(), 1))

# %% [markdown] id="check-sum-2"
# The true sum is 1. The answer is wrong by 100 percent, and nobody is to blame: 100000001 is no
# float32. A rule such as "at most 0.1 percent" would call that a fault. The bound does not.
#
# **Exercise 01a.5** · easy · 4 minutes. Write the bound as a function.
#
# <details><summary>Hint</summary>
#
# Three factors: how many, 2.0**-24, and the sum of what remains when the signs are gone.
#
# </details>
#
# <details><summary>I am stuck: give me pieces to choose from</summary>
#
# A product of three of these: `len(terms)`, `2.0**-24`, `abs(terms.sum())`, `abs(terms).sum()`.
#
# </details>

# %%
@lab.exercise("01a.5")
def sum_bound(terms):
    """The largest error that rounding explains in a float32 sum: float64 terms (n) -> a number."""
    ### BEGIN SOLUTION
    return len(terms) * 2.0**-24 * np.abs(terms).sum()
    ### END SOLUTION

# %% [markdown] id="check-see"
# Does it hold? We try it: sums of 4 to 65536 random numbers, added one after the other in float32
# (`cumsum` does it in that order), against float64:

# %%
counts, errors, allowed = 2 ** np.arange(2, 17), [], []
for count in counts:
    terms = rng.normal(size=count).astype(np.float32)
    exact = terms.astype(np.float64)
    errors.append(abs(np.cumsum(terms)[-1] - exact.sum()))
    allowed.append(sum_bound(exact))
assert (np.array(errors) <= allowed).all()
assert allowed[0] / errors[0] < allowed[-1] / errors[-1]    # the gap widens

# %%
picture, axes = lab.figure(
    "Errors of float32 sums as dots, for 4 to 65536 terms, and the bound as a line above them. All "
    "dots lie below the line, and the gap between the two widens as the terms become more."
)
axes.loglog(counts, allowed, label="the bound")
axes.loglog(counts, np.maximum(errors, 1e-9), "o", label="the error")
axes.set(xlabel="terms", ylabel="error")
axes.legend()
lab.show(picture)

# %% [markdown] id="check-product"
# It holds. The errors are far below, because roundings go up as often as down. A bound is a promise,
# not a forecast.
#
# An element of the matrix product is a sum of `k` terms, and each term was rounded once more.
# `bounds.matmul` counts that in. Now a fair test of the kernel, with random numbers in an odd shape:

# %%
from llmcl.reference import bounds

a = rng.normal(size=(37, 29)).astype(np.float32)
b = rng.normal(size=(29, 53)).astype(np.float32)
exact_a, exact_b = a.astype(np.float64), b.astype(np.float64)
bound = bounds.matmul(exact_a, exact_b)[0]      # a list, with one bound for each result
lab.check("matmul_naive on 37 x 29 x 53", product(a, b), exact_a @ exact_b, bound)

# %% [markdown] id="see"
# ## See it
#
# Who reads what? `lab.run_items` has noted it, and `lab.view_items` shows it. Move the slider with
# the mouse or the arrow keys. Each work-item reads one row of `a` and one column of `b`, in turns, and
# writes one place of `c`. Which others read the same row as (1, 2)?

# %%
a, b, c = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32), np.zeros((3, 5), np.float32)
run = lab.run_items(product_item, (3, 5), a, b, c, 3, 5, 4)
lab.view_items(run, start=(1, 2))

# %% [markdown] id="see-step"
# A device runs many at once. So look at one moment instead: four **neighbours**, whose first ids are
# 0, 1, 2 and 3, at their first access to each array. A cell holds the ids of those who touch it. This
# time the matrices are square:

# %% tags=["slide"]
def square(item):
    """The run of an item on two random 4 x 4 matrices; it prints whether the result is right."""
    a, b = np.random.default_rng(1).normal(size=(2, 4, 4)).astype(np.float32)
    c = np.zeros((4, 4), np.float32)
    run = lab.run_items(item, (4, 4), a, b, c, 4, 4, 4)
    print("✓ the result is right" if np.allclose(c, a @ b, atol=1e-5) else "✗ the result is wrong")
    return run

run = square(product_item)
lab.view_items(run, by="step")

# %% [markdown] id="see-riddle"
# **A riddle.** `mystery` is an item that you are not shown. Its result is right, yet one thing in it
# differs. Compare its picture with the last one: which array do the four share now?

# %%
from llmcl.lab.lessons.lesson_01a import mystery

hidden = square(mystery)
lab.view_items(hidden, by="step")

# %% [markdown] id="see-question"
# What differs?
#
# - **A** It takes its column from id 0 and its row from id 1.
# - **B** It goes through the sum backwards.
# - **C** It reads `b` as if it were turned on its side.

# %%
lab.quiz("01a.e1")

# %% [markdown] id="see-after"
# The distance between neighbours can also be had as a number:

# %%
print("product_item: in a", lab.gaps(run, "a"), "apart, in b", lab.gaps(run, "b"))
print("mystery:      in a", lab.gaps(hidden, "a"), "apart, in b", lab.gaps(hidden, "b"))

# %% [markdown] id="see-after-2"
# Both are right. On a graphics card one is several times as fast: lesson 01b says which, and why.

# %% [markdown] id="break"
# ## Break it: no guard
#
# Here the product has lost its guard. `lab.run_broken` shows the line that is gone, checks the kernel
# on two shapes, in groups of 4 by 4, and asks Oclgrind:

# %% tags=["slide"]
lab.run_broken("01a.no_guard")      # with a line gone, the lines below it are one up

# %% [markdown] id="break-guard"
# The check is content both times. Yet 3 rows are no whole group. The work-items of row 3 read past
# the end of `a` and wrote past the end of `c`. No number of the result is wrong, so no check can see
# it. What lies behind `c` is wrong now, and on another day that is a weight.
#
# What does your device say? There is room behind the result here, so no harm is done:

# %% tags=["varies"]
from llmcl.engine import get_engine

engine = get_engine()
lab.device_answer("01a.no_guard", engine)

# %% [markdown] id="break-guard-2"
# Nothing, most likely. **A right answer is no proof of a right kernel.** So a kernel gets both: a
# check, and the strict device. With its guard again:

# %%
a, b = rng.normal(size=(3, 5)).astype(np.float32), rng.normal(size=(5, 7)).astype(np.float32)
bound = bounds.matmul(a.astype(np.float64), b.astype(np.float64))[0]
lab.check("with its guard", product(a, b), a.astype(np.float64) @ b.astype(np.float64), bound)

# %% [markdown] id="break-swap"
# ## Break it: swapped ids
#
# Now the riddle's change, in the kernel. The launch stays as it was. Before you run it: on which of
# the two shapes will the check find it?

# %% tags=["slide"]
lab.run_broken("01a.swapped_ids")

# %% [markdown] id="break-swap-2"
# Only on the odd shape. There, rows are counted where columns should be, and the last columns have
# nobody: `nan` was there before, and stayed. On a square everyone has a place, only not the expected
# one. This time Oclgrind sees nothing, because nobody goes past an end. You need both.

# %% [markdown] id="break-type"
# ## Break it: the wrong type
#
# The third fault is not in the kernel. These numbers are `float64`, because nobody said otherwise:

# %%
x = np.array([1.0, 2.0, 3.0, 4.0])
zeros = np.zeros(4, np.float32)
there = [cl.Buffer(context, flags.COPY_HOST_PTR, hostbuf=v) for v in (x, zeros, zeros)]
event = add(queue, (4,), (4,), *there, np.int32(4))
got = np.empty(4, np.float32)
cl.enqueue_copy(queue, got, there[2])
print(x, "+ 0 =", got)

# %% [markdown] id="break-type-2"
# No error, and nonsense. Why? A buffer is bytes without a type. The kernel took the eight bytes of `1.0`
# for two floats. NumPy can read them so too:

# %%
assert (got == x.view(np.float32)[:4]).all()
print("✓ the same bytes, read four at a time")

# %% [markdown] id="break-type-3"
# Plain PyOpenCL cannot know. Our package's kernels compare what they are given with their own text.
# `lab.build` makes such a careful kernel of any text:

# %%
careful = lab.build(engine, add_text).add
there = engine.from_host(zeros)
try:
    careful((4,), (4,), x, there, engine.empty((4,)), 4)
except Exception as error:
    print(error)

# %% [markdown] id="break-type-4"
# `from_host` makes a float32 of it:

# %%
result = engine.empty((4,))
careful((4,), (4,), engine.from_host(x), there, result, 4)
assert (engine.to_host(result) == x).all()
print("✓ now the sum is right")

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 01a.6** · easy · 4 minutes. `table` fills a multiplication table: row `row`, column `col`
# gets `x[row] * y[col]`. It is broken, though it has a guard. Mend it with the smallest change. (`&&`
# is `and`.)
#
# <details><summary>Hint</summary>
#
# Take 3 rows and 5 columns, in groups of 4 by 4. Does the work-item in row 0, column 5 leave? Whose
# place is `0 * 5 + 5`?
#
# </details>
#
# <details><summary>Oclgrind speaks of a data race</summary>
#
# Two work-items use one place, and one of them writes it. Who comes last decides what is there.
#
# </details>

# %%
table_text = lab.kernel_exercise("01a.6", """
__kernel void table(__global const float *x, __global const float *y,
                    __global float *z, const int rows, const int cols)
{
    const int row = get_global_id(0);
    const int col = get_global_id(1);
    // BEGIN SOLUTION
    if (row >= rows || col >= cols) return;
    // INSTEAD
    if (row >= rows && col >= cols) return;
    // END SOLUTION
    z[row * cols + col] = x[row] * y[col];
}
""")

# %% [markdown] id="write"
# **Exercise 01a.7** · medium · 8 minutes. Write the body of `flip`: `x` has `rows` rows and `cols`
# columns; `y` gets the rows of `x` as its columns, as `x.T` does in NumPy.
#
# <details><summary>Hint: where does it go?</summary>
#
# What stands in `x` in row `row`, column `col`, goes to `y` in row `col`, column `row`. How long is
# a row of `y`?
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Four of these six, in order:
#
# - `y[row * cols + col] = x[col * rows + row];`
# - `const int col = get_global_id(1);`
# - `if (col >= cols || row >= rows) return;`
# - `const int row = get_global_id(0);`
# - `y[col * cols + row] = x[row * cols + col];`
# - `y[col * rows + row] = x[row * cols + col];`
#
# </details>

# %%
flip_text = lab.kernel_exercise("01a.7", """
__kernel void flip(__global const float *x, __global float *y, const int rows, const int cols)
{
    // BEGIN SOLUTION
    const int row = get_global_id(0);
    const int col = get_global_id(1);
    if (row >= rows || col >= cols) return;
    y[col * rows + row] = x[row * cols + col];
    // END SOLUTION
}
""")

# %% [markdown] id="extend"
# **Exercise 01a.8** · hard · 8 minutes. Extend the product. In `product_t`, the right matrix lies on
# its side: `b` has `n` rows of `k` numbers, and the result is `a @ b.T`, as lesson 04a needs it. Start
# from `matmul_naive` above.
#
# <details><summary>Hint</summary>
#
# One index changes. Column `col` of `b.T` is row `col` of `b`. How long is a row of `b` now?
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# The rest is as in `matmul_naive`; one of these is the line with the sum:
#
# - `sum += a[row * k + p] * b[p * k + col];`
# - `sum += a[row * k + p] * b[col * k + p];`
# - `sum += a[row * k + p] * b[col * n + p];`
#
# </details>

# %%
product_t_text = lab.kernel_exercise("01a.8", """
__kernel void product_t(__global const float *a, __global const float *b,
                        __global float *c, const int m, const int n, const int k)
{
    // BEGIN SOLUTION
    const int row = get_global_id(0);
    const int col = get_global_id(1);
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int p = 0; p < k; ++p) sum += a[row * k + p] * b[col * k + p];
    c[row * n + col] = sum;
    // END SOLUTION
}
""")

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# You can take a text in C to a result: platform, device, context, queue, program, kernel, buffers,
# launch, copy back. And you have three habits: a guard in every kernel, an odd shape in every test, a
# bound for every sum. In the package, `device.py`, `program.py` and `tensor.py` do these steps.
#
# Five questions to keep it; the last three are about lesson 00.
#
# **q1.** A vector has 10 numbers, the local size is 4. What is the global size, and how many
# work-items leave at the guard?
#
# - **A** 10, and none leaves
# - **B** 12, and two leave
# - **C** 8, and two numbers are left out

# %%
lab.quiz("01a.q1")

# %% [markdown] id="recap-2"
# **q2.** A float32 sum has 100 terms; their magnitudes add up to 50, and the sum itself is 0.001.
# Which error can rounding explain?
#
# - **A** up to 100 · u · 50
# - **B** up to 100 · u · 0.001
# - **C** up to u · 50

# %%
lab.quiz("01a.q2")

# %% [markdown] id="recap-3"
# **q3.** Why are checks done on random numbers in an odd shape?
#
# - **A** Because devices are faster on them.
# - **B** Because equal or square numbers hide swapped rows and columns.
# - **C** Because rounding errors are smaller there.

# %%
lab.quiz("01a.q3")

# %% [markdown] id="recap-4"
# **q4.** What does a model give for each place of a text?
#
# - **A** the next word
# - **B** one number between 0 and 1
# - **C** a score for every token that could come next

# %%
lab.quiz("01a.q4")

# %% [markdown] id="recap-5"
# **q5.** What does the gradient say?
#
# - **A** how the loss changes when a weight grows a little
# - **B** how wrong the model is
# - **C** which tokens follow which

# %%
lab.quiz("01a.q5")

# %%
lab.summary("01a")

# %% [markdown] id="bridge"
# **Next:** lesson 01b, *Groups*. There the work-items of a group work together, and you see why the
# riddle's two pictures differ in speed.
