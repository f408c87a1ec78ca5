# ---
# jupyter:
#   llmcl:
#     title: Generating
#     needs: ["00", "02b", "04a", "04b", "07", "10", "softmax", "logits", "query", "key", "value", "causal mask", "leak test", "transformer block"]
#     introduces:
#       - temperature
#       - greedy
#       - top-k
#       - top-p
#       - nucleus
#       - cache
#       - key-value cache
#       - stop rule
#       - overfitting
#       - generalizing
#       - llmcl.lab.checkpoint
#       - llmcl.data.prompt_text
#       - llmcl.data.read_dialogues
#       - llmcl.lab.models.SHIPPED
#       - llmcl.load.load_model
#       - llmcl.generate.Sampling
#       - llmcl.generate.next_shares
#       - llmcl.generate.reply
#     minutes: {core: 75, full: 100}
#     numpy: true
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 11 · Generating
#
# The model gives shares, and a reader wants a text. You write what lies between: how the next token is
# chosen, how nothing is computed twice, where it ends. Then you ask the model what it was never taught.
#
# | | |
# |---|---|
# | **After this you can** | predict what temperature does; write top-p; prove the cache equal to no cache; say what a model does with an unseen question |
# | **You need** | lessons 04a, 04b and 07; a tuned model, from lesson 10 or shipped |
# | **Time** | 75 minutes; 100 with the exercises |
# | **New words** | temperature, greedy, top-k, top-p (nucleus), key-value cache, stop rule, overfitting, generalizing |

# %%
from llmcl import lab

lab.start("11")

# %% [markdown] id="idea"
# ## The idea: shares are not a text yet
#
# A model never says a word. It gives a logit to each token, softmax makes shares of them (lesson 07), and
# there it ends. Who chooses, then?
#
# Let it go on from `The land`. No text of ours begins so, and the model hesitates. Here are the ten
# largest logits of the shipped model, rounded. (` he` begins ` heart`. We leave out the other 502 tokens, with 7
# parts of 100 together.)

# %% tags=["slide"]
import numpy as np

tokens = [" the", " is", " and", ".", " warms", " be", " he", " sun", " it", " are"]
logits = np.array([8.5, 7.2, 6.5, 5.0, 4.8, 4.4, 4.2, 3.9, 3.8, 3.6])
plain = np.exp(logits) / np.exp(logits).sum()
for token, share in zip(tokens, plain):
    print(f"{token:>7} {share:.3f}")

# %% [markdown] id="idea-greedy"
# You could always take the token with the largest logit. That is called **greedy**. It gives
# `The land the`, although a third goes to other tokens. Or you draw: each token as
# often as its share says (lesson 02b).

# %%
def draws(shares, seed, count=1000):
    """How often each token comes up when it is drawn by its share."""
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(shares), size=count, p=shares)  # the number i comes with share shares[i]
    return np.bincount(drawn, minlength=len(shares))  # how often each number was drawn

print("greedy:", tokens[logits.argmax()])
print("drawn: ", dict(zip(tokens, draws(plain, seed=11).tolist())))

# %% [markdown] id="idea-seed"
# What is `seed`? Random numbers in a computer come from a formula, and the seed says where it starts. So a
# drawn text can be had again:

# %%
assert (draws(plain, seed=11) == draws(plain, seed=11)).all()
assert (draws(plain, seed=11) != draws(plain, seed=12)).any()
print("✓ the same seed, the same draws; another seed, others")

# %% [markdown] id="temperature"
# ## Temperature
#
# Greedy has one text only. Drawing slips: a token with 1 part of 100 comes up once in a hundred tokens, and
# the rest of the text must live with it. We want a knob between the two: **divide all logits by a number
# before softmax.** The number is called **temperature**. At 1, all stays as it is.
#
# **Exercise 11.1** · easy · 2 minutes. ` the` has 8.5 and ` is` has 7.2. Softmax cares for the difference:
# ` the` gets exp(1.3), that is 3.7 times as much as ` is`. How many times as much at temperature 2?
#
# <details><summary>Hint</summary>
#
# Both logits are halved, so their difference is halved as well. exp(0.65) is the root of exp(1.3).
#
# </details>

# %%
lab.predict("11.1", guess=None)

# %%
hot = np.exp(logits / 2) / np.exp(logits / 2).sum()
lab.reveal("11.1", hot[0] / hot[1])
print("temperature 1:", plain.round(2)[:4], " temperature 2:", hot.round(2)[:4])

# %% [markdown] id="numpy"
# ## In NumPy
#
# **Exercise 11.2** · easy · 5 minutes. Write `tempered`. The logits may be large, and the temperature
# small: no exponential may overflow (lesson 04a).
#
# <details><summary>Hint</summary>
#
# Take the largest logit away from all of them first, then divide. The largest exponential is then 1.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Three of these five, in the right order:
#
# - `below = logits - logits.max()`
# - `e = np.exp(below / temperature)`
# - `e = np.exp(below) / temperature`
# - `e = np.exp(logits / temperature)`
# - `return e / e.sum()`
#
# </details>

# %%
@lab.exercise("11.2")
def tempered(logits, temperature):
    """The shares (V,) of logits (V,) at a temperature above 0."""
    ### BEGIN SOLUTION
    below = logits - logits.max()
    e = np.exp(below / temperature)
    return e / e.sum()
    ### END SOLUTION

