# ---
# jupyter:
#   llmcl:
#     title: Beyond one machine
#     needs: ["00", "07", "08b", "09", "12a", "13", "gradient", "padding", "clipping", "AdamW", "bandwidth", "median", "work-item"]
#     introduces:
#       - rank
#       - data-parallel
#       - all-reduce
#       - ring
#       - MPI
#       - latency
#       - speed-up
#       - gradient accumulation
#       - llmcl.scaling
#     minutes: {core: 60, full: 75}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 14 · Beyond one machine
#
# One model is trained by several processes at once, on one machine or on many. It learns what one process would
# teach it.
#
# | | |
# |---|---|
# | **After this you can** | train over MPI with the result of one process; weigh gradients by their targets; count what an all-reduce sends; predict a speed-up |
# | **You need** | lessons 07, 09 and 13. This lesson is an elective. MPI comes with the package's extra `mpi`; without it, the cells that need it say so, and the rest works |
# | **Time** | 60 minutes; 75 with the exercises |
# | **New words** | rank, data-parallel, all-reduce, ring, MPI, latency, speed-up, gradient accumulation |

# %%
from llmcl import lab

lab.start("14")

# %% [markdown] id="idea"
# ## The idea: the same mean, by several
#
# A batch has four targets, and the losses at them are 2, 4, 6 and 10. The loss of the batch is their mean (lesson 07).

# %%
import numpy as np

target_losses = [[2.0, 4.0, 6.0], [10.0]]
print("the loss of the batch:", np.concatenate(target_losses).mean())

# %% [markdown] id="idea-2"
# Now two computers share the work. The first takes three targets, the second takes one. Each computes its own mean.
#
# **Exercise 14.1** · easy · 2 minutes. What is the mean of the two means?
#
# <details><summary>Hint</summary>
#
# The first mean is 4, the second is 10.
#
# </details>

# %%
lab.predict("14.1", guess=None)

# %% tags=["slide"]
means = [np.mean(own) for own in target_losses]
lab.reveal("14.1", np.mean(means))
print("means", [float(mean) for mean in means], "and their mean", float(np.mean(means)))

# %% [markdown] id="idea-3"
# 7 and not 5.5. The lonely target counts as much as the three others together. What is missing? Each mean has to weigh
# as much as it has targets: 4 · 3/4 + 10 · 1/4.

# %% tags=["slide"]
counts = [len(own) for own in target_losses]
shares = [n / sum(counts) for n in counts]
print("shares", shares, "and the loss", sum(m * share for m, share in zip(means, shares)))
assert sum(m * share for m, share in zip(means, shares)) == 5.5

# %% [markdown] id="idea-name" tags=["slide"]
# What holds for the loss holds for its gradient: it is a mean over targets as well. So several processes can train one
# model:
#
# 1. All have the same weights.
# 2. Each takes rows of its own, and computes their gradient.
# 3. Each gradient is *weighed*: multiplied by its share of the targets. They are added up, and *all* get the sum.
# 4. Each makes the same step. So all have the same weights again.
#
# Such a process is called a **rank**, as it has a number, from 0. The whole is **data-parallel** training: the data is
# shared out, the model is not. Step 3 is called an **all-reduce**. Who has to know how many targets the others have?

# %% [markdown] id="numpy"
# ## In NumPy: three ranks in one process
#
# We play all ranks ourselves, one after the other. A small model in float64, and the first seven sentences:

# %%
from llmcl import reference
from llmcl.config import Config
from llmcl.data import batch, pretrain_rows, read_sentences
from llmcl.model import GPT
from llmcl.resources import data_dir
from llmcl.tokenizer import ByteBPE

sentences = read_sentences(data_dir() / "pretrain.txt")[:7]
tokenizer = ByteBPE.train(sentences, 290)
ids, targets = batch(pretrain_rows(sentences, tokenizer), tokenizer.end_id)
model = GPT(Config(tokenizer.vocab_size, 64, d_model=24, n_heads=2, n_layers=1, d_ff=48), reference.Engine())
model.initialize(0)
print(sentences[0], "and six more:", ids.shape, "with targets", (targets >= 0).sum(axis=1))

