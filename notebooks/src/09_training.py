# ---
# jupyter:
#   llmcl:
#     title: Training
#     needs: ["00", "02b", "05", "06", "07", "08a", "08b", "08c", "gradient", "optimizer", "bigram", "backward", "padding", "epsilon"]
#     introduces:
#       - gradient descent
#       - learning rate
#       - momentum
#       - Adam
#       - AdamW
#       - bias correction
#       - weight decay
#       - clipping
#       - schedule
#       - warm-up
#       - epoch
#       - recall
#       - checkpoint
#       - resume
#       - llmcl.checkpoint.Checkpoint
#       - llmcl.checkpoint.load_checkpoint
#       - llmcl.checkpoint.save_checkpoint
#       - llmcl.data.read_dialogues
#       - llmcl.data.tokenizer_texts
#       - llmcl.evaluate.recall
#       - llmcl.lab.keep_checkpoint
#       - llmcl.lab.watch
#       - llmcl.optimizer.AdamWSettings
#       - llmcl.optimizer.Schedule
#       - llmcl.settings.Settings
#       - llmcl.train.Batches
#       - llmcl.train.train_steps
#     minutes: {core: 70, full: 100}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 09 · Training
#
# You have a model and its gradient. In this lesson the gradient moves the weights, and you watch 25 sentences
# being learned.
#
# | | |
# |---|---|
# | **After this you can** | write AdamW; clip a gradient by its global norm; tell three learning rates apart by their curves; save a run and resume it to the bit |
# | **You need** | lessons 07 to 08c |
# | **Time** | 70 minutes; 100 with the exercises |
# | **New words** | gradient descent, learning rate, momentum, Adam, bias correction, weight decay, AdamW, clipping, schedule, warm-up, epoch, recall, checkpoint, resume |

# %%
from llmcl import lab

lab.start("09")

# %% [markdown] id="idea"
# ## The idea: one weight, going down
#
# Take the smallest model there is: one weight `w`, with the loss `w²`. The slope is `2w` (warm-up 07b). It
# points uphill, so we go the other way. How far? `rate` times the slope.

# %%
def walk_one(rate, w=3.0, steps=7):
    """The weight before each step, and after the last one."""
    path = [w]
    for _ in range(steps):
        w = w - rate * (2 * w)
        path.append(w)
    return path

print([round(w, 2) for w in walk_one(rate=0.1)])

# %% [markdown] id="idea-name"
# That is **gradient descent**, and `rate` is the **learning rate**. Near the bottom the slope is small, so the
# steps become small by themselves. Why then not take a larger rate, and be there sooner?
#
# **Exercise 09.1** · easy · 2 minutes. Begin at 3, with the rate 1.0. How far from 0 is `w` after seven
# steps?
#
# <details><summary>Hint</summary>
#
# Do one step by hand: 3 − 1.0 · 6. And one more.
#
# </details>

# %%
lab.predict("09.1", guess=None)

# %% tags=["slide"]
path = walk_one(rate=1.0)
lab.reveal("09.1", abs(path[-1]))
print(path)
print([round(w, 1) for w in walk_one(rate=1.1)])

# %% [markdown] id="idea-large" tags=["slide"]
# It jumps across the valley and back, forever. With 1.1 it lands higher up each time. **Too small a rate crawls. Too large a rate jumps out.** How large is too large? That
# depends on how steep the valley is: one that is 100 times as steep wants a rate that is 100 times as small.

# %% [markdown] id="numpy"
# ## In NumPy: one valley, four ways down
#
# A model has many weights, and their valleys are not equally steep. So take two weights: along the first, the
# valley is flat; along the second, 100 times as steep.

# %%
import numpy as np

STEEP, BOTTOM = np.array([1.0, 100.0]), np.array([2.0, 0.5])

def valley(w):
    """The loss at w (..., 2)."""
    return (STEEP * (w - BOTTOM) ** 2).sum(axis=-1) / 2

def slope(w):
    return STEEP * (w - BOTTOM)

# %%
def walk(optimizer, rate, steps=80):
    """All places from the start to the end, (steps + 1, 2)."""
    w, m, v = np.array([-4.0, 1.5]), np.zeros(2), np.zeros(2)
    path = [w]
    for t in range(1, steps + 1):
        w, m, v = optimizer(w, slope(w), m, v, t, rate)
        path.append(w)
    return np.array(path)

# %% [markdown] id="numpy-descent"
# **Gradient descent** first. It needs no memory, so it hands `m` and `v` through. The steep weight allows a rate
# just below 0.02:

# %%
def descent(w, g, m, v, t, rate):
    return w - rate * g, m, v

for rate in (0.019, 0.021):
    path = walk(descent, rate)
    print(f"rate {rate}: steep weight {path[:5, 1].round(2)}, loss at the end {valley(path[-1]):.3g}")

# %% [markdown] id="numpy-momentum"
# The steep weight jumps from side to side, and the flat one crawls, as it may use only the rate of the steep
# one. What do the jumps have in common? They cancel. So do not follow the slope of now, but its average over the
# last steps. A *running* average needs one number of memory: take a tenth of the new, keep nine tenths of the old.

