# ---
# jupyter:
#   llmcl:
#     title: Tuning
#     needs: ["00", "02", "06", "07", "08b", "09", "padding", "cross-entropy", "causal mask"]
#     introduces:
#       - dialogue
#       - fine-tuning
#       - teacher forcing
#       - forgetting
#       - mixing
#       - llmcl.data.dialogue_text
#       - llmcl.data.prompt_text
#       - llmcl.data.tune_rows
#       - llmcl.data.recall_prompts
#       - llmcl.evaluate.answers
#       - llmcl.generate.generate
#       - llmcl.lab.checkpoint
#       - llmcl.optimizer.AdamW
#     minutes: {core: 75, full: 95}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 10 · Tuning
#
# The model of lesson 09 finishes sentences. In this lesson it learns to answer questions. You decide which
# targets count, and you watch, sentence by sentence, what it forgets meanwhile.
#
# | | |
# |---|---|
# | **After this you can** | mask a dialogue's loss; teach the end token, and find out when nobody taught it; measure forgetting, and reduce it |
# | **You need** | lessons 07, 08b and 09 |
# | **Time** | 75 minutes; 95 with the exercises |
# | **New words** | dialogue, fine-tuning, teacher forcing, forgetting, mixing |

# %%
from llmcl import lab

lab.start("10")

# %% tags=["varies"]
from llmcl.engine import get_engine

engine = get_engine()
model, tokenizer = lab.checkpoint("09", engine)
start = model.weights()  # every run of this lesson begins here

# %% [markdown] id="idea"
# ## The idea: a dialogue is a text
#
# What does this model know? Ask as in lesson 09: it gets the beginning of a sentence, and has to write the
# rest, word for word, and then the end token.

# %%
from llmcl.data import read_sentences
from llmcl.evaluate import recall
from llmcl.resources import data_dir

sentences = read_sentences(data_dir() / "pretrain.txt")
assert any(recall(model, tokenizer, sentences))
print(sum(recall(model, tokenizer, sentences)), "of", len(sentences), "sentences known")

# %% [markdown] id="idea-ask"
# It can write that the sun warms the land and the sea. So let us ask what warms them. How does one ask a
# model that can only write on? One gives it a text that an answer would continue:

# %% tags=["slide"]
from llmcl.data import dialogue_text, read_dialogues

dialogues = read_dialogues(data_dir() / "tune.jsonl")
print(len(dialogues), "dialogues; number 3 is this text:\n")
print(dialogue_text(dialogues[3]))

# %% [markdown] id="idea-form" tags=["slide"]
# That is a **dialogue**. `User:` and `Assistant:` are no commands. They are letters like all others. Somebody
# chose them, and every dialogue has them at the same spot. `prompt_text` makes the part up to `Assistant:`.
# What will the model write behind it?

# %%
from llmcl.data import prompt_text
from llmcl.generate import generate

def say(question, most=40):
    """What the model writes behind a question, up to the end token or `most` tokens."""
    asked, end = tokenizer.encode(prompt_text(question)), tokenizer.end_id
    new = generate(model, asked, max_new_tokens=most, stop_ids=[end])
    return tokenizer.decode(new) + (" [END]" if new[-1] == end else " …")

# %% tags=["varies"]
for d in dialogues[3:6]:
    print(f"{d.user:36}{say(d.user)}")

# %%
from llmcl.evaluate import answers

assert sum(answers(model, tokenizer, dialogues)) < 3
print("✓ it knows the facts, and it cannot answer")

# %% [markdown] id="idea-tuning"
# Why not? It has never seen such a text. So let it see some. The same model, the same training, other texts, a
# smaller learning rate: that is **fine-tuning**, or tuning for short. Only one thing is new, and it is the
# question of this lesson. *Which targets count?*

# %% [markdown] id="numpy"
# ## In NumPy: whose words are these?
#
# In use, the user writes the question. The model never has to. So its loss should not ask for it. It should ask
# for the answer, and for the end token behind it. Everything else gets the target `IGNORED`. People say that
# these targets are **masked**. (This has nothing to do with the causal mask. You will see that below.)
#
# **Exercise 10.1** · medium · 6 minutes. Write `answer_row`. You get the ids of the question, with `Assistant:`
# at its end, and the ids of the answer. At which place is the answer's first token the target?
#
# <details><summary>Hint</summary>
#
# At the question's last place. So one target less than the question has tokens is masked. The end token is a
# target. Nothing follows it, so it is no input.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Three of these six, in the right order:
#
# - `wanted = answered + [end_id]`
# - `inputs = asked + answered`
# - `inputs = asked + wanted`
# - `return inputs, [IGNORED] * (len(asked) - 1) + wanted`
# - `return inputs, [IGNORED] * len(asked) + wanted`
# - `return inputs, [IGNORED] * len(asked) + answered`
#
# </details>