# %% [markdown] id="numpy-deal"
# Rows have different lengths, and a pad has no target: it is marked −1 (lesson 07). Now deal the rows.
#
# **Exercise 14.2** · easy · 3 minutes. Somebody has cut the rows into equal stretches. Seven rows for three ranks: which
# row does nobody get? Deal them like cards instead: rank `r` gets the row `r`, and then every `size`-th, as there are
# `size` ranks. Mend it with the smallest change.
#
# <details><summary>Hint</summary>
#
# A slice has three numbers: `[begin:end:how far apart]`. The end may be left out.
#
# </details>

# %%
@lab.exercise("14.2")
def deal(rows, rank, size):
    """The rows that one of `size` ranks gets; together they have every row once."""
    ### BEGIN SOLUTION
    return rows[rank::size]
    ### INSTEAD
    share = len(rows) // size
    return rows[rank * share : (rank + 1) * share]
    ### END SOLUTION

# %%
for rank in range(3):
    own = deal(targets, rank, 3)
    print(f"rank {rank}: rows {deal(np.arange(7), rank, 3)}, {(own >= 0).sum()} targets")
assert sum((deal(targets, rank, 3) >= 0).sum() for rank in range(3)) == (targets >= 0).sum()

# %% [markdown] id="numpy-gradient"
# Unequal, as always with real text. A gradient has many tensors, but in the package all of them lie one behind the other
# in one array, `flat_gradients[0]` (lesson 08c), with unused zeros between. So a gradient is one long list of numbers:

# %%
def gradient_of(ids, targets):
    """(the gradient of the mean loss as one flat array, how many targets it is a mean of)."""
    model.loss(ids, targets)
    model.backward()
    return model.flat_gradients[0].copy(), int((targets >= 0).sum())

whole, all_targets = gradient_of(ids, targets)
ranks = [gradient_of(deal(ids, rank, 3), deal(targets, rank, 3)) for rank in range(3)]
print(whole.size, "numbers;", [n for _, n in ranks], "targets, together", all_targets)

# %% [markdown] id="numpy-weigh"
# **Exercise 14.3** · medium · 6 minutes. Make one gradient of the three, the one that a single process would have.
#
# <details><summary>Hint</summary>
#
# `n / total` is a rank's share. There may be a rank that has no target at all.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Two of these four:
#
# - `total = sum(counts)`
# - `total = len(counts)`
# - `return sum(g * (n / total) for g, n in zip(gradients, counts))`
# - `return sum(g / n for g, n in zip(gradients, counts)) / total`
#
# </details>

# %%
@lab.exercise("14.3")
def together(gradients, counts):
    """The gradient of the mean over all targets: gradients are the ranks' means, counts their targets."""
    ### BEGIN SOLUTION
    total = sum(counts)
    return sum(g * (n / total) for g, n in zip(gradients, counts))
    ### END SOLUTION

# %% tags=["slide"]
gradients, counts = zip(*ranks)        # the pairs taken apart: all gradients, all counts
lab.check("three ranks against one process", together(gradients, counts), whole, 1e-14)

# %% [markdown] id="numpy-own"
# Every rank needs `total`, and so the counts of the others. Must it ask them? Here every rank builds the whole batch,
# which is cheap, and takes its rows. So it counts for itself.

# %% [markdown] id="item"
# ## One element at a time: adding a share
#
# A gradient arrives from another rank: a mean over `n` of the `all_n` targets. Its share must be added to the sum. One
# work-item takes one number. With 1 and 10 at the first place, and 3 and 1 targets, what is the sum there?

# %%
from llmcl.lab import get_global_id

def add_share_item(total, grad, n, all_n, size):
    i = get_global_id(0)
    if i >= size:
        return
    total[i] += grad[i] * (n / all_n)

# %%
total = np.zeros(6)
for own, n in (([1.0, 2, 3, 4, 5, 6], 3), ([10.0, 10, 10, 10, 10, 10], 1)):
    run = lab.run_items(add_share_item, 6, total, np.array(own), n, 4, 6, group=4)
run.report()
print(total)