# %%
def momentum(w, g, m, v, t, rate):
    m = m + 0.1 * (g - m)
    return w - rate * m, m, v

path = walk(momentum, 0.2)
print(f"loss at the end {valley(path[-1]):.3g}, with ten times the rate")

# %% [markdown] id="numpy-momentum-2"
# This is **momentum**. In lesson 08a, a gradient that was not cleared rolled through the valley like a ball. Here
# is the ball with its brake: the nine tenths.
#
# ### Adam: each weight its own step
#
# There is still one rate for all. How would you find out that a weight is steep? Look at its gradients: they are
# large. So keep a second average, of the *squares*. Its root is the usual size of a gradient. Divide by it:

# %% tags=["slide"]
def shares_of_a_step(gradients):
    """The last step, in parts of the rate, after these gradients of one weight."""
    m, v, t = 0.0, 0.0, len(gradients)
    for g in gradients:
        m, v = m + 0.1 * (g - m), v + 0.01 * (g * g - v)
    return (m / (1 - 0.9**t)) / np.sqrt(v / (1 - 0.99**t))

for gradients in ([5.0] * 20, [0.001] * 20, [5.0, -5.0] * 10):
    print(f"{gradients[:3]} …: {shares_of_a_step(gradients):.2f} of the rate")

# %% [markdown] id="numpy-adam" tags=["slide"]
# Loud or quiet, who always pulls the same way moves by the rate. Who swings hardly moves. This is **Adam**. Now
# the rate is not a factor any more, but the length of a step.
#
# What are the divisions by `1 - 0.9**t` and `1 - 0.99**t` for? Both averages begin at 0. Feed one with nothing
# but ones:

# %%
m = 0.0
for t in range(1, 5):
    m = m + 0.1 * (1.0 - m)
    print(f"step {t}: average {m:.3f}, corrected {m / (1 - 0.9**t):.3f}")

# %% [markdown] id="numpy-bias"
# It remembers a zero that no gradient was. After `t` steps that weighs 0.9 to the power of `t`; the ones weigh the
# rest. Dividing by the rest is the **bias correction**. (No bias of lesson 05: statisticians call an error that
# always goes the same way a bias.)
#
# And the W of **AdamW**? **Weight decay**: each step also pulls a weight a little towards 0. A weight that nothing
# needs fades, and the others stay small. The pull is added *beside* Adam's step. Why not to the gradient? Then it
# would be divided, too. Take a weight of 1 without a gradient, its first step with the rate 0.01, and the decays 0.1
# and 0.01:

# %%
def beside(w, decay):
    """Adam's step is 0 without a gradient; the pull is added to it."""
    return w - 0.01 * (0.0 + decay * w)

def through(w, decay):
    """The pull is the gradient, and Adam divides it by its usual size: itself."""
    g = decay * w
    return w - 0.01 * g / np.sqrt(g * g)

for way in (beside, through):
    print(f"{way.__name__:>7}:", [f"{way(1.0, decay):.4f}" for decay in (0.1, 0.01)])

# %% [markdown] id="numpy-decay"
# Beside: a tenth of the decay, a tenth of the pull. Through the gradient: a whole step, however little was asked for.
#
# **Exercise 09.2** · medium · 8 minutes. Write `adamw`, one update. `beta1` is 0.9 and `beta2` 0.99: what an
# average keeps. `epsilon` stands outside the root (lesson 06 had it inside); it guards against a division by 0.
#
# <details><summary>Hint: six lines</summary>
#
# The new m, the new v, both corrected, the new w, the return. The pull is `decay * w`, and `rate` multiplies the
# step and the pull.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Six of these nine, in the right order:
#
# - `m = m + (1 - beta1) * (g - m)`
# - `v = v + (1 - beta2) * (g * g - v)`
# - `v = v + (1 - beta2) * (g - v)`
# - `fair_m = m / (1 - beta1**t)`
# - `fair_v = v / (1 - beta2**t)`
# - `fair_m = m / (1 - beta1)`
# - `w = w - rate * (fair_m / (np.sqrt(fair_v) + epsilon) + decay * w)`
# - `w = w - rate * fair_m / (np.sqrt(fair_v) + epsilon) + decay * w`
# - `return w, m, v`
#
# </details>

# %%
@lab.exercise("09.2")
def adamw(w, g, m, v, t, rate, decay=0.01, beta1=0.9, beta2=0.99, epsilon=1e-8):
    """w, m and v after step t, which counts from 1; all arrays have one shape."""
    ### BEGIN SOLUTION
    m = m + (1 - beta1) * (g - m)
    v = v + (1 - beta2) * (g * g - v)
    fair_m = m / (1 - beta1**t)
    fair_v = v / (1 - beta2**t)
    w = w - rate * (fair_m / (np.sqrt(fair_v) + epsilon) + decay * w)
    return w, m, v
    ### END SOLUTION

