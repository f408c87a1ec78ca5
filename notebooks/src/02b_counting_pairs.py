# ---
# jupyter:
#   llmcl:
#     title: Counting pairs
#     numpy: true
#     needs: ["00", "01a", "02", tokenizer, batch, loss, softmax, vocabulary, atomic]
#     introduces:
#       - bigram
#       - nat
#       - perplexity
#       - smoothing
#       - shift
#       - llmcl.bigram.bigram_counts
#       - llmcl.bigram.bigram_loss
#       - llmcl.lab.figure
#       - llmcl.lab.heat
#       - llmcl.lab.keep
#       - llmcl.lab.show
#     minutes: {core: 40, full: 50}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 02b · Counting pairs
#
# In this lesson you build a language model without any weights: it counts which token follows which.
# It takes a second to make, it writes, and every model after it has to do better.
#
# | | |
# |---|---|
# | **After this you can** | build a bigram model from counts; compute its loss in nats and compare it with ln V; say what smoothing is for; notice targets that are shifted twice |
# | **You need** | lessons 00 and 02 |
# | **Time** | 40 minutes; 50 with all exercises |
# | **New words** | bigram, nat, perplexity, smoothing, shift |

# %%
from llmcl import lab

lab.start("02b")

# %% [markdown] id="idea"
# ## The idea: what came next before?
#
# Read our sentence once more and cover the end. After `the`, what comes next? You would look where
# you have seen `the`, and what followed. That can be written as a table. For once the tokens are
# words, so that the table fits on the page.

# %%
import numpy as np

sentence = "The sun warms the land and the sea."
words = list(dict.fromkeys(sentence.split()))       # each word once, in order
ids = [words.index(word) for word in sentence.split()]
print(words)
print(ids)

# %%
counts = np.zeros((7, 7))
for left, right in zip(ids, ids[1:]):
    counts[left, right] += 1           # one at a time, so nothing gets lost
print(counts[words.index("the")])

# %% [markdown] id="idea-shares"
# In the row of `the` there is one `land` and one `sea.`, so each has one half. Divide each row by its
# sum, and you have shares, as softmax gives them. A token and its share, for every token before it:
# that is a language model. Since it looks at two neighbors, it is called a **bigram** model.

# %% tags=["slide"]
sums = counts.sum(axis=1, keepdims=True)
shares = counts / np.maximum(sums, 1)               # the last row is empty: 0 / 1
made, axes = lab.figure(
    "A table of shares for seven words: each row has a single 1.00, but for the row of 'the', which "
    "has 0.50 for land and 0.50 for sea, and the row of 'sea.', which is empty.",
    width=5.2, height=4.0)
lab.heat(axes, shares, words, words, title="row: the last word    column: the next word")
lab.show(made)

# %% [markdown] id="predict"
# How good is this model? Lesson 00 said it: the loss at one place is minus the logarithm of the
# right token's share, and the model's loss is the mean over all places. With the natural logarithm
# its unit is called a **nat**.
#
# **Exercise 02b.1** · easy · 3 minutes. Compute the mean loss of this table on its own sentence. Seven
# words are predicted, from `sun` to `sea.`. The logarithm of 1/2 is -0.69, that of 1 is 0.
#
# <details><summary>Hint</summary>
#
# At how many of the seven places is the share of the right word 1? And at the others?
#
# </details>

# %%
lab.predict("02b.1", guess=None)

# %%
tiny_loss = -np.log(shares[ids[:-1], ids[1:]]).mean()
lab.reveal("02b.1", tiny_loss)
print(f"{tiny_loss:.2f} nats")

# %% [markdown] id="numpy"
# ## All 25 sentences, in NumPy
#
# Now with the tokens of lesson 02, a vocabulary of 512. `pretrain_rows` and `batch` are those of
# lesson 00.

# %%
from llmcl.data import IGNORED, batch, pretrain_rows, read_sentences
from llmcl.resources import data_dir
from llmcl.tokenizer import ByteBPE

sentences = read_sentences(data_dir() / "pretrain.txt")
tokenizer = ByteBPE.train(sentences, vocab_size=512)
V = tokenizer.vocab_size
inputs, targets = batch(pretrain_rows(sentences, tokenizer), tokenizer.end_id)

