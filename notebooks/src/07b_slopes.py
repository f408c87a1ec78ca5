# ---
# jupyter:
#   llmcl:
#     title: Slopes
#     needs: ["00", "06", "loss", "residual", "softmax"]
#     introduces:
#       - slope
#       - derivative
#       - central difference
#       - chain rule
#     minutes: {core: 20, full: 30}
#     numpy: true
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 07b · Warm-up: Slopes
#
# The next three lessons ask one question millions of times: if this number grows a little, what does the loss
# do? Here you ask it about numbers that you can check by hand. No school mathematics is taken for granted.
#
# | | |
# |---|---|
# | **After this you can** | say what a slope is; chain three slopes; add slopes where a value is used twice; check a slope numerically |
# | **You need** | lesson 00, with exp and log as they are met there; multiplication |
# | **Time** | 20 minutes; 30 with the exercises |
# | **New words** | slope, derivative, central difference, chain rule |

# %%
from llmcl import lab

lab.start("07b")

# %% [markdown] id="idea"
# ## The idea: take a small step
#
# `y = x * x`, and `x` is 3. Let `x` grow by a step. By how many times that step does `y` grow?

# %% tags=["slide"]
def square(x):
    return x * x

for step in (1, 0.1, 0.01, 0.001):
    grown = square(3 + step) - square(3)
    print(f"x grows by {step}: y grows by {grown:.6f}, that is {grown / step:.3f} times as much")

# %% [markdown] id="idea-slope"
# 7, then 6.1, then 6.01: the smaller the step, the nearer to 6. This number is the **slope** at 3. It answers
# "how many times as much?" for a step so small that the rest no longer counts.
#
# Where does the rest come from? `x * x` is the area of a square. Let its side grow:

# %% tags=["slide"]
fig, axes = lab.figure(
    "A blue square with side 3. Above it and to its right lies an orange strip of length 3 and as wide as the step. "
    "In the corner between the strips lies a small green square, far smaller than a strip: nearly all of the growth "
    "is the two strips.", width=4.2, height=3.6)
for corner, wide, high, color, name in (
    ((0, 0), 3, 3, "sky", "3 · 3"), ((3, 0), 0.6, 3, "orange", "3 · step"),
    ((0, 3), 3, 0.6, "orange", "3 · step"), ((3, 3), 0.6, 0.6, "green", "step²"),
):
    axes.bar(corner[0], high, wide, corner[1], align="edge", color=lab.COLORS[color], edgecolor="white")
    axes.text(corner[0] + wide / 2, corner[1] + high / 2, name, ha="center", va="center",
              rotation=90 if wide < high else 0, fontsize=8 if wide == high == 0.6 else 11)
axes.set_aspect("equal")
axes.set_axis_off()
lab.show(fig)

# %% [markdown] id="idea-strips" tags=["slide"]
# Two strips of 3 · step, and a corner of step². Divided by the step: 3 + 3 + step. The corner is the rest; it
# goes away with the step. With a side of `x` it is `x + x`, so **the slope of x² is 2·x**. A rule that gives
# the slope at every place is called the **derivative**.
#
# **Exercise 07b.1** · easy · 1 minute. What is the slope of x² at -2? And what does its sign say?
#
# <details><summary>Hint</summary>
#
# 2·x holds for negative numbers, too. If x grows from -2 to -1.9, does x² grow or shrink?
#
# </details>

# %%
lab.predict("07b.1", guess=None)

# %%
grown = square(-2 + 0.001) - square(-2)
lab.reveal("07b.1", -4)
print(f"{grown / 0.001:.2f}")

# %% [markdown] id="sign"
# Negative: x grows, and y shrinks. So the sign says which way to go. A weight whose slope is negative is made
# larger, one whose slope is positive is made smaller, and the loss falls. The slopes of all weights together
# are the **gradient** of lesson 00.

# %% [markdown] id="central"
# ## A better way to measure
#
# With a step of 0.1 we got 6.1 and not 6. Look to both sides instead: one step forward, one step back, and
# divide by the way between, which is two steps. This is called the **central difference**.
#
# **Exercise 07b.2** · easy · 3 minutes. Write `slope`.
#
# <details><summary>Hint</summary>
#
# How far is y at `x + step` above y at `x - step`? Divide by the distance of the two places.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# One of these three, behind `return`:
#
# - `(f(x + step) - f(x)) / step`
# - `(f(x + step) - f(x - step)) / (2 * step)`
# - `(f(x + step) - f(x - step)) / step`
#
# </details>

# %%
@lab.exercise("07b.2")
def slope(f, x, step=1e-4):
    """The slope of f at x, measured."""
    ### BEGIN SOLUTION
    return (f(x + step) - f(x - step)) / (2 * step)
    ### END SOLUTION

