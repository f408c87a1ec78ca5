# ---
# jupyter:
#   llmcl:
#     title: The model
#     needs: ["00", "01a", "02b", "03", "04b", "05", "06", "softmax", "embedding", "causal mask", "transformer block", "bigram"]
#     introduces:
#       - window
#       - padding
#       - logits
#       - tied weights
#       - cross-entropy
#       - llmcl.data.windows
#     minutes: {core: 60, full: 85}
#     numpy: true
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 07 · The model
#
# All parts are there. In this lesson they become a GPT, and you know every number in it. You also find
# out what its very first loss tells you, and what it hides.
#
# | | |
# |---|---|
# | **After this you can** | make inputs and targets; keep padding out of the loss; assemble blocks into a GPT; count every parameter; explain the first loss |
# | **You need** | lessons 02b, 03 and 06 |
# | **Time** | 60 minutes; 85 with the exercises |
# | **New words** | window, padding, logits, tied weights, cross-entropy |

# %%
from llmcl import lab

lab.start("07")

# %% [markdown] id="idea"
# ## The idea: every place asks a question
#
# Lesson 00 said it: the model reads a beginning, and says what comes next. How many questions are in
# one sentence?

# %%
from llmcl.data import read_sentences
from llmcl.resources import data_dir
from llmcl.tokenizer import ByteBPE

sentences = read_sentences(data_dir() / "pretrain.txt")
tokenizer = ByteBPE.train(sentences, vocab_size=512)
ids = [*tokenizer.encode("The sun warms the land and the sea."), tokenizer.end_id]
inputs, targets = ids[:-1], ids[1:]
print(len(ids), "tokens with the end token,", len(inputs), "questions")

# %% [markdown] id="idea-pairs"
# Here they are. Above, what the model sees; below, what it should say. Move the slider from question to
# question. Blue may be seen, orange is the answer. Where does the answer stand above?

# %% tags=["slide"]
import numpy as np

def name_of(i):
    return "END" if i == tokenizer.end_id else tokenizer.decode([i]).replace(" ", "␣")

def draw_pairs(axes, t):
    colors = [["sky" if at <= t else "" for at in range(9)], ["orange" if at == t else "" for at in range(9)]]
    words = [[name_of(i) for i in ids[:-1]], [name_of(i) for i in ids[1:]]]
    lab.cells(axes, np.zeros((2, 9)), words, colors, title="column: place")
    axes.set_yticks([0, 1], ["input", "target"])

def pairs_words(t):
    return (f"Two rows of nine tokens, the lower one shifted by one. Question {t}: the places 0 to {t} "
            f"are seen, and the answer is {name_of(ids[t + 1])!r}.")

lab.explore(draw_pairs, range(9), pairs_words, "place", start=4, height=1.9)

# %% [markdown] id="idea-mask" tags=["slide"]
# One place further on, in white; the last one nowhere. That is the **shift** of lesson 02b. The model is given
# the whole upper row at once, so what keeps it from reading the answer there? The causal mask of lesson 04a.
# Thanks to it, one pass through the model asks all nine questions.

# %% [markdown] id="windows"
# ## A text that is too long
#
# A model's table of positions has only so many rows: its context length. What if a text has more tokens than
# that? It is cut into pieces, called **windows**. Cut this one into windows of four inputs:

# %%
text = [5, 7, 9, 4, 2, 8]
print("first window: ", text[0:4], "→", text[1:5])
print("second window:", text[4:5], "→", text[5:6])

# %% [markdown] id="windows-exercise"
# Look at the 2. It is the last target of the first window, and the first input of the second. Why twice?
# Otherwise the question after 2 would never be asked. **Every token but the first is a target exactly
# once.**
#
# **Exercise 07.1** · medium · 6 minutes. Write `windows` for a list of ids.
#
# <details><summary>Hint</summary>
#
# `most` inputs need `most + 1` tokens. The next window begins `most` tokens after the last one. The last
# token of all is never an input.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Four of these seven, in the right order:
#
# - `rows = []`
# - `for start in range(0, len(ids) - 1, most):`
# - `for start in range(0, len(ids), most + 1):`
# - `    piece = ids[start : start + most + 1]; rows.append((piece[:-1], piece[1:]))`
# - `    piece = ids[start : start + most]; rows.append((piece[:-1], piece[1:]))`
# - `    piece = ids[start : start + most + 1]; rows.append((piece, piece))`
# - `return rows`
#
# </details>

# %%
@lab.exercise("07.1")
def windows(ids, most):
    """A list of pairs (inputs, targets), each of at most `most` inputs."""
    ### BEGIN SOLUTION
    rows = []
    for start in range(0, len(ids) - 1, most):
        piece = ids[start : start + most + 1]
        rows.append((piece[:-1], piece[1:]))
    return rows
    ### END SOLUTION