# %% [markdown] id="numpy-slider"
# Move the slider. The dotted outlines are temperature 1. Which tokens gain when it becomes hot? Does the
# order ever change?

# %%
names = [token.replace(" ", "␣") for token in tokens]

def draw_bars(axes, shares, outline, title):
    """Ten bars, and dotted what they were before."""
    axes.bar(range(10), shares)
    axes.bar(range(10), outline, fill=False, linestyle=":", linewidth=1.5, edgecolor="black")
    axes.set(ylim=(0, 1.05), ylabel="share", title=title)
    axes.set_xticks(range(10), names)

# %% tags=["slide"]
def draw_temperature(axes, t):
    draw_bars(axes, tempered(logits, t), plain, f"temperature {t}")

def temperature_words(t):
    shares = tempered(logits, t)
    return (f"Ten tokens at temperature {t}: ␣the gets {shares[0]:.2f}, ␣is {shares[1]:.2f}, and the last "
            f"one, ␣are, {shares[9]:.3f}. At temperature 1 ␣the has {plain[0]:.2f}.")

lab.explore(draw_temperature, [0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0], temperature_words,
            "temperature", start=2.0)

# %% [markdown] id="numpy-cold"
# Cold makes it surer, down to greedy. Hot takes from the first and gives to the last, up to a throw of dice.
# The order never changes.

# %% [markdown] id="top-k"
# ## Top-k and top-p
#
# Heat helps the second and the third token, and all the rubbish at the end. Could you cut the end off?
# **Top-k** keeps the `k` likeliest and shares out anew.

# %%
def top_k(shares, k):
    """Only the k largest shares, made to sum to 1 again."""
    out = np.zeros_like(shares)
    keep = np.argsort(-shares)[:k]  # argsort goes from small to large; the minus turns it round
    out[keep] = shares[keep]
    return out / out.sum()

assert np.isclose(top_k(hot, 3).sum(), 1) and (top_k(hot, 3) > 0).sum() == 3
print(top_k(hot, 3).round(2))

# %%
def draw_top_k(axes, k):
    draw_bars(axes, top_k(hot, k), hot, f"temperature 2, then top-k with k = {k}")

def top_k_words(k):
    cut = hot[k:].sum()
    stay = "Only 1 of ten tokens stays" if k == 1 else f"The {k} likeliest of ten tokens stay"
    return (f"{stay} at temperature 2; the others, {cut:.2f} in all, are cut off, "
            f"and ␣the grows from {hot[0]:.2f} to {top_k(hot, k)[0]:.2f}.")

lab.explore(draw_top_k, range(1, 11), top_k_words, "k", start=4)

# %% [markdown] id="top-p"
# Which `k` is good? After `The land`, three or four tokens make sense. After `The sun`, the model is sure,
# and the second one is rubbish already. So let the shares decide. **Top-p** goes down from the likeliest
# and adds up; when the sum has reached `p`, it stops. What stays is also called the **nucleus**.
#
# A token stays while the shares *before* it have not reached `p`. So the first one always stays. Why does
# that matter?
#
# **Exercise 11.3** · medium · 8 minutes. Write `nucleus`. The shares come in the order of ids, not sorted,
# and must go back in that order.
#
# <details><summary>Hint 1: sorting, and back</summary>
#
# `order = np.argsort(-shares)` lists the places from the largest share down. `shares[order]` is sorted, and
# `out[order] = …` puts sorted numbers back where they came from.
#
# </details>
#
# <details><summary>Hint 2: the sum before</summary>
#
# `np.cumsum(ranked)` is the sum up to each token, itself included.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Six of these nine, in the right order:
#
# - `order = np.argsort(-shares, kind="stable")`
# - `order = np.argsort(shares, kind="stable")`
# - `ranked = shares[order]`
# - `before = np.cumsum(ranked) - ranked`
# - `before = np.cumsum(ranked)`
# - `out = np.zeros_like(shares)`
# - `out[order] = np.where(before < p, ranked, 0)`
# - `out[order] = np.where(ranked < p, ranked, 0)`
# - `return out / out.sum()`
#
# </details>

# %%
@lab.exercise("11.3")
def nucleus(shares, p):
    """The fewest largest shares that reach p together, made to sum to 1 again."""
    ### BEGIN SOLUTION
    order = np.argsort(-shares, kind="stable")
    ranked = shares[order]
    before = np.cumsum(ranked) - ranked
    out = np.zeros_like(shares)
    out[order] = np.where(before < p, ranked, 0)
    return out / out.sum()
    ### END SOLUTION

# %% [markdown] id="top-p-slider"
# The orange steps are the sum so far. The bar in which they cross the dashed line, `p`, is the last that
# stays. At the smallest `p`, one is left, or nothing could be drawn.

# %% tags=["slide"]
def draw_top_p(axes, p):
    draw_bars(axes, nucleus(hot, p), hot, f"temperature 2, then top-p with p = {p}")
    axes.step(range(10), np.cumsum(hot), where="mid", color=lab.COLORS["orange"], label="sum so far")
    axes.axhline(p, color="black", linestyle="--", label="p")
    axes.legend(loc="center right")

def top_p_words(p):
    stay = int((nucleus(hot, p) > 0).sum())
    some = "1 of ten tokens stays at temperature 2, since 1 share is" if stay == 1 else (
        f"{stay} of ten tokens stay at temperature 2, since {stay} shares are")
    return (f"{some} needed to reach {p}; the sum is {hot[:stay].sum():.2f}. "
            f"␣the grows from {hot[0]:.2f} to {nucleus(hot, p)[0]:.2f}.")