# %%
from llmcl.data import IGNORED

@lab.exercise("10.1")
def answer_row(asked, answered, end_id):
    """Two lists of ids -> (inputs, targets), equally long; only the answer and its end count."""
    ### BEGIN SOLUTION
    wanted = answered + [end_id]
    inputs = asked + answered
    return inputs, [IGNORED] * (len(asked) - 1) + wanted
    ### END SOLUTION

# %% [markdown] id="numpy-row"
# Below, each place of our dialogue. Left what the model reads, right what it should say there.

# %%
def name_of(i):
    return "[END]" if i == tokenizer.end_id else "–" if i == IGNORED else repr(tokenizer.decode([i]))

asked = tokenizer.encode(prompt_text(dialogues[3].user))
row = answer_row(asked, tokenizer.encode(" " + dialogues[3].assistant), tokenizer.end_id)
for place, (seen, wanted) in enumerate(zip(*row)):
    print(f"{place:2}  {name_of(seen):14}{name_of(wanted)}")

# %% [markdown] id="numpy-spellings"
# The answer begins with a space, as it follows `Assistant:`. Some programs add that space to the question
# themselves. Then the answer has to begin without one. Is that not the same? Not to a tokenizer (lesson 02). So
# `tune_rows` makes two rows of each dialogue, one for each spelling. These are the first targets of number 0:

# %%
from llmcl.data import tune_rows

dialogue_rows = tune_rows(dialogues, tokenizer)
assert dialogue_rows[6] == row
for _, targets in dialogue_rows[:2]:
    print([name_of(i) for i in targets if i != IGNORED][:2])
print(len(dialogue_rows), "rows")

# %% [markdown] id="numpy-batch"
# All rows in one batch. Where does the loss look? Guess the share of the places first.

# %%
import numpy as np
from llmcl.data import batch

x, y = batch(dialogue_rows, tokenizer.end_id)
kinds = np.where(y == tokenizer.end_id, "E", np.where(y == IGNORED, "", "A"))
for i, (_, targets) in enumerate(dialogue_rows):
    kinds[i, : targets.count(IGNORED)] = "q"
print({kind or "pad": int((kinds == kind).sum()) for kind in ("q", "A", "E", "")})

# %% tags=["slide"]
colors = np.select([kinds == "q", kinds == "A", kinds == "E"], ["lightgray", "orange", "green"], "white")
fig, axes = lab.figure(
    "26 rows. Each begins with gray cells, q, the question. Then come a few orange cells, A, the answer, and one "
    "green cell, E, the end token. Short rows are filled with white pads. Gray and white make up most.",
    height=5.6)
lab.cells(axes, np.zeros(y.shape), kinds, colors, title="targets   row: a dialogue's spelling   column: place")
lab.show(fig)

# %% [markdown] id="numpy-why"
# About a third of the places is orange or green. Everything else is read, and not asked for. Look at the green
# cells. Their target is the id 511. A pad's *input* is 511 as well (lesson 07). Its target is not. Remember that.
#
# ## What is known?
#
# You want to watch 38 texts while the model learns: 25 sentences and 13 answers. `recall` writes a sentence
# token by token, always taking the largest logit, and `answers` an answer. (Lesson 11 calls this greedy.) That is many small forward
# passes. Can one pass do it?
#
# Give the model the whole text, right answer and all, and ask at every place: is the target's logit the
# largest? To feed the right tokens instead of the model's own is called **teacher forcing**. You have done it
# since lesson 07: every training step does.
#
# **Exercise 10.2** · medium · 5 minutes. Write `known`.
#
# <details><summary>Hint</summary>
#
# `logits.argmax(axis=-1)` is the best token at each place. What should hold where nobody asks?
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Three of these six, in the right order:
#
# - `best = logits.argmax(axis=-1)`
# - `best = logits.argmax(axis=1)`
# - `fine = (best == targets) | (targets == IGNORED)`
# - `fine = best == targets`
# - `return fine.all(axis=-1)`
# - `return fine.any(axis=-1)`
#
# </details>

