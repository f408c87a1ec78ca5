# ---
# jupyter:
#   llmcl:
#     title: The sabotaged model
#     needs: ["08c", "09", "10", "12b", "check", "central difference", "tied weights", "GGUF"]
#     introduces:
#       - symptom
#       - probe
#       - rubric
#       - llmcl.lab.sabotage
#     minutes: {core: 100, full: 120}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 16 · The sabotaged model
#
# Somebody went through a copy of your package and made five mistakes in it. Nothing stops, nothing warns,
# and the numbers look fine. You find all five, say why each is wrong, mend it, and leave a test behind that
# would have caught it.
#
# | | |
# |---|---|
# | **After this you can** | find a fault that no error announces; explain it; mend it; write the test that would have caught it |
# | **You need** | lessons 08c, 09, 10 and 12b |
# | **Time** | 100 minutes; 120 with the tests |
# | **New words** | symptom, probe, rubric |

# %%
from llmcl import lab

lab.start("16")

# %% [markdown] id="idea"
# ## The idea: a number that looks right
#
# A program that stops has told you where it hurts. A model that trains, and is a little worse than it should
# be, has told you nothing. Its loss goes down: everybody's loss goes down. Where do you look?
#
# First together, on a copy with **one** fault. Then you get a copy of your own with five.

# %%
from llmcl.lab import sabotage

place = lab.folder("16")
wrong = sabotage.load(sabotage.example(place / "example"))
print("a package of its own, with", len(wrong.ops.OPERATIONS), "operations")

# %% [markdown] id="copy"
# It is the package without its lab, in a folder named `sabotaged`. Its modules hang below it: `wrong.data`,
# `wrong.model`, `wrong.optimizer`. Its kernels are a copy as well. One folder in it is sound for certain, in
# this copy and in yours: `reference`. NumPy is the judge, and nobody bribed the judge.
#
# Would you see the fault in its loss? Here is a small model, trained 40 steps.

# %%
def curve(m, steps=40):
    """The loss at every tenth step of a small model, trained with the package m."""
    sentences = m.data.read_sentences(m.resources.data_dir() / "pretrain.txt")
    tokenizer = m.tokenizer.ByteBPE.train(sentences, 400)
    config = m.config.Config(tokenizer.vocab_size, context_length=64, d_model=48, n_layers=1, d_ff=192)
    model = m.model.GPT(config, m.engine.get_engine())
    model.initialize(0)
    batches = m.train.Batches([m.data.pretrain_rows(sentences, tokenizer, 64)], 25, tokenizer.end_id)
    run = m.train.train_steps(model, m.optimizer.AdamW(model), batches, m.optimizer.Schedule(3e-3, steps))
    return [step.loss for step in run if step.loss is not None]

suspect = curve(wrong)
print(len(suspect), "losses, and each is lower than the one before:", suspect == sorted(suspect)[::-1])

# %% [markdown] id="healthy"
# Now the same with a sound copy. What do you expect to see between the two curves?

# %% tags=["slide"]
sound = sabotage.load(sabotage.example(place / "sound", sound=True))
healthy = curve(sound)

fig, axes = lab.figure(
    "Loss against training steps for the sound and the sabotaged copy. The two curves lie on each other; "
    "only at the end does the sabotaged one stay a hair above.")
axes.plot([1, 10, 20, 30, 40], healthy, "o-", label="sound")
axes.plot([1, 10, 20, 30, 40], suspect, "s--", label="sabotaged")
axes.set(xlabel="step", ylabel="loss")
axes.legend()
lab.show(fig)

# %%
apart = max(abs(a - b) / b for a, b in zip(suspect, healthy))
assert suspect[0] == healthy[0] and 0 < apart < 0.05
print("✓ the first loss is the same to the last bit, and no later one differs by more than 5 percent")