lab.explore(draw_top_p, [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0], top_p_words, "p", start=0.8)

# %% [markdown] id="top-p-count"
# One `p`, and lists from sure to unsure. How many tokens stay?

# %%
for t in (0.3, 1.0, 2.0, 5.0):
    print(f"temperature {t}: {(nucleus(tempered(logits, t), 0.9) > 0).sum()} tokens reach 0.9")

# %% [markdown] id="together"
# All three together, in this order: temperature, top-k, top-p. The
# package has them in `next_shares`. Do your pieces agree with it?

# %%
from llmcl.generate import Sampling, next_shares

for t, k, p in [(1.0, 10, 1.0), (2.0, 10, 0.8), (2.0, 4, 0.8), (0.5, 3, 0.95), (5.0, 9, 0.5)]:
    mine = nucleus(top_k(tempered(logits, t), k), p)
    assert np.allclose(mine, next_shares(logits, Sampling(t, k, p)), atol=1e-12)
print("✓ temperature, top-k, top-p: five settings as in llmcl")

# %% [markdown] id="model"
# ## Your model speaks
#
# Yours, or the shipped one.

# %% tags=["varies"]
from llmcl.engine import get_engine

engine = get_engine()
model, tokenizer = lab.checkpoint("10", engine)

# %%
def last_logits(text):
    """The logits (V,) of what comes after a text: of the first text here, the last place."""
    return engine.to_host(model.forward(np.array([tokenizer.encode(text)])))[0, -1]

assert last_logits("The land").shape == (model.config.vocab_size,)
print("✓ one logit for each token")

# %% [markdown] id="model-list"
# After three beginnings: where is it sure? And what happens after `The`?

# %% tags=["varies"]
for text in ("The sun", "The land", "The"):
    shares = next_shares(last_logits(text), Sampling(1.0))
    best = np.argsort(-shares)[:5]
    print(f"{text!r:11}", "  ".join(f"{tokenizer.decode([i])!r} {shares[i]:.3f}" for i in best))

# %%
for text in ("The sun", "The land", "The"):
    shares = next_shares(last_logits(text), Sampling(1.0))
    assert np.isclose(shares.sum(), 1) and shares.max() > 20 / model.config.vocab_size
print("✓ each list sums to 1, and the likeliest has far more than 1/V")

# %% [markdown] id="model-tie"
# Two sentences begin with `The`: one goes on with the sun, one with the heart. The shipped model gives
# both nearly the same share, so greedy hangs on the last digits, which another device may round differently.
#
# Now texts, from one beginning at four temperatures:

# %% tags=["varies"]
from llmcl.generate import generate

def text_at(temperature, seed, **more):  # **more hands on whatever else is given by name
    ids = tokenizer.encode("The land")
    new = generate(model, ids, max_new_tokens=15, temperature=temperature, seed=seed,
                   stop_ids=[tokenizer.end_id], **more)
    return tokenizer.decode(ids + new)

for t in (0.0, 0.7, 1.5, 3.0):
    print(t, [text_at(t, seed) for seed in (1, 2)])
print("3.0 with top-p 0.5:", [text_at(3.0, 1, top_p=0.5)])

# %%
assert text_at(0.0, seed=1) == text_at(0.0, seed=2)
assert text_at(1.5, seed=1) == text_at(1.5, seed=1)
assert len({text_at(3.0, seed) for seed in range(5)}) > 1
print("✓ temperature 0 knows one text; with heat, the seed decides, and the same seed the same text")

# %% [markdown] id="model-own"
# On another device, the same seed nearly always gives the same text. When would it not?
#
# <details><summary>An answer</summary>
#
# When the last digits, which differ between devices, move a draw over a border between two tokens.
#
# </details>

# %% [markdown] id="stop"
# ## When does it stop?
#
# By itself, never: there is always a next token. After an answer:

# %% tags=["varies"]
from llmcl.data import prompt_text

asked = tokenizer.encode(prompt_text("What warms the land and the sea?"))
print(repr(tokenizer.decode(generate(model, asked, max_new_tokens=30))))

# %% [markdown] id="stop-rules" tags=["slide"]
# An answer, then rubbish: what follows an end token, the model never saw. Four **stop rules** are
# usual. Which of them did we lack?
#
# 1. The **end token**, the model's own word for "done" (lesson 10): `stop_ids=[tokenizer.end_id]`.
# 2. A number: `max_new_tokens`. It cuts wherever it happens to be.
# 3. A **stop text**, here `User:`. A model of dialogues may go on and ask the next question itself.
# 4. The **context is full**: there is no row for the next position.

# %%
ended = generate(model, asked, max_new_tokens=30, stop_ids=[tokenizer.end_id])  # what we lacked
assert ended[-1] == tokenizer.end_id and len(ended) < 30
cut = generate(model, asked, max_new_tokens=2, stop_ids=[tokenizer.end_id])
assert cut == ended[:2]
full = generate(model, asked)  # no rule but the last one
assert len(asked) + len(full) == model.config.context_length
print("✓ end token, number of tokens, full context")