# %% [markdown] id="opencl"
# ## In OpenCL
#
# **Exercise 14.4** · easy · 5 minutes. Write the same in C. `n` and `all_n` are whole numbers. What is `3/4` in C?
#
# <details><summary>Hint</summary>
#
# 0, as in warm-up 00a. `(float)n` makes a float of `n`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to put in order</summary>
#
# Three of these five:
#
# - `total[i] += grad[i] * (n / all_n);`
# - `total[i] += grad[i] * ((float)n / all_n);`
# - `const int i = get_global_id(0);`
# - `total[i] = grad[i] * ((float)n / all_n);`
# - `if (i >= size) return;`
#
# </details>

# %%
share_text = lab.kernel_exercise("14.4", """
__kernel void add_share(__global float *total, __global const float *grad,
                        const int n, const int all_n, const int size)
{
    // BEGIN SOLUTION
    const int i = get_global_id(0);
    if (i >= size) return;
    total[i] += grad[i] * ((float)n / all_n);
    // END SOLUTION
}
""")

# %% [markdown] id="check"
# ## Check: the three ranks on the device
#
# Three gradients of our model, added with the kernel, against `together` in float64. How large may the error
# be? One number, one product and three sums are rounded, each by at most 2⁻²⁴ of what is added (lesson 01a).
# OpenCL lets a division miss by five times that. That makes ten; we allow twelve.

# %%
from llmcl.engine import get_engine

engine = get_engine()
add_share = lab.build(engine, share_text).add_share
sums = engine.zeros(whole.shape)
for gradient, n in ranks:
    add_share((whole.size,), (16,), sums, engine.from_host(gradient), n, all_targets, whole.size)
bound = 12 * 2.0**-24 * sum(abs(g) * n / all_targets for g, n in ranks)
lab.check("three shares on the device", engine.to_host(sums), together(gradients, counts), bound)

# %% [markdown] id="ring"
# ## Who adds? The ring
#
# The simplest way: all send their weighed gradient to rank 0, which adds, and sends the sum back to all. For how long is
# rank 0's cable busy, with n ranks? First (n − 1) gradients come, then (n − 1) go. The others mostly wait.
#
# So let all of them work. Cut each gradient into n pieces. Sit in a circle, a **ring**. In each round every rank sends
# *one piece* to the next, and adds the incoming piece to its own. In round 0, rank `r` sends its piece `r`. In
# each further round it sends the sum that it has just made, which is the piece one lower. After 0 comes the
# last, which `% n` does: in Python `-1 % 4` is 3. (In C and C# it is −1.) All send at the same time, hence the
# copy: nobody may send what came in the same round.

# %% tags=["slide"]
def add_round(pieces, step):
    """pieces (ranks, pieces, numbers) after a round: rank r has sent its piece r - step to rank r + 1."""
    n, new = len(pieces), pieces.copy()
    for r in range(n):
        piece = (r - step) % n
        new[(r + 1) % n, piece] += pieces[r, piece]
    return new

pieces = np.ones((4, 4, 1))            # a 1 for each rank: a sum then counts who is in it
for step in range(3):
    pieces = add_round(pieces, step)
print(pieces[:, :, 0].astype(int))

# %% [markdown] id="ring-2"
# Rows are ranks, columns are pieces. After three rounds each rank has one piece that is *whole*: all four are in it.
# Which one has rank 0? Number 1, the piece after its own. Now the whole pieces must go round once more, and nobody
# adds.
#
# **Exercise 14.5** · hard · 10 minutes. Write this second half. In round 0 (`step` is 0 again), rank `r` sends the
# piece that it has whole, `r + 1`. Then it passes on what it has just got, one lower each time. Work on a copy.
#
# <details><summary>Hint 1</summary>
#
# Two things of `add_round` change: which piece is sent, and what is done with it.
#
# </details>
#
# <details><summary>Hint 2: which piece</summary>
#
# `(r + 1 - step) % n`
#
# </details>
#
# <details><summary>I am stuck: give me lines to put in order</summary>
#
# Five of these seven:
#
# - `piece = (r + 1 - step) % n`
# - `piece = (r - step) % n`
# - `n, new = len(pieces), pieces.copy()`
# - `for r in range(n):`
# - `new[(r + 1) % n, piece] = pieces[r, piece]`
# - `new[(r + 1) % n, piece] += pieces[r, piece]`
# - `return new`
#
# </details>