# %%
from llmcl.data import windows as windows_of_llmcl

assert windows(ids, 4) == windows_of_llmcl(ids, 4)
for seen, wanted in windows(ids, 4):
    print(" ".join(map(name_of, seen)), "  →  ", " ".join(map(name_of, wanted)))

# %% [markdown] id="windows-own"
# Our sentences are short, so each makes one window. `pretrain_rows` does this sentence by sentence, and
# no window ever holds a piece of two. Does that matter? *Break it* has the answer.

# %% [markdown] id="padding"
# ## Padding
#
# A batch is a table, and the sentences differ in length. Short rows are filled up at the right. The
# filling is called **padding**, and a filled place a pad. `batch` does it:

# %%
from llmcl.data import IGNORED, batch, pretrain_rows

rows = pretrain_rows(sentences, tokenizer)
x, y = batch(rows, tokenizer.end_id)
print(x.shape, "places,", (y != IGNORED).sum(), "with a target; IGNORED is", IGNORED)

# %% tags=["slide"]
few = y[:5]
colors = np.where(few == IGNORED, "orange", np.where(few == tokenizer.end_id, "green", "sky"))
fig, axes = lab.figure(
    "The end token is a target in every row, and no pad's target. The targets of the first five sentences: each "
    "row has blue ids, then one green 511, the end token; behind it, short rows are filled with orange -1.", height=2.75)
lab.cells(axes, few, colors=colors, title="targets   row: sentence   column: place")
lab.show(fig)

# %% [markdown] id="padding-id"
# Some id has to stand in the *input* of a pad; here it is the end token, 511. Its *target* is -1, which no
# token has. Why not say "whatever has the id of the pad does not count"? Then the green targets would not
# count either, and the model would never learn to stop.

# %% [markdown] id="logits"
# ## From rows to scores
#
# Behind the last block, each place has a row of `C` channels. We need one score for each token. The model
# has a row of channels for each token already: the table of lesson 03. So compare. Multiply channel by
# channel, and add:

# %% tags=["slide"]
table = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])  # three tokens, two channels
row = np.array([0.5, 1.0])                              # what a place has become
print(row @ table.T)

# %% [markdown] id="logits-tied"
# Three tokens, three scores; token 1 fits best. At this spot the scores are called **logits**. The table does
# two jobs now: it reads a token in, and it scores a token on the way out. That is called **tied weights**. A
# table of its own for this **output head** would cost how much?

# %%
from llmcl.config import Config

config = Config()
print(f"{config.vocab_size * config.d_model:,} more, and the model has {config.parameter_count():,} parameters")

# %% [markdown] id="numpy"
# ## In NumPy
#
# **Exercise 07.2** · easy · 5 minutes. Assemble the GPT. You get the two tables, a list of blocks, each a
# function from rows to rows, and the last norm.
#
# <details><summary>Hint</summary>
#
# Four steps: look up tokens and positions, pass all blocks one after another, norm, compare with the
# table. `positions` may have more rows than the text has places.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Four of these six, in the right order:
#
# - `x = tokens[ids] + positions[: ids.shape[1]]`
# - `x = tokens[ids] + positions[ids]`
# - `for block in blocks:`
# - `    x = block(x)`
# - `return norm(x) @ tokens.T`
# - `return norm(x @ tokens.T)`
#
# </details>

# %%
@lab.exercise("07.2")
def logits_of(ids, tokens, positions, blocks, norm):
    """ids (B, T), tokens (V, C), positions (P, C) -> logits (B, T, V)."""
    ### BEGIN SOLUTION
    x = tokens[ids] + positions[: ids.shape[1]]
    for block in blocks:
        x = block(x)
    return norm(x) @ tokens.T
    ### END SOLUTION

# %% [markdown] id="numpy-block"
# And the real parts. The block is yours from lesson 06, with its weights by name. (`at=…` in the list of
# blocks gives each little function its own name to keep; without it, all would use the last `i`.)

# %%
from llmcl import reference

def linear(x, w, name):
    return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

# [0]: the result itself. What comes behind it is for the way back (lesson 08b).
def norm(x, w, name):
    return reference.layer_norm(x, w[f"{name}.weight"], w[f"{name}.bias"], 1e-5)[0]

def block(x, w, at, n_heads):
    qkv = linear(norm(x, w, at + "attn_norm"), w, at + "attn_qkv")
    h = x + linear(reference.attention(qkv, n_heads)[0], w, at + "attn_output")
    wide = reference.gelu(linear(norm(h, w, at + "ffn_norm"), w, at + "ffn_up"))
    return h + linear(wide, w, at + "ffn_down")