# %% [markdown] id="numpy-race"
# All four, from the same start, each with a rate that suits it. The decay is large here, so that you can see it.
# Move the slider. Who zigzags, who rolls past, and who stops short?

# %%
ways = {
    "descent": walk(descent, 0.019),
    "momentum": walk(momentum, 0.2),
    "Adam": walk(lambda *a: adamw(*a, decay=0.0), 0.3),
    "AdamW": walk(lambda *a: adamw(*a, decay=0.1), 0.3),
}
looks = {"descent": ("red", "-"), "momentum": ("orange", "--"), "Adam": ("blue", "-"), "AdamW": ("green", "--")}

# %%
def draw_race(axes, steps):
    x, y = np.meshgrid(np.linspace(-5, 4, 90), np.linspace(-1.2, 2.2, 90))
    axes[0].contour(x, y, valley(np.stack([x, y], axis=-1)), levels=[0.5, 5, 20, 60, 120], colors="0.75")
    for name, way in ways.items():
        color, line = looks[name]
        axes[0].plot(*way[: steps + 1].T, line, color=lab.COLORS[color])
        axes[1].plot(valley(way[: steps + 1]), line, color=lab.COLORS[color], label=name)
    axes[0].plot(*BOTTOM, "k+", markersize=12)
    axes[0].set(xlabel="flat weight", ylabel="steep weight", xlim=(-5, 4), ylim=(-1.2, 2.2))
    axes[1].set(xlabel="step", ylabel="loss", yscale="log", xlim=(0, 80), ylim=(1e-3, 200))
    axes[1].legend(loc="upper right", fontsize=8)

# %% tags=["slide"]
def race_words(steps):
    ends = ", ".join(f"{name} {valley(way[steps]):.2g}" for name, way in ways.items())
    return (f"A long, narrow valley from above, with four ways from one start, and beside it their losses. "
            f"After {steps} step{'s' * (steps > 1)}: {ends}. Descent zigzags across the valley and crawls along it.")

lab.explore(draw_race, [1, 2, 5, 10, 20, 40, 80], race_words, "steps", start=20, columns=2, height=3.4)

# %%
ends = {name: way[-1] for name, way in ways.items()}
assert valley(ends["descent"]) > 50 * max(valley(ends["momentum"]), valley(ends["Adam"]))
print("AdamW ends at", ends["AdamW"].round(1), "and the bottom is at", BOTTOM)

# %% [markdown] id="numpy-race-2"
# Descent zigzags, momentum and Adam roll past, and AdamW stops short of the bottom, on the side of 0. That is what
# decay asks for. The package's decay is ten times as small.
#
# What does it cost? Two more numbers for each weight, `m` and `v`. With the gradient, training needs four times the
# memory of the weights, besides what forward keeps.
#
# ### Clipping
#
# One strange batch can have a gradient that is far too long. Adam would carry it in `m` and `v` for many steps. So a
# limit is set, usually 1: a longer gradient is shortened to it. This is **clipping**.
#
# How long is a gradient that lies in many arrays? As long as if all numbers stood in one: the root of the sum of
# all squares. That is its **global norm**. For `[3, 4]` and `[12]`: 9 + 16 + 144 = 169, and the root is 13.
#
# **Exercise 09.3** · medium · 5 minutes. Write `clip`. A gradient that is short enough stays as it is.
#
# <details><summary>Hint</summary>
#
# One norm over all arrays, one factor for all arrays. The factor is 1 where the norm is not above the limit.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Three of these six, in the right order:
#
# - `norm = np.sqrt(sum((g**2).sum() for g in grads))`
# - `norm = sum(np.sqrt((g**2).sum()) for g in grads)`
# - `factor = max_norm / norm if norm > max_norm else 1.0`
# - `factor = max_norm / norm`
# - `return [g * factor for g in grads]`
# - `return [np.clip(g, -max_norm, max_norm) for g in grads]`
#
# </details>

# %%
@lab.exercise("09.3")
def clip(grads, max_norm):
    """A list of arrays, shortened together so that their global norm is at most max_norm."""
    ### BEGIN SOLUTION
    norm = np.sqrt(sum((g**2).sum() for g in grads))
    factor = max_norm / norm if norm > max_norm else 1.0
    return [g * factor for g in grads]
    ### END SOLUTION

# %%
two_tensors = [np.array([3.0, 4.0]), np.array([12.0])]
shortened = clip(two_tensors, 1.0)
print([a.round(3).tolist() for a in shortened], "norm", np.sqrt(sum((a**2).sum() for a in shortened)).round(6))
assert np.allclose(shortened[1] / shortened[0][0], 12 / 3)  # the direction is the same

# %% [markdown] id="item"
# ## One element at a time
#
# AdamW never looks at a neighbour. So one work-item takes one weight. The host computes once what is the same for
# all: `take1` is `1 - beta1`, and `correction1` is `1 / (1 - beta1**t)`. Why in float64, and not in the kernel? In
# float32, only four digits of `1 - 0.999` are right.

# %%
from llmcl.lab import get_global_id