# %%
@lab.exercise("14.5")
def copy_round(pieces, step):
    """pieces (ranks, pieces, numbers) after a round in which whole pieces are passed on."""
    ### BEGIN SOLUTION
    n, new = len(pieces), pieces.copy()
    for r in range(n):
        piece = (r + 1 - step) % n
        new[(r + 1) % n, piece] = pieces[r, piece]
    return new
    ### END SOLUTION

# %% [markdown] id="see"
# ## See it: the ring
#
# Four ranks, four pieces. A number says how many ranks are in a sum, and green is whole. Move the slider. After which
# round is the first piece whole, and after which are all?

# %%
rounds = [np.ones((4, 4, 1))]
for step in range(3):
    rounds.append(add_round(rounds[-1], step))
for step in range(3):
    rounds.append(copy_round(rounds[-1], step))

# %% tags=["slide"]
def draw_ring(axes, done):
    inside = rounds[done][:, :, 0].astype(int)
    moved = [(int(r), int(c)) for r, c in np.argwhere(inside != rounds[max(done - 1, 0)][:, :, 0])]
    colors = np.where(inside == 4, "green", np.where(inside > 1, "sky", ""))
    lab.cells(axes, inside, colors=colors, title="row: rank   column: piece", highlight=moved)

def ring_words(done):
    inside = rounds[done][:, :, 0]
    border = "A thick border marks what came in this round, one piece in each row." if done else "Nothing was sent."
    return f"After {done} of 6 rounds: {(inside == 4).sum()} of 16 pieces hold the sum of all four ranks. {border}"

lab.explore(draw_ring, [0, 1, 2, 3, 4, 5, 6], ring_words, "rounds", start=3, width=4.2, height=3.6)

# %% [markdown] id="see-2"
# After three, and after six: three rounds of adding, three of copying. Here is the whole all-reduce, on our gradients.
# (They are filled up with zeros, until the three pieces are equally long.)

# %%
def all_reduce(arrays):
    """Arrays (ranks, numbers) -> (every rank's sum of all, the bytes that each rank has sent)."""
    n = len(arrays)
    pieces, sent = arrays.reshape(n, n, -1), 0
    for one_round in (add_round, copy_round):
        for step in range(n - 1):
            pieces = one_round(pieces, step)
            sent += pieces[0, 0].nbytes
    return pieces.reshape(n, -1), sent

# %%
weighed = np.array([np.pad(g * n / all_targets, (0, -whole.size % 3)) for g, n in ranks])
summed, sent = all_reduce(weighed)
for rank in range(3):
    lab.check(f"rank {rank} has the gradient of all", summed[rank][:whole.size], whole, 1e-14)
print(f"each rank has sent {sent / weighed[0].nbytes:.2f} gradients; all have the same bits:",
      bool((summed == summed[0]).all()))

# %% [markdown] id="see-bytes"
# Each rank sends 2 (n − 1) pieces, and each is an n-th: **2 (n − 1) / n** gradients. That is 4/3 for three
# ranks. Meanwhile it gets as much: a cable carries both directions at once. And for a thousand ranks?

# %% tags=["slide"]
counted = {}
for n in (2, 4, 8, 16):
    numbers = np.ones((n, 16 * n))
    counted[n] = all_reduce(numbers)[1] / numbers[0].nbytes
    print(f"{n:2} ranks: ring {counted[n]:.3f}, all through rank 0: {2 * (n - 1)}")
    assert counted[n] == 2 * (n - 1) / n

# %%
many = [2, 4, 8, 16, 64, 256, 1000]
picture, axes = lab.figure("How many gradients, one after the other, the busiest cable carries, against ranks. Both "
                           "axes in powers. Through rank 0 it climbs, to 1998 at a thousand ranks. The ring stays below 2.")
axes.loglog(many, [2 * (n - 1) for n in many], "s-", label="through rank 0")
axes.loglog(many, [2 * (n - 1) / n for n in many], "o-", label="ring, counted up to 16")
axes.set(xlabel="ranks", ylabel="gradients")
axes.xaxis.set_major_formatter("{x:g}")
axes.yaxis.set_major_formatter("{x:g}")
axes.legend()
lab.show(picture)
assert list(counted.values()) == [2 * (n - 1) / n for n in counted]