# %% [markdown] id="symptom" tags=["slide"]
# That is all the **symptom** there is: what can be seen from outside. Another seed moves the curve about as much.
# Had you no sound copy beside it, you would call this a healthy run. **A loss that falls proves that
# something learns. It does not prove that anything is right.**
#
# What would you ask next? Think of lesson 08c: you did not read the model from the first line to the last.

# %% [markdown] id="halve" tags=["slide"]
# ## Halve the road
#
# The road has stretches: data, forward, backward, update, file. Each hands something to the next, so each can
# be compared at its end. The judge is the copy's own `reference` engine, in float64. First forward and
# backward, on weights that are large enough for everything to matter.
#
# At the end of forward we compare the logits, and not the loss. Why? The loss is a mean of many numbers, and
# a mean hides: a fault may change every logit, and the loss hardly at all.

# %%
import numpy as np

rng = np.random.default_rng(16)

def gradients(m, engine, weights, ids, targets):
    """The logits, and the gradient of every parameter, on an engine."""
    model = m.model.GPT(m.config.Config(71, 64, d_model=36, n_heads=4, n_layers=2, d_ff=60), engine)
    model.load_weights(weights)
    logits = engine.to_host(model.forward(ids))
    model.loss(ids, targets)
    model.backward()
    return logits, {name: engine.to_host(g) for name, g in model.gradients.items()}

shapes = wrong.config.Config(71, 64, d_model=36, n_heads=4, n_layers=2, d_ff=60).parameter_shapes()
weights = {name: rng.normal(0, 0.3, shape) for name, shape in shapes.items()}
ids, targets = rng.integers(0, 71, (3, 11)), rng.integers(0, 71, (3, 11))

# %% tags=["slide"]
def same(got, want, share=1e-4):
    """Whether two arrays agree within a share of the largest number: far above rounding."""
    return np.abs(got - want).max() <= share * np.abs(want).max()

device, judge = wrong.engine.get_engine(), wrong.reference.Engine()
logits, grads = gradients(wrong, device, weights, ids, targets)
want_logits, want_grads = gradients(wrong, judge, weights, ids, targets)
print("forward: the logits agree: ", same(logits, want_logits))
print("backward: gradients that agree:", sum(same(grads[n], want_grads[n]) for n in grads), "of", len(grads))

# %% [markdown] id="halved"
# Forward and backward agree with NumPy. Does that clear them? Not quite: a fault in `layers.py` would run on
# both engines, and both would agree on it. That is what central differences are for. Here we go on to the
# next stretch, and remember what was not asked. What does the update get, and what does it give?

# %% tags=["slide"]
def one_step(engine, gradient):
    """What AdamW makes of weights of 1 in its first step, at a rate of 0.1, without decay."""
    w, m, v = (engine.from_host(np.full(gradient.shape, x)) for x in (1.0, 0.0, 0.0))
    status = engine.from_host(np.array([1.0, 1, 1, 1, 0]))    # norm, clip, finite, loss, bad step
    engine.adamw(w, engine.from_host(gradient), m, v, status, rate=0.1, beta1=0.9, beta2=0.999,
                 epsilon=1e-8, decay=0.0, step=1, n_decay=0)
    return engine.to_host(w)

for size in (1.0, 1e-2, 1e-4, 1e-6):
    gradient = size * np.resize([1.0, -1.0], 11)
    moved, want = one_step(device, gradient) - 1, one_step(judge, gradient) - 1
    print(f"gradients of {size:g}: the update agrees:", same(moved, want))

# %% [markdown] id="found-part"
# There it is, and only where gradients are small. With random numbers of size 1, the usual choice, this check
# would have passed. Why do small gradients matter? Once a model has learned most of a text, nearly all its
# gradients are small.
#
# So there is something small that begins to count when the gradients are small, too. The update has one such
# number: epsilon, 1e-8. Where does it stand?