# %%
def show_places(inputs, targets, count=4):
    for a, b in zip(inputs[0][:count], targets[0]):
        print(f"{tokenizer.decode([a])!r} → {tokenizer.decode([b])!r}")

show_places(inputs, targets)

# %% [markdown] id="numpy-shift"
# Each target is the input one place further on. That is the **shift**, and `pretrain_rows` has made
# it. Keep it in mind; we will break it. Are you sure that it holds for all sentences?

# %%
inside = targets[:, :-1] != IGNORED     # places with a target that have a right neighbor
later = targets[:, 1:] != IGNORED
assert (targets[:, :-1] == inputs[:, 1:])[inside & later].all()
print("✓ every target is the next input")

# %%
seen = targets != IGNORED
left, right = inputs[seen], targets[seen]
counts = np.zeros((V, V), int)
np.add.at(counts, (left, right), 1)
print(f"{len(left)} places, {(counts > 0).sum()} different pairs of {V * V:,}")

# %% [markdown] id="numpy-the"
# Nearly all of the table is empty. What do you expect in the row of ` the`?

# %%
the = tokenizer.encode(" the")[0]
for token in np.flatnonzero(counts[the]):
    print(f"{tokenizer.decode([token])!r}: {counts[the, token]}")

# %% [markdown] id="exercise-shares"
# **Exercise 02b.2** · easy · 4 minutes. Write `shares_of`. It adds `extra` to every count, and then
# divides each row by its sum. For now `extra` is a billionth, so that a row that counted nothing can
# be divided as well. Soon it gets another use.
#
# <details><summary>Hint</summary>
#
# `sum(axis=1, keepdims=True)` gives the sums of the rows as a column, so that the division fits.
#
# </details>
#
# <details><summary>I am stuck: give me lines to put in order</summary>
#
# Three of these four, in the right order:
#
# - `sums = counts.sum(axis=1, keepdims=True)`
# - `counts = counts + extra`
# - `sums = counts.sum(axis=0, keepdims=True)`
# - `return counts / sums`
#
# </details>

# %%
@lab.exercise("02b.2")
def shares_of(counts, extra):
    """(V, V) counts -> (V, V) shares, each row sums to 1."""
    ### BEGIN SOLUTION
    counts = counts + extra
    return counts / counts.sum(axis=1, keepdims=True)
    ### END SOLUTION

# %% [markdown] id="exercise-loss"
# **Exercise 02b.3** · medium · 5 minutes. Write `mean_loss`. `left` and `right` are arrays of the same
# length: at each place the token that stands there, and the one that follows.
#
# <details><summary>Hint</summary>
#
# `shares[left, right]` is an array with the share of the right token at each place.
#
# </details>
#
# <details><summary>I am stuck: give me pieces</summary>
#
# Four of these six belong into one `return`: `-`, `np.log(…)`, `shares[left, right]`, `.mean()`,
# `.sum()`, `shares[right, left]`.
#
# </details>

# %%
@lab.exercise("02b.3")
def mean_loss(shares, left, right):
    """The mean over all places of -log of the right token's share, in nats."""
    ### BEGIN SOLUTION
    return -np.log(shares[left, right]).mean()
    ### END SOLUTION

# %% [markdown] id="loss"
# A model that knows nothing gives every token the same share, 1/V, and has the loss ln V at every
# place. What will the bigram have? Guess before you run the cell.

# %% tags=["slide"]
table = shares_of(counts, 1e-9)
loss = mean_loss(table, left, right)
print(f"ln V   {np.log(V):.2f} nats")
print(f"bigram {loss:.2f} nats")

# %% [markdown] id="loss-read"
# Is 0.46 good? The exponential of a loss is called **perplexity**. It says among how many equally
# likely tokens the model is undecided.

# %% tags=["slide"]
print(f"knowing nothing: {np.exp(np.log(V)):.0f} tokens")
print(f"bigram: {np.exp(loss):.1f} tokens")
followers = (counts > 0).sum(axis=1)
print(f"{(followers == 1).sum()} of {(followers > 0).sum()} tokens have a single follower")