# %% [markdown] id="see-3"
# Below two, however many ranks there are: no cable is busy for longer than two gradients take. What grows all the same?
# The number of rounds, 2 (n − 1).

# %% [markdown] id="mpi"
# ## With real processes: MPI
#
# Now in earnest. **MPI** (Message Passing Interface) is the field's standard for processes that send each other numbers,
# on one machine or on many. It has a launcher, `mpiexec`, which starts a program n times. Each process asks MPI for its
# rank. Does it start here?

# %%
from llmcl import scaling

why_not = scaling.why_not()
print(f"○ {why_not} The cells with MPI are left out." if why_not else "✓ MPI starts processes here")

# %% [markdown] id="mpi-2"
# A program of our own, which `scaling.start` gives to `mpiexec -n 3`. `Allreduce` is the ring that you have written
# (or another way, where MPI knows a better one). `IN_PLACE` puts the sum where the own numbers were. What will rank 0
# print?

# %%
program = """
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD                        # all processes that were started together
mine = np.full(5, world.rank + 1.0)           # ones, twos, threes
world.Allreduce(MPI.IN_PLACE, mine)
if world.rank == 0:
    print(world.size, "ranks, and the sum is", mine)
"""
file = lab.folder("14") / "sum.py"
file.write_text(program, encoding="utf-8")
print("○ left out" if why_not else scaling.start(3, str(file)).stdout.strip())

# %% [markdown] id="mpi-train"
# 1 + 2 + 3 is 6. And the training? The command is `mpiexec -n 3 llmcl train --out …`. Twenty steps on the 25 sentences,
# by one process and by three ranks. 25 is no multiple of 3. Will the losses be the same?

# %%
import json

short = "--pretrain-steps 20 --tune-steps 2 --restart".split()

def train(ranks, name, *options):
    """`llmcl train` in so many processes: the finished process, and its folder."""
    out = lab.folder("14") / name
    return scaling.start(ranks, "-m", "llmcl.cli", "train", "--out", str(out), *short, *options), out

curves = {}
for ranks_now in [] if why_not else [1, 3]:
    done, out = train(ranks_now, f"by_{ranks_now}")
    curves[ranks_now] = json.loads((out / "metrics.json").read_text(encoding="utf-8"))["curves"]["pretrain"]
print("✓ trained" if curves else "○ left out")

# %% tags=["varies"]
for one, three in zip(curves.get(1, []), curves.get(3, [])):
    print(f"step {one[0]:2}: loss {one[1]:.6f} by one process, {three[1]:.6f} by three ranks")

# %%
for one, three in zip(curves.get(1, []), curves.get(3, [])):
    assert np.allclose(one[1:3], three[1:3], rtol=1e-3)    # the loss, and the gradient's norm
print("○ left out" if why_not else "✓ the loss and the norm are the same, within rounding")

# %% [markdown] id="mpi-bits"
# Within rounding, not to the bit. Why? A sum of floats depends on the order of adding (lesson 01a), and three ranks add
# in another order than one.
#
# Ranks on equal devices agree to the bit: MPI gives all the same sum. So no step has to send weights. (Unlike
# devices round differently. So at the start and at each checkpoint all get the weights of rank 0.)
#
# The norm for clipping (lesson 09) is computed from the sum, too. So is the verdict "not a number". Try a mad learning
# rate, on two ranks. How often will the error be told?

# %%
if why_not:
    print("○ left out")
else:
    done, _ = train(2, "wild", "--pretrain-rate", "1e30")
    told = done.stderr.count("stopped being a number at step 2")
    print(f"stopped with an error: {done.returncode != 0}; told {told} time")

# %% [markdown] id="mpi-dead"
# Once: both ranks met it at the same step, and rank 0 speaks for all. Rank 0 alone writes the checkpoints, too. And if
# one process is killed, or a machine loses its power? The others would wait for its gradient for ever. So the launcher
# ends them all, a sentence says so, and `--resume` goes on from the last checkpoint.