def adamw_item(w, grad, m, v, rate, take1, take2, epsilon, decay, correction1, correction2, n):
    i = get_global_id(0)
    if i >= n:
        return
    g = grad[i]
    m_new = m[i] + take1 * (g - m[i])
    v_new = v[i] + take2 * (g * g - v[i])
    m[i] = m_new
    v[i] = v_new
    step = m_new * correction1 / (np.sqrt(v_new * correction2) + epsilon)
    w[i] -= rate * (step + decay * w[i])

# %%
rng = np.random.default_rng(9)
w, g, m = rng.normal(size=(3, 5))
v = rng.uniform(0.5, 2, size=5)
wanted = adamw(w, g, m, v, 3, 0.01)
numbers = 0.01, 0.1, 0.01, 1e-8, 0.01, 1 / (1 - 0.9**3), 1 / (1 - 0.99**3), 5
run = lab.run_items(adamw_item, 5, w, g, m, v, *numbers, group=2)
run.report()
assert np.allclose([w, m, v], wanted)
print("✓ five work-items do what NumPy does at once")

# %% [markdown] id="item-touch"
# How many numbers does a work-item read and write, and how much does it compute with them? Guess before you run.

# %%
for name, touched in lab.touch_counts(run).items():
    print(f"{name:>5}: {touched.elements} elements, {touched.reads} reads, {touched.writes} writes")

# %% [markdown] id="item-touch-2"
# Four numbers come in, three go out, and a dozen operations lie between. (What is read twice, the compiler keeps.) So
# what takes the time here, the arithmetic or the memory? Lesson 13 measures it.

# %% [markdown] id="opencl"
# ## In OpenCL
#
# **Exercise 09.4** · medium · 8 minutes. Write `adamw_item` in C. `sqrt` is the root.
#
# <details><summary>Hint</summary>
#
# Line for line. Every number of Python becomes a `const float`. Who has no weight, leaves.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Nine of these eleven, in the right order:
#
# - `const int i = get_global_id(0);`
# - `if (i >= n) return;`
# - `const float g = grad[i];`
# - `const float m_new = m[i] + take1 * (g - m[i]);`
# - `const float v_new = v[i] + take2 * (g * g - v[i]);`
# - `const float v_new = v[i] + take1 * (g * g - v[i]);`
# - `const float step = m_new * correction1 / (sqrt(v_new * correction2) + epsilon);`
# - `const float step = m[i] * correction1 / (sqrt(v[i] * correction2) + epsilon);`
# - `m[i] = m_new;`
# - `v[i] = v_new;`
# - `w[i] -= rate * (step + decay * w[i]);`
#
# </details>

# %%
adamw_text = lab.kernel_exercise("09.4", r"""
__kernel void adamw_one(__global float *w, __global const float *grad,
                        __global float *m, __global float *v,
                        const float rate, const float take1, const float take2,
                        const float epsilon, const float decay,
                        const float correction1, const float correction2, const int n)
{
    // BEGIN SOLUTION
    const int i = get_global_id(0);
    if (i >= n) return;
    const float g = grad[i];
    const float m_new = m[i] + take1 * (g - m[i]);
    const float v_new = v[i] + take2 * (g * g - v[i]);
    const float step = m_new * correction1 / (sqrt(v_new * correction2) + epsilon);
    m[i] = m_new;
    v[i] = v_new;
    w[i] -= rate * (step + decay * w[i]);
    // END SOLUTION
}
""")

# %% [markdown] id="opencl-ours"
# The package's kernel does two things more. Which?

# %%
lab.show_kernel("adamw", "adamw")

# %% [markdown] id="opencl-ours-2"
# It reads `status`, and it knows `n_decay`: only the first `n_decay` weights decay. These are the matrices. Biases,
# norms and positions stand behind them, and keep what they have. Why? A gamma is at home at 1, not at 0.
#
# `status` comes from the other kernel. Groups of work-items have added up the squares, with the tree of lesson 01b.
# Then one work-item finishes:

# %%
lab.show_kernel("global_norm", "global_norm_status")

# %% [markdown] id="opencl-status"
# `status[1]` is the factor for clipping. Nobody has multiplied the gradient by it; the AdamW kernel does that when it
# reads. And `status[2]` is a fuse. What happens when a loss is not a number any more? Try it:

# %%
from llmcl.engine import get_engine

engine = get_engine()
there = [engine.from_host(a) for a in (np.ones(3), np.ones(3), np.zeros(3), np.zeros(3))]
status = engine.global_norm([there[1]], engine.from_host(np.array([np.nan])), max_norm=1.0)
engine.adamw(*there, status, rate=0.1, beta1=0.9, beta2=0.99, epsilon=1e-8, decay=0.01, step=1, n_decay=3)
print("finite:", engine.to_host(status)[2], "  weights after the step:", engine.to_host(there[0]))
assert (engine.to_host(there[0]) == 1).all()

# %% [markdown] id="opencl-status-2"
# Nothing moved. The host may look later.

# %% [markdown] id="check"
# ## Check
#
# Both operations against NumPy in float64, on odd sizes, where half of the weights decay. (`Case` is lesson 08b's.)
# The `(0, 2, 3)` below says which arguments are written. Which ones are they?