# %%
@lab.exercise("10.2")
def known(logits, targets):
    """logits (B, T, V), targets (B, T) -> (B,): whether every target of a row is the best token."""
    ### BEGIN SOLUTION
    best = logits.argmax(axis=-1)
    fine = (best == targets) | (targets == IGNORED)
    return fine.all(axis=-1)
    ### END SOLUTION

# %% [markdown] id="numpy-equal"
# Is that the same as writing? Suppose all targets are best. Then the first token that the model writes is the
# right one. So what it reads next is what we fed. So its second token is right, and so on, to the end token.
# And if one target is not best? Then it leaves the text there, at the latest. **The two agree on every text**,
# and one pass asks all 38. (Two logits that differ by a rounding could fall either way. Trained models are surer.) A
# sentence's row is masked like a dialogue's: its beginning is the question.

# %%
from llmcl.data import recall_prompts

begun = [(tokenizer.encode(a), tokenizer.encode(b)) for a, b in recall_prompts(sentences, tokenizer)]
sentence_rows = [answer_row(a, b, tokenizer.end_id) for a, b in begun]
all_x, all_y = batch(sentence_rows + dialogue_rows, tokenizer.end_id)

def known_now():
    """(38,): the 25 sentences, then the 13 answers, which must be right in both spellings."""
    k, facts = known(engine.to_host(model.forward(all_x)), all_y), len(sentences)
    plain, spaced = k[facts::2], k[facts + 1 :: 2]  # every second row is the other spelling
    return np.concatenate([k[:facts], plain & spaced])

# %%
def written_now():
    """The same, but written token by token: slow, and the judge."""
    return np.array(recall(model, tokenizer, sentences) + answers(model, tokenizer, dialogues))

assert (known_now() == written_now()).all()
print("✓ one pass says the same as writing all of them")

# %% [markdown] id="item"
# ## One element at a time
#
# The logits have to travel from the device to NumPy for this, 512 for each place. A device could answer with
# one number a place. One work-item takes one place. What does it say where nobody asks?

# %%
from llmcl.lab import get_global_id

def one_place_known(logits, targets, known, rows, V):
    row = get_global_id(0)
    if row >= rows:
        return
    target = targets[row]
    known[row] = 1
    if target < 0:
        return
    its = logits + row * V
    best = 0
    for v in range(1, V):
        if its[v] > its[best]:
            best = v
    known[row] = 1 if best == target else 0

# %%
some = np.random.default_rng(10).normal(size=(5, 6))
wanted = np.array([IGNORED, IGNORED, some[2].argmax(), some[3].argmin(), some[4].argmax()], np.int32)
right = np.zeros(5, np.int32)
run = lab.run_items(one_place_known, 5, some, wanted, right, 5, 6, group=2)
run.report()
print(right)
lab.view_items(run, start=3)

# %% [markdown] id="item-view"
# Move the slider to work-item 0. It reads its target, writes a 1, and leaves. Place 3 asks for the *worst*
# token, so it is the one 0.

# %% [markdown] id="opencl"
# ## In OpenCL
#
# And in training? Here is the kernel of lesson 08b once more, with which the way back begins. Which line belongs to
# the questions?

# %%
lab.show_kernel("cross_entropy", "cross_entropy_backward")

# %% [markdown] id="opencl-write"
# `if (target < 0)`: a row of zeros, and the logits are not read.
#
# **Exercise 10.3** · hard · 8 minutes. Write `one_place_known` in C. `a == b` is 1 or 0 there.
#
# <details><summary>Hint</summary>
#
# Line for line. A pointer to the row: `__global const float *in = logits + row * V;`
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Nine of these eleven, in the right order:
#
# - `const int row = get_global_id(0);`
# - `if (row >= rows) return;`
# - `const int target = targets[row];`
# - `known[row] = 1;`
# - `known[row] = 0;`
# - `if (target < 0) return;`
# - `__global const float *in = logits + row * V;`
# - `int best = 0;`
# - `for (int v = 1; v < V; ++v) if (in[v] > in[best]) best = v;`
# - `known[row] = best == target;`
# - `known[row] = in[best] == target;`
#
# </details>