# %%
def gpt(ids, w, config):
    """The whole model in float64: ids (B, T), weights by name -> logits (B, T, V)."""
    blocks = [lambda x, at=f"blk.{i}.": block(x, w, at, config.n_heads) for i in range(config.n_layers)]
    tables = w["token_embd.weight"], w["position_embd.weight"]
    return logits_of(ids, *tables, blocks, lambda x: norm(x, w, "output_norm"))

# %% [markdown] id="numpy-try"
# Weights for it come from the package's `GPT`, fresh and random. What will the shape of the logits be?

# %%
from llmcl.engine import get_engine
from llmcl.model import GPT

engine = get_engine()
model = GPT(config, engine)
model.initialize(seed=1)
fresh = {name: array.astype(np.float64) for name, array in model.weights().items()}
logits = gpt(x, fresh, config)
print(x.shape, "→", logits.shape)

# %% [markdown] id="loss"
# ### The loss
#
# Lesson 00: the loss at a place is minus the logarithm of the right token's share. With softmax put in,
# it becomes shorter. Take three logits; the target is token 0. Why do the two numbers agree?

# %%
z = np.array([2.0, 1.0, 0.0])
share = np.exp(z[0]) / np.exp(z).sum()
print(round(-np.log(share), 4), round(np.log(np.exp(z).sum()) - z[0], 4))

# %% [markdown] id="loss-why" tags=["slide"]
# Because the logarithm of a fraction is a difference, and the logarithm undoes the exponential on top. So:
#
# **loss = log(sum of exp(logit)) − logit of the target**
#
# This is **cross-entropy**. No share is ever computed, so none can become 0. As in softmax, the largest
# logit is taken away from all of them first: the difference of the two terms stays. The loss of a batch is
# the mean over the places *with a target*.
#
# **Exercise 07.3** · medium · 6 minutes. Write `mean_loss`. The targets may hold `IGNORED`.
#
# <details><summary>Hint</summary>
#
# `seen = targets != IGNORED`; then `logits[seen]` is (count, V), and `targets[seen]` is (count). Throw the
# rest away before you do anything else.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Five of these seven, in the right order:
#
# - `seen = targets != IGNORED`
# - `z, wanted = logits[seen], targets[seen]`
# - `z = z - z.max(axis=-1, keepdims=True)`
# - `right = z[np.arange(len(z)), wanted]`
# - `right = z[:, wanted]`
# - `return (np.log(np.exp(z).sum(axis=-1)) - right).mean()`
# - `return (np.log(np.exp(z).sum(axis=-1)) - right).sum() / targets.size`
#
# </details>

# %%
@lab.exercise("07.3")
def mean_loss(logits, targets):
    """logits (..., V), targets (...) -> the mean loss in nats over the places with a target."""
    ### BEGIN SOLUTION
    seen = targets != IGNORED
    z, wanted = logits[seen], targets[seen]
    z = z - z.max(axis=-1, keepdims=True)
    right = z[np.arange(len(z)), wanted]
    return (np.log(np.exp(z).sum(axis=-1)) - right).mean()
    ### END SOLUTION

# %%
first_loss = mean_loss(logits, y)
assert abs(first_loss - reference.cross_entropy(logits, y)[0][0]) < 1e-12
print(f"the first loss: {first_loss:.2f}")

# %% [markdown] id="pads"
# Now the promise: padding must not matter. Fill the batch up with 0, 1, 5 and 20 more pads.

# %%
def with_pads(count):
    """The batch with `count` more pads in each row."""
    behind = ((0, 0), (0, count))
    return (np.pad(x, behind, constant_values=tokenizer.end_id), np.pad(y, behind, constant_values=IGNORED))

for pads in (0, 1, 5, 20):
    padded, wanted = with_pads(pads)
    loss = mean_loss(gpt(padded, fresh, config), wanted)
    assert abs(loss - first_loss) < 1e-12
    print(f"{pads:2} pads: {loss:.6f}")

# %% [markdown] id="pads-why"
# Two things make it so. No pad asks a question. And no real place hears a pad, as all pads stand to its
# right. What if the padding stood at the left?
#
# <details><summary>An answer</summary>
#
# Then every place would hear the pads, and every word would stand at another position. Programs that pad
# at the left need one more mask, and have to count the positions anew.
#
# </details>

# %% [markdown] id="first"
# ## Explain the first loss
#
# Why 6.25? Look at the logits of a fresh model:

# %%
print(f"logits spread by {logits.std():.2f}; 1/V is {1 / 512:.4f}")
shares = reference.softmax(logits)
print(f"half of all shares lie between {np.quantile(shares, 0.25):.4f} and {np.quantile(shares, 0.75):.4f}")

# %% [markdown] id="first-why"
# The weights are small, so the logits are near 0, so all tokens have nearly the same share, 1/V. Minus
# the logarithm of 1/V is ln V. That number is known before anything is run.
#
# **Exercise 07.4** · easy · 2 minutes. Another model has a vocabulary twice as large, 1024. By how much is
# its first loss larger?
#
# <details><summary>Hint</summary>
#
# ln(2·V) = ln 2 + ln V, and ln 2 is about 0.69.
#
# </details>