# %%
from llmcl import reference
from llmcl.check import Case

def against_numpy(case, *names):
    results = case.run(engine), case.run(reference.Engine()), case.bounds()
    for name, got, want, bound in zip(names, *results, strict=True):
        lab.check(name, got, want, bound)

# %%
big_w, big_g, big_m = rng.normal(size=(3, 7, 53)).astype(np.float32)
big_v = rng.uniform(0.1, 1, size=(7, 53)).astype(np.float32)
case = Case("global_norm", ([big_g, big_m[:3]], np.array([2.5], np.float32), 1.0))
against_numpy(case, "norm, clip and fuse")

# %%
ok = np.array([4.0, 0.25, 1.0, 2.5, 0.0], np.float32)  # norm, clip, finite, loss, bad step
options = {"rate": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "decay": 0.1, "step": 10, "n_decay": 185}
against_numpy(Case("adamw", (big_w, big_g, big_m, big_v, ok), (0, 2, 3), options), "w", "m", "v")

# %% [markdown] id="see"
# ## See it: three learning rates
#
# Now the real thing: the model of lesson 07, and its 25 sentences. `Settings` holds all the numbers of a training. The
# tokenizer learns from the dialogues of lesson 10 as well, as this model will be tuned on them there.

# %%
from llmcl.data import pretrain_rows, read_dialogues, read_sentences, tokenizer_texts
from llmcl.resources import data_dir
from llmcl.settings import Settings
from llmcl.tokenizer import ByteBPE

settings = Settings()
sentences = read_sentences(data_dir() / "pretrain.txt")
texts = tokenizer_texts(sentences, read_dialogues(data_dir() / "tune.jsonl"))
tokenizer = ByteBPE.train(texts, settings.vocab_size)
rows = pretrain_rows(sentences, tokenizer)
print(len(rows), "rows, and a batch takes", settings.batch_size)

# %% [markdown] id="see-epoch"
# So a batch holds all of them. One pass over the whole text is called an **epoch**; here, each step is one. With a large
# text an epoch has thousands of steps, and a batch holds a few rows. Why may the loss then jump from step to step? Some
# rows are harder.

# %%
from llmcl.bigram import bigram_loss
from llmcl.model import GPT
from llmcl.optimizer import AdamW, AdamWSettings, Schedule
from llmcl.train import Batches, train_steps

batches = Batches([rows], settings.batch_size, tokenizer.end_id, settings.seed)
pairs_loss = bigram_loss(*batches(1), tokenizer.vocab_size)  # batches(1): inputs and targets of step 1
print(f"ln V {np.log(tokenizer.vocab_size):.2f}   bigram {pairs_loss:.2f}")

# %% [markdown] id="see-steps"
# (The bigram's loss is another than in lesson 02b, as the tokens are.) `train_steps` makes one step after another:
# `loss`, `backward`, `optimizer.step`. It yields each step with its loss.

# %%
from itertools import islice

def fresh(**choices):
    """A new model, always with the same first weights, and its optimizer."""
    model = GPT(settings.config(tokenizer.vocab_size), engine)
    model.initialize(settings.seed)
    return model, AdamW(model, AdamWSettings(**choices))

def losses_with(schedule, steps=40, **choices):
    """The losses of the first steps of a fresh model."""
    run = train_steps(*fresh(**choices), batches, schedule, log_every=1)
    return [step.loss for step in islice(run, steps)]

# %% [markdown] id="see-guess"
# Three rates: 0.0003, 0.003 and 0.1. Same weights, same batch, 40 steps. Draw the curves on paper first:
# which one ends lowest, and how do the other two look?

# %%
rates = [0.0003, 0.003, 0.1]
curves = [losses_with(Schedule(rate, steps=150)) for rate in rates]  # what else a Schedule does: below
low, good, high = (curve[-1] for curve in curves)
assert good < 0.5 and low > 3 and high > 1.5
print("✓ the middle one ends lowest, by far")

# %% tags=["slide"]
fig, axes = lab.figure(
    "Three losses over 40 steps, from 6.2. With 0.0003, a straight and slow fall to about 4.4. With 0.003, down to "
    "nearly 0, past the bigram's dashed line. With 0.1, a fall at first, then a crawl with bumps, far above the line.")
for rate, curve, line in zip(rates, curves, ("-.", "-", ":")):
    axes.plot(range(1, 41), curve, line, label=f"rate {rate}")
axes.axhline(pairs_loss, color="0.3", linestyle="--", label="bigram")
axes.set(xlabel="step", ylabel="loss", ylim=(0, None))
axes.legend()
lab.show(fig)