# %%
known_text = lab.kernel_exercise("10.3", r"""
__kernel void place_known(__global const float *logits,   // (rows, V)
                          __global const int *targets,    // (rows)
                          __global int *known,            // (rows)
                          const int rows, const int V)
{
    // BEGIN SOLUTION
    const int row = get_global_id(0);
    if (row >= rows) return;
    const int target = targets[row];
    known[row] = 1;
    if (target < 0) return;
    __global const float *in = logits + row * V;
    int best = 0;
    for (int v = 1; v < V; ++v) if (in[v] > in[best]) best = v;
    known[row] = best == target;
    // END SOLUTION
}
""")

# %% [markdown] id="opencl-run"
# And on all 38 texts, with the real logits:

# %%
logits = model.forward(all_x)
logits_shape = all_y.size, model.config.vocab_size
on_device = engine.from_host(np.zeros(all_y.size, np.int32))
place_known = lab.build(engine, known_text).place_known
place_known((all_y.size,), (16,), logits, engine.from_host(all_y), on_device, *logits_shape)
by_place = engine.to_host(on_device).reshape(all_y.shape)
assert (by_place.all(axis=-1) == known(engine.to_host(logits), all_y)).all()
print("✓ the kernel and NumPy know the same")

# %% [markdown] id="check"
# ## Check
#
# Now `cross_entropy_backward` on your device, with the targets of the dialogues and real logits. Is every row of a
# question 0?

# %%
from llmcl import reference
from llmcl.check import Case

z = engine.to_host(model.forward(x))
kept = reference.cross_entropy(z.astype(float), y)[1].astype(np.float32)  # log_sum, which forward keeps
case = Case("cross_entropy_backward", (z, y, kept))
(got,), (want,), (bound,) = case.run(engine), case.run(reference.Engine()), case.bounds()
lab.check("share minus one-hot", got, want, bound)
assert (got[y == IGNORED] == 0).all()
print("✓ masked places: every number is 0")

# %% [markdown] id="check-heard"
# So does the model learn nothing from a question? Take our dialogue alone, and look at the gradient of the
# positions' table. Each place of the text used one row of it (lesson 08b).
#
# **Exercise 10.4** · easy · 2 minutes. Above, only the last places of this row have a target. How many rows of the
# table get a gradient?
#
# <details><summary>Hint</summary>
#
# What does the answer listen to, while it is computed?
#
# </details>

# %%
lab.predict("10.4", guess=None)

# %%
model.loss(*batch([row], tokenizer.end_id))
model.backward()
pulls = np.linalg.norm(engine.to_host(model.gradients["position_embd.weight"]), axis=1)
lab.reveal("10.4", (pulls > 0).sum())
assert (pulls > 0).sum() == len(row[0])
print("rows with a gradient:", (pulls > 0).sum(), "of", len(pulls))

# %% tags=["slide"]
fig, axes = lab.figure(
    "A bar for each place of the text: how long the gradient of its position is. The question's places have bars "
    "as well, most of them shorter than the answer's. The last bar is too short to be seen. Behind the text there "
    "are none.", height=2.6)
masked = np.array(row[1]) == IGNORED
for kind, hatch, label in ((masked, "//", "masked"), (~masked, "", "with a target")):
    axes.bar(np.flatnonzero(kind), pulls[: len(kind)][kind], hatch=hatch, label=label)
axes.set(xlabel="position", ylabel="length of the gradient", xlim=(-1, 22))
axes.legend()
lab.show(fig)

# %% [markdown] id="check-heard-2" tags=["slide"]
# One for each place of the text, masked or not. (The last bar hardly shows: behind a full stop, this model expects the
# end already.) The answer attends to the question, so its loss reaches back there. **Masked means: not asked for. It
# does not mean: not heard.** Who is heard is up to the causal mask. So a question is learned, too, as something to
# listen to.

# %% [markdown] id="see"
# ## See it: 38 sentences
#
# Now tune. First naively: the dialogues alone, 120 steps, all 26 rows in each. While it runs, `known_now` is
# asked now and then. This generator hands the steps on, and keeps what is known, by step. `Batches` (lesson 09) takes
# at most 64 rows of each source, so here all of them. (Press Stop if you like. The later cells need the whole run, and
# make it again without its picture.)

# %%
from llmcl.optimizer import AdamW, Schedule
from llmcl.train import Batches, train_steps

ASK_AT = (0, 4, 8, 12, 16, 20, 30, 40, 60, 80, 100, 120)

