# ---
# jupyter:
#   llmcl:
#     title: Your own text
#     needs: ["00", "02", "02b", "07", "09", "11", "12b"]
#     introduces:
#       - document
#       - held-out text
#       - validation loss
#       - early stopping
#       - model card
#       - llmcl.bigram.bigram_counts
#       - llmcl.bigram.bigram_shares
#       - llmcl.data.cut_documents
#       - llmcl.data.read_folder
#       - llmcl.data.split_documents
#       - llmcl.errors.LlmclError
#       - llmcl.lab.grammar.write_stories
#       - llmcl.lab.live_text.live_text
#       - llmcl.lab.watch
#       - llmcl.optimizer.Schedule
#       - llmcl.train.Batches
#       - llmcl.train.train_steps
#     minutes: {core: 90, full: 150}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 15 · Your own text
#
# Everything so far was learned from 25 sentences that the book chose. Now you choose. A folder of your
# texts becomes a model. You find out whether it learned the language of your texts or only the texts,
# and you publish it as a file that says what it is.
#
# | | |
# |---|---|
# | **After this you can** | train on your own text; hold text back and compute a validation loss; judge overfitting from two curves; publish a GGUF file with a model card that llama.cpp verified |
# | **You need** | lessons 02b, 07, 09, 11 and 12b |
# | **Time** | 90 minutes; 150 with the exercises, and your machine's time for the real run |
# | **New words** | document, held-out text, validation loss, early stopping, model card |

# %%
from llmcl import lab

lab.start("15")

# %% [markdown] id="plan"
# ## The plan
#
# This is a capstone: work of your own, with fewer steps laid out for you. First run the page from top to bottom
# as it is. It trains for less than a minute, on stories that come with the package. Then come back to this
# cell, put in your folder, and run all again. What will you bring: letters, recipes, songs, a diary?

# %%
FOLDER = None    # such as "C:/texts/recipes"; None: the stories of the package
STEPS = 150      # training steps
MINUTES = None   # or a number of minutes: then STEPS is computed further down
BATCH = 8        # windows in a step
VOCAB = 1024     # tokens, at most
WIDTH = 128      # channels, a multiple of 32
BLOCKS = 2
RATE = 6e-3      # the highest learning rate

# %% [markdown] id="plan-larger"
# The model is larger than the book's: twice as many tokens, and wider. The other numbers are small on
# purpose, so that you see everything once in a minute. The section *The real run* says which to raise.

# %% [markdown] id="text"
# ## The text
#
# Where does a megabyte of text come from that anybody may use? From a **grammar**: a small program that
# fills sentences with words. Ours writes about a valley with animals, weather and things that get lost.
# It is written into the lesson's folder now, from a seed.

# %%
from llmcl.lab.grammar import write_stories

folder = FOLDER or write_stories(lab.folder("15") / "stories")

# %% [markdown] id="text-read"
# `read_folder` reads every `.txt` and `.md` file, and the folders inside. A **document** is a text that
# stands on its own: a story, a letter, a chapter. A file is one document, unless lines of three stars
# part it into several. How many stories are in these files?

# %%
from llmcl.data import read_folder

files = read_folder(folder)
for name, texts in files.items():
    print(f"{name:16}{len(texts):6} documents {sum(map(len, texts)):9,} characters")

# %%
first_file = list(files.values())[0]
print(first_file[0][:700])

# %% [markdown] id="text-grammar" tags=["slide"]
# Read it twice. What would a model have to know to write this? That one cat is "it" and two are "they", what it
# eats, which thing the title promised, what heat does. Such facts reach over many words, and no pair of tokens
# holds them.
#
# Would a folder of yours pass? Three that do not, and what you are told:

# %%
from llmcl.errors import LlmclError

wrong = lab.folder("15") / "wrong"
for name, data in [("empty", None), ("small", b"Hello."), ("encoding", "안녕하세요".encode("cp949"))]:
    (wrong / name).mkdir(parents=True, exist_ok=True)
    if data:
        (wrong / name / "a.txt").write_bytes(data)
    try:
        read_folder(wrong / name)
    except LlmclError as error:
        print(str(error).replace(str(wrong), "").lstrip("/\\"), "\n")

# %% [markdown] id="text-cut"
# One book in one file would be a single document. `cut_documents` cuts what is longer than a few pages,
# between paragraphs where it can. Our stories are short, so nothing changes:

# %%
from llmcl.data import cut_documents