# %% [markdown] id="stop-full"
# So a full context cuts the text off, wherever it is. Could the oldest token make room? Some programs do that.
# Here the cache (below) would be lost: positions are learned (lesson 03), and every token would move by one.
#
# And a prompt that is too long to begin with?

# %%
from llmcl.errors import LlmclError

try:
    generate(model, [5] * (model.config.context_length + 1), max_new_tokens=1)
except LlmclError as error:
    print(error)

# %% [markdown] id="stop-text"
# The stop text is harder. It comes in pieces, and pieces are shown as they come. After which piece may ` Us` be
# printed? (`yield` hands out a value here, as `yield return` does in C#.)

# %%
def held_back(text, stop):
    """How many characters at the end of the text may be the beginning of the stop text."""
    for n in range(len(stop), 0, -1):  # the longest first
        if text.endswith(stop[:n]):
            return n
    return 0

def shown(pieces, stop="User:"):
    """What a reader sees after each piece, if the beginning of a stop text is held back."""
    text = ""
    for piece in pieces:
        text += piece
        if stop in text:
            yield text.split(stop)[0].rstrip()
            return
        yield text[: len(text) - held_back(text, stop)].rstrip()

print(list(shown(["The", " sun", " Us", "es", " fire.", "\nUs", "er", ": And", " I?"])))

# %% [markdown] id="stop-text-after"
# ` Us` waits until `es` shows that it is no `User:`. The second `Us` waits for ever. `reply` of
# `llmcl.generate` does it so.

# %% [markdown] id="cache" tags=["slide"]
# ## Nothing twice
#
# Must each new token send the whole text through the model once more? The old tokens have not changed, and
# no place hears a later one (lesson 04a). So all their rows, in all blocks, are what they were.
#
# What does the new place need of them? It compares its own query with their **keys** and takes of their
# **values**. Nothing else in a block looks at another place. So keep keys and values in each block, and
# compute one row for each new token. That is the **key-value cache**.
#
# **Exercise 11.4** · easy · 3 minutes. The prompt has 3 tokens, and 20 are written. With the cache, 3 rows
# go through the model first, and then one for each of the next 19: 22 in all. How many without a cache?
#
# <details><summary>Hint</summary>
#
# 3 + 4 + 5 + … + 22. The mean of the first and the last, times how many there are.
#
# </details>

# %%
lab.predict("11.4", guess=None)

# %%
def write(ids, most, keep):
    """Greedy: the text with `most` new tokens, and how many rows went through the model."""
    text, rows, first = list(ids), 0, 0
    caches = model.new_caches() if keep else None
    for _ in range(most):
        part = text[first:]
        new = engine.to_host(model.forward(np.array([part]), caches, first))[0, -1]
        rows += len(part)
        first = len(text) if keep else 0
        text.append(int(np.argmax(new)))
    return text, rows

# %% tags=["slide"]
prompt = tokenizer.encode("The sun warms")[:3]
without, rows_without = write(prompt, 20, keep=False)
cached, rows_cached = write(prompt, 20, keep=True)
lab.reveal("11.4", rows_without)
assert cached == without
print("rows without:", rows_without, " with the cache:", rows_cached, " the same tokens")

# %% [markdown] id="cache-what"
# Where does `first` come in? It says which position the new row gets, and where it goes in the cache. What
# lies there?

# %%
from llmcl.config import Config

config = Config()
shape = (1, config.context_length, 3 * config.d_model)
print(config.n_layers, "caches of", shape, "floats:", f"{config.n_layers * np.prod(shape) * 4:,} bytes")

# %% [markdown] id="cache-size"
# One row for each place: more than the shipped model's file. In large models, it fills the memory.
#
# The row has three parts: query, key, value, as the product made them. One of the three is kept for
# convenience, and nobody reads it again. Which one?

# %% [markdown] id="item"
# ## One element at a time
#
# The attention of **one new place** over the cache. It stands at place `first`, so there are `first + 1`
# places to ask: the old ones, and itself. First kernel: one work-item, one score. `j` is asked, `h` is
# the head.

# %%
from llmcl.lab import get_global_id

def newest_score(cache, scores, H, d, first, scale):
    j, h = get_global_id(0), get_global_id(1)
    if j > first or h >= H:
        return
    C = H * d
    q = cache + first * 3 * C + h * d  # the query of the new place
    k = cache + j * 3 * C + C + h * d  # the key of place j
    sum = 0.0
    for e in range(d):
        sum += q[e] * k[e]
    scores[h * (first + 1) + j] = sum * scale

# %% [markdown] id="item-mix"
# Then softmax, a row for each head. Then the mix: one work-item, one channel of what the new place hears.
# Where is the mask?

# %%
def newest_mix(cache, shares, y, H, d, first):
    c = get_global_id(0)
    C = H * d
    if c >= C:
        return
    h = c // d
    sum = 0.0
    for j in range(first + 1):
        sum += shares[h * (first + 1) + j] * cache[j * 3 * C + 2 * C + c]
    y[c] = sum

# %% [markdown] id="item-run"
# Nowhere: the newest has no future. Now a cache with room for six places, four of them in use, and two heads
# of two channels.

# %%
from llmcl import reference

T, H, d, first = 6, 2, 2, 3
C, rng = H * d, np.random.default_rng(11)
small = rng.normal(size=(T, 3 * C))
scores, heard = np.zeros((H, first + 1)), np.zeros(C)
run = lab.run_items(newest_score, (first + 1, H), small, scores, H, d, first, d**-0.5)
run.report()
lab.run_items(newest_mix, C, small, reference.softmax(scores), heard, H, d, first).report()