# %% tags=["slide"]
def cube(x):
    return x**3  # its slope is 3·x²: three sides of a cube grow

one_side = (cube(2.1) - cube(2)) / 0.1
print(f"x³ at 2: {one_side:.2f} on one side, {slope(cube, 2, 0.1):.2f} on both; the slope is 12")

# %% [markdown] id="see"
# The green dots are the two places. The orange line goes through both; the dashed one touches the curve at
# 1.5. Make the step smaller. When can you no longer tell the two lines apart?

# %% tags=["slide"]
import numpy as np

def draw_slope(axes, step):
    line, middle = np.linspace(-0.5, 3, 100), 1.5
    measured = slope(cube, middle, step)
    axes.plot(line, cube(line))
    axes.plot(line, cube(middle - step) + measured * (line - middle + step))
    axes.plot(line, cube(middle) + 3 * middle**2 * (line - middle), "k--")
    axes.plot([middle - step, middle + step], [cube(middle - step), cube(middle + step)], "o")
    axes.set(xlabel="x", ylabel="x³", ylim=(-8, 20), title=f"step {step}: {measured:.2f}; the slope is 6.75")

def slope_words(step):
    return (f"The curve of x³ with two dots, a step of {step} to either side of 1.5, and an orange line through "
            f"both, whose slope is {slope(cube, 1.5, step):.2f}; the dashed one touches the curve at 1.5, its slope is 6.75.")

lab.explore(draw_slope, [1, 0.5, 0.2, 0.1], slope_words, "step", start=1)

# %% [markdown] id="rules"
# These are slopes that you will meet often. You need not know where they come from; you can measure. Do you see
# the odd one? `exp` is its own slope: where it is high, it is steep. (`log` is the one of NumPy, which undoes
# `exp`. On paper it is ln.)

# %%
rules = {
    "3·x + 1": (lambda x: 3 * x + 1, lambda x: 3),
    "x²": (lambda x: x * x, lambda x: 2 * x),
    "x³": (cube, lambda x: 3 * x**2),
    "exp(x)": (np.exp, np.exp),
    "log(x)": (np.log, lambda x: 1 / x),
    "1/x": (lambda x: 1 / x, lambda x: -1 / x**2),
}
for name, (f, rule) in rules.items():
    assert all(abs(slope(f, x) - rule(x)) < 1e-6 for x in (0.5, 1.0, 1.7))
    print(f"{name:8} at 1.7 has the slope {rule(1.7):.3f}, as measured")

# %% [markdown] id="chain"
# ## A chain: slopes multiply
#
# A loss is made in many steps, one after another. Here are three: `u = 2·x - 1`, then `v = u²`, then
# `y = 5 - v`. Start at x = 2:

# %%
x = 2
u = 2 * x - 1
v = u * u
y = 5 - v
print(f"x = {x} → u = {u} → v = {v} → y = {y}")

# %% [markdown] id="chain-gears"
# Think of gears. If x turns by a little, u turns 2 times as far. v turns 2·u = 6 times as far as u. And y turns
# as far as v, but backwards: -1. How far does y turn, if x turns by a little?

# %% tags=["slide"]
s1, s2, s3 = 2, 2 * u, -1
print(f"{s1} · {s2} · {s3} = {s1 * s2 * s3}")
measured = slope(lambda x: 5 - (2 * x - 1) ** 2, 2)
assert abs(measured - s1 * s2 * s3) < 1e-6
print(f"measured: {measured:.2f}")

# %% [markdown] id="chain-rule" tags=["slide"]
# **Along a chain, slopes multiply.** This is the **chain rule**, and the next lesson is little more. Each part
# needs to know its own slope only, and nothing about the others.
#
# One thing is easy to miss. The slope 2·u was taken at u = 3, and not at x = 2. So the numbers on the way have
# to be kept. The layers of this book do that, in a field called `saved`.
#
# **Exercise 07b.3** · medium · 4 minutes. `u = exp(x)`, `v = 1 + u`, `y = log(v)`. Write the slope of y, as a
# product of three slopes.
#
# <details><summary>Hint</summary>
#
# The slope of exp at x is exp(x). Adding 1 changes nothing: 1. The slope of log is 1 divided by the number it
# gets, and it gets v.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Three of these five, in the right order:
#
# - `u = np.exp(x)`
# - `v = 1 + u`
# - `return u * 1 * (1 / v)`
# - `return u * 1 * (1 / x)`
# - `return u + 1 + 1 / v`
#
# </details>

# %%
@lab.exercise("07b.3")
def slope_of_chain(x):
    """The slope of log(1 + exp(x)) at x."""
    ### BEGIN SOLUTION
    u = np.exp(x)
    v = 1 + u
    return u * 1 * (1 / v)
    ### END SOLUTION