documents = cut_documents([text for texts in files.values() for text in texts])
print(f"{len(documents):,} documents, {sum(map(len, documents)):,} characters")

# %% [markdown] id="split" tags=["slide"]
# ## Text that the model never sees
#
# A low loss on the training text can mean two things: the model knows the language, or it knows the text
# by heart. How could you tell? Ask it about text that it has not seen. So some documents are taken away
# first and never trained on: the **held-out text**, also called the validation set.
#
# Why whole documents, and not single lines? A story's first half gives its second half away. The same
# goes for a document that is in the folder twice: one copy would be learned, and the other one asked.
#
# **Exercise 15.1** · medium · 12 minutes. Write the split. Each *different* text counts once; about
# `share` of them are held out, drawn by the seed, at least one. Use
# `np.random.default_rng(seed).permutation(n)` for the order, and hold out its first ones.
#
# <details><summary>Hint</summary>
#
# `list(dict.fromkeys(documents))` are the different texts in order. Put the held-out ones into a `set`;
# then both sides are a list with an `if`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Five of these eight, in the right order:
#
# - `texts = list(dict.fromkeys(documents))`
# - `texts = documents`
# - `order = np.random.default_rng(seed).permutation(len(texts))`
# - `count = max(1, round(share * len(texts)))`
# - `count = round((1 - share) * len(texts))`
# - `held = {texts[i] for i in order[:count]}`
# - `held = set(texts[:count])`
# - `return [d for d in documents if d not in held], [d for d in documents if d in held]`
#
# </details>

# %%
import numpy as np

@lab.exercise("15.1")
def split(documents, share, seed):
    """A list of texts -> (those to learn from, those held out), each in the order given."""
    ### BEGIN SOLUTION
    texts = list(dict.fromkeys(documents))
    order = np.random.default_rng(seed).permutation(len(texts))
    count = max(1, round(share * len(texts)))
    held = {texts[i] for i in order[:count]}
    return [d for d in documents if d not in held], [d for d in documents if d in held]
    ### END SOLUTION

# %%
from llmcl.data import split_documents

train, held = split(documents, 0.1, 0)
assert (train, held) == split_documents(documents, 0.1, seed=0)
assert not set(train) & set(held)
print(f"{len(train):,} documents to learn from, {len(held):,} held out")

# %% [markdown] id="tokens"
# ## Tokens
#
# The tokenizer learns from the training documents only. Why not from all? Its merges would know the
# held-out words, and the loss on them would be too good. A part of the text is enough; it is the same
# byte-level BPE as in lesson 02.

# %%
from llmcl.tokenizer import ByteBPE

tokenizer = ByteBPE.train([text[:1000] for text in train[:400]], VOCAB)
sizes = [len(tokenizer.encode(text)) for text in train]
per_token = sum(map(len, train)) / sum(sizes)
print(f"{tokenizer.vocab_size} tokens of {per_token:.1f} characters; {sum(sizes):,} tokens to learn from")
print(f"the longest document has {max(sizes)} tokens")

# %%
from llmcl.data import batch, pretrain_rows

CONTEXT = 256   # llama.cpp wants a multiple of 256
train_rows = pretrain_rows(train, tokenizer, CONTEXT)
held_rows = pretrain_rows(held, tokenizer, CONTEXT)
print(len(train_rows), "windows to learn from,", len(held_rows), "held out")

# %% [markdown] id="lines"
# Lesson 07 gave two lines to know before training: ln V, and the loss of counted pairs. The pairs are
# counted on the training text, and asked on the held-out one. Why the small `extra`? A held-out pair may
# never have come up while counting; without it, its share would be 0, and the loss infinite.

# %% tags=["slide"]
from llmcl.bigram import bigram_counts, bigram_shares

V = tokenizer.vocab_size
shares = bigram_shares(bigram_counts(*batch(train_rows, tokenizer.end_id), V), extra=0.01)
x, y = batch(held_rows, tokenizer.end_id)
seen = y >= 0
pairs_loss = float(-np.log(shares[x[seen], y[seen]]).mean())
print(f"ln V {np.log(V):.2f}   bigram, on held-out text {pairs_loss:.2f}")