# %% [markdown] id="see-read" tags=["slide"]
# How do you tell them apart without the others beside it? **Too small:** smooth, and nearly straight; it is still on
# its way. **Too large:** a fall in the first steps, then bumps, and stuck high. In doubt, try ten times more and ten times less.
#
# ### A rate that changes
#
# At the start, `v` has seen few gradients, and every weight wants to move at once. So begin with small steps: a
# **warm-up** over ten steps. At the end, large steps only jump around the bottom. So let the rate fall, along half a
# cosine, to a tenth. The rule from step to rate is the **schedule**.
#
# **Exercise 09.5** · medium · 5 minutes. Write it. Up to step `warmup`, a straight line that reaches `rate` there.
# Then `done` goes from 0 to 1, and the rate from all to a tenth.
#
# <details><summary>Hint</summary>
#
# `0.5 * (1 + math.cos(math.pi * done))` falls from 1 to 0. Multiply it by 0.9, and add 0.1.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Five of these seven, in the right order:
#
# - `if step <= warmup:`
# - `    return rate * step / warmup`
# - `done = (step - warmup) / (steps - warmup)`
# - `done = step / steps`
# - `cosine = 0.5 * (1 + math.cos(math.pi * done))`
# - `return rate * (0.1 + 0.9 * cosine)`
# - `return rate * cosine`
#
# </details>

# %%
import math

@lab.exercise("09.5")
def rate_at(step, rate, steps, warmup):
    """The learning rate of a step, counted from 1."""
    ### BEGIN SOLUTION
    if step <= warmup:
        return rate * step / warmup
    done = (step - warmup) / (steps - warmup)
    cosine = 0.5 * (1 + math.cos(math.pi * done))
    return rate * (0.1 + 0.9 * cosine)
    ### END SOLUTION

# %%
for step in (1, 5, 10, 80, 150):
    assert math.isclose(rate_at(step, 0.003, 150, 10), Schedule(0.003, 150).at(step))
    print(f"step {step:3}: {rate_at(step, 0.003, 150, 10):.5f}")

# %% [markdown] id="see-warmup"
# Does warm-up matter? Take a rate that is a little bold, 0.01, with and without it:

# %%
cold, warm = (losses_with(Schedule(0.01, 150, warmup=n)) for n in (0, 10))
assert cold[-1] > 3 * warm[-1]
print("✓ without warm-up, the loss after 40 steps is more than three times as high")

# %% [markdown] id="live"
# ### See it live
#
# `lab.watch` makes the steps, and draws meanwhile. `await` lets the notebook look for your
# click between two steps. **Run the two cells below with Stop in the middle, and read on to the table of sentences.
# Then run them again to the end.** What will the model be like, if you stop it at the dashed line?
#
# Every five steps we ask for its **recall**: how many of the 25 sentences does it finish from their own beginnings, word
# for word, up to the end token?

# %%
from llmcl.evaluate import recall

model, optimizer = fresh()
grown = {}

def known():
    """How many sentences the model finishes; which ones goes into `grown`."""
    grown[optimizer.steps] = recall(model, tokenizer, sentences)
    return sum(grown[optimizer.steps])

# %% tags=["slide"]
run = await lab.watch(
    train_steps(model, optimizer, batches, settings.schedule("pretrain"), log_every=1),
    line=("bigram", pairs_loss), measures={"sentences known": known}, every=5,
    alt="Four curves over 150 steps. The loss falls from 6.2 past the bigram's dashed line to nearly 0. The gradient's "
        "norm jumps between 1 and 4, and then falls as well. The rate climbs for ten steps, then follows half a "
        "cosine down. The sentences known rise from 0 to all 25 within the first third.")

# %%
assert run.stopped or (run.steps[-1].loss < 0.1 and all(grown[150]))
print("✓ a usable model:", "as it was when you stopped it" if run.stopped else "all 25 sentences are known")

# %% [markdown] id="live-read"
# Look at the four curves together. While the norm is above 1, each step is clipped. The last sentence is known before
# the loss is near 0. Why? The right word only has to be the *likeliest*. Were they learned one by one?

# %%
from llmcl.data import recall_prompts

moments = [step for step in grown if step <= 40]
whole = ("At first every field is pale: nothing is known. Then the rows turn dark, some earlier, some later, within "
         "about fifteen steps; and they stay dark.")
stopped = "The run was stopped early, so it ends there. Where a field is dark, the sentence was known."
fig, axes = lab.figure("A table of 25 sentences by the steps 0, 5 and so on. " + (stopped if run.stopped else whole),
                       height=5.6)
beginnings = [prompt for prompt, _ in recall_prompts(sentences, tokenizer)]
table = np.array([grown[step] for step in moments], float).T
lab.heat(axes, table, moments, beginnings, "dark: known   row: sentence   column: step")
lab.show(fig)

# %%
first = grown[moments[0]]
assert sum(first) == 0 and (run.stopped or sum(grown[40]) > 20)
print("✓ none at the start, more than 20 by step 40" if not run.stopped else "○ stopped early")

# %% [markdown] id="live-why"
# Not one by one, and not all at once: within some fifteen steps. The sentences share their words: "the", the full stop,
# the end token. What is common is learned first, and it is the larger part of the loss. What tells two sentences
# apart comes last. (Knowing 25 sentences by heart is no
# wonder, with the many weights of lesson 07. Lesson 11 asks what it is worth.) And our sentence?