# %%
lab.predict("07.4", guess=None)

# %%
larger = GPT(Config(vocab_size=1024), reference.Engine())
larger.initialize(seed=1)
more = float(larger.loss(x, y)[0]) - first_loss
lab.reveal("07.4", more)
assert abs(more - np.log(2)) < 0.1
print("✓ about ln 2 more, though the vocabulary has doubled")

# %% [markdown] id="first-lines"
# So there are two lines to know before training. ln V is where a model starts that knows nothing. The
# bigram's loss of lesson 02b is where all end that look back one token.

# %% tags=["slide"]
from llmcl.bigram import bigram_loss

ln_v, pairs_loss = np.log(config.vocab_size), bigram_loss(x, y, config.vocab_size)
assert abs(first_loss - ln_v) < 0.1
print(f"ln V {ln_v:.2f}   first loss {first_loss:.2f}   bigram {pairs_loss:.2f}")

# %% [markdown] id="first-loud"
# What if the fresh weights were louder? GPT-2 begins with a spread of 0.02, and ours does as well. Below, all weights but gamma
# are multiplied. Guess: does the loss go up, or down?

# %%
def louder(times):
    """The first loss when every weight but gamma is that many times as large."""
    w = {name: a if name.endswith("norm.weight") else times * a for name, a in fresh.items()}
    return mean_loss(gpt(x, w, config), y)

times = [0.3, 1, 3, 5, 10, 20]
loud = [louder(n) for n in times]
assert abs(loud[0] - ln_v) < 0.1 and loud[-1] > 1.5 * ln_v

# %% tags=["slide"]
fig, axes = lab.figure(
    "The first loss against the spread of the weights. Up to 0.02 it lies on the dotted line, ln V, at 6.2; "
    "at 0.1 it is a little above, and at 0.4 nearly 12. A dashed line far below, at 0.46, is the bigram's loss.")
spreads = [0.02 * n for n in times]
axes.plot(spreads, loud, "o-", label="fresh model")
axes.axhline(ln_v, color="black", linestyle=":", label="ln V")
axes.axhline(pairs_loss, color="black", linestyle="--", label="bigram")
axes.set(xscale="log", xlabel="spread of the fresh weights", ylabel="first loss", ylim=(0, 15))
axes.set_xticks(spreads, [f"{n:g}" for n in spreads])
axes.minorticks_off()
axes.legend()
lab.show(fig)

# %% [markdown] id="first-loud-why"
# Loud weights make loud logits: the model is sure, and as it knows nothing, it is sure of the wrong
# tokens. That is worse than knowing nothing. **A first loss far above ln V says: the weights are too
# large.**

# %% [markdown] id="item"
# ## One element at a time
#
# A row of logits gives one loss. So one work-item takes one row. How often does it read the row?

# %%
from llmcl.lab import get_global_id

def one_row_loss(logits, targets, loss, rows, V):
    row = get_global_id(0)
    if row >= rows:
        return
    target = targets[row]
    loss[row] = 0.0
    if target < 0:
        return
    its = logits + row * V
    largest = its[0]
    for v in range(1, V):
        largest = max(largest, its[v])
    total = 0.0
    for v in range(V):
        total += np.exp(its[v] - largest)
    loss[row] = np.log(total) + (largest - its[target])

# %%
some, wanted = np.random.default_rng(7).normal(size=(4, 5)), np.array([2, 0, -1, 4], np.int32)
losses = np.zeros(4)
run = lab.run_items(one_row_loss, 4, some, wanted, losses, 4, 5)
run.report()
assert losses[2] == 0 and np.isclose(losses.sum() / 3, mean_loss(some, wanted))
print(lab.touch_counts(run)["logits"].reads, "reads of logits, for three rows of five that count")
lab.view_items(run, start=1)

# %% [markdown] id="item-view"
# 33 is 3 · (5 + 5 + 1): each row twice, and once more the logit of the target. Move the slider to
# work-item 2. Which numbers of `logits` does it touch? None: its target is -1, and it leaves.

# %% [markdown] id="opencl"
# ## In OpenCL
#
# The same, eight numbers at a time (lesson 05): `.lo` and `.hi` are halves, `sum8` adds all. `log_sum` is for
# lesson 08b. Where is the line that keeps padding out?

# %%
lab.show_kernel("cross_entropy", "cross_entropy_rows")

# %% [markdown] id="opencl-mean"
# `if (target < 0) return;`, before the first logit is read. The losses then lie in a row, zeros among
# them, and one work-item adds them up. By what is the sum divided?

# %%
lab.show_kernel("cross_entropy", "cross_entropy_mean")