def tuning(sources, history, change=lambda x, y: (x, y), rate=1e-3):
    """Tunes the model of lesson 09 and yields the steps; history gets {step: known (38,)}.

    change: what to do with every batch's inputs and targets before the step.
    """
    model.load_weights(start)
    batches = Batches(sources, 64, tokenizer.end_id)
    history[0] = known_now()
    schedule = Schedule(rate, 120)
    for step in train_steps(model, AdamW(model), lambda n: change(*batches(n)), schedule, log_every=5):
        if step.step in ASK_AT:
            history[step.step] = known_now()
        yield step

# %%
facts = len(sentences)

def count(history, step=120):
    """How many sentences and how many answers are known at a step."""
    return int(history[step][:facts].sum()), int(history[step][facts:].sum())

def whole(run, sources, history):
    """The last loss; a run that was stopped is made again to its end, without its picture."""
    if not run.stopped:
        return run.steps[-1].loss
    print(f"○ stopped after step {run.last}, so the run is made again, to its end")
    *_, last = tuning(sources, history)  # makes all steps, and keeps the last
    return last.loss

# %% [markdown] id="see-guess"
# **Exercise 10.5** · easy · 2 minutes. It starts with all 25 sentences. None of them will be shown again. How
# many will it know after 120 steps?

# %%
lab.predict("10.5", guess=None)

# %% tags=["varies"]
measures = {"sentences": lambda: known_now()[:facts].sum(), "answers": lambda: known_now()[facts:].sum()}
naive = {}
naive_run = await lab.watch(
    tuning([dialogue_rows], naive), measures=measures, every=10,
    alt="Loss, gradient norm, learning rate, and below right what is known: the sentences fall to nearly none, and "
    "then the answers rise to nearly all")

# %%
naive_loss = whole(naive_run, [dialogue_rows], naive)
lab.reveal("10.5", count(naive)[0])
assert count(naive)[0] < count(naive, 0)[0] / 2 and count(naive)[1] > 10
assert (known_now() == written_now()).all()
print("✓ it answers, and most of the sentences are gone")

# %% [markdown] id="see-forgetting" tags=["slide"]
# Look below right in the picture. Nobody told the model to unlearn them. But all texts share the same weights.
# A step goes where the *shown* texts want, and the others have no voice. That is **forgetting**, in full:
# catastrophic forgetting. When does it happen? Before the first answer is known.
#
# So give the sentences a voice. **Mixing**, also called replay, puts them into the batch beside the
# dialogues. The batch now has two sources: 26 rows and 25 rows. Nothing else changes.

# %% tags=["varies"]
from llmcl.data import pretrain_rows

old_rows = pretrain_rows(sentences, tokenizer)
mixed = {}
model.load_weights(start)  # the monitor measures before the first step
mixed_run = await lab.watch(
    tuning([dialogue_rows, old_rows], mixed), measures=measures, every=10,
    alt="Loss, gradient norm, learning rate, and below right what is known: the sentences stay near the top while "
    "the answers rise")

# %%
mixed_loss = whole(mixed_run, [dialogue_rows, old_rows], mixed)
lab.keep_checkpoint("10", model, tokenizer)
assert count(mixed)[0] > count(naive)[0] + 10 and count(mixed)[1] > 10
assert (known_now() == written_now()).all()
print("✓ it answers, and keeps the sentences; this model is stored for the next lessons")

# %% [markdown] id="see-picture"
# Both runs in one picture. A row is a sentence or an answer, a column is a step at which we asked. A mark:
# known. At which step do the sentences end in the left panel, and at which do the answers begin?

# %%
def draw_known(axes, history, title):
    """A mark for each text (rows) and step asked (columns) where it is known."""
    table = np.array([history[step] for step in ASK_AT])
    for part, marker in ((slice(0, facts), "o"), (slice(facts, None), "s")):
        column, text = np.nonzero(table[:, part])
        axes.scatter(column, text + part.start, s=22, marker=marker, zorder=3)
    axes.axhline(facts - 0.5, color="black", linewidth=1)
    axes.set(title=title, xlabel="step", xlim=(-0.6, len(ASK_AT) - 0.4), ylim=(len(table[0]) - 0.4, -0.6))
    axes.set_xticks(range(len(ASK_AT)), ASK_AT, fontsize=7)