# %% tags=["slide"]
text = (place / "example" / "sabotaged" / "kernels" / "adamw.cl").read_text(encoding="utf-8")
for number, line in enumerate(text.splitlines(), start=1):
    if "epsilon" in line and "sqrt" in line:
        print(f"line {number}: {line.strip()}")

# %% [markdown] id="found-line"
# Line 5, a comment, has the formula. The code says something else: epsilon slipped into the root. In there it
# is not 1e-8: the root of 1e-8 is 1e-4. (In layer norm it is the other way round: there, lesson 06 found,
# epsilon belongs inside.)
#
# Why three lines? A kernel may have versions: one weight for each work-item, or eight at a time and the rest
# one by one (`_wide`, for CPUs), or a file `…_gpu.cl`. You do not know which another device runs: mend all.
#
# ## First the test, then the cure
#
# You could mend it now. Do not, yet. A test that was never seen to fail proves nothing, and this is the last
# moment at which you can see it fail. A test takes the package as `m`.

# %% tags=["slide"]
TEST = '''
import numpy as np

def test_small_gradients_move_the_weights_as_far(m):
    """The first step of AdamW is the rate, also for gradients of the size of sqrt(epsilon)."""
    engine = m.engine.get_engine()
    w, mean, v = (engine.from_host(np.zeros(11)) for _ in range(3))
    status, gradient = engine.from_host(np.array([1.0, 1, 1, 1, 0])), engine.from_host(np.full(11, 1e-4))
    engine.adamw(w, gradient, mean, v, status, rate=0.1, beta1=0.9, beta2=0.999, epsilon=1e-8,
                 decay=0.0, step=1, n_decay=0)
    moved = engine.to_host(w)
    assert np.allclose(moved, -0.1, rtol=1e-2), f"moved by {moved[0]:.3f}, not by -0.100"
'''
(place / "example" / "tests.py").write_text(TEST, encoding="utf-8")
sabotage.try_tests(place / "example")

# %% [markdown] id="test-form"
# It fails, and its message says what you have and what is wanted. Why is -0.1 wanted? Without decay, the very
# first step moves a weight by the rate, if its gradient is far above epsilon (lesson 09). Such a small check
# that looks at one thing is called a **probe**. Now mend the kernel, and only the kernel. What should the test
# say afterwards?

# %% tags=["slide"]
kernel = place / "example" / "sabotaged" / "kernels" / "adamw.cl"
inside, outside = "sqrt(v_new * correction2 + epsilon)", "(sqrt(v_new * correction2) + epsilon)"
kernel.write_text(kernel.read_text(encoding="utf-8").replace(inside, outside), encoding="utf-8")
sabotage.try_tests(place / "example")

# %%
mended = sabotage.load(place / "example")
agree = [same(one_step(mended.engine.get_engine(), s * np.ones(11)) - 1, one_step(judge, s * np.ones(11)) - 1)
         for s in (1.0, 1e-2, 1e-4, 1e-6)]
assert all(agree) and inside not in kernel.read_text(encoding="utf-8")
print("✓ the update agrees with NumPy at every size of gradient")

# %% [markdown] id="steps"
# **Exercise 16.1** · easy · 4 minutes. These are the steps you took. Put five of the six in order; one does
# not belong. Return the letters as one word.
#
# - **A** Compare the stretches of the road one by one, until one differs.
# - **B** Write a test, and see it fail.
# - **C** Notice a symptom, or decide to trust nothing.
# - **D** Mend the line, and see the test pass.
# - **E** Read the part that differs, and say which line is wrong and why.
# - **F** Make the tolerance wider, until everything passes.
#
# <details><summary>Hint</summary>
#
# When is the only moment at which a test can be seen to fail?
#
# </details>

# %%
@lab.exercise("16.1")
def steps():
    """The letters of five steps, in order."""
    ### BEGIN SOLUTION
    return "CAEBD"
    ### END SOLUTION