# %% [markdown] id="item-same"
# Is it what attention over the whole text says at its last place?

# %%
whole, _ = reference.attention(small[None, : first + 1], H)  # all four places ask
assert np.allclose(heard, whole[0, -1])
print("✓ one row computed, and it is the last row of", whole.shape[1])

# %% [markdown] id="item-view"
# Who reads what? Go through the work-items. Columns 0 to 3 are queries. Of the old places, do you ever see
# one read there?

# %%
lab.view_items(run, start=(1, 0))

# %% [markdown] id="opencl"
# ## In OpenCL
#
# Only the newest query is read. The old ones are kept since one copy of a whole row is simpler.
#
# No new kernel is needed: in lesson 04a's, `first` was 0. Now the rows from `first` to `length - 1` ask, and
# all up to `length - 1` are asked. `T` rows are in memory. Only these lines matter. What is `Q` for one new
# token?

# %%
lab.show_kernel("attention", "attention_scores", words=["first", "length"])

# %% [markdown] id="opencl-q"
# `Q` is 1, and `line` is the head. In training, `first` is 0 and `length` is `T`.
#
# Who puts the new rows in? `engine.copy(cache, qkv, row=first)`, a copy inside the device's memory.
#
# **Exercise 11.5** · medium · 6 minutes. Write it as a kernel. `qkv` holds `Q` new rows, `width` numbers
# each; they belong into the cache from row `first` on. One work-item, one number.
#
# <details><summary>Hint</summary>
#
# Row `i` of `qkv` becomes row `first + i` of the cache. Both have rows of `width` numbers.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Three of these five, in the right order:
#
# - `const int c = get_global_id(0), i = get_global_id(1);`
# - `if (c >= width || i >= Q) return;`
# - `if (c >= width || first + i >= Q) return;`
# - `cache[(first + i) * width + c] = qkv[i * width + c];`
# - `cache[i * width + c] = qkv[i * width + c];`
#
# </details>

# %%
keep_text = lab.kernel_exercise("11.5", r"""
__kernel void keep_rows(__global const float *qkv,   // (Q, width)
                        __global float *cache,       // (T, width)
                        const int Q, const int width, const int first)
{
    // BEGIN SOLUTION
    const int c = get_global_id(0), i = get_global_id(1);
    if (c >= width || i >= Q) return;
    cache[(first + i) * width + c] = qkv[i * width + c];
    // END SOLUTION
}
""")

# %% [markdown] id="check"
# ## Check
#
# First the operation, with its derived bound: one new place, at the beginning, inside and at the end of a
# cache. (The model uses `fused_attention`, attention in one launch: lesson 13.)

# %%
from llmcl.reference import bounds

rows = rng.normal(size=(1, 19, 3 * 33)).astype(np.float32)  # room for 19 places, 3 heads of 11
for at in (0, 7, 18):
    want, _ = reference.fused_attention(rows.astype(np.float64), 3, at, at + 1)
    bound, _ = bounds.fused_attention(rows.astype(np.float64), 3, at, at + 1)
    got, _ = engine.fused_attention(engine.from_host(rows), 3, at, at + 1)
    lab.check(f"place {at}", engine.to_host(got), want, bound)

# %% [markdown] id="check-logits"
# Then all logits of the model: the sentence of this book, token by token through the caches. The judge is
# NumPy in float64, all places at once, no cache. The yardstick is lesson 07's: the terms of all sums on the
# way, times u, times the largest logit.

# %%
from llmcl.model import GPT

sentence = tokenizer.encode("The sun warms the land and the sea.")
judge = GPT(model.config, reference.Engine())
judge.load_weights(model.weights())
want = judge.forward(np.array([sentence]))[0]

own = model.config
terms = own.n_layers * (6 * own.d_model + own.d_head + len(sentence) + own.d_ff) + 3 * own.d_model
yardstick = terms * 2**-24 * np.abs(want).max()

# %%
caches = model.new_caches()
one_by_one = [engine.to_host(model.forward(np.array([[token]]), caches, at))[0, 0]
              for at, token in enumerate(sentence)]
at_once = engine.to_host(model.forward(np.array([sentence])))[0]
lab.check("logits without a cache", at_once, want, yardstick)
lab.check("logits with the cache", np.array(one_by_one), want, yardstick)

# %% [markdown] id="check-tokens"
# And tokens: six prompts, greedy and drawn. Why may drawn texts be compared?

# %%
starts = ["The sun", "Whales live", "Gold is", "The land", "Our sun", "Ice"]
pairs = 0
for text in starts:
    for heat in (0.0, 1.0):
        # **how passes these three by name
        how = dict(max_new_tokens=20, temperature=heat, seed=pairs)
        ids = tokenizer.encode(text)
        assert generate(model, ids, **how) == generate(model, ids, use_cache=False, **how)
        pairs += 1
print(f"✓ {pairs} texts: the same tokens with the cache and without")

# %% [markdown] id="check-seed"
# The seed gives the same random numbers, and the logits agree but for rounding.

# %% [markdown] id="see"
# ## See it
#
# Above without a cache, below with it. Orange is computed, blue is kept. Move the slider, and count: how much
# orange is there in all?

# %% tags=["slide"]
line = "The sun warms the land and the sea.".split()