# %% tags=["slide"]
fig, both = lab.figure(
    "Two panels of 38 rows, 25 sentences above a line and 13 answers below it, against the steps 0 to 120. Left, "
    "naive: the marks of the sentences are there at first, and nearly all have ended by step 30; those of the "
    "answers begin between 16 and 40. Right, mixed: the sentences are marked nearly throughout, and the answers "
    "come a little later.", height=7.2, columns=2)
draw_known(both[0], naive, "naive: dialogues alone")
draw_known(both[1], mixed, "mixed: sentences too")
starts = [" ".join(text.split()[:4]) for text in sentences + [d.user for d in dialogues]]
both[0].set_yticks(range(len(starts)), starts, fontsize=6)
both[1].set_yticks(range(len(starts)), [""] * len(starts))
lab.show(fig)

# %% tags=["varies"]
print("step          ", *(f"{step:4}" for step in ASK_AT))
for name, history in (("naive", naive), ("mixed", mixed)):
    for part, what in enumerate(("sentences", "answers")):
        print(f"{name} {what:9}", *(f"{count(history, step)[part]:4}" for step in ASK_AT))

# %%
first_answer = min(step for step in ASK_AT if count(naive, step)[1])
assert count(naive, first_answer)[0] < facts / 2
assert min(count(mixed, step)[0] for step in ASK_AT) > facts / 2
print("✓ naive: more than half was forgotten before the first answer was known")

# %%
def how_many(known):
    """A share in words that are the same on every device."""
    return "few or none" if known.mean() < 0.2 else "nearly all" if known.mean() > 0.8 else "some"

print(f"{'':6}{'step':>5}  {'sentences':13}answers")
for name, history in (("naive", naive), ("mixed", mixed)):
    for step in (0, 120):
        print(f"{name:6}{step:5}  {how_many(history[step][:facts]):13}{how_many(history[step][facts:])}")
assert how_many(mixed[120][:facts]) == how_many(naive[120][facts:]) == "nearly all"

# %% [markdown] id="see-price"
# Mixing has its price: a step holds twice as many rows, and the answers come later. Is there a cheaper way? Two
# ideas. A learning rate of a tenth. Or mixing in only the first twelve sentences.
#
# **Exercise 10.6** · easy · 2 minutes. With the first twelve mixed in, how many of the 25 will be known in the end?
#
# <details><summary>Hint</summary>
#
# Does a sentence about ice speak for one about bees?
#
# </details>

# %%
lab.predict("10.6", guess=None)

# %% tags=["varies"]
gentle, twelve = {}, {}
*_, last = tuning([dialogue_rows], gentle, rate=1e-4)
*_, last = tuning([dialogue_rows, old_rows[:12]], twelve)
for name, history in (("naive", naive), ("a tenth of the rate", gentle), ("twelve mixed", twelve), ("mixed", mixed)):
    print(f"{name:20} sentences {count(history)[0]:2}   answers {count(history)[1]:2}")

# %%
lab.reveal("10.6", count(twelve)[0])
assert twelve[120][:12].sum() > 9 and twelve[120][12:facts].sum() < 5
assert count(naive)[0] < count(gentle)[0] < count(mixed)[0] and count(gentle)[1] < count(mixed)[1]
print("✓ kept is what was mixed in; a small rate forgets less, and learns less")

# %% [markdown] id="see-honest"
# Each sentence speaks for itself here: these are 25 facts learned by heart, with little in common. Where texts have
# more in common, a sample of the old ones speaks for others too, and people mix in only a share. What remains is the
# habit: **measure what was there before, not only what is new.**

# %% [markdown] id="break"
# ## Break it: the end token masked as padding
#
# Pads carry the end token's id. Somebody fills the targets up with it too, and then masks all pads in one line.
# Many people have reported models that were tuned so. What else has this id?

# %% tags=["slide"]
def ends_masked(x, y):
    """The batch, with every target masked that has the pad's id."""
    return x, np.where(y == tokenizer.end_id, IGNORED, y)

_, wrong_y = ends_masked(x, y)
print((y == tokenizer.end_id).sum(), "end tokens were targets,", (wrong_y == tokenizer.end_id).sum(), "are left")

# %% tags=["varies"]
endless = {}
*_, last = tuning([dialogue_rows], endless, ends_masked)
print(f"loss {last.loss:.2f}; with the end tokens it was {naive_loss:.2f}")
for d in dialogues[:5]:
    print(f"{d.user:36}{say(d.user)}")