# %% [markdown] id="held-loss"
# ## The validation loss
#
# The loss on held-out text is the **validation loss**. The held-out windows do not fit into one batch, so
# it is put together from several. The model gives each batch's mean. Is the mean of the means the mean?
#
# **Exercise 15.2** · medium · 10 minutes. `loss(x, y)` is the mean over the places of one batch that have
# a target. Write the mean over all such places of all batches.
#
# <details><summary>Hint</summary>
#
# A mean times its count is a sum. Sums can be added. `(y >= 0).sum()` places have a target.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Six of these eight, in the right order:
#
# - `total, count = 0.0, 0`
# - `for x, y in batches:`
# - `    places = (y >= 0).sum()`
# - `    places = y.size`
# - `    total += places * loss(x, y)`
# - `    total += loss(x, y)`
# - `    count += places`
# - `return total / count`
#
# </details>

# %%
@lab.exercise("15.2")
def mean_loss(loss, batches):
    """A function (x, y) -> mean loss, and a list of (x, y) -> the mean over all places with a target."""
    ### BEGIN SOLUTION
    total, count = 0.0, 0
    for x, y in batches:
        places = (y >= 0).sum()
        total += places * loss(x, y)
        count += places
    return total / count
    ### END SOLUTION

# %% [markdown] id="model"
# ## The model
#
# **Exercise 15.3** · easy · 2 minutes. The model is fresh. What will its validation loss be, about?
#
# <details><summary>Hint</summary>
#
# It knows nothing yet. One of the two lines above is where such a model starts.
#
# </details>

# %%
lab.predict("15.3", guess=None)

# %%
from llmcl.config import Config
from llmcl.engine import get_engine
from llmcl.model import GPT