def row_color(at, n, kept):
    """Orange where a row is computed when n words are there, blue where it is kept."""
    if at >= n:
        return ""
    is_new = n == 3 or at == n - 1  # the three words of the prompt come together
    return "sky" if kept and not is_new else "orange"

def draw_steps(axes, n):
    colors = [[row_color(at, n, kept) for at in range(8)] for kept in (False, True)]
    lab.cells(axes, np.zeros((2, 8)), [line, line], colors, title=f"what comes after {n} words")
    axes.set_yticks([0, 1], ["without", "cache"])

def step_words(n):
    before = n * (n + 1) // 2 - 3
    return (f"Eight words, the first three are the prompt. With {n} words there, {n} rows are computed without a "
            f"cache, and {3 if n == 3 else 1} with it; up to here {before} and {n} in all.")

lab.explore(draw_steps, range(3, 9), step_words, "words", start=6, height=1.9)

# %% [markdown] id="see-work"
# The newest row meets every key, so attention still grows with the text. Count the
# multiplications of a step:

# %%
def multiplications(config, first, length):
    """How many it takes to compute the places from `first` to `length` - 1."""
    rows, C = length - first, config.d_model
    # a block: 3 C² for query, key and value, 1 C² for the output, 4 + 4 for feed-forward; then the head
    products = rows * (config.n_layers * 12 * C * C + config.vocab_size * C)
    met = sum(place + 1 for place in range(first, length))  # pairs of a query and a key
    # each pair: C for its scores, C for the values
    return products + config.n_layers * 2 * C * met

places = np.arange(1, 257)
step_cached = np.array([multiplications(config, n - 1, n) for n in places])
step_without = np.array([multiplications(config, 0, n) for n in places])

# %%
fig, axes = lab.figure(
    "Two panels over the length of the text, 1 to 256. Left, multiplications for the next token: without a cache a "
    "straight rise to 80 million, with it a flat line near 0. Right, for the whole text: a curve up to 10,000 million, and a flat line.",
    columns=2)
for name, step, style in (("without", step_without, "-"), ("cache", step_cached, "--")):
    axes[0].plot(places, step / 1e6, style, label=name)
    axes[1].plot(places, np.cumsum(step) / 1e6, style, label=name)  # all steps up to here
for panel, title in zip(axes, ("for one more token", "for the whole text")):
    panel.set(xlabel="tokens in the text", ylabel="million multiplications", title=title)
    panel.legend()
lab.show(fig)

# %%
ratio = step_without.sum() / step_cached.sum()
print(f"the whole context: {ratio:.0f} times the work without a cache")
assert step_cached[-1] < 1.5 * step_cached[0]

# %% [markdown] id="see-time"
# And the time, on your device? Much less is gained than work is saved. Why?

# %% tags=["varies"]
import time

for use_cache in (False, True):
    start = time.perf_counter()
    generate(model, prompt, max_new_tokens=150, use_cache=use_cache)
    print(f"cache {use_cache}: {time.perf_counter() - start:.2f} s for 150 tokens")

# %%
assert generate(model, prompt, max_new_tokens=150) == generate(model, prompt, max_new_tokens=150, use_cache=False)
print("✓ 150 tokens, the same both ways")

# %% [markdown] id="see-time-why"
# With the cache, a step is some twenty launches with hardly any work in them. Starting them takes the time.
# Lesson 13 counts it.

# %% [markdown] id="break"
# ## Break it: temperature 0
#
# Every program has this setting. What does the formula make of it?

# %% tags=["slide"]
with np.errstate(divide="ignore", invalid="ignore"):
    nothing = tempered(logits, 0.0)
print(nothing[:3])
try:
    draws(nothing, seed=1)
except ValueError:
    print("✗ NumPy does not draw from that")

# %% [markdown] id="break-zero"
# The largest is 0 after the subtraction, and 0 divided by 0 is NaN. One NaN in the sum, and all shares are
# NaN. What is *meant*? Look where the shares go as it gets cold:

# %%
for t in (1.0, 0.5, 0.1, 0.01):
    print(f"{t:4}: {tempered(logits, t)[:3].round(4)}")
assert np.allclose(tempered(logits, 0.01), np.eye(10)[0])

# %% [markdown] id="break-zero-mend"
# Greedy is meant: one-hot at the largest logit, and no division at all.
#
# **Exercise 11.6** · medium · 4 minutes. Many mend it by a tiny temperature instead of 0. With two equal
# logits it draws even so, and temperature 0 has two texts. Mend that: the first of the largest is taken.
#
# <details><summary>Hint</summary>
#
# `np.eye(n)[i]` is one-hot: row `i` of a table with ones on its diagonal.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Two of these four, in the right order:
#
# - `if temperature == 0:`
# - `if temperature < 1:`
# - `    return np.eye(len(logits))[np.argmax(logits)]`
# - `    return logits / logits.max()`
#
# </details>

# %%
@lab.exercise("11.6")
def shares_at(logits, temperature):
    """The shares (V,) of logits (V,) at a temperature of 0 or more."""
    ### BEGIN SOLUTION
    if temperature == 0:
        return np.eye(len(logits))[np.argmax(logits)]
    ### INSTEAD
    temperature = max(temperature, 1e-9)
    ### END SOLUTION
    return tempered(logits, temperature)