# %% [markdown] id="yours"
# ## Your copy
#
# **Exercise 16.2** · hard · 90 minutes. Find the five faults of your copy, explain them, mend them, and
# leave a test for each.
#
# Take your student's number, or any number or word that you like: it decides which faults you get.
# The same number gives the same faults for ever, so you can compare notes with somebody who has another one.

# %%
number = "2026"
mine = sabotage.prepare(number, place / f"copy-{number}")
m = sabotage.load(mine)
device, judge = m.engine.get_engine(), m.reference.Engine()
assert (mine / "sabotaged" / "kernels" / "adamw.cl").is_file()
print(f"your copy is the folder {mine.name}/sabotaged, in this lesson's folder (named at the top)")

# %% [markdown] id="yours-how"
# Open the folder in JupyterLab's file browser at the left, or in your editor. You change files there, and run
# the cell above again: `m`, `device` and `judge` are then your copy as it stands on the disk. For experiments,
# put cells of your own below this one; `gradients`, `same` and `one_step` from above work with it as well. Made
# a mess? Save your `tests.py`, delete the copy's folder, run the cell above.
#
# | there is one fault in each | where | a first question |
# |---|---|---|
# | data | `data.py` | are the targets what they should be, place for place? |
# | forward | `kernels/`, `ops/`, `layers.py` | does the device say what NumPy says? does every parameter matter? |
# | backward | `kernels/`, `layers.py`, `model.py` | is the gradient the slope? |
# | update | `kernels/`, `ops/`, `model.py`, `optimizer.py` | what does one step change, and by how much? |
# | file | `gguf_file.py`, `chat_format.py` | does another reader find in the file what you put in? |
#
# Go down the table, and mend before you go on: behind a forward pass that is wrong, every gradient differs.
# Two faults may stand in the same file.
#
# Sound for certain: `reference/`, the tokenizer, the configuration, and whatever chooses and runs devices.
#
# The sound package is installed on your machine, and a program that compares files would name all five lines
# in a second. Nobody can keep you from it. It would be like looking at the last page: you would know who did
# it, and not how anybody finds out. The faults you meet later have no sound copy beside them.

# %% [markdown] id="hints"
# ## Hints, one for each stretch
#
# <details><summary>data</summary>
#
# Make rows of five tokens by hand, such as `m.data.windows([5, 6, 7, 8, 9], 64)`, and a batch of a long row
# and a short one. Print them. Then one dialogue through `m.data.tune_rows`: decode the targets that count,
# and look at the last one. (Lessons 07 and 10.)
#
# </details>
#
# <details><summary>forward</summary>
#
# One operation at a time, on random numbers: `device.gelu(device.from_host(x))` beside `judge.gelu(x)`.
# `help(m.reference.linear)` says what an operation takes; `device.to_host(…)` brings a result back. Batch, time,
# heads and widths all different, and numbers large enough that their scale matters. If every operation agrees,
# the fault runs on both engines: which parameter can you change without changing the loss? (Lessons 03 to 06.)
#
# </details>
#
# <details><summary>backward</summary>
#
# Two kinds again. A kernel that is wrong differs from NumPy: compare `gradients` of both engines, and see in
# which layer they part (lesson 08c). A layer that is wrong differs from the slope: central differences on
# `judge`, layer by layer. And what happens if you call `backward` twice? (Lessons 08a to 08c.)
#
# </details>
#
# <details><summary>update</summary>
#
# Take the parts one by one: the schedule from its first step to its last; the norm and the clip of a
# gradient that you know; one AdamW step; what decays and what does not. And what `moments` gives must come
# back by `load_moments`. (Lesson 09.)
#
# </details>
#
# <details><summary>file</summary>
#
# `m.gguf_file.write_gguf(path, config, weights, tokenizer, "F32")` with random weights, then
# `gguf.GGUFReader(path)`. A tokenizer comes from `m.tokenizer.ByteBPE.train(["any text"], 260)`; the
# configuration takes its `vocab_size`. All sizes different, and a `layer_norm_epsilon` that is not the usual one.
# Then the template, `m.chat_format.chat_template()`: what does it make of one question, to the letter? (Lessons
# 12a and 12b.)
#
# </details>