# %% [markdown] id="loss-why" tags=["slide"]
# So most of the time there is nothing to decide. In 25 sentences few words stand twice. Where
# does the rest come from? After ` the` seven tokens are possible, and the table cannot know which.
# A reader can: it depends on the words before. **No table that looks back one token gets below this
# number on these sentences.** What gets below it must have used more than the last token.
#
# That makes it a useful line. Later lessons draw it into every plot of a loss, dashed. The number
# belongs to these tokens: with another tokenizer there are other places, and it has to be computed
# anew. `llmcl` does it in one call. We keep ours:

# %%
from llmcl.bigram import bigram_counts, bigram_loss

assert (bigram_counts(inputs, targets, V) == counts).all()
assert abs(bigram_loss(inputs, targets, V) - loss) < 1e-6
lab.keep("02b", "loss", bigram_loss(inputs, targets, V))
print("✓ llmcl counts the same, and has the same loss")

# %% [markdown] id="item"
# ## One pair at a time
#
# You know this function from lesson 02. Today its ids are words. Which work-item counts `the sea.`?
# Which two count to the same row?

# %%
from llmcl.lab import get_global_id

def count_item(ids, counts, n, V):
    i = get_global_id(0)
    if i + 1 >= n:
        return
    left, right = ids[i], ids[i + 1]
    if left < 0 or right < 0:
        return
    lab.atomic_inc(counts, left * V + right)

# %%
few = np.zeros((7, 7), np.int32)
run = lab.run_items(count_item, 8, np.array(ids, np.int32), few, 8, 7)
assert few.sum() == 7 and few[3].sum() == 2
lab.view_items(run, start=6)

# %% [markdown] id="opencl"
# ## The same in OpenCL
#
# The kernel is the one of lesson 02, to the letter.

# %%
lab.show_kernel("pair_counts", "pair_counts")

# %% [markdown] id="opencl-row"
# Only what goes in is new: the tokens of all sentences in one row, each sentence with its end token,
# and -1 behind it. Why the -1? Without it the model would learn that `The` follows the end of a
# sentence.

# %%
from llmcl.engine import get_engine

engine = get_engine()
row = []
for text in sentences:
    row += [*tokenizer.encode(text), tokenizer.end_id, -1]
on_device = engine.to_host(engine.pair_counts(engine.from_host(row), V))

# %% [markdown] id="check"
# ## Is it right?
#
# Two roads to one table: NumPy went through inputs and targets, the device through one row. They
# should not differ in a single count.

# %%
lab.check("counts of pairs", on_device, counts, 0.0)

# %% [markdown] id="generate"
# ## Let it write
#
# Take a token, look at its row, draw the next one by its shares, go on from there.

# %%
def write(table, start, seed, most=30):
    """The ids of a text that begins with start, until the end token or `most` tokens."""
    rng = np.random.default_rng(seed)
    ids = tokenizer.encode(start)
    while len(ids) < most:
        following = int(rng.choice(V, p=table[ids[-1]]))
        if following == tokenizer.end_id:
            break
        ids.append(following)
    return ids

# %% [markdown] id="see"
# ## See it
#
# Move the slider: each step is another draw. (A thick border marks a token that the draw before did
# not have.) Read along until a text goes wrong. At which token does it turn, and why there?

# %% tags=["slide"]
texts = [write(table, "The", seed) for seed in range(12)]
steps = [[tokenizer.token_bytes(i) for i in ids] for ids in texts]
captions = [f"Draw {seed}: {tokenizer.decode(ids)}" for seed, ids in enumerate(texts)]
lab.explore_pieces(steps, captions, name="draw", start=4)

# %% [markdown] id="see-memory" tags=["slide"]
# Every pair of neighbors is from the data, and yet the whole makes little sense. The model jumps from one
# sentence into another wherever they share a token. It has no memory: these two beginnings end in the
# same token, so to the model they are the same.

# %%
whale, sun = (tokenizer.encode(t) for t in ("Whales live in the", "The sun warms the"))
assert whale[-1] == sun[-1] and (table[whale[-1]] == table[sun[-1]]).all()
print("✓ the same shares for what comes next")