# %% [markdown] id="cost"
# ## How fast? A model of the cost
#
# Twice the ranks, half the time? The computing is shared. What else takes time in a step?
#
# - **compute**: forward and backward. Shared: an n-th for each.
# - **fixed**: AdamW over all weights, launches, copies. Every rank does all of it.
# - **latency**: the time until a message arrives, however short it is. Each of the 2 (n − 1) rounds waits for one.
# - **carrying**: the whole gradient takes `carry` seconds through a cable: its bytes divided by the cable's **bandwidth**.
#   The ring sends 2 (n − 1) / n gradients.
#
# **Exercise 14.6** · medium · 6 minutes. Write the seconds of a step as a formula.
#
# <details><summary>Hint</summary>
#
# Four terms. Put n = 1 in: two of them must vanish.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Two of these four:
#
# - `own = compute / n + fixed`
# - `own = (compute + fixed) / n`
# - `return own + 2 * (n - 1) * latency + 2 * (n - 1) / n * carry`
# - `return own + 2 * (n - 1) * (latency + carry)`
#
# </details>

# %%
@lab.exercise("14.6")
def step_seconds(n, compute, fixed, latency, carry):
    """Seconds of a step of n ranks."""
    ### BEGIN SOLUTION
    own = compute / n + fixed
    return own + 2 * (n - 1) * latency + 2 * (n - 1) / n * carry
    ### END SOLUTION

# %% [markdown] id="cost-fit"
# Four numbers to find. Two come from *one* rank: with `half` of the rows, only `compute` halves, `fixed` stays. Two
# come from *two* ranks, which have two rounds: a `short` all-reduce, of one number, is all latency, and a `long` one,
# of the gradient, takes `carry` more. Each rank gets one thread, as if it were a machine of one core. How many cores
# have you?

# %%
def in_ms(found):
    return {name: f"{1e3 * found[name]:.2f} ms" for name in ("step", "half", "short", "long")}

measured = {} if why_not else {n: scaling.measure(n) for n in (1, 2)}
print("○ left out" if why_not else "✓ measured on one rank and on two")

# %% tags=["varies"]
cores = scaling.cores()
if measured:
    print(f"{cores} cores;", {n: in_ms(found) for n, found in measured.items()})
    cost = scaling.fit(measured[1], measured[2], cores)
    print(f"compute {1e3 * cost.compute:.1f} ms, fixed {1e3 * cost.fixed:.1f} ms, "
          f"latency {1e6 * cost.latency:.0f} µs, bandwidth {cost.bandwidth / 1e9:.2f} GB/s")

# %%
if measured:
    carry = cost.bytes / cost.bandwidth
    machines = scaling.fit(measured[1], measured[2])     # as if each rank had a core for itself
    for n in (1, 2, 4, 1000):
        assert np.isclose(machines.seconds(n), step_seconds(n, cost.compute, cost.fixed, cost.latency, carry))
print("○ left out" if why_not else "✓ the package's cost is your formula")

# %% [markdown] id="cost-four"
# Now predict *four* ranks, which the fit has not seen. Write your guess down first. With fewer cores than ranks, the
# ranks take turns. Four on two cores take twice as long as four on four. So the fit is told `cores`. (On a single
# graphics card all ranks share the card, and this model does not fit: `compute / n` is wrong there.)

# %% tags=["varies"]
if measured:
    measured[4] = scaling.measure(4)
    for n, found in measured.items():
        print(f"{n} ranks: predicted {1e3 * cost.seconds(n):6.1f} ms, measured {1e3 * found['step']:6.1f} ms; "
              f"with a core for each: {machines.speedup(n):.2f} times as fast as one")

# %%
assert not measured or (cost.seconds(1) == measured[1]["step"] and cost.seconds(4) > 0)
print("○ left out" if why_not else "✓ one rank is as fast as measured, as it was fitted to that")

# %% [markdown] id="cost-read"
# How far off is yours? The formula leaves out that ranks on one machine share its memory and push each other out of the
# cache, and that on shared cores a message waits until its receiver has one. Other busy programs are left out, too. A
# prediction that is off by a third is worth having: it says that a term is missing.
#
# ## Sixteen machines, and a thousand, on paper
#
# A real model: 124 million parameters (GPT-2 small), so 496 MB of gradient. Say that one machine computes 4 seconds for a
# batch, and 50 ms are fixed. The network has 20 µs of latency, and 12.5 GB/s. Guess: how many times as fast are sixteen?

