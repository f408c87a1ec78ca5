# ---
# jupyter:
#   llmcl:
#     title: C for Python people
#     needs: ["00", "kernel", "work-item"]
#     introduces:
#       - int
#       - float
#       - cast
#       - pointer
#       - flat index
#       - loop
#       - Oclgrind
#       - llmcl.lab.build
#       - llmcl.lab.cells
#       - llmcl.lab.device_answer
#       - llmcl.lab.get_global_id
#       - llmcl.lab.kernel_exercise
#       - llmcl.lab.run_broken
#       - llmcl.lab.run_items
#       - llmcl.lab.show_broken
#     minutes: {core: 30, full: 50}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 00a · Warm-up: C for Python people
#
# The kernels of this book are written in C. You need very little of it, and you can learn that
# little in half an hour. If you know C# or Java, run all cells and begin to read at *A table is one
# long line*: pointers, and what happens past the end, are new there. If you know C, read only *Break
# it*.
#
# | | |
# |---|---|
# | **After this you can** | read a small kernel; trace a loop; compute a flat index; say what `7 / 2` and an index past the end do |
# | **You need** | lesson 00; some Python |
# | **Time** | 30 minutes; 50 with the exercises |
# | **New words** | int, float, cast, pointer, flat index, loop, Oclgrind |

# %%
from llmcl import lab

lab.start("00a")

# %% [markdown] id="idea" tags=["slide"]
# ## The idea: Python, with three things said aloud
#
# Here is a line of Python and the same line in C:
#
# | Python | C |
# |---|---|
# | `sum = 0.0` | `float sum = 0.0f;` |
#
# C wants three things that Python does without. You say **what kind** of number it is: `float`. You
# say where the line **ends**: with a semicolon. And, later, you say where a **block** begins and
# ends: with braces, `{` and `}`, where Python looks at the spaces in front.
#
# There is a fourth thing, and it is the important one. C does not look after you. It will not say
# that an index is wrong. You see that at the end of this lesson, and you see who says it instead.

# %% [markdown] id="first"
# ## A kernel with one work-item
#
# Lesson 00 showed a kernel that many work-items run at once. Today every kernel has a single
# work-item. So it is an ordinary function, and you can think about C alone. Its text stands in a
# Python string: three quotes hold several lines, and the `r` says that Python changes nothing in
# them.

# %% tags=["slide"]
text = r"""
__kernel void first(__global float *restrict out)
{
    out[0] = 7 / 2;
    out[1] = 7 / 2.0f;
    out[2] = 7 % 2;
}
"""

# %% [markdown] id="first-read"
# Read it from the outside to the inside:
#
# - `__kernel void first(…)` begins a kernel with the name `first`. `void` means: it returns nothing.
#   Its results go into memory instead.
# - `__global float *restrict out` is what Python hands over. The star makes `out` a **pointer**: it
#   is the place in memory where numbers lie, one after the other. `__global` is the name of that
#   memory. `restrict` is a promise that no other pointer leads to the same numbers. With it, the
#   compiler need not read a number again each time something is written elsewhere.
# - `out[0] = …` writes the first of these numbers.
#
# `lab.build` compiles a text for your device. If something in it is wrong, it shows the line. Then
# the kernel is launched with `(1,)` work-items, in groups of `(1,)`. `(1,)` is a tuple with one
# number, because the work-items of today stand in one row. Lesson 01a lays them out as a table.
#
# **Before you run it:** which three numbers will come out?

# %% tags=["slide"]
from llmcl.engine import get_engine

engine = get_engine()
first = lab.build(engine, text).first
out = engine.zeros((3,))
first((1,), (1,), out)
print(engine.to_host(out))

# %% [markdown] id="int"
# ## Two kinds of numbers
#
# `7 / 2` became 3. Why? In C, `7` and `2` are whole numbers, an **int**. Two ints make an int, and
# what is behind the point is dropped. `2.0f` is a **float**, a number with a point; one float is
# enough, and the result is a float. The `f` says: a small float, of 32 bits. Without it, C would
# take a larger kind, a `double`, which not every device has. And `7 % 2` is the rest: 2 fits into 7
# three times, and 1 is left.
#
# Nobody warns you. So a mean that is computed as `sum / n`, with two ints, is wrong in silence.
#
# **A question.** What is `-7 / 2` in C?
#
# - **A** -3.5
# - **B** -4
# - **C** -3

# %%
lab.quiz("00a.e1")

# %% [markdown] id="int-minus"
# The device knows:

# %% tags=["slide"]
text = r"""
__kernel void minus(__global int *restrict out)
{
    out[0] = -7 / 2;
    out[1] = (float)(-7) / 2;
}
"""
out = engine.from_host([0, 0])  # whole numbers in Python, so ints on the device
lab.build(engine, text).minus((1,), (1,), out)
print(engine.to_host(out), "and in Python:", -7 // 2)

# %% [markdown] id="int-convert"
# The second number surprises. `(float)(-7)` turns the int into a float; this is called a **cast**. So
# the division gives -3.5. But `out` is a pointer to ints this time. On the way into memory the number
# becomes an int again, and the part behind the point is gone. The kind of the **place** counts too.
#
# How exact is a float? It keeps about seven digits. Look at what that means for large numbers:

# %%
import numpy as np

large = np.float32(16_777_216)
print(large + np.float32(1) == large)

# %% [markdown] id="float-after"
# What happened to the 1? 16,777,217 has eight digits, and the next float is 16,777,218. So the sum
# was rounded back. In a long sum that happens again and again; lesson 01a says how far off it may
# end.

# %% [markdown] id="loop"
# ## A loop
#
# This is a **loop** in Python, written in an unusual way, and the same in C:
#
# ```python
# i = 0
# while i < n:
#     sum += x[i]
#     i += 1
# ```
# ```c
# for (int i = 0; i < n; ++i) sum += x[i];
# ```
#
# The round brackets hold three things with semicolons in between: how it begins, how long it goes
# on, and what happens after each round. `++i` adds 1 to `i`. If more than one line belongs to the
# loop, braces go around them.
#
# **Exercise 00a.1** · easy · 3 minutes. Trace this one on paper. Write down `i` and `sum` after each
# round. What is `sum` at the end?
#
# ```c
# int sum = 0;
# for (int i = 1; i < 5; i += 2) sum += i * i;
# ```
#
# <details><summary>Hint</summary>
#
# `i` begins at 1 and grows by 2. Which values does it take while it is below 5?
#
# </details>

# %%
@lab.exercise("00a.1")
def traced():
    """The number that `sum` holds at the end."""
    ### BEGIN SOLUTION
    return 1 * 1 + 3 * 3
    ### END SOLUTION

# %% [markdown] id="flat"
# ## A table is one long line
#
# A pointer leads to numbers that lie one after the other. But a matrix has rows and columns. Where
# do they go? Row after row, into one line:

# %%
table = np.arange(15).reshape(3, 5)
print(table)
print(table.ravel())

# %% [markdown] id="flat-see"
# The number in each cell is its place in the line: its **flat index**. Move the slider along the
# line, and watch where you are in the table. What happens when a row ends?

# %% tags=["slide"]
def draw(axes, place):
    here = (place // 5, place % 5)
    axes[0].set_anchor("W")
    lab.cells(axes[0], table, title="the table", highlight=[here])
    lab.cells(axes[1], table.reshape(1, 15), title="the line", highlight=[(0, place)])

def in_words(place):
    return f"Place {place} of the line is row {place // 5}, column {place % 5} of the table."

lab.explore(draw, range(15), in_words, name="place", start=11, columns=2, width=6.4, height=2.0)

# %% [markdown] id="flat-formula"
# To reach row 2, column 1, you pass two whole rows of five, and then one more element: 2 · 5 + 1.
#
# **Exercise 00a.2** · easy · 3 minutes. Write the flat index of (row, col) in a table with `n`
# columns. So `flat(2, 1, 5)` must be 11.
#
# <details><summary>I am stuck: give me pieces</summary>
#
# Three of these four belong in the answer: `row`, `col`, `n`, `rows`. One of them is multiplied.
#
# </details>

# %%
@lab.exercise("00a.2")
def flat(row, col, n):
    """The place of (row, col) in a line of rows of n."""
    ### BEGIN SOLUTION
    return row * n + col
    ### END SOLUTION

# %%
assert all(flat(row, col, 5) == table[row, col] for row in range(3) for col in range(5))
print("✓ all fifteen places are right")

# %% [markdown] id="flat-back"
# **Exercise 00a.3** · easy · 4 minutes. And back: which row and which column is a place? Return both.
# In Python, `//` is what C's `/` does with whole numbers above zero, and `%` is the rest here too.
#
# <details><summary>Hint</summary>
#
# How often does `n` fit into the place? What is left over?
#
# </details>
#
# <details><summary>I am stuck: give me pieces</summary>
#
# Two of these four belong in the answer, with a comma in between: `place // n`, `place / n`,
# `n % place`, `place % n`.
#
# </details>

# %%
@lab.exercise("00a.3")
def row_and_col(place, n):
    """The row and the column of a place in a line of rows of n."""
    ### BEGIN SOLUTION
    return place // n, place % n
    ### END SOLUTION

# %%
print(row_and_col(flat(2, 1, 5), 5))

# %% [markdown] id="numpy"
# ## The sum of a row, three times
#
# Now put the loop and the flat index together. First NumPy, which we trust:

# %%
x = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3], [5, 8, 9, 7, 9]], np.float32)
print(x.sum(axis=1))