# %%
def begins_right(d):
    return say(d.user).startswith(" " + d.assistant.rstrip("."))

assert sum(map(begins_right, dialogues)) > 10 and count(endless)[1] < 7 < count(naive)[1]
print("✗ nearly every answer begins right, and most of them do not stop there")

# %% [markdown] id="break-loss"
# The loss is as small as before. The answers are there. Only nobody says when it is over. And that was the mild
# form, as lesson 09 had taught the end behind every sentence. How many stop, if the same line sat in *all* of
# the training? Here is a fresh model, with all texts at once:

# %% tags=["varies"]
model.initialize(seed=0)
batches = Batches([dialogue_rows, old_rows], 64, tokenizer.end_id)
*_, last = train_steps(model, AdamW(model), lambda n: ends_masked(*batches(n)), Schedule(3e-3, 150))
print(f"loss {last.loss:.2f}")
for d in dialogues[3:6]:
    print(f"{d.user:36}{say(d.user)}")

# %% tags=["slide"]
stopped = sum(say(d.user, most=100).endswith("[END]") for d in dialogues)
assert stopped == 0
print(f"✗ {stopped} of {len(dialogues)} answers stop within 100 tokens")

# %% [markdown] id="break-hidden"
# None. The end token's logit is pushed down at every place with a target, and never pulled up. And the opposite case:
# tune the model of lesson 09 with the sentences mixed in, and mask the ends of all texts. Will anybody notice?

# %% tags=["varies"]
hidden = {}
*_, last = tuning([dialogue_rows, old_rows], hidden, ends_masked)
print("sentences and answers known:", *count(hidden))

# %%
assert count(hidden)[0] > facts / 2 and count(hidden)[1] > 7
print("✓ known as if nothing were wrong: lesson 09 taught the end, and mixing kept it")

# %% [markdown] id="break-check"
# A fault that a good test of the *result* does not see, until somebody tunes for longer, or without mixing. So
# check the *targets*, before the first step.
#
# **Exercise 10.7** · medium · 5 minutes. Write `ends_taught`: whether in every row, the last target that counts
# is the end token.
#
# <details><summary>Hint</summary>
#
# `row[row != IGNORED]` are the targets of a row that count. `[-1]` is the last of them.
#
# </details>
#
# <details><summary>I am stuck: give me pieces to choose from</summary>
#
# One of these three:
#
# - `return all(row[row != IGNORED][-1] == end_id for row in targets)`
# - `return bool((targets == end_id).any())`
# - `return bool((targets[:, -1] == end_id).all())`
#
# </details>

# %%
@lab.exercise("10.7")
def ends_taught(targets, end_id):
    """targets (B, T) -> whether every row asks for the end token last."""
    ### BEGIN SOLUTION
    return all(row[row != IGNORED][-1] == end_id for row in targets)
    ### END SOLUTION

# %% tags=["slide"]
for name, targets in (("as it should be", y), ("ends masked", wrong_y)):
    print("✓" if ends_taught(targets, tokenizer.end_id) else "✗", name)

# %% [markdown] id="break-kernel"
# The same fault can sit in a kernel, where no look at the targets finds it. Which try will?

# %%
lab.run_broken("10.end_is_pad")

# %% [markdown] id="break-question"
# ## Break it: the question counts too
#
# What if nothing but pads is masked? More targets, more to learn: is that not better? The same 120 steps, mixed.

# %%
def questions_too(x, y):
    """The batch with every token of a text as a target, questions as well."""
    all_of_it = y.copy()
    for its, ids in zip(all_of_it, x):
        last = np.flatnonzero(its != IGNORED)[-1]
        its[:last] = ids[1 : last + 1]
    return x, all_of_it

print((y != IGNORED).sum(), "targets with the mask,", (questions_too(x, y)[1] != IGNORED).sum(), "without")

# %% tags=["varies"]
everything = {}
*_, last = tuning([dialogue_rows, old_rows], everything, questions_too)
print(f"loss {last.loss:.2f}; with the mask it was {mixed_loss:.2f}")
print("answers known:", count(everything)[1], "  answers written right:", written_now()[facts:].sum())

# %%
assert last.loss > 2 * mixed_loss
assert count(everything)[1] <= written_now()[facts:].sum()
print("✓ the loss stays higher: nothing says which question comes")