# %% [markdown] id="opencl-head"
# By `count`, the number of places with a target, and not by `rows`. The head needs no kernel of its own: it
# is the matrix product of lesson 01a, with the table turned.

# %% [markdown] id="check"
# ## Check
#
# The two new links first, on numbers of odd sizes. Every third target is ignored.

# %%
from llmcl.reference import bounds

rng = np.random.default_rng(8)
h, table = (rng.normal(size=s).astype(np.float32) for s in ((3, 7, 13), (53, 13)))
wanted = rng.integers(0, 53, (3, 7)).astype(np.int32)
wanted.flat[::3] = IGNORED
scores = engine.unembedding(engine.from_host(h), engine.from_host(table))
exact = h.astype(np.float64), table.astype(np.float64)
lab.check("head", engine.to_host(scores), exact[0] @ exact[1].T, bounds.unembedding(*exact)[0])

# %%
loss, log_sum = engine.cross_entropy(scores, engine.from_host(wanted))
got = engine.to_host(scores).astype(np.float64)  # the logits that the loss really got
want, bound = mean_loss(got, wanted), bounds.cross_entropy(got, wanted)[0]
lab.check("loss", engine.to_host(loss), [want], bound)

# %% [markdown] id="check-whole"
# Now the whole model. Lesson 06 proved a block link by link, because no honest bound of a whole chain is
# small. But a yardstick helps. A sum of n numbers is off by at most n·u of their size (lesson 01a). So count
# the terms of all sums that a number passes on its way:

# %%
def terms(config, places):
    """How many terms the sums have that lie between an id and its logits."""
    C, F, d = config.d_model, config.d_ff, config.d_head
    attention = 2 * C + C + d + places + C   # norm, q k v, score, mix, output
    feed_forward = 2 * C + C + F             # norm, up, down
    return config.n_layers * (attention + feed_forward) + 2 * C + C

yardstick = terms(config, x.shape[1]) * 2**-24
print(f"{terms(config, x.shape[1])} terms: {yardstick:.0e} of the largest logit")

# %% [markdown] id="check-push"
# In a fresh model all biases are 0, and many mistakes are invisible. So every weight gets a push first.
# Whose weights does NumPy get?

# %%
model.load_weights({name: array + rng.normal(0, 0.1, array.shape).astype(np.float32)
                    for name, array in model.weights().items()})
w = {name: array.astype(np.float64) for name, array in model.weights().items()}
want = gpt(x, w, config)
lab.check("all logits", engine.to_host(model.forward(x)), want, yardstick * np.abs(want).max())

# %%
allowed = 2 * yardstick * np.abs(want).max()  # twice, as a loss is a difference of two such numbers
for pads in (0, 1, 5, 20):
    got = engine.to_host(model.loss(*with_pads(pads)))
    lab.check(f"loss with {pads} pads", got, [mean_loss(want, y)], allowed)

# %% [markdown] id="check-after"
# The engine's own, read back: that is `w`. And the engine's loss agrees with that of the batch without
# pads, however many there are. Would the yardstick notice a mistake? Leave out the last norm's beta:

# %%
try:
    # all of w, but with one array replaced
    wrong = gpt(x, {**w, "output_norm.bias": 0 * w["output_norm.bias"]}, config)
    lab.check("without the last beta", wrong, want, yardstick * np.abs(want).max())
except lab.CheckFailed:
    print("✗ without the last beta: the check found it")

# %% [markdown] id="see"
# ## See it: where the parameters are
#
# Each parameter belongs to one of five parts. Guess before you run it: which part is the largest?
#
# **Exercise 07.5** · medium · 4 minutes. Write `count` for a feed-forward four times as wide as the row.
#
# <details><summary>Hint</summary>
#
# Two tables, `L` blocks (lesson 06: 12·C² + 13·C each), and one more norm with gamma and beta. The head
# brings none.
#
# </details>
#
# <details><summary>I am stuck: give me pieces to choose from</summary>
#
# The sum of three of these five: `(V + P) * C` · `(2 * V + P) * C` · `L * (12 * C * C + 13 * C)` · `2 * C` · `C`
#
# </details>

# %%
@lab.exercise("07.5")
def count(V, P, C, L):
    """The parameters of a GPT: V tokens, P positions, C channels, L blocks."""
    ### BEGIN SOLUTION
    return (V + P) * C + L * (12 * C * C + 13 * C) + 2 * C
    ### END SOLUTION

# %%
def part_of(name):
    """The part that a parameter belongs to, by its name."""
    kinds = {"token": "tokens and head", "position": "positions", "norm": "norms", "attn": "attention",
             "ffn": "feed-forward"}
    return next(part for kind, part in kinds.items() if kind in name)

def parts(config):
    """The number of parameters of each part."""
    sizes = {}
    for name, shape in config.parameter_shapes().items():
        sizes[part_of(name)] = sizes.get(part_of(name), 0) + int(np.prod(shape))
    return sizes