# %% [markdown] id="notes"
# ## Say it, and prove it
#
# For each fault: a note, a cure, and a test. A note says the file, the function in which the wrong line stands
# (`Block.backward`, where several have the name), and in one or two sentences what is wrong and what it does to
# the model. Here is what it would have been for the example.
#
# ```python
# sabotage.note_finding(mine, "update", "adamw.cl", "adamw",
#     "Epsilon stands inside the root. There it acts as 1e-4 and slows down every weight whose "
#     "gradient is small, which is most of them late in training.")
# ```
#
# Your tests go into the file `tests.py` of your folder, one function `test_…(m)` for each fault.
# It asks `m` only, and must pass on a sound package: otherwise it proves nothing. What it prints is shown. Which
# sizes will you choose, so that no swapped index can hide?

# %% tags=["varies"]
sabotage.try_tests(mine)

# %%
assert (mine / "tests.py").is_file()
print("✓ your tests were run on your copy")

# %% [markdown] id="points" tags=["slide"]
# ## What it is worth
#
# This is the **rubric**, what each point is given for. Five faults, four points each:
#
# | point | given for | by |
# |---|---|---|
# | named | the right file and function in your note | the checker |
# | explained | why it is wrong, and what it does to the model | your teacher, or a friend |
# | mended | the part does what it should, on numbers that you do not see | the checker |
# | caught | a test of yours passes on the sound package and fails on one with this fault alone | the checker |
#
# The checker runs your tests on the sound package and on five with one fault each, all in processes of their
# own. It takes about ten seconds.

# %% tags=["varies"]
result = sabotage.marks(number, mine)
print(sabotage.table(result))

# %%
assert len(result) == 5 and all(0 <= mark.points <= 3 for mark in result)
print("✓ the checker looked for five faults")

# %% [markdown] id="points-more"
# Run the cell again whenever you like. Below the table stands why a point is missing. A fault that is mended
# and not caught is the usual case: why is a test harder to write than a cure?
#
# <details><summary>For teachers</summary>
#
# `python -m llmcl.lab.sabotage key 4711` prints the five faults of number 4711, each with the right line, the
# wrong one, the reason, and a test that finds it. `python -m llmcl.lab.sabotage grade 4711 FOLDER` prints the
# points of a folder that was handed in, beside the student's reasons, which are yours to judge: one point
# each, for a reason that says what the fault does to the model and not only what the line should have been.
# 18 points and more are very good, 10 are a pass.
#
# Each student takes a number of their own, and hands in the folder `build/lesson-16/copy-NUMBER`. Plan two
# sessions: one for finding and mending, one for the tests. Who is stuck at a stretch goes on with the next; only
# backward waits for forward.
#
# A student who compared files has "named" and "mended" for nothing; the tests and the reasons remain. Five
# minutes of talk about one of the tests tell more than any checker: ask what it would not have caught.
#
# The folder runs the student's own Python when it is graded. Grade on a machine where that is all right.
#
# </details>

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# You found faults that nothing announced. You did not find them by reading everything, and not by luck: you
# compared one stretch after another with a judge that you trust, on numbers chosen so that nothing could hide.
# And each fault that you met is now a test. It can come back, and you will hear of it the same day.
#
# What would you check first in a model that somebody hands you tomorrow?

# %%
lab.summary("16")

# %% [markdown] id="bridge"
# This is the last lesson. You know every number of a language model now, from the first byte of a text to the
# last byte of a file, and you know how to find out when one of them is wrong. The glossary (90) and the
# troubleshooting pages (91) are there when you come back. If somebody asks you how this really works, you can
# show them.