# %% [markdown] id="smoothing"
# ## A sentence that was not counted
#
# Five new sentences, from tokens that the model knows. What is their loss?

# %%
fresh = ["The sea warms the moon.", "Our planet circles the sun.", "Ice is lighter than iron.",
         "Rain turns to ice.", "The moon is very far away."]
new_inputs, new_targets = batch(pretrain_rows(fresh, tokenizer), tokenizer.end_id)
places = new_targets != IGNORED
a, b = new_inputs[places], new_targets[places]
print((counts[a, b] == 0).sum(), "of", len(a), "pairs were never counted")

# %% [markdown] id="smoothing-why"
# A pair that was never counted has the share 0, and minus the logarithm of 0 is infinite. One such
# pair, and the mean is infinite as well. The model did not say "unlikely", it said "impossible".
#
# The cure is called **smoothing**: add a little to every count, as if every pair had been seen a
# little. That is `extra`. How much?

# %%
extras = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1]
known = [mean_loss(shares_of(counts, e), left, right) for e in extras]
unknown = [mean_loss(shares_of(counts, e), a, b) for e in extras]
assert known == sorted(known) and min(unknown) < unknown[0] and min(unknown) < unknown[-1]

# %% tags=["slide"]
made, axes = lab.figure(
    "Two curves of the loss against what is added to every count. The training sentences rise from "
    "about 0.5 to above 5. The new sentences fall at first, to about 3, and then rise to 5.5. A "
    "dotted line on top, at 6.2, is ln V.")
axes.plot(extras, known, "o-", label="training sentences")
axes.plot(extras, unknown, "s-", label="new sentences")
axes.axhline(np.log(V), color="black", linestyle=":", label="ln V")
axes.set(xscale="log", xlabel="added to every count", ylabel="loss in nats")
axes.legend()
lab.show(made)

# %% [markdown] id="smoothing-read"
# For the training sentences, any smoothing makes the loss larger. For new ones it helps, until the
# made-up counts drown the real ones: with 512 columns, an extra of 1 adds 512 to a row that has
# counted five pairs. So there are two questions, and they have two answers. The dashed line
# of later plots is about the training sentences, so it is made without smoothing.

# %% [markdown] id="break"
# ## Break it: shift twice
#
# It happens easily. One function returns inputs and targets, shifted. Another one, which knows
# nothing of it, shifts again. Or nobody does. Here are all three, each trained and measured on its own
# pairs. Which loss would you expect to be the best?

# %% tags=["slide"]
shifts = {
    "not at all": (inputs, np.where(seen, inputs, IGNORED)),
    "once": (inputs, targets),
    "twice": (inputs[:, :-1], targets[:, 1:]),
}
for name, (x, y) in shifts.items():
    print(f"shifted {name}: loss {bigram_loss(x, y, V):.2f}")

# %% [markdown] id="break-look"
# The best loss belongs to the model that was never shifted. It has learned that every token is
# followed by itself. And twice is hardly worse than once. **A loss cannot tell you that the question
# was wrong.** Hear them write:

# %% tags=["slide"]
for name, (x, y) in shifts.items():
    own = shares_of(bigram_counts(x, y, V), 1e-9)
    print(f"{name}: {tokenizer.decode(write(own, 'The', seed=4, most=8))}")

# %% [markdown] id="break-twice"
# Shifted twice, it leaves out every second token. What if the table is right, and only the measuring
# is shifted twice? Then a good model looks worse than one that knows nothing:

# %%
x, y = shifts["twice"]
# Smoothed a little: without it, one pair that was never counted makes the mean infinite.
wrong = mean_loss(shares_of(counts, 0.01), x[y != IGNORED], y[y != IGNORED])
assert wrong > np.log(V)
print(f"{wrong:.2f} nats, and ln V is {np.log(V):.2f}")

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 02b.4** · medium · 4 minutes. The loss does not notice, so write something that does.
# `shifted_once` gets the inputs and the targets of one row, as lists, and returns True or False.
#
# <details><summary>Hint</summary>
#
# What stands at place `i` of the targets has to stand at place `i + 1` of the inputs. The last target
# has no such partner.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# One of these is right, behind `return`:
#
# - `inputs[:-1] == targets[1:]`
# - `inputs != targets`
# - `inputs[1:] == targets[:-1]`
# - `inputs[2:] == targets[:-2]`
#
# </details>