# %%
sizes = parts(config)
for part, size in sizes.items():
    print(f"{part:16}{size:8,}")
assert sum(sizes.values()) == config.parameter_count() == count(512, 256, 96, 2)
print(f"{'all':16}{config.parameter_count():8,}")

# %% [markdown] id="see-picture"
# In the picture each bar begins where the one above it ends, so together they are as long as the last. The
# slider goes to more blocks, and to the smallest GPT-2. Who gains, and who loses?

# %% tags=["slide"]
models = {"this book's": Config(), "twelve blocks": Config(n_layers=12),
          "GPT-2 small": Config(50257, 1024, d_model=768, n_heads=12, n_layers=12, d_ff=3072)}

def draw_parts(axes, name):
    sizes, start = parts(models[name]), 0
    whole = models[name].parameter_count()
    for (part, size), color in zip(sizes.items(), lab.COLORS.values()):
        axes.barh(part, size, left=start, color=color)
        start += size
        axes.text(1.02 * whole, part, f"{size:,} · {size / whole:.1%}", va="center", fontsize=9)
    axes.barh("all", whole, color="gray")
    axes.text(1.02 * whole, "all", f"{start:,}", va="center", fontsize=9)
    axes.set(xlim=(0, 1.5 * whole), title=name, xticks=[])
    axes.grid(False)
    axes.invert_yaxis()

def parts_words(name):
    sizes, whole = parts(models[name]), models[name].parameter_count()
    said = ", ".join(f"{part} {size / whole:.1%}" for part, size in sizes.items())
    return f"{name}: {whole:,} parameters in bars that follow one another. {said}."

lab.explore(draw_parts, list(models), parts_words, "model", start="this book's")

# %% [markdown] id="see-after"
# Half of ours is feed-forward, a quarter attention; norms weigh nothing. With more blocks the tables lose. With
# GPT-2's vocabulary tokens gain. The 124,439,808 of GPT-2 small is the number that you read as "124M"
# elsewhere. Your function knows it, too:

# %%
assert count(50257, 1024, 768, 12) == models["GPT-2 small"].parameter_count() == 124_439_808
print("✓ GPT-2 small, to the last parameter")

# %% [markdown] id="break"
# ## Break it: padding that counts
#
# Three mistakes, each made often. The first divides by all places. The second gives a pad the end token as
# its target. The third forgets the pads, and NumPy takes -1 as the *last* token. Which loss goes up with
# more pads, and which goes down?

# %%
def all_losses(logits, targets):
    """The loss at each place (B, T), pads and all."""
    z = logits - logits.max(axis=-1, keepdims=True)
    b, t = np.indices(targets.shape)  # sentence and place of each target
    return np.log(np.exp(z).sum(axis=-1)) - z[b, t, targets]

wrong_means = {
    "right": mean_loss,
    "divided by all": lambda z, y: np.where(y == IGNORED, 0, all_losses(z, y)).mean(),
    "end token as target": lambda z, y: all_losses(z, np.where(y == IGNORED, 511, y)).mean(),
    "-1 as an index": lambda z, y: all_losses(z, y).mean(),
}

# %%
more_pads = [0, 1, 5, 20]
batches = [with_pads(pads) for pads in more_pads]
curves = {name: [mean(gpt(a, fresh, config), b) for a, b in batches] for name, mean in wrong_means.items()}
for name, curve in curves.items():
    print(f"{name:20}", " ".join(f"{loss:5.2f}" for loss in curve))
assert np.ptp(curves["right"]) < 1e-12
assert all(np.ptp(curve) > 0.1 for name, curve in curves.items() if name != "right")

# %% tags=["slide"]
fig, axes = lab.figure(
    "The loss against 0 to 20 more pads in each row. The right one is flat at 6.25. Divided by all "
    "places it falls below 3. With the end token as target it falls as well, and lies on the curve of -1 as an index.")
for (name, curve), style in zip(curves.items(), ("o-", "s--", "^:", "v-.")):
    axes.plot(more_pads, curve, style, label=name)
axes.set(xlabel="more pads in each row", ylabel="loss", ylim=(0, 7), xticks=more_pads)
axes.legend()
lab.show(fig)

# %% [markdown] id="break-pads"
# All three go down. Whoever sees only the curve is pleased. But the first makes all of training weaker the
# more pads there are, and the other two pay the model for pads, so that it learns pads. Two curves are
# one: -1 counts from the end in NumPy, and the last token happens to be the end token.
#
# A kernel has no such luck. There, `in[-1]` is the float *before* the row. One line is taken out of
# `cross_entropy_rows`; which try will notice?

# %%
lab.run_broken("07.pads_count")

# %% [markdown] id="break-kernel"
# Without pads nothing shows, and the strict device is content: that float belongs to the row above, and may
# be read. And the other one:

# %%
lab.run_broken("07.mean_of_all")

# %% [markdown] id="break-shift"
# ## Break it: the shift
#
# Lesson 02b shifted not at all, and twice. What is the first loss of a fresh model then? It knows nothing, so
# all three should be ln V. Should they?

# %% tags=["slide"]
shifts = {"not at all": (x, np.where(y == IGNORED, IGNORED, x)), "once": (x, y),
          "twice": (x[:, :-1], y[:, 1:])}
for name, (seen, wanted) in shifts.items():
    print(f"shifted {name}: {mean_loss(gpt(seen, fresh, config), wanted):.2f}")

# %% [markdown] id="break-shift-why"
# Not shifted, it is far below ln V. How can a model be good that has learned nothing? Ask which token it
# finds likeliest:

# %%
asked = y != IGNORED
repeats = (logits.argmax(axis=-1) == x)[asked].sum()
print(f"at {repeats} of {asked.sum()} places, the token that stands there")

# %% [markdown] id="break-shift-tied"
# A row still holds the token's own row; the residual road carries it to the end. And the head compares with
# the same table. So a fresh tied model repeats what it reads, and if that is the target, it looks clever.
#
# | first loss | it says |
# |---|---|
# | near ln V | the model knows nothing yet, as it should; **nothing about the targets** |
# | clearly below | the answer stands in the input: not shifted |
# | far above | the weights are too loud |
#
# Shifted twice gives ln V like the right one. What finds that? The pairs do, and no loss. `shifted_once` of
# lesson 02b, for a whole batch:

# %%
def shifted_once(x, y):
    """Whether each target that counts is the next input, where there is one that counts."""
    both = (y[:, :-1] != IGNORED) & (y[:, 1:] != IGNORED)
    return bool((x[:, 1:] == y[:, :-1])[both].all())

for name, (seen, wanted) in shifts.items():
    print(f"{'✓' if shifted_once(seen, wanted) else '✗'} shifted {name}")

# %% [markdown] id="break-windows"
# ## Break it: windows across sentences
#
# Somebody strings all sentences together, end tokens between, and cuts the string into windows of 16. Padding
# is rare. It is less code. What is lost?

# %%
string = [i for text in sentences for i in [*tokenizer.encode(text), tokenizer.end_id]]
cut = windows(string, 16)
across = sum(tokenizer.end_id in seen[:-1] for seen, _ in cut)
starts = np.cumsum([0] + [len(seen) + 1 for seen, _ in rows])[:-1]
print(f"{across} of {len(cut)} windows hold pieces of two sentences or more")
print(f"{(starts % 16 == 0).sum()} of {len(sentences)} sentences begin at place 0")

# %% [markdown] id="break-windows-why"
# You will ask the model "The sun …" from place 0. It has hardly ever seen a beginning there. And it was taught
# to guess which sentence follows which, as if that meant anything. Our sentence also stands elsewhere now, and
# hears the one before.

# %%
ours, other = np.array(ids[:-1]), np.array(tokenizer.encode(sentences[1]))
behind = np.concatenate([other, [tokenizer.end_id], ours])
alone, after = gpt(ours[None], w, config)[0], gpt(behind[None], w, config)[0, -len(ours):]
assert np.abs(alone - after).max() > 0.1
print("✗ the same sentence, and other logits")

# %% [markdown] id="break-windows-large"
# With billions of tokens and windows of thousands, people do it all the same: few texts are cut, padding would
# be a waste, and masks can keep neighbors apart. With 25 sentences it is a fault. How do you notice it? Count
# end tokens among the inputs that count:

# %%
assert not any(tokenizer.end_id in seen for seen, _ in rows)
print("✓ no row of pretrain_rows has an end token in its inputs")

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 07.6** · easy · 3 minutes. The way from ids to the loss. One line does not belong. Return the
# letters as one word.
#
# - **A** The rows pass the blocks, one after another.
# - **B** Each row is compared with the row of every token: the logits.
# - **C** Ids become rows: token plus position.
# - **D** The logarithm of the sum of exponentials, minus the target's logit.
# - **E** The mean over all places with a target.
# - **F** The rows are normed once more.
# - **G** Each row of channels becomes shares.
#
# <details><summary>Hint</summary>
#
# Softmax is hidden inside of one of the other lines.
#
# </details>

# %%
@lab.exercise("07.6")
def way():
    """The letters of six lines, in order."""
    ### BEGIN SOLUTION
    return "CAFBDE"
    ### END SOLUTION

# %% [markdown] id="exercises-mend"
# **Exercise 07.7** · medium · 4 minutes. This kernel counts for itself. Its mean falls when pads are added.
# Mend it with the smallest change.
#
# <details><summary>Hint</summary>
#
# Adding a 0 for a pad does no harm. What else happens in the loop?
#
# </details>