# %% [markdown] id="item"
# Then Python, written the way a kernel is written. `lab.run_items` runs the function once for each
# work-item, today for 1. It hands over `x` and `out` as pointers, as OpenCL does, and `report` says
# whether an access went wrong. What does `x + row * n` mean, if `x` is a place in memory and not a
# number?

# %% tags=["slide"]
def row_sums(x, out, rows, n):
    for row in range(rows):
        start = x + row * n          # a pointer to the first number of the row
        sum = 0.0
        for i in range(n):
            sum += start[i]
        out[row] = sum

sums = np.zeros(3, np.float32)
lab.run_items(row_sums, 1, x, sums, 3, 5).report()
print(sums)

# %% [markdown] id="opencl"
# Did you guess it? A pointer plus a number is a pointer that many elements further on.
# So `start[i]` is the same as `x[row * n + i]`.
#
# And now C. Compare it with the Python above, line for line.

# %%
text = r"""
__kernel void row_sums(__global const float *restrict x,   // (rows, n)
                       __global float *restrict out,       // (rows)
                       const int rows, const int n)
{
    for (int row = 0; row < rows; ++row) {
        __global const float *start = x + row * n;
        float sum = 0.0f;
        for (int i = 0; i < n; ++i) sum += start[i];
        out[row] = sum;
    }
}
"""

# %% [markdown] id="opencl-read"
# Two words are new. `const` promises that something is only read. The text behind `//` is a comment;
# in this book it tells the shape, because C does not know it. Do you see that `rows` and `n` are
# handed over as well? A pointer has no length. Whoever writes a kernel has to say it.
#
# The last argument of the check is the bound. It is 0, because sums of small whole numbers are exact.

# %%
on_device, out = engine.from_host(x), engine.zeros((3,))
lab.build(engine, text).row_sums((1,), (1,), on_device, out, 3, 5)
lab.check("row sums", engine.to_host(out), x.sum(axis=1), 0.0)

# %% [markdown] id="break"
# ## Break it: one step too far
#
# Here is the sum of a line of numbers. One character too many stands in it: `<=` where `<` should
# be. Can you say which element the last round reads?

# %% tags=["slide"]
lab.show_broken("00a.past_end")

# %% [markdown] id="break-python"
# What would Python do with such a loop?

# %% tags=["slide"]
numbers, total = [3, 1, 4, 1, 5], 0
try:
    for i in range(len(numbers) + 1):
        total += numbers[i]
except IndexError as error:
    print("Python says:", error)

# %% [markdown] id="break-c"
# C says nothing. It reads what lies behind the numbers, and adds it. What that is depends on your
# device, and on the day:

# %% tags=["varies"]
lab.device_answer("00a.past_end", engine)

# %% [markdown] id="break-strict"
# If it says that the numbers are the same, that is the worse case: zeros happened to lie there, and
# the fault stays hidden until it hurts.
#
# So who checks? **Oclgrind** does. It is a device without any hardware: a program that runs a kernel
# step by step and looks at every access. It is slow and strict. On Linux PCs it was installed with
# this book, and the next cell runs the broken kernel on it. Where there is none, the cell says so,
# and the one below it finds the same.

# %% tags=["slide"]
lab.run_broken("00a.past_end")

# %% [markdown] id="break-after"
# Read the last line from left to right: what happened, which work-item did it, at which line of the
# text. The numbers in brackets are the work-item's; there is only one today, and it is 0. What the
# check says above it is luck here as well: that depends on what lies behind the end. The Python of
# `lab.run_items` looks at every access too:

# %%
def total_item(x, out, n):
    sum = 0.0
    for i in range(n + 1):  # one step too far, as in the broken kernel
        sum += x[i]
    out[0] = sum

line = np.array(numbers, np.float32)
lab.run_items(total_item, 1, line, np.zeros(1, np.float32), 5).report()