# %%
for x in (-1.0, 0.0, 2.0):
    measured = slope(lambda x: np.log(1 + np.exp(x)), x)
    assert abs(slope_of_chain(x) - measured) < 1e-6
    print(f"at {x:4}: {measured:.4f}")

# %% [markdown] id="chain-loss"
# Do you recognize it? It is a loss: two tokens with the scores 0 and x, and the first one is right. Its slope,
# exp(x) / (1 + exp(x)), is the share of the wrong token. Lesson 08b finds that again, with 512 tokens.

# %% [markdown] id="twice"
# ## Used twice: slopes add
#
# What if a value goes two ways, and both meet again? You know the smallest case already: in `x * x` x is used
# twice. Let us keep them apart, as `a * b`, with both 3. Move one at a time:

# %% tags=["slide"]
through_a = slope(lambda a: a * 3, 3)
through_b = slope(lambda b: 3 * b, 3)
print(f"through a: {through_a:.0f}, through b: {through_b:.0f}, together: {slope(square, 3):.0f}")

# %% [markdown] id="twice-rule" tags=["slide"]
# Those are the two strips of the square. **Where ways meet, slopes add.** A GPT has many such places; here are
# three. In a residual connection, `x + block(x)`, x goes two ways. A token that stands twice in a text uses
# its row twice. And the tied table of lesson 07 is used at both ends. What happens if somebody forgets one way?
#
# **Exercise 07b.4** · medium · 3 minutes. A tiny residual connection: `u = 3·x`, and `y = x + u²`. Write the
# slope of y.
#
# <details><summary>Hint</summary>
#
# One way is direct: its slope is 1. The other is a chain of two: 3, and 2·u, with u = 3·x. Add both ways.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Two of these four, in the right order:
#
# - `u = 3 * x`
# - `return 1 + 2 * u * 3`
# - `return 2 * u * 3`
# - `return 1 + 2 * x * 3`
#
# </details>

# %%
@lab.exercise("07b.4")
def slope_of_residual(x):
    """The slope of x + (3 * x)² at x."""
    ### BEGIN SOLUTION
    u = 3 * x
    return 1 + 2 * u * 3
    ### END SOLUTION

# %% [markdown] id="break"
# ## Break it
#
# Somebody believes that the slope of x² is x², and tests it at 2. Then somebody forgets the direct way of the
# residual connection, and tests at 100:

# %% tags=["slide"]
print(f"at 2: {slope(square, 2):.3f} measured, {2 * 2} believed")
wrong = 18 * 100
print(f"at 100: {slope(lambda x: x + (3 * x) ** 2, 100):.0f} measured, {wrong} believed")

# %% [markdown] id="break-after"
# The first test is passed by chance: 2·2 is 2². The second is off by less than a thousandth, and who looks
# that closely? So test at several places, with ordinary numbers, and with a strict bound. Lesson 08a says how
# strict it can be.

# %%
def agrees(f, rule):
    """Whether a rule gives the measured slopes at five random places."""
    places = np.random.default_rng(7).normal(size=5)
    return all(abs(slope(f, x) - rule(x)) < 1e-6 for x in places)

print("✓" if agrees(square, lambda x: 2 * x) else "✗", "the slope of x² is 2·x")
print("✓" if agrees(square, square) else "✗", "the slope of x² is x²")
print("✓" if agrees(lambda x: x + (3 * x) ** 2, lambda x: 18 * x) else "✗", "one way forgotten")
assert agrees(lambda x: x + (3 * x) ** 2, slope_of_residual)

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# | | |
# |---|---|
# | slope | how many times as far y moves as x, for a small step |
# | derivative | the rule that gives the slope everywhere: 2·x for x² |
# | central difference | (f(x + step) - f(x - step)) / (2·step) |
# | chain | slopes multiply, each at the number that its part got |
# | used twice | slopes add |
#
# Three questions to keep it.
#
# **q1.** `y = x²`, and x grows from 3 to 3.01. By about how much does y grow?
#
# - **A** 9
# - **B** 0.06
# - **C** 0.0001

# %%
lab.quiz("07b.q1")

# %% [markdown] id="recap-2"
# **q2.** Three parts follow one another. At the numbers they get, their slopes are 2, 5 and -1. What is the
# slope of the whole?
#
# - **A** -10
# - **B** 6
# - **C** -1

# %%
lab.quiz("07b.q2")

# %% [markdown] id="recap-3"
# **q3.** From x two ways lead to y. One has the slope 4, the other 3. What is the slope of y?
#
# - **A** the larger one, 4
# - **B** 12
# - **C** 7

# %%
lab.quiz("07b.q3")

# %%
lab.summary("07b")

# %% [markdown] id="bridge"
# **Next:** lesson 08a, *Backprop: linear*. There x is a matrix, and each of its numbers has a slope. What you
# know stays true: along a way multiply, where ways meet add, and measure before you believe.