# %%
@lab.exercise("02b.4")
def shifted_once(inputs, targets):
    """Whether every target but the last is the next input."""
    ### BEGIN SOLUTION
    return inputs[1:] == targets[:-1]
    ### END SOLUTION

# %%
for name, (x, y) in shifts.items():
    length = (y[0] != IGNORED).sum()
    ok = shifted_once(list(x[0][:length]), list(y[0][:length]))
    print(f"{'✓' if ok else '✗'} shifted {name}")

# %% [markdown] id="exercise-order"
# **Exercise 02b.5** · easy · 3 minutes. How does a bigram model write? Put five of these six lines in
# order. One does not belong. Return the letters as one word.
#
# - **A** A token is drawn by these shares.
# - **B** It is put behind the text, and we go on from it.
# - **C** The last token of the text is looked at.
# - **D** If it is the end token, stop here.
# - **E** The tokens before the last one are looked up, too.
# - **F** Its row of shares is taken from the table.

# %%
@lab.exercise("02b.5")
def writing():
    """The letters of five lines, in order."""
    ### BEGIN SOLUTION
    return "CFADB"
    ### END SOLUTION

# %% [markdown] id="extend"
# **Exercise 02b.6** · hard · 5 minutes. Look back two tokens: count, for each pair, what came third. A
# table would have V · V rows, so use a Python dictionary, in a new cell. Guess first: what happens to the loss of the
# training sentences, and what to new ones?
#
# <details><summary>What to expect</summary>
#
# The training loss falls to about 0.03: two tokens nearly always tell in which of 25 sentences you
# are. New sentences get worse, as most of their triples were never counted. Counting whole beginnings
# leads nowhere: nearly all of them are new. A model has to notice that beginnings are *similar*. That
# is what lesson 03 begins with.
#
# </details>

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - A bigram model is a table of shares: counted pairs, divided row by row.
# - Its loss on the training sentences is the floor for all that look back one token. Lower means:
#   more was used. `bigram.py` of `llmcl` computes it for any batch.
# - Without smoothing, one new pair makes the loss infinite.
# - A good loss says nothing about the question. Look at the pairs.
#
# **q1.** Why is the loss of the bigram model on its own training sentences not 0?
#
# - **A** Because it was not trained for long enough.
# - **B** Because no model gets below ln V.
# - **C** Because the last token alone does not say what comes next.

# %%
lab.quiz("02b.q1")

# %% [markdown] id="recap-2"
# **q2.** What is smoothing for?
#
# - **A** It makes the loss on the training sentences smaller.
# - **B** It gives pairs that were never counted a share above 0.
# - **C** It makes the table smaller.

# %%
lab.quiz("02b.q2")

# %% [markdown] id="recap-3"
# **q3.** From lesson 02: why does byte-pair encoding need a rule for ties?
#
# - **A** So that the same text always gives the same tokens.
# - **B** So that the tokens get longer.
# - **C** Without a rule it would stop at the first tie.

# %%
lab.quiz("02b.q3")

# %% [markdown] id="recap-4"
# **q4.** From lesson 01a: a kernel has no guard, and is launched for 37 elements in groups of 16. What
# do the last work-items do?
#
# - **A** They write rounded numbers.
# - **B** They stop with an error.
# - **C** They write past the end.

# %%
lab.quiz("02b.q4")

# %% [markdown] id="recap-5"
# **q5.** From lesson 00: how does the model there differ from this one?
#
# - **A** It gives shares that sum to 1.
# - **B** Its weights are found in many small steps.
# - **C** It counts three tokens instead of two.

# %%
lab.quiz("02b.q5")

# %%
lab.summary("02b")

# %% [markdown] id="bridge"
# **Next:** lesson 03, *Embeddings*. To the table, every token is as different from every other as can
# be. There each token becomes a row of numbers, and tokens can be alike.