engine = get_engine()
config = Config(V, CONTEXT, WIDTH, WIDTH // 32, BLOCKS, 4 * WIDTH)
held_batches = [batch(held_rows[i : i + 16], tokenizer.end_id) for i in range(0, len(held_rows), 16)]
print(f"{config.parameter_count():,} parameters; the book's model has {Config().parameter_count():,}")

def held_out_loss(model, batches):
    """The model's mean loss over all places of some batches."""
    return mean_loss(lambda x, y: float(engine.to_host(model.loss(x, y))[0]), batches)

# %% tags=["slide"]
fresh = GPT(config, engine)
fresh.initialize(seed=0)
first = held_out_loss(fresh, held_batches)
lab.reveal("15.3", first)
assert abs(first - np.log(V)) < 0.5
print("✓ near ln V, as a model that knows nothing should be")

# %% [markdown] id="speed"
# ## How long will it take?
#
# Measure it. A few steps are made with a model that is thrown away. The first one compiles the kernels, so it
# does not count.

# %% tags=["varies"]
from llmcl.optimizer import AdamW, Schedule
from llmcl.train import Batches, train_steps

def training(model, rows, steps):
    """The steps of a run, ready to be made."""
    batches = Batches([rows], BATCH, tokenizer.end_id)
    return train_steps(model, AdamW(model), batches, Schedule(RATE, steps), log_every=10)

trial = list(training(fresh, train_rows, 20))
speed = trial[-1].speed
print(f"{speed:,.0f} tokens a second on {engine.name}")

# %%
window = np.mean([len(inputs) for inputs, _ in train_rows])
assert speed > 0
print(f"a window has {window:.0f} tokens on average")

# %% [markdown] id="speed-exercise"
# **Exercise 15.4** · easy · 4 minutes. From speed to minutes. A step has `batch` windows of about `window`
# tokens.
#
# <details><summary>Hint</summary>
#
# Tokens in all: steps, times windows in a step, times tokens in a window. Per second gives seconds.
#
# </details>
#
# <details><summary>I am stuck: give me pieces to choose from</summary>
#
# One of these three is right: `steps * batch * window / speed / 60` · `steps * batch * speed / window / 60`
# · `steps * batch * window * 60 / speed`
#
# </details>

# %%
@lab.exercise("15.4")
def minutes_for(steps, batch, window, speed):
    """Minutes that a run takes; speed is in tokens a second."""
    ### BEGIN SOLUTION
    return steps * batch * window / speed / 60
    ### END SOLUTION

# %%
if MINUTES:
    STEPS = max(20, int(MINUTES / minutes_for(1, BATCH, window, speed)))
assert 0 < minutes_for(STEPS, BATCH, window, speed) < 24 * 60, "more than a day: choose fewer steps"
print(f"{STEPS} steps are {STEPS * BATCH / len(train_rows):.1f} passes through the text")

# %% [markdown] id="gpu"
# ### What does a GPU change?
#
# The folder `benchmarks` has microseconds of training for a token, at several widths: on a GPU (H200), and on
# two cores of an AMD processor by PoCL and by Intel's runtime. Does the GPU's lead depend on the width?

# %%
import json
from llmcl.resources import data_dir

def recorded():
    """Name -> (widths, microseconds for a token), from the files that are there."""
    costs = {}
    for path in sorted((data_dir().parent / "benchmarks").glob("*.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        rows = [row for row in report.get("scaling", []) if row["grows"] == "width"]
        if rows:
            costs[path.stem] = [row["size"] for row in rows], [row["us_per_token"] for row in rows]
    return costs

costs = recorded()

# %% tags=["slide"]
fig, axes = lab.figure(
    "Microseconds of training for a token against the width, both axes in powers of ten, as recorded on other "
    "devices. The lines of processors rise steeply. The line of the GPU, H200, stays flat up to a width of 256 and triples by 1024.")
for (name, (widths, us)), style in zip(costs.items(), ("o-", "s--", "^:", "v-.")):
    axes.plot(widths, us, style, label=name)
axes.set(xscale="log", yscale="log", xlabel="width", ylabel="µs for a token", xticks=[64, 128, 256, 512, 1024], xticklabels=[64, 128, 256, 512, 1024])
axes.minorticks_off()
axes.legend()
lab.show(fig)

# %% [markdown] id="gpu-why"
# It does. A small model leaves most of a GPU idle. So a GPU makes a run of minutes shorter; above all it makes
# models possible that a processor would need days for. What would your run cost elsewhere? Take the recorded
# cost at the nearest width, times how many more parameters your model has. It is an estimate, good to a factor
# of two or so.

# %% tags=["varies"]
# How many parameters the recorded model would have at your width: it had one block and 256 tokens.
bench_size = Config(256, 128, WIDTH, WIDTH // 32, 1, 4 * WIDTH).parameter_count()

def estimate(name, tokens):
    """Minutes for so many tokens of this model on a recorded device."""
    widths, us = costs[name]
    nearest = int(np.argmin(np.abs(np.log(np.array(widths) / WIDTH))))
    return tokens * us[nearest] * config.parameter_count() / bench_size / 60e6

print("tokens".rjust(12), "here".rjust(8), *(name.rjust(8) for name in costs), " minutes")
for tokens in (STEPS * BATCH * window, 1e7, 1e8):
    print(f"{tokens:12,.0f} {tokens / speed / 60:8.1f}", *(f"{estimate(n, tokens):8.1f}" for n in costs))

# %% [markdown] id="train"
# ## Train, and look
#
# Three things are watched: the training loss, the validation loss on a part of the held-out text, and a story.
# Which would you believe? The model with the lowest validation loss is kept. (Only an `async def` may `await`,
# lesson 09.)

# %%
assert all(estimate(name, 1e6) > 0 for name in costs)

def prompt_of(text):
    """How the model is asked: by a title, or by the first five words of a text without one."""
    first, _, rest = text.partition("\n")
    return first + "\n" if rest and len(first) < 80 else " ".join(text.split()[:5])

# %%
from llmcl.generate import generate

def write(model, prompt, **how):
    """The prompt, and what the model writes after it."""
    ids = tokenizer.encode(prompt)
    new = generate(model, ids, stop_ids=[tokenizer.end_id], **how)
    return prompt + tokenizer.decode([i for i in new if i != tokenizer.end_id])

def short(text):
    """At most 8 lines and 700 characters, to look at."""
    return "\n".join(text.split("\n")[:8])[:700]

# %%
from llmcl.lab.live_text import live_text

def told(alt, *runs):
    """What there is to see in a picture of the first run; of your own run, nobody knows yet."""
    as_planned = FOLDER is None and STEPS == 150 and not any(run.stopped for run in runs)
    return alt if as_planned else "The curves of a run of your own: loss over steps."

async def run_on(rows, count, alt):
    """Trains a fresh model -> (model with its best weights, its last weights, what was seen, samples)."""
    model, samples, best = GPT(config, engine), [], {"loss": np.inf}
    model.initialize(seed=0)
    page = live_text("The latest text stands here while the model learns.")

    def look():
        loss = held_out_loss(model, held_batches[:4])
        samples.append(write(model, prompt_of(held[0])))
        page(short(samples[-1]))
        if loss < best["loss"]:
            best.update(loss=loss, weights=model.weights())
        return loss

    watched = await lab.watch(training(model, rows, count), line=("bigram", pairs_loss),
                              losses={"held out": look}, every=10 * max(2, count // 400), alt=told(alt))
    last = model.weights()
    model.load_weights(best["weights"])
    return model, last, watched, samples

# %% tags=["slide"]
model, _, watched, samples = await run_on(train_rows, STEPS,
    "The loss over the steps. It falls from nearly 7 to about 1 and crosses the bigram's dashed line on its "
    "way. The held-out loss lies on the same curve all the way. Below, the gradient's norm, and the learning "
    "rate that rises for 10 steps and then falls like half a cosine.")

# %% [markdown] id="train-samples"
# The two curves are one. What does that mean? The windows of a step are drawn, and in so few steps the
# model met most stories once, or not at all. It had no chance to learn them by heart.

# %% tags=["varies"]
for place in (0, len(samples) // 3, -1):
    print(short(samples[place]), "\n")

# %% [markdown] id="train-samples-read" tags=["slide"]
# The first sample is noise. The middle one has words, and goes in circles. Is the last one a story? On one
# machine, this stood there after 150 steps; look for three things that are wrong:
#
# > Two beavers and the straw hat. One afternoon, a storm came over the hills at the ground was a break. Soon
# > the three beavers had their home under the reeds. … The beavers had a better than do and took it everywhere.
# > "Where is my basket?" it asked. It looked under the long one and it was not there. … A heron came by. …
#
# Somebody looks for a thing that is gone, and a helper comes: that is one of our stories. But two beavers are
# three and then "it", and the hat is a basket. What is near is learned first; what is far apart comes last.

# %%
def at_steps(watched):
    """(steps, training loss, held-out loss), one of each for every look at the held-out text."""
    rows = []
    for n, loss in watched.values["held out"]:
        read = [step.loss for step in watched.steps if step.step <= max(n, 1)]
        rows.append((n, read[-1], loss))
    return [list(column) for column in zip(*rows)]

assert watched.stopped or samples[0] != samples[-1]
steps, train_loss, held_loss = at_steps(watched)
final = held_out_loss(model, held_batches)
print("✓ below the bigram's loss" if final < pairs_loss else "○ not below the bigram's loss yet: train longer")

# %% [markdown] id="judge"
# ## Overfitting
#
# Now the same again, with the same model and as many steps, but on one window in forty. Guess before you run
# it. Which of the two losses will be lower than before, and which higher?

# %%
few_rows = train_rows[::40]
few_count = min(STEPS, 150)   # a long run on so little text would only cost time
print(len(few_rows), "windows,", f"{few_count * BATCH / len(few_rows):.0f} passes")

# %%
few_model, few_last, few_watched, _ = await run_on(few_rows, few_count,
    "The training loss falls nearly to 0. The held-out loss falls with it at first, then parts from it above "
    "the bigram's dashed line, is lowest before the middle of the run, and rises from there to the end.")

# %% tags=["slide"]
few_steps, few_train, few_held = at_steps(few_watched)
fig, axes = lab.figure(told(
    "Four curves over the steps. On all of the text, training and held-out loss fall together to about 1. On one "
    "window in forty, the training loss falls nearly to 0, and the held-out loss turns upward before the middle.",
    watched, few_watched))
for (n, a, b), color, label in zip([at_steps(watched), at_steps(few_watched)], ("#0072B2", "#D55E00"), ("all", "1 in 40")):
    axes.plot(n, a, color=color, linestyle="--", label=f"{label}: training")
    axes.plot(n, b, "o-", color=color, markersize=3, label=f"{label}: held out")
axes.set(xlabel="step", ylabel="loss", ylim=(0, 4))
axes.legend()
lab.show(fig)

# %% [markdown] id="judge-exercise"
# The training loss of the small run is the best of all, and its model is the worst. It learns its few
# stories by heart; what it learns in the end helps with them and with nothing else. That is the
# **overfitting** of lesson 11: training goes down, validation goes up.
#
# **Exercise 15.5** · hard · 15 minutes. Write the judge. It gets the two losses at the same moments of a
# run. It says `"learning"` if the last held-out loss is at most 2% above its lowest; small bumps are no
# turn. Otherwise it says `"overfitting"` if the training loss fell between that lowest point and the end,
# and `"broken"` if it did not. The second thing it returns is the place of the lowest held-out loss.
#
# <details><summary>Hint</summary>
#
# `best = held.index(min(held))` is the place. Compare `held[-1]` with `held[best]`, and `train[-1]` with
# `train[best]`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Four of these seven, in the right order:
#
# - `best = held.index(min(held))`
# - `best = train.index(min(train))`
# - `if held[-1] <= 1.02 * held[best]:`
# - `if held[-1] <= 1.02 * train[-1]:`
# - `    return "learning", best`
# - `return ("overfitting" if train[-1] < train[best] else "broken"), best`
# - `return ("overfitting" if held[-1] > train[-1] else "broken"), best`
#
# </details>

# %%
@lab.exercise("15.5")
def judge(train, held):
    """Two lists of losses, first to last -> ("learning", "overfitting" or "broken", best place)."""
    ### BEGIN SOLUTION
    best = held.index(min(held))
    if held[-1] <= 1.02 * held[best]:
        return "learning", best
    return ("overfitting" if train[-1] < train[best] else "broken"), best
    ### END SOLUTION

# %%
print("all of the text:", judge(train_loss, held_loss)[0])
print("1 window in 40: ", judge(few_train, few_held)[0])

# %% [markdown] id="judge-gap" tags=["slide"]
# Why is a gap between the two curves not enough? There nearly always is one, and as long as the held-out loss
# falls, the model still gets better at what you want. Only the turn says that more steps do harm. Three
# cures: more text, a smaller model, or stopping where the held-out loss was lowest, which is called
# **early stopping**. `run_on` did that for you: it kept the best weights.
#
# One caution. You chose the step by the held-out loss, so its lowest value is a little too good. Whoever needs
# an honest number holds back one more part, the *test set*, and looks at it once.

# %% [markdown] id="copied"
# ## Its own words, or yours?
#
# There is a test that needs no loss. How long are the runs of words that a sample shares with the training
# text? A model that knows its text by heart repeats long ones. It matters for another reason: if you train
# on letters and publish the model, it may write them out.
#
# **Exercise 15.6** · medium · 12 minutes. Write `longest_copied`: the largest number of words in a row that
# stand in the known text in the same way. A word ends at a space: "cat" is not in "catch".
#
# <details><summary>Hint</summary>
#
# Put a space at both ends of the known text and of what you look for. If no run of 5 words is there, no
# run of 6 is: so start at each word, and only ever ask whether one word *more* than the record is there.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Seven of these eight, in the right order:
#
# - `words, text, most = sample.split(), f" {' '.join(known.split())} ", 0`
# - `words, text, most = sample.split(), known, 0`
# - `for start in range(len(words)):`
# - `    while start + most < len(words):`
# - `        if f" {' '.join(words[start : start + most + 1])} " not in text:`
# - `            break`
# - `        most += 1`
# - `return most`
#
# (The fifth and sixth belong together; of the first two, take one.)
#
# </details>

# %%
@lab.exercise("15.6")
def longest_copied(sample, known):
    """Two texts -> the largest number of words in a row of the sample that stand in the known text."""
    ### BEGIN SOLUTION
    words, text, most = sample.split(), f" {' '.join(known.split())} ", 0
    for start in range(len(words)):
        while start + most < len(words):
            if f" {' '.join(words[start : start + most + 1])} " not in text:
                break
            most += 1
    return most
    ### END SOLUTION

# %% [markdown] id="copied-honest"
# A number alone says little. People repeat phrases as well, and our grammar does so all the time. So
# compare with held-out documents: how much do *they* share with the same training text?

# %% tags=["varies"]
few_text = " ".join(tokenizer.decode(inputs) for inputs, _ in few_rows)

def copied(name, model, known, count=5):
    """Prints and returns mean longest copies: in samples of the model, and in held-out documents."""
    own = np.mean([longest_copied(write(model, prompt_of(text)), known) for text in held[:count]])
    others = np.mean([longest_copied(text, known) for text in held[:count]])
    print(f"{name:30} samples {own:4.1f} words in a row, held-out documents {others:4.1f}")
    return own, others

copies = [copied("all of the text", model, " ".join(train))]
copies += [copied("1 window in 40, best weights", few_model, few_text)]
few_model.load_weights(few_last)
copies += [copied("1 window in 40, last weights", few_model, few_text)]

# %% [markdown] id="copied-read"
# Samples that copy no more than held-out documents do are written in the language of the text. Samples that
# copy far more are quotations. On the machine that made this page, only the last line was so: at its end, the
# small run wrote out most of a story at a time. Early stopping had kept it from that. What does yours?

# %%
assert all(own >= 1 and others >= 1 for own, others in copies)
print("✓ measured, for samples and for held-out documents")

# %% [markdown] id="export"
# ## The file
#
# Lesson 12a wrote the file. Which license may it have? If the text is yours, you choose. If it is not, you
# need to know what its owner allows, also for a model made of it; "it was on the web" is no license. The
# stories of the package are under the package's own, MIT, so a model of them can be.

# %%
from llmcl.gguf_file import write_gguf

NAME = "Valley stories"
LICENSE = "MIT"
TEXT_FROM = "about a megabyte of short stories, made by the grammar in llmcl.lab.grammar"
LIMITS = "It knows a valley of twelve places and nothing else. It cannot answer questions."

path = lab.folder("15") / "my-model.gguf"
info = {"name": NAME, "license": LICENSE, "description": LIMITS, "dataset": TEXT_FROM,
        "steps": watched.last, "validation_loss": round(final, 4), "documents": len(train)}
write_gguf(path, config, model.weights(), tokenizer, "Q8_0", info)
print(f"{path.name}: {path.stat().st_size / config.parameter_count():.2f} bytes for each parameter")

# %% [markdown] id="export-verify"
# A byte for each weight, and a little more for the scales, the positions and the tokenizer. Does real
# llama.cpp do with it what ours does? Lesson 12b showed what is compared. It is asked with held-out text.
#
# A text may differ here, and the file still be right. Where two tokens have nearly the same logit, rounding
# to a byte may turn them around, and from there on the texts part. A model that has just begun to learn is
# often undecided. So the logits decide.

# %% tags=["varies"]
from importlib.util import find_spec
from llmcl.verify import verify

asked = [" ".join(text.split("\n")[-1].split()[:20]) for text in held[:8]]
report = verify(path, asked, dialogues=[]) if find_spec("xllamacpp") else None
print(report or "llama.cpp is not installed here; pip install xllamacpp brings it")

# %%
must = ("load log", "answer kept in the file", "token ids", "logits")
verified = report and all(row.right == row.all for row in report.rows if row.name in must)
assert verified or report is None
print("✓ tokens and logits of llama.cpp are ours" if verified else "○ not compared")

# %% [markdown] id="card" tags=["slide"]
# ## The model card
#
# A file says nothing about where it comes from, and in a year you will have forgotten. A **model card** is
# a page beside the file: what it is, what it learned from, how well it does, where it fails, who may use
# it. Everything that the run knows, the run writes. Four lines are yours: you wrote them above.

# %%
def model_card():
    """The card as Markdown, from the facts of the run."""
    verdict, best = judge(train_loss, held_loss)
    rows = [("text", TEXT_FROM), ("to learn from", f"{len(train):,} documents, {sum(sizes):,} tokens"),
            ("held out", f"{len(held):,} documents"),
            ("model", f"GPT-2 style, {config.parameter_count():,} parameters, {BLOCKS} blocks, "
                      f"width {WIDTH}, {V} tokens, context {CONTEXT}"),
            ("training", f"{watched.last} steps of {BATCH} windows, highest learning rate {RATE:g}, "
                         f"on {engine.device.describe() if engine.device else 'NumPy'}"),
            ("training loss", f"{train_loss[-1]:.3f}, a single batch at the end"),
            ("validation loss", f"{final:.3f} (knowing nothing: {np.log(V):.3f}, counted pairs: {pairs_loss:.3f})"),
            ("the curves say", f"{verdict}; the weights are those of step {steps[best]}"),
            ("file", f"{path.name}, Q8_0, {path.stat().st_size:,} bytes"),
            ("llama.cpp", "verified: tokens, and logits within the rounding of Q8_0" if verified else "not verified")]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return (f"---\nlicense: {LICENSE.lower()}\n---\n\n# {NAME}\n\nIt continues texts of the kind it learned from.\n\n"
            f"| | |\n|---|---|\n{table}\n\n## Limits\n\n{LIMITS}\n\n## License\n\n{LICENSE}\n")

# %% tags=["varies"]
from IPython.display import Markdown

card = model_card()
(path.parent / "my-model.md").write_text(card, encoding="utf-8")
Markdown(card.split("---\n", 2)[-1])

# %%
assert f"{config.parameter_count():,}" in card and LICENSE in card and "## Limits" in card
print("✓ my-model.md lies beside my-model.gguf")

# %% [markdown] id="card-exercise"
# **Exercise 15.7** · easy · 5 minutes. Which of these sentences may stand on the card of the first run, the
# one on stories? Return their letters in order, as one word.
#
# - **A** On documents that it never saw, the loss is about that of the training text.
# - **B** The model understands cause and effect.
# - **C** The model does not repeat its training text.
# - **D** On eight beginnings, llama.cpp's logits were within the rounding of Q8_0 of ours.
# - **E** The model is safe for children.
# - **F** It was trained on English text only.
#
# <details><summary>Hint</summary>
#
# For each sentence, point to the cell that measured it, or to the fact that makes it so. "It looked like
# it" is not a cell.
#
# </details>

# %%
@lab.exercise("15.7")
def honest():
    """The letters of the sentences that the card may hold."""
    ### BEGIN SOLUTION
    return "ADF"
    ### END SOLUTION

# %% [markdown] id="real"
# ## The real run
#
# What to raise, and in which order?
#
# 1. **Text.** The small run had little more than 20,000 characters, and quoted. A megabyte is a start.
# 2. **Steps.** Set `MINUTES`; the looks at held-out text come on top. As long as that loss falls, go on.
# 3. **Size.** When it does not fall any more *and* lies close to the training loss, the model is too small:
#    raise `BLOCKS` to 4, then `WIDTH` to 192 or 256. Take `RATE` down to 3e-3 or 2e-3 with it.
# 4. **Vocabulary.** For several megabytes, 2048 or more; the tokens get longer, and the windows hold more.
#
# If the picture shows overfitting instead, go back to 1. The Stop button is safe: the best weights are kept.
#
# Is it worth the wait? Once, `BLOCKS = 4`, `STEPS = 2000` and `RATE = 4e-3` were run on the stories. It took 13
# seconds on an H200; two processor cores need about five minutes. The validation loss fell to 0.20, a fifth of
# the short run's. It was lowest at step 1600 and then rose by 5%: the judge said `overfitting`, and the weights
# of step 1600 were kept. The same title gave:
#
# > Two beavers and the straw hat. It was a quiet day at the mill until a strong wind blew. … Two beavers slept
# > beside the millstone and woke up early. … The beavers were tired and looked for a better place. Behind the sacks
# > there was no room, because a sheep slept there with a straw hat. "Come with me," said the sheep. …
#
# Two stay two, all is at the mill, and there is the hat of the title. At most 17 words in a row of the whole story
# stand in the training text. Of six samples, two cannot spell "pressed". And in all six, a strong wind blew. Why?
# `write` takes the likeliest token every time, and so the likeliest weather. Lesson 11 has the cure.

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 15.8** · hard · 40 minutes. Your own folder. No checker can judge it; you can, with this list:
#
# - Who owns the text? Is anything in it that nobody else should read? A model can repeat what it learned.
# - Does `read_folder` take it? How many documents are there, and are any of them twins with small changes?
#   Twins, and pieces of one long text, end up on both sides: the validation loss is too good.
# - Is the validation loss below the bigram's? If not: more steps first.
# - What does the judge say, and what does `longest_copied` say? Do they agree?
# - Ask the model something that your text never says. Write what happens under `LIMITS`.
# - Show the card to somebody who did not make the model. What do they ask? Add the answer.
#
# <details><summary>The loss is not a number any more</summary>
#
# The error names the step. Halve `RATE`.
#
# </details>
#
# <details><summary>My text is not English</summary>
#
# Byte-level BPE takes any language. A Korean syllable is three bytes, so a small vocabulary gives short
# tokens; look at the characters for each token, and raise `VOCAB` until a token holds two or more.
#
# </details>
#
# <details><summary>A teacher's rubric</summary>
#
# Ten points: text described with its owner (1), split by documents and checked for twins (2), both curves
# with a verdict that fits them (2), copies compared with held-out documents (2), limits found by trying (1),
# file verified (1), card complete and without claims that nothing measured (1).
#
# </details>

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - Documents are split before anything is learned, the tokenizer included.
# - The **validation loss** is the mean over held-out places. Beside it stand ln V and the bigram's loss.
# - **Overfitting** is a turn, not a gap: training goes down, validation goes up.
# - A sample's copies are compared with those of held-out text.
# - A **model card** holds what was measured, what was not, and who may use the file.
#
# In `llmcl`: `data.py` (`read_folder`, `cut_documents`, `split_documents`), `lab/grammar.py`. In the lesson's folder:
# `my-model.gguf` and `my-model.md`. Would you know in a year what they are?

# %%
lab.summary("15")

# %% [markdown] id="bridge"
# **Next:** lesson 16, *The sabotaged model*. Somebody has changed five things in a model that was right, and
# no error tells you. You have every tool now to find them.