# %% tags=["slide"]
paper = scaling.Cost(compute=4.0, fixed=0.05, latency=20e-6, bandwidth=12.5e9, bytes=496_000_000)
for n in (1, 2, 16, 1000):
    parts = ", ".join(f"{name} {1e3 * part:6.1f}" for name, part in paper.parts(n).items())
    print(f"{n:4} machines: {parts} ms; {paper.speedup(n):5.1f} times as fast")
assert 10 < paper.speedup(16) < 12 and paper.speedup(1000) < 25

# %% [markdown] id="cost-paper"
# The last column is the **speed-up**. Sixteen machines give nearly eleven. A thousand give not even 25: computing is
# down to 4 ms, and everybody waits for what is not shared. (256 machines are quicker. Why? Fewer rounds.) How is it
# done, then? **By giving them more to compute**: a batch that grows with the machines. Then `compute / n` stays as it
# is.

# %% tags=["slide"]
def grown(n):
    """The speed-up when the batch is n times as large: work done per second, beside one machine."""
    larger = scaling.Cost(4.0 * n, 0.05, 20e-6, 12.5e9, 496_000_000)
    return n * paper.seconds(1) / larger.seconds(n)

picture, axes = lab.figure("Speed-up against machines, both axes in powers. Dashed, the ideal line. With the same batch "
                           "the curve bends away after ten machines, reaches 26 at 256, and is down to 23 at a thousand. "
                           "With a batch that grows it stays close to the ideal, at 971 of 1000.")
axes.loglog(many, many, "k--", label="ideal")
axes.loglog(many, [grown(n) for n in many], "o-", label="the batch grows with them")
axes.loglog(many, [paper.speedup(n) for n in many], "s-", label="the same batch, shared")
axes.set(xlabel="machines", ylabel="times as fast")
axes.xaxis.set_major_formatter("{x:g}")
axes.yaxis.set_major_formatter("{x:g}")
axes.legend()
lab.show(picture)
print(round(paper.speedup(1000)), "and", round(grown(1000)))

# %% [markdown] id="cost-paper-2"
# But a larger batch is not the same training. There are fewer steps for the same text, and each has a more exact gradient
# than it needs. Beyond some size a larger one teaches hardly more. And where the rounds matter, MPI takes a *tree*, not a
# ring: pairs add, then pairs of pairs. A thousand ranks need ten rounds of adding and ten of telling, not 1998.

# %% [markdown] id="break"
# ## Break it: averaging unequal averages
#
# Back to the mean of the two means. Somebody adds up the gradients, divides by the number of *ranks*, and tests it. The
# test has four rows of random ids, equally long like windows of a long text (lesson 07). What does it find?

# %%
def mean_of_means(gradients, counts):
    return sum(gradients) / len(gradients)

text_ids = np.random.default_rng(1).integers(0, 290, (4, 13))
even = [gradient_of(deal(text_ids[:, :-1], r, 2), deal(text_ids[:, 1:], r, 2)) for r in range(2)]
exact = gradient_of(text_ids[:, :-1], text_ids[:, 1:])[0]
lab.check("mean of means, equal rows", mean_of_means(*zip(*even)), exact, 1e-14)

# %% [markdown] id="break-2"
# Nothing: with equal counts both are the same. **Windows of equal length hide the fault.** And with our sentences?

# %% tags=["slide"]
try:
    lab.check("mean of means, sentences", mean_of_means(gradients, counts), whole, 1e-14)
except lab.CheckFailed:
    print("✗ the check found it")
assert not np.allclose(mean_of_means(gradients, counts), whole, atol=1e-6)

# %% [markdown] id="break-3"
# Would you have noticed in training? Two ranks: one has the first sentence alone, the other has the six others. Forty
# steps of plain gradient descent: by one process, by two ranks, and by two ranks with the fault. Which of the three will
# differ?

# %%
first, others = (ids[:1], targets[:1]), (ids[1:], targets[1:])

def losses_after(gradient, steps=40):
    """(loss of the first sentence, loss of the others) after some steps from the same start."""
    model.initialize(0)
    for _ in range(steps):
        model.flat_parameters[0] -= 0.5 * gradient()
    return np.array([model.loss(*first)[0], model.loss(*others)[0]])