# %% [markdown] id="break-question-2"
# More than half of the targets are now a question's, and nobody can guess how it begins from `User:`. That part of
# the loss stays, and the answers get less of each step.
#
# And most likely fewer answers are `known` than are written right. Have we not proved that the two agree? We proved
# it for *tokens*, and `answers` compares *texts*. In one spelling, `' Hello'` follows `Assistant:`. In the other, a
# lonely space follows, and now it counts. So the model may write `' '` and `'Hello'`: the same text in other tokens.
# With the mask, that space belongs to the question, and nobody asks for it.

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 10.8** · medium · 4 minutes. Here is the line that masks the ends. `ids` (B, T) are texts, filled up with
# end tokens. Each text ends with one, and a long dialogue has one behind every answer. `lengths` (B,) says how long
# each text is, with its last end. Mend the line with the smallest change.
#
# <details><summary>Hint</summary>
#
# `np.arange(T) < lengths[:, None]` is (B, T): whether a place lies in its text.
#
# </details>

# %%
@lab.exercise("10.8")
def mask_pads(ids, lengths, end_id):
    """ids (B, T), lengths (B,) -> targets (B, T): the ids, and IGNORED at the pads."""
    ### BEGIN SOLUTION
    return np.where(np.arange(ids.shape[1]) < lengths[:, None], ids, IGNORED)
    ### INSTEAD
    return np.where(ids != end_id, ids, IGNORED)
    ### END SOLUTION

# %% [markdown] id="exercises-order"
# **Exercise 10.9** · easy · 3 minutes. What happens to a dialogue in a step of tuning, as `tune_rows`, `batch` and
# the model do it? Six of these seven, in order. Return the letters as one word.
#
# - **A** Mask the targets of the question.
# - **B** Write question and answer as one text.
# - **C** Turn the text into ids, with the end token.
# - **D** Fill short rows up with pads, whose targets are masked.
# - **E** Take the mean loss of the targets that count.
# - **F** Compute the logits of every place.
# - **G** Mask every target that has the pad's id.

# %%
@lab.exercise("10.9")
def tuning_order():
    """The letters of six lines, in order."""
    ### BEGIN SOLUTION
    return "BCADFE"
    ### END SOLUTION

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - A dialogue is a text in a fixed form. **Only the answer and its end token are targets.** The question is heard,
#   and not asked for.
# - One forward pass says which of 38 texts are known, the same as writing them.
# - Tuning on new texts alone **forgets** the old ones, before it has learned the new ones. **Mixing** keeps what is
#   mixed in.
# - An end token that is masked as a pad shows in no loss. Count it among the targets.
#
# In `llmcl`: `tune_rows` masks, `train_to_gguf` tunes twice, naively and mixed, and `metrics.json` has both
# counts. Your tuned model is stored.
#
# Five questions, three of them about earlier lessons.
#
# **q1.** At which place is the answer's first token the target?
#
# - **A** At the question's last place.
# - **B** At its own place.
# - **C** At the place after its own.

# %%
lab.quiz("10.q1")

# %% [markdown] id="recap-2"
# **q2.** A tuned model answers right, and then writes on for ever. The loss was fine. What do you look at first?
#
# - **A** The learning rate.
# - **B** Whether the questions were masked.
# - **C** How many targets are the end token.

# %%
lab.quiz("10.q2")

# %% [markdown] id="recap-3"
# **q3.** (Lesson 09) A gradient is too long, and is clipped by its global norm. What happens to it?
#
# - **A** All of it is shortened by the same factor.
# - **B** Each tensor is shortened to the same length.
# - **C** Its largest numbers are cut off.

# %%
lab.quiz("10.q3")

# %% [markdown] id="recap-4"
# **q4.** (Lesson 08b) The loss is a mean. By what is the row of a place with a target divided?
#
# - **A** By the number of all places.
# - **B** By the number of places with a target.
# - **C** By the size of the vocabulary.

# %%
lab.quiz("10.q4")

# %% [markdown] id="recap-5"
# **q5.** (Lesson 06) Where does layer norm's epsilon belong?
#
# - **A** To the variance, inside the root.
# - **B** To the spread, behind the root.
# - **C** To the mean.

# %%
lab.quiz("10.q5")

# %%
lab.summary("10")

# %% [markdown] id="bridge"
# **Next:** lesson 11, *Generating*. Your model answers, and always with the same words. There you let it choose,
# and you make every token cheaper.