# %%
for case in (logits, np.array([1.0, 3.0, 3.0])):
    assert (shares_at(case, 0.0) == next_shares(case, Sampling(0.0))).all()
print("✓ temperature 0 as in llmcl, ties too:", shares_at(np.array([1.0, 3.0, 3.0]), 0.0))

# %% [markdown] id="break-who"
# ## Break it: who asks?
#
# Somebody forgets `first` in the line of the query. Which try will notice, and would training?

# %%
lab.run_broken("11.who_asks")

# %% [markdown] id="break-who-2"
# With `first` = 0 it is the same line. So training passes; only generation with a cache is wrong, and it
# looks like a bad model. In the next one, the rows *in use* stand for the rows *in memory*. Our caches hold
# one text. Would we ever notice?

# %%
lab.run_broken("11.rows_in_use")

# %% [markdown] id="break-place"
# ## Break it: the wrong place
#
# Somebody leaves `first` at 0. Each token is looked up for place 0, goes into row 0 of the cache, and hears
# only itself. Nothing crashes. Which token is right even so?

# %%
caches, wrong = model.new_caches(), []
for token in sentence:
    wrong.append(engine.to_host(model.forward(np.array([[token]]), caches, 0))[0, 0])
try:
    lab.check("always place 0", np.array(wrong), want, yardstick)
except lab.CheckFailed:
    print("✗ always place 0: the check found it")
assert np.abs(wrong[0] - want[0]).max() <= yardstick  # the first token is right

# %% [markdown] id="think"
# ## Does it think?
#
# It answers in sentences, so people ask. Ask it what it was never taught, and measure. The first five are near
# to what it has learned, with something changed that changes the truth.

# %%
from llmcl.data import read_dialogues, read_sentences
from llmcl.resources import data_dir

sentences = read_sentences(data_dir() / "pretrain.txt")
dialogues = read_dialogues(data_dir() / "tune.jsonl")
unseen = ["When does ice turn to water?", "Is sound faster than light?", "How many legs does a cow have?",
          "Which planet is the smallest?", "Can whales fly?", "What is two plus two?", "Do you think?"]
assert not {d.user for d in dialogues} & set(unseen)
print(f"✓ {len(unseen)} questions that are none of the {len(dialogues)} learned ones")

# %% [markdown] id="think-nearest"
# Which question that it has learned is nearest? Near means: many words in common.

# %%
def words(text):
    return set(text.lower().strip("?.").split())

def nearest(question):
    """The learned dialogue whose question shares most words with this one."""
    mine = words(question)
    # & are the words of both, | those of either: what they share, of all that there is
    return max(dialogues, key=lambda d: len(words(d.user) & mine) / len(words(d.user) | mine))

assert all(nearest(d.user) == d for d in dialogues)
print(nearest("How many legs does a cow have?").user)

# %% tags=["varies"]
from llmcl.generate import reply

answers = {question: "".join(reply(model, tokenizer, question, max_new_tokens=40)) for question in unseen}
for question, answer in answers.items():
    near = nearest(question)
    print(f"{question:32}{answer!r}\n    near: {near.user} → {near.assistant!r}")

# %% [markdown] id="think-read" tags=["slide"]
# The shipped model says: ice becomes water "When it is very cold." Is sound faster than light? "Yes, light
# is much faster." A cow: "A has eight legs." The smallest planet: "Jupiter is the biggest planet." Three of
# the four are *learned* answers, word for word; what changed the truth changed nothing. With no near question,
# it gives a shred: to "What is two plus two?", a full stop.
#
# In a number: of all pairs of neighboring tokens in these answers, how many stand in the training texts?

# %%
def pairs_of(text):
    ids = tokenizer.encode(text)
    return list(zip(ids, ids[1:]))

learned = [*sentences, *(prompt_text(d.user) + " " + d.assistant for d in dialogues)]
known = {pair for text in learned for pair in pairs_of(text)}
assert pairs_of("The sun")[0] in known
said = [pair for answer in answers.values() for pair in pairs_of(" " + answer)]
overlap = np.mean([pair in known for pair in said])

# %% tags=["varies"]
copies = sum(answer in {d.assistant for d in dialogues} for answer in answers.values())
print(f"{overlap:.0%} of the pairs stand in the training texts")
print(f"{copies} of {len(unseen)} answers are learned ones, word for word")

# %%
possible = len(known) / model.config.vocab_size**2
assert overlap > 0.5 > 100 * possible
print(f"✓ more than half of what it says was read; of all pairs that there could be, {possible:.1%} were")

# %% [markdown] id="think-loss"
# The other measure: the loss of new sentences beside that of learned ones. How far apart?

# %%
from llmcl.data import batch, pretrain_rows

new_sentences = ["Stars are very far away.", "Snow is very cold.", "Whales swim well but cannot fly.",
                 "Penguins live in the sea.", "Water is lighter than gold.", "Our sun is the biggest star."]

def losses(texts, model, tokenizer):
    """The loss of each text, from small to large."""
    pairs = [batch(pretrain_rows([text], tokenizer), tokenizer.end_id) for text in texts]
    return sorted(float(model.loss(*pair)[0]) for pair in pairs)

old, new = (losses(texts, judge, tokenizer) for texts in (sentences, new_sentences))
assert not set(new_sentences) & set(sentences) and np.mean(new) > 5 * np.mean(old)
print("✓ the loss of new sentences is more than five times that of learned ones")