def by_two(combine):
    """A function that gives the gradient of two unequal ranks."""
    return lambda: combine(*zip(gradient_of(*others), gradient_of(*first)))

# %%
one = losses_after(lambda: gradient_of(ids, targets)[0])
right, wrong = losses_after(by_two(together)), losses_after(by_two(mean_of_means))
for name, losses in (("one process", one), ("two ranks, weighed", right), ("mean of means", wrong)):
    print(f"{name:>18}: the first {losses[0]:.1f}, the others {losses[1]:.1f}")
assert np.allclose(one, right, rtol=1e-9) and wrong[0] < right[0] / 2

# %% [markdown] id="break-4"
# No error, no warning. The faulty run even looks *better*: the first sentence is nearly known, since it pulls
# as hard as the six others together. But it is not what you asked for, and it changes with the number of ranks.
# In tuning it is worse: only answers count (lesson 10). Ours have 5 to 9 targets; others may have sixty.
#
# The same fault lives in a single process, too. If memory is short, a large batch is computed in small ones, one after
# the other, and their gradients are added before the step: **gradient accumulation**. Widely used programs took the
# mean of means there for years, until somebody compared the losses. The test that finds it? *Unequal* rows, against the
# whole batch at once.

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 14.7** · easy · 3 minutes. What does a rank do in a step? Six of these seven, in order; one does not belong.
# Return the letters as one word.
#
# - **A** The mean loss of its rows, and backward.
# - **B** All-reduce: the sum over all ranks.
# - **C** Take its own rows of the batch.
# - **D** AdamW.
# - **E** Clip by the global norm.
# - **F** Multiply the gradient by its share of the targets.
# - **G** Average the weights over all ranks.

# %%
@lab.exercise("14.7")
def step_of_a_rank():
    """The letters of six lines, in order."""
    ### BEGIN SOLUTION
    return "CAFBED"
    ### END SOLUTION

# %% [markdown] id="exercises-2"
# To go further, on your own: run `mpiexec -n 2 llmcl train --out build/two`, and kill one of the two processes in the
# middle. What is said, and what does `--resume` do? With two computers in one network, `mpiexec` takes a list of hosts
# (its option `-hosts` or `-host`); the package must be installed on both, in the same folder.

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - **Data-parallel**: the same weights, rows of one's own, one **all-reduce** of the gradient a step.
# - Means of unequal counts are weighed by their targets. Equal rows hide it when somebody forgets.
# - In a **ring** each rank sends 2 (n − 1) / n gradients, in 2 (n − 1) rounds.
# - Time: compute / n, fixed, **latency** for the rounds, **bandwidth** for the bytes. What is not shared sets the limit.
#
# In `llmcl`: `parallel.py` and `scaling.py`.
#
# **q1.** Three ranks have 40, 40 and 2 targets, and somebody averages the three means. How much does one of the two
# targets weigh, beside one of the forty?
#
# - **A** as much
# - **B** twenty times as much
# - **C** a twentieth

# %%
lab.quiz("14.q1")

# %% [markdown] id="recap-2"
# **q2.** A thousand ranks, a gradient of 1 GB, a ring. How much does each rank send in a step?
#
# - **A** about 1 GB
# - **B** about 2,000 GB
# - **C** about 2 GB

# %%
lab.quiz("14.q2")

# %% [markdown] id="recap-3"
# **q3.** (Lesson 13) A kernel adds two lists of ten million numbers. What decides its time?
#
# - **A** the bandwidth
# - **B** the peak
# - **C** the cost of a launch

# %%
lab.quiz("14.q3")

# %% [markdown] id="recap-4"
# **q4.** (Lesson 12a) How many bytes does a Q8_0 block of 32 weights take in the file?
#
# - **A** 32
# - **B** 64
# - **C** 34

# %%
lab.quiz("14.q4")

# %% [markdown] id="recap-5"
# **q5.** (Lesson 09) The gradient's global norm is 4, and the limit is 1. What does clipping do?
#
# - **A** It divides every number by 4.
# - **B** It sets every number above 1 to 1.
# - **C** It shortens each tensor to the length 1.

# %%
lab.quiz("14.q5")

# %%
lab.summary("14")

# %% [markdown] id="bridge"
# **Next:** lesson 15, *Your own text*: a larger model, on a text of yours.