# %% [markdown] id="break-proof"
# What did your own device say above? If it had the right sum, the kernel was wrong all the same. **A
# right answer is no proof of a right kernel.** From now on, every kernel that you write in an
# exercise is run on Oclgrind as well.

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 00a.4** · medium · 4 minutes. This kernel should write the mean of `n` whole numbers. It
# compiles, and it is wrong. Mend it with the smallest change you can find.
#
# <details><summary>Hint</summary>
#
# What kinds of numbers stand at both sides of `/`? `(float)` in front of one of them changes that.
#
# </details>

# %%
mean_text = lab.kernel_exercise("00a.4", r"""
__kernel void mean(__global const int *restrict x, __global float *restrict out, const int n)
{
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += x[i];
    // BEGIN SOLUTION
    out[0] = (float)sum / n;
    // INSTEAD
    out[0] = sum / n;
    // END SOLUTION
}
""")

# %% [markdown] id="exercises-order"
# **Exercise 00a.5** · easy · 3 minutes. Four of these five lines, in the right order, write the sum
# of the squares of `n` numbers. One does not belong. Return the letters as one word.
#
# - **A** `for (int i = 0; i < n; ++i)`
# - **B** `out[0] = sum;`
# - **C** `float sum = 0.0f;`
# - **D** `for (int i = 0; i <= n; ++i)`
# - **E** `    sum += x[i] * x[i];`

# %%
@lab.exercise("00a.5")
def squares():
    """The letters of four lines, in order."""
    ### BEGIN SOLUTION
    return "CAEB"
    ### END SOLUTION

# %% [markdown] id="exercises-write"
# **Exercise 00a.6** · medium · 8 minutes. Write a kernel that finds the largest of `n` numbers. Your
# lines replace the one with `#error`. In C a decision reads `if (a > b) …;`, with round brackets
# around the condition.
#
# <details><summary>Hint</summary>
#
# Remember the best number so far. Begin with the first one, not with 0: what if all are negative?
#
# </details>
#
# <details><summary>The compiler complains</summary>
#
# `use of undeclared identifier`: the first time a name occurs, its kind stands in front, `float best`.
# `expected ';'`: a semicolon is missing, or `//` began a comment. `expected '('`: `if` and `for` want
# round brackets.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Four of these five belong in the answer:
#
# `out[0] = best;` · `if (x[i] > best) best = x[i];` · `float best = x[0];` ·
# `for (int i = 1; i < n; ++i)` · `float best = 0.0f;`
#
# </details>

# %%
largest_text = lab.kernel_exercise("00a.6", r"""
__kernel void largest(__global const float *restrict x, __global float *restrict out, const int n)
{
    // BEGIN SOLUTION
    float best = x[0];
    for (int i = 1; i < n; ++i)
        if (x[i] > best) best = x[i];
    out[0] = best;
    // END SOLUTION
}
""")

# %%
out = engine.zeros((1,))
lab.build(engine, largest_text).largest((1,), (1,), on_device, out, 15)
assert engine.to_host(out)[0] == x.max()
print("✓ the largest number of the table was found")

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# | | Python | C |
# |---|---|---|
# | a number | `x = 0.5` | `float x = 0.5f;` |
# | a loop | `for i in range(n):` | `for (int i = 0; i < n; ++i)` |
# | a decision | `if a > b:` | `if (a > b)` |
# | division | `7 / 2` is 3.5, `7 // 2` is 3 | `7 / 2` is 3, `7 / 2.0f` is 3.5 |
# | a table | `x[row, col]` | `x[row * n + col]` |
# | past the end | `IndexError` | whatever lies there |
#
# Three questions to keep it.
#
# **q1.** `float y = 7.0f / 2;` What is `y`?
#
# - **A** 3
# - **B** 3.5
# - **C** it depends on the device

# %%
lab.quiz("00a.q1")

# %% [markdown] id="recap-2"
# **q2.** A table has 7 columns. Where in the line is row 3, column 2?
#
# - **A** place 23
# - **B** place 17
# - **C** place 9

# %%
lab.quiz("00a.q2")

# %% [markdown] id="recap-3"
# **q3.** A kernel reads `x[n]`, and `x` has `n` numbers. What happens on an ordinary device?
#
# - **A** The launch fails with an error.
# - **B** It reads 0.
# - **C** It reads what happens to lie behind the numbers.

# %%
lab.quiz("00a.q3")

# %%
lab.summary("00a")

# %% [markdown] id="bridge"
# **Next:** if question e3 of lesson 00 went wrong, take warm-up 00b, *Shapes*. Otherwise go on with
# lesson 01a, *A first kernel*, where many work-items come at once.