# %%
from llmcl.generate import generate

ids = generate(model, tokenizer.encode("The sun"), max_new_tokens=30, stop_ids=[tokenizer.end_id])
said = tokenizer.decode([i for i in ids if i != tokenizer.end_id])
assert run.stopped or said == " warms the land and the sea."
print("The sun ...", "warms the land and the sea." if said == " warms the land and the sea." else "not yet")

# %% [markdown] id="live-keep"
# Keep it, for lessons 10 to 12b.

# %%
if not run.stopped:
    lab.keep_checkpoint("09", model, tokenizer)
print("✓ kept" if not run.stopped else "○ not kept, as it was stopped early; run it to its end")

# %% [markdown] id="resume"
# ### Save, and resume
#
# A long training is interrupted sooner or later. A **checkpoint** is a file with all that it takes to **resume**, which
# means to go on as if nothing had happened. What must be in it, besides the weights?

# %%
from llmcl.checkpoint import Checkpoint, load_checkpoint, save_checkpoint

def go(model, optimizer, first, last):
    """Makes the steps first to last, and returns the weights."""
    run = train_steps(model, optimizer, batches, settings.schedule("pretrain"), first=first)
    for _ in islice(run, last - first + 1):
        pass
    return model.weights()

straight = go(*fresh(), 1, 20)

# %%
half, adam = fresh()
go(half, adam, 1, 10)
m, v = adam.moments()
file = lab.folder("09") / "half.safetensors"
save_checkpoint(file, Checkpoint(half.config, half.weights(), tokenizer, m, v, {"step": adam.steps}))

# %% tags=["slide"]
stored = load_checkpoint(file)
again, adam = fresh()
again.load_weights(stored.weights)
adam.load_moments(stored.m, stored.v, stored.state["step"])
resumed = go(again, adam, stored.state["step"] + 1, 20)
assert all(np.array_equal(resumed[name], straight[name]) for name in straight)
print(f"✓ {sum(a.size for a in straight.values()):,} weights, and every bit the same")

# %% [markdown] id="resume-why"
# The same bits, not "nearly". Three things had to be right. The file holds `m`, `v` and the number of steps. The batch
# and the rate of a step follow from its number. And no sum on the device depends on luck: lesson 08b's look-up gathers,
# and does not scatter. What if the weights alone are kept?

# %%
forgetful, adam = fresh()
forgetful.load_weights(stored.weights)
other = go(forgetful, adam, 11, 20)
different = [name for name in straight if not np.array_equal(other[name], straight[name])]
assert len(different) == len(straight)
print("✗ without m, v and the step,", len(different), "of", len(straight), "tensors differ")

# %% [markdown] id="break"
# ## Break it: no bias correction
#
# Somebody finds the two corrections ugly, and leaves them out. Two tries. Which one will see it?

# %%
lab.run_broken("09.no_correction")

# %% [markdown] id="break-correction"
# Why is step 1 blind? There `m` is a tenth of `g`, `v` a hundredth of its square, and its root a tenth as well. The two
# faults cancel. **The most natural test of all, one step from zero, sees nothing.** And in training? Without the
# correction, a step is longer or shorter by this factor:

# %% tags=["slide"]
def factor(t, beta2):
    return (1 - 0.9**t) / np.sqrt(1 - beta2**t)

for beta2 in (0.99, 0.999):
    print(f"beta2 {beta2}:", [f"step {t}: {factor(t, beta2):.1f}" for t in (1, 3, 10, 30, 100, 1000)])

# %% [markdown] id="break-correction-2"
# With 0.99, steps are about twice as long for a while; with 0.999, which many programs use, six times. A schedule of
# one's own can do just that. What will the loss say to each?

# %%
class Uncorrected:
    """The schedule of a constant 0.003 whose steps are as long as without the correction."""

    steps = 40

    def __init__(self, beta2):
        self.beta2 = beta2

    def at(self, step):
        return 0.003 * factor(step, self.beta2)

# %%
constant = Schedule(0.003, 40, warmup=0, floor=1.0)
plain = {beta2: losses_with(constant, beta2=beta2)[-1] for beta2 in (0.99, 0.999)}
broken = {beta2: losses_with(Uncorrected(beta2), beta2=beta2)[-1] for beta2 in (0.99, 0.999)}
assert broken[0.99] < plain[0.99] and broken[0.999] > 3 * plain[0.999]
print("0.99:  without the correction, the loss after 40 steps is lower")
print("0.999: without it, it is more than three times as high")

# %% [markdown] id="break-correction-3"
# With 0.99 you would be proud of the fault. (A larger rate would have done the same, on purpose.) With 0.999 there is no
# error and no warning. You would lower the rate, and that would help a little.
#
# ## Break it: clipping each tensor by itself
#
# It is one loop shorter to write, and every tensor ends below the limit:

# %%
def clip_each(grads, max_norm):
    return [clip([g], max_norm)[0] for g in grads]

def flat(arrays):
    return np.concatenate([a.ravel() for a in arrays])