# %%
mean_text = lab.kernel_exercise("07.7", r"""
__kernel void mean_counted(__global const float *row_loss,   // (rows), 0 where not counted
                           __global const int *targets,      // (rows)
                           __global float *loss,             // (1)
                           const int rows)
{
    if (get_global_id(0) > 0) return;
    float sum = 0.0f;
    int count = 0;
    for (int row = 0; row < rows; ++row) {
        sum += row_loss[row];
        // BEGIN SOLUTION
        if (targets[row] >= 0) ++count;
        // INSTEAD
        ++count;
        // END SOLUTION
    }
    loss[0] = sum / count;
}
""")

# %% [markdown] id="exercises-write"
# **Exercise 07.8** · hard · 10 minutes. Write the loss of a row as a kernel, one logit at a time. A row that does not
# count gets 0.
#
# <details><summary>Hint</summary>
#
# It is `one_row_loss`, line for line. `fmax(a, b)` is the larger of two floats; `exp` and `log` have the
# names that you expect.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Eleven of these twelve, in the right order:
#
# - `const int row = get_global_id(0);`
# - `if (row >= rows) return;`
# - `const int target = targets[row];`
# - `loss[row] = 0.0f;`
# - `if (target < 0) return;`
# - `__global const float *in = logits + row * V;`
# - `__global const float *in = logits + row;`
# - `float largest = in[0];`
# - `for (int v = 1; v < V; ++v) largest = fmax(largest, in[v]);`
# - `float total = 0.0f;`
# - `for (int v = 0; v < V; ++v) total += exp(in[v] - largest);`
# - `loss[row] = log(total) + (largest - in[target]);`
#
# </details>

# %%
row_text = lab.kernel_exercise("07.8", r"""
__kernel void row_loss(__global const float *logits,   // (rows, V)
                       __global const int *targets,    // (rows)
                       __global float *loss,           // (rows)
                       const int rows, const int V)
{
    // BEGIN SOLUTION
    const int row = get_global_id(0);
    if (row >= rows) return;
    const int target = targets[row];
    loss[row] = 0.0f;
    if (target < 0) return;
    __global const float *in = logits + row * V;
    float largest = in[0];
    for (int v = 1; v < V; ++v) largest = fmax(largest, in[v]);
    float total = 0.0f;
    for (int v = 0; v < V; ++v) total += exp(in[v] - largest);
    loss[row] = log(total) + (largest - in[target]);
    // END SOLUTION
}
""")

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - Each place is a question; the target is the next input. Windows stay inside a sentence.
# - A pad is known by its target, -1. It is neither in the sum nor in the count.
# - **GPT** = look-up, blocks, norm, head. The head uses the look-up's table: tied weights.
# - **Cross-entropy** = log of the sum of exponentials − the target's logit.
# - It has (V + P)·C + L·(12·C² + 13·C) + 2·C parameters.
# - The first loss is near ln V. It checks the model, and not the targets.
#
# In `llmcl`: `data.py` (`windows`, `batch`), `layers.py`, `model.py`, `kernels/cross_entropy.cl`.
#
# Five questions, three of them about earlier lessons.
#
# **q1.** How does the loss know that a place is a pad?
#
# - **A** by the length of the row
# - **B** by its id, that of the end token
# - **C** by its target, -1

# %%
lab.quiz("07.q1")

# %% [markdown] id="recap-2"
# **q2.** A fresh model has a loss of 5.3, and ln V is 6.2. What do you do?
#
# - **A** look at the targets: they may be the inputs
# - **B** be glad, it starts well
# - **C** take another seed

# %%
lab.quiz("07.q2")

# %% [markdown] id="recap-3"
# **q3.** (Lesson 06) What does a residual connection do for a deep model?
#
# - **A** It keeps all rows at one size.
# - **B** It carries what was there past every block.
# - **C** It saves weights.

# %%
lab.quiz("07.q3")

# %% [markdown] id="recap-4"
# **q4.** (Lesson 04b) Somebody splits heads with a reshape alone, without a transpose. What happens?
#
# - **A** The shape is wrong.
# - **B** The shape is right, and heads get numbers of other places.
# - **C** Nothing, a reshape does not move numbers.

# %%
lab.quiz("07.q4")

# %% [markdown] id="recap-5"
# **q5.** (Lesson 02b) A model's loss on our sentences is below the bigram's. What do you know?
#
# - **A** It is as good as a model of pairs.
# - **B** It has passed ln V at last.
# - **C** It uses more than the last token.

# %%
lab.quiz("07.q5")

# %%
lab.summary("07")

# %% [markdown] id="bridge"
# **Next:** lesson 08a, *Backprop: linear*. The loss says how wrong the model is. There you find out, for every
# weight, which way to move it. If a slope is something you last saw at school, take warm-up 07b first.