# %% [markdown] id="think-picture"
# The picture shows the shipped model.

# %% tags=["slide"]
from llmcl.lab.models import SHIPPED
from llmcl.load import load_model

shipped = load_model(SHIPPED / "10.gguf", reference.Engine())
fig, axes = lab.figure(
    "A bar for each sentence's loss. The 25 learned ones are so short that they are hardly seen; the six new ones "
    "stand far above them, some near the dotted line, ln V, of a model that knows nothing.")
axes.bar(range(25), losses(sentences, *shipped), label="learned")
axes.bar(range(27, 33), losses(new_sentences, *shipped), label="new", hatch="//", edgecolor="black")
axes.axhline(np.log(model.config.vocab_size), color="black", linestyle=":", label="ln V")
axes.set(xlabel="sentence", ylabel="loss", xticks=[], ylim=(0, 8))
axes.legend(loc="upper left", ncols=3)
lab.show(fig)

# %% [markdown] id="think-answer"
# Good on what it has read and poor on what it has not: that is **overfitting**. To be good on what was never
# read is **generalizing**. With 38 texts, a few hundred thousand parameters can learn every one by heart.
#
# So, does it think? **This one does not.** What we measured fits this: go on as the nearest learned text went
# on, and where none is near, in shreds. No line of the code looks up a fact, and it never learned to say "I do
# not know".
#
# And a large model, with the same parts and a million times the text? It cannot learn all of that by heart,
# and is often right about what it never read. Whether that deserves the word is disputed. But you know how to look: change what changes the truth, and search the training text for
# the answer.

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 11.7** · easy · 3 minutes. One step of generation with the cache. One line does not belong. Return
# the letters as one word.
#
# - **A** In each block, its query meets all keys in the cache, and it hears their values.
# - **B** Temperature, top-k, top-p; one token is drawn.
# - **C** The newest token is looked up, and its position is `first`.
# - **D** In each block, its query, key and value go into the cache.
# - **E** Its row leaves the last block and becomes logits.
# - **F** The rows of all older tokens go through the blocks.

# %%
@lab.exercise("11.7")
def one_step():
    """The letters of five lines, in order."""
    ### BEGIN SOLUTION
    return "CDAEB"
    ### END SOLUTION

# %% [markdown] id="exercises-mend"
# **Exercise 11.8** · medium · 4 minutes. `newest_mix` as a kernel. At the first place of a text, it hears 0;
# at later ones, a little too little. Mend it with the smallest change.
#
# <details><summary>Hint</summary>
#
# Who can the very first place listen to?
#
# </details>

# %%
mix_text = lab.kernel_exercise("11.8", r"""
__kernel void newest_mix(__global const float *cache,    // (T, 3C)
                         __global const float *shares,   // (H, first + 1)
                         __global float *y,              // (C)
                         const int H, const int d, const int first)
{
    const int c = get_global_id(0);
    const int C = H * d;
    if (c >= C) return;
    const int h = c / d;
    float sum = 0.0f;
    // BEGIN SOLUTION
    for (int j = 0; j <= first; ++j)
    // INSTEAD
    for (int j = 0; j < first; ++j)
    // END SOLUTION
        sum += shares[h * (first + 1) + j] * cache[j * 3 * C + 2 * C + c];
    y[c] = sum;
}
""")

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - **Temperature** divides the logits: cold is sure, hot is alike, the order stays. 0 means **greedy**.
# - **Top-k** keeps k tokens; **top-p** as many as it takes to reach p. The seed repeats a text.
# - The **key-value cache** is possible thanks to the causal mask: the same tokens, one row of work for each.
# - Four **stop rules**: end token, number, stop text, full context.
# - Our model **overfits**: it answers an unseen question like the nearest learned one.
#
# In `llmcl`: `generate.py`, the cache in `layers.py`, `talk.py` for the terminal (`llmcl chat`).
#
# Five questions, three of them about earlier lessons.
#
# **q1.** What does temperature 2 do?
#
# - **A** It changes the order of the tokens.
# - **B** It halves the differences of the logits.
# - **C** It makes the largest share larger.

# %%
lab.quiz("11.q1")

# %% [markdown] id="recap-2"
# **q2.** Why may old keys and values be kept?
#
# - **A** Because old tokens do not change.
# - **B** Because a kept number is exact.
# - **C** Because no place hears a later one.

# %%
lab.quiz("11.q2")

# %% [markdown] id="recap-3"
# **q3.** (Lesson 10) Why do the tokens of the user's question have no target?
#
# - **A** The model is to learn to answer, not to ask.
# - **B** The model does not read them.
# - **C** They hold the end token.

# %%
lab.quiz("11.q3")

# %% [markdown] id="recap-4"
# **q4.** (Lesson 08c) Where does the gradient of the token table come from?
#
# - **A** from the head
# - **B** from the look-up
# - **C** from both, added

# %%
lab.quiz("11.q4")

# %% [markdown] id="recap-5"
# **q5.** (Lesson 07) A fresh model's first loss is ln V. What does that say about the targets?
#
# - **A** They are right.
# - **B** Nothing.
# - **C** There is no padding among them.

# %%
lab.quiz("11.q5")

# %%
lab.summary("11")

# %% [markdown] id="bridge"
# **Next:** lesson 12a, *The GGUF file*. There you write the model, byte by byte, into the file that other
# programs read.