print("right:", flat(clip(two_tensors, 1.0)).round(2), "  each:", flat(clip_each(two_tensors, 1.0)).round(2))
try:
    lab.check("clipping", flat(clip_each(two_tensors, 1.0)), flat(clip(two_tensors, 1.0)), 1e-12)
except lab.CheckFailed:
    print("✗ the check found it")

# %% [markdown] id="break-clip"
# In the gradient, the third number is three times the second. After "each" it is not even one and a half times. With a
# single tensor, the test is blind. What does it do to the model's own gradient? Compare the directions: the cosine is 1 for the same one.

# %%
fresh_model, _ = fresh()
fresh_model.loss(*batches(1))
fresh_model.backward()
own = [engine.to_host(tensor).astype(float) for tensor in fresh_model.gradients.values()]

def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

for limit in (1.0, 0.3, 0.1):
    print(f"limit {limit}: together {cosine(flat(own), flat(clip(own, limit))):.2f}, "
          f"each {cosine(flat(own), flat(clip_each(own, limit))):.2f}")

# %% [markdown] id="break-clip-2"
# Together, the step is shorter and goes the same way. Each by itself, loud tensors are shortened and quiet ones are
# not, and the step turns. With the usual limit it turns little here, as most tensors are quiet. So training goes on,
# and nobody notices: the smaller the limit, the more it turns. And the norm that such a program shows is not that of
# the step it makes.

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 09.6** · medium · 4 minutes. This kernel clips. On gradients that are too long it is right. Mend it with the
# smallest change.
#
# <details><summary>Hint</summary>
#
# What does it do to a gradient of the length 0.5, with the limit 1? And to one that is 0 everywhere?
#
# </details>

# %%
clip_text = lab.kernel_exercise("09.6", r"""
__kernel void clip_all(__global float *grad,
                       __global const float *norm,      // (1)
                       const float max_norm, const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    // BEGIN SOLUTION
    if (norm[0] > max_norm) grad[i] *= max_norm / norm[0];
    // INSTEAD
    grad[i] *= max_norm / norm[0];
    // END SOLUTION
}
""")

# %% [markdown] id="exercises-order"
# **Exercise 09.7** · easy · 3 minutes. One step of training, with everything in it. Five of these six lines, in order. One
# does not belong. (`backward` clears the old gradient itself.) Return the letters as one word.
#
# - **A** `loss = model.loss(ids, targets)`
# - **B** `ids, targets = batches(step)`
# - **C** `status = engine.global_norm(gradients, loss, 1.0)`
# - **D** `model.initialize(seed)`
# - **E** `model.backward()`
# - **F** `engine.adamw(w, grad, m, v, status, step=step, …)`

# %%
@lab.exercise("09.7")
def one_step_of_training():
    """The letters of five lines, in order."""
    ### BEGIN SOLUTION
    return "BAECF"
    ### END SOLUTION

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# | | |
# |---|---|
# | **descent** | against the gradient, by the rate |
# | **momentum** | the average gradient: swings cancel |
# | **Adam** | divided by the usual size: each weight its own step; both averages corrected |
# | **AdamW** | and a pull towards 0 beside it |
# | **clipping** | one norm for all tensors |
# | **schedule** | warm-up, then half a cosine |
#
# In `llmcl`: `optimizer.py`, `train.py` and `checkpoint.py`, with `adamw.cl` and `global_norm.cl` behind them. And your
# own trained model.
#
# Five questions, three of them about earlier lessons.
#
# **q1.** For 30 steps the loss falls in a straight line, smooth and slow. What do you try?
#
# - **A** A larger learning rate.
# - **B** A smaller learning rate.
# - **C** A smaller limit for clipping.

# %%
lab.quiz("09.q1")

# %% [markdown] id="recap-2"
# **q2.** A weight's gradient has been 0.001 in every step. By how much does Adam move it in a step?
#
# - **A** By 0.001 times the rate.
# - **B** By about the rate.
# - **C** Not at all.

# %%
lab.quiz("09.q2")

# %% [markdown] id="recap-3"
# **q3.** (Lesson 08c) The table of tokens is used at both ends of the model. What is its gradient?
#
# - **A** The one from the head, which is larger.
# - **B** The mean of the two.
# - **C** The sum of the two.

# %%
lab.quiz("09.q3")

# %% [markdown] id="recap-4"
# **q4.** (Lesson 08a) Backward *adds* to the gradient. What must happen before each step?
#
# - **A** The gradient is set to 0.
# - **B** The weights are set to 0.
# - **C** Nothing: it is clipped.

# %%
lab.quiz("09.q4")

# %% [markdown] id="recap-5"
# **q5.** (Lesson 05) `d_model` is 96. How many hidden numbers does the feed-forward part give each place?
#
# - **A** 96
# - **B** 384
# - **C** 9,216

# %%
lab.quiz("09.q5")

# %%
lab.summary("09")

# %% [markdown] id="bridge"
# **Next:** lesson 10, *Tuning*. Your model knows 25 sentences, and answers no question. There it learns to, and you
# measure what it forgets.
