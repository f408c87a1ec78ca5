# ---
# jupyter:
#   llmcl:
#     title: Tokens
#     numpy: true
#     needs: ["00", "01a", "01b", tokenizer, token, kernel, work-item, barrier]
#     introduces:
#       - dictionary
#       - vocabulary
#       - byte
#       - UTF-8
#       - merge
#       - byte-pair encoding
#       - BPE
#       - tie
#       - atomic
#       - llmcl.lab.atomic_inc
#       - llmcl.lab.explore_pieces
#       - llmcl.lab.show_pieces
#       - llmcl.tokenizer.GPT2_SPLIT
#       - llmcl.tokenizer.StreamDecoder
#       - llmcl.tokenizer.WordDictionary
#     minutes: {core: 65, full: 90}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 02 · Tokens
#
# A model computes with numbers. In this lesson you turn text into numbers and back: first with a
# dictionary of words, which loses something, then with pieces made of bytes, which loses nothing.
#
# | | |
# |---|---|
# | **After this you can** | encode any text without loss; run three merges by hand; say what `<unk>` loses, and what bytes cost in Korean; say what an atomic is for |
# | **You need** | lessons 00, 01a and 01b |
# | **Time** | 65 minutes; 90 with all exercises |
# | **New words** | dictionary, vocabulary, byte, UTF-8, merge, byte-pair encoding, tie, atomic |

# %%
from llmcl import lab

lab.start("02")

# %% [markdown] id="idea"
# ## The plainest idea: a dictionary
#
# Here is our sentence again. How would you turn it into numbers? Perhaps like this: cut it at the
# spaces, and give every word a number when you meet it for the first time.

# %%
sentence = "The sun warms the land and the sea."
number_of = {}
for word in sentence.split():
    number_of.setdefault(word, len(number_of) + 1)      # only if the word has no number yet
print(number_of)

# %% [markdown] id="idea-words"
# That is a **dictionary**, and it is a tokenizer already. Its tokens are words. All tokens together
# are called the **vocabulary**; this one has seven.
#
# `The` and `the` got different numbers, and `sea.` carries its full stop. Keep that in mind. The way
# there and back:

# %%
ids = [number_of[word] for word in sentence.split()]
word_at = ["", *number_of]      # the words in the order of their numbers
print(ids)
assert " ".join(word_at[i] for i in ids) == sentence
print("✓ the sentence came back as it was")

# %% [markdown] id="idea-unknown"
# Many first models stop here, and for their own text it works. Now somebody types another one:

# %%
try:
    print([number_of[word] for word in "The zebra sees the sea.".split()])
except KeyError as error:
    print("KeyError:", error)

# %% [markdown] id="exercise-unk"
# The usual cure is one more token, **`<unk>`** for *unknown*. It stands for every word that the
# dictionary lacks. We kept number 0 free for it.
#
# **Exercise 02.1** · easy · 4 minutes. Write `word_ids`, which never fails: a word that is not in
# the dictionary becomes 0.
#
# <details><summary>Hint</summary>
#
# A Python dictionary has `get`, and `get` takes a second argument: what to return when there is
# nothing. In C# you would write `TryGetValue`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# One of these four is right, behind `return`:
#
# - `[number_of.get(word) for word in text.split()]`
# - `[number_of[word] for word in text.split() if word in number_of]`
# - `[number_of.get(word, 0) for word in text.split()]`
# - `[number_of.get(word.lower(), 0) for word in text.split()]`
#
# </details>

# %%
@lab.exercise("02.1")
def word_ids(text, number_of):
    """One id for each word of the text: its number, or 0 where the dictionary has none."""
    ### BEGIN SOLUTION
    return [number_of.get(word, 0) for word in text.split()]
    ### END SOLUTION

# %% [markdown] id="lost"
# Nothing fails any more. Before you run it: which of these four texts come back as they were?

# %% tags=["slide"]
word_at[0] = "<unk>"
for text in ("The zebra sees the sea.", "The wolf hears the sea.", "the sea", "The  sun"):
    ids = word_ids(text, number_of)
    print(f"{text!r} → {ids} → {' '.join(word_at[i] for i in ids)!r}")

# %% [markdown] id="lost-after"
# None of them does:
#
# - The zebra and the wolf became the same. **What `<unk>` loses is which word it was.** A model
#   never sees the difference, and it can never write one of these words.
# - `sea` is not `sea.`, so a word that we do know is lost for want of a full stop.
# - Two spaces came back as one.
#
# The last two can be mended. `WordDictionary` of `llmcl` lets the space belong to the word behind
# it, and makes signs tokens of their own:

# %%
from llmcl.data import read_sentences
from llmcl.resources import data_dir
from llmcl.tokenizer import WordDictionary

sentences = read_sentences(data_dir() / "pretrain.txt")
dictionary = WordDictionary.train(sentences)
print(dictionary.vocab_size, "tokens")
print("|".join(dictionary.decode([i]) for i in dictionary.encode(sentence)))

# %%
assert all(dictionary.decode(dictionary.encode(s)) == s for s in sentences)
print("✓ all 25 sentences come back")
print(dictionary.decode(dictionary.encode("The zebra sees the sea.")))

# %% [markdown] id="korean"
# The zebra is still lost. Now our sentence in Korean. Word for word it says: sun, land-and, sea, warm,
# makes.

# %%
korean = "태양은 땅과 바다를 따뜻하게 해요."
print(dictionary.decode(dictionary.encode(korean)))

# %% [markdown] id="korean-after"
# Only the full stop survived. Would a larger dictionary help? For a while. But names, numbers and
# misspelled words have no end, and each entry costs weights in the model. Is there something finite
# that *every* text is made of?

# %% [markdown] id="bytes"
# ## What every text is made of
#
# A **byte** is a whole number from 0 to 255, and every file is a row of them. Which bytes stand for
# which character is a matter of a rule. The one for all scripts is called **UTF-8**. Three
# characters, their bytes in base 16 as is usual, and in base 10:

# %% tags=["slide"]
for character in ("s", "é", "바"):
    data = character.encode("utf-8")
    print(character, "→", data.hex(" ").upper(), "→", list(data))

# %% [markdown] id="exercise-bytes"
# English letters, digits and signs take one byte each. Most letters with accents take two, a Korean
# syllable takes three, rare signs four.
#
# **Exercise 02.2** · easy · 2 minutes. How many bytes does the Korean sentence have? It is
# `태양은 땅과 바다를 따뜻하게 해요.` Write your number in place of `None`.
#
# <details><summary>Hint</summary>
#
# Count the syllables, the spaces and the full stop apart.
#
# </details>

# %%
lab.predict("02.2", guess=None)

# %%
lab.reveal("02.2", len(korean.encode("utf-8")))
for text in (sentence, korean):
    print(len(text), "characters,", len(text.encode("utf-8")), "bytes")

# %% [markdown] id="bytes-tokenizer"
# So here is a tokenizer that knows every text there is: one token for each byte. `ByteBPE` with an
# empty list is one. (The one beyond the 256 bytes is the end token of lesson 00.)

# %%
from llmcl.tokenizer import ByteBPE

bytes_only = ByteBPE([])
print(bytes_only.vocab_size, bytes_only.encode("The sun"))

# %% [markdown] id="bytes-order"
# `T` is byte 84. Why does it have the id 51? Ids are places in a list, and GPT-2's list, which we
# keep, begins with the visible characters. Letters go up with the alphabet; the space has 220.

# %%
for text in (sentence, korean, "A zebra? ¡Olé!", "two  spaces,\n\ta tab"):
    assert bytes_only.decode(bytes_only.encode(text)) == text
print("✓ four texts came back as they were")

# %% [markdown] id="bytes-parts"
# Nothing is lost. But look at the tokens of a short Korean word, 바다, the sea:

# %% tags=["slide"]
pieces = [bytes_only.token_bytes(i) for i in bytes_only.encode("바다")]
lab.show_pieces(pieces, "바다 as single bytes: six tokens, and none of them is a character.")

# %% [markdown] id="bytes-stream"
# A third of a syllable is no character, so each is shown as `�`. Does your program print these
# while a model writes Korean? Then it decodes one token at a time. `StreamDecoder` holds back what
# is not finished:

# %%
from llmcl.tokenizer import StreamDecoder

stream = StreamDecoder(bytes_only)
print([stream.push(i) for i in bytes_only.encode("바다")])

# %% [markdown] id="merge" tags=["slide"]
# ## Fusing pairs
#
# Bytes lose nothing, and they are many: 35 tokens for eight words. A model works for every token.
# Can we have both: whole words where they are frequent, bytes where nothing better is known?
#
# The idea is from 1994, and was made to shrink files. **Find the two neighbors that stand side by
# side most often. Give the pair a number of its own. Do it again.** Each such step is a **merge**,
# and the method is called **byte-pair encoding**, BPE.
#
# One rule comes first. The text is cut into pieces, roughly before each space, and no pair crosses
# from one piece to the next. GPT-2's pattern does it:

# %%
from llmcl.tokenizer import GPT2_SPLIT

print(GPT2_SPLIT.findall(sentence))

# %% [markdown] id="row"
# For counting we put all pieces into one row of ids, with -1 behind each piece:

# %%
def byte_row(pieces):
    """The byte ids of all pieces in one row, with -1 behind each piece."""
    row = []
    for piece in pieces:
        row += [*bytes_only.encode(piece), -1]
    return row

start = byte_row(GPT2_SPLIT.findall(sentence))
print(start[:9])

# %% [markdown] id="numpy"
# ## Counting in NumPy
#
# The table has a row and a column for each id. Entry [a, b] says how often b stands right behind a.

# %%
import numpy as np

def count_pairs(row, size):
    """(size, size) whole numbers: [a, b] says how often b stands right behind a."""
    left, right = np.array(row[:-1], int), np.array(row[1:], int)
    inside = (left >= 0) & (right >= 0)
    counts = np.zeros((size, size), int)
    np.add.at(counts, (left[inside], right[inside]), 1)
    return counts

print(count_pairs([1, 2, 1, 2, -1, 1], size=3))

# %% [markdown] id="numpy-add"
# Check by eye: `1 2` stands there twice, `2 1` once, and nothing else.
#
# Why `np.add.at`, when `counts[left, right] += 1` would be shorter? Try it:

# %%
counts = np.zeros((3, 3), int)
counts[[1, 2, 1], [2, 1, 2]] += 1
print(counts)

# %% [markdown] id="numpy-lost"
# The pair `1 2` was given twice and counted once. NumPy reads all the places, adds one to what it
# read, and writes all of it back: 0 became 1, and then 0 became 1 again. Remember this. It returns
# in OpenCL soon.
#
# Which pair stands most often in our sentence?

# %%
def best_pair(row, size):
    """The pair that stands most often, of equals the one with the lowest ids; None without one."""
    counts = count_pairs(row, size)
    place = int(counts.argmax())
    return divmod(place, size) if counts.flat[place] else None

left, right = best_pair(start, 256)
print(bytes_only.tokens[left], bytes_only.tokens[right], count_pairs(start, 256).max(), "times")

# %% [markdown] id="numpy-argmax"
# `h e` it is: in `The`, `the` and `the`. `argmax` gives a place in the long line; `divmod` turns it
# into the row, `place // size`, and the column, `place % size`. Now fuse the pair.
#
# **Exercise 02.3** · medium · 9 minutes. Write `merge`: go through the row from the left; wherever
# the pair stands, put `new` in its place. In `5 5 5` the pair `5 5` stands once, and the last 5
# remains.
#
# <details><summary>Hint 1: how far to step</summary>
#
# A `for` over the ids steps by one. Here the step is sometimes two. A `while` with your own `i` can
# do that.
#
# </details>
#
# <details><summary>I get IndexError</summary>
#
# The last id has no right neighbor, so `row[i + 1]` is not there. A slice such as `row[i : i + 2]`
# takes what there is. It is a list; `tuple(…)` makes it comparable with the pair.
#
# </details>
#
# <details><summary>I am stuck: give me lines to put in order</summary>
#
# Four of these five go into the loop `while i < len(row):`. Before it stands `out, i = [], 0`, after
# it `return out`.
#
# ```python
# else:
#     out.append(new); i += 1
#     out.append(row[i]); i += 1
# if tuple(row[i : i + 2]) == pair:
#     out.append(new); i += 2
# ```
#
# </details>

# %%
@lab.exercise("02.3")
def merge(row, pair, new):
    """The row as a new list, with every occurrence of the pair (a tuple) replaced by new."""
    ### BEGIN SOLUTION
    out, i = [], 0
    while i < len(row):
        if tuple(row[i : i + 2]) == pair:
            out.append(new)
            i += 2
        else:
            out.append(row[i])
            i += 1
    return out
    ### END SOLUTION

# %% [markdown] id="ties"
# ## A tie, and the rule for it
#
# What is the next pair?

# %% tags=["slide"]
once = merge(start, (left, right), 256)
assert len(start) - len(once) == 3
counts = count_pairs(once, 257)
letters = [*bytes_only.tokens[:256], "he"]
for a, b in np.argwhere(counts == counts.max()):
    print(f"{letters[a]} {letters[b]}  {counts[a, b]} times, ids {a} and {b}")

# %% [markdown] id="ties-rule"
# Five pairs stand there twice. That is a **tie**. (`Ġ` is the space; lists of tokens show it so.)
#
# Which one wins? The method needs a rule. Ours: of equals, the pair with the lowest ids, left id
# first. Here it is `a n`. `argmax` follows this rule by itself, as it takes the first of equals.
#
# Now the merges in a loop. A new token gets the next free number:

# %%
def learn(row, most, best=best_pair):
    """The pairs that are fused, in the order in which they are learned: at most `most`."""
    pairs = []
    for new in range(256, 256 + most):
        pair = best(row, new)
        if pair is None:
            break
        row = merge(row, pair, new)
        pairs.append(pair)
    return pairs

# %%
def spell(pairs):
    """The bytes of every token: the 256 single ones, then one for each pair."""
    pieces = [bytes_only.token_bytes(i) for i in range(256)]
    for left, right in pairs:
        pieces.append(pieces[left] + pieces[right])
    return pieces

print(spell(learn(start, 3))[256:])

# %% [markdown] id="hand"
# The third merge fused `t` with the new `he`. Merges build on merges.
#
# **Exercise 02.4** · medium · 7 minutes. Now you are the machine. The pieces are
#
# `hen` · `then` · `ten` · `hen`
#
# Run three merges on paper, and return the three new tokens in order, such as
# `["th", "the", "te"]`. Letters have ids in alphabetical order, new tokens come after all letters.
#
# <details><summary>Hint 1: how to begin</summary>
#
# Make a list of all pairs: `h e`, `e n`, `t h`, `t e`. Go through the four pieces and make a stroke
# for each.
#
# </details>
#
# <details><summary>Hint 2: the third merge</summary>
#
# Two pairs stand there once each. Both begin with `t`. Which second half was made earlier?
#
# </details>

# %%
@lab.exercise("02.4")
def by_hand():
    """The three new tokens, in the order in which they are made."""
    ### BEGIN SOLUTION
    return ["en", "hen", "ten"]
    ### END SOLUTION

# %%
pairs = learn(byte_row(["hen", "then", "ten", "hen"]), 3)
assert spell(pairs)[256:] == [token.encode("utf-8") for token in by_hand()]
print("✓ the machine makes the same three")

# %% [markdown] id="encode"
# ## Encoding a new text
#
# Training gave a list of merges. For a new text nothing is counted any more. It is cut into pieces
# and bytes, and then the same merges are made **in the order in which they were learned**:

# %%
def encode(text, pairs):
    """The ids of a text: its bytes, and then every merge in turn."""
    row = byte_row(GPT2_SPLIT.findall(text))
    for number, pair in enumerate(pairs):
        row = merge(row, pair, 256 + number)
    return [i for i in row if i >= 0]

# %% [markdown] id="encode-order"
# **Exercise 02.5** · easy · 3 minutes. Two merges were learned: first `n d`, then `a n`. Into which
# tokens does the word `and` fall? Return them as a list of strings.
#
# <details><summary>Hint</summary>
#
# Take the merges in the order of the list, not in the order of the letters. After the first one, is
# there still an `n` that stands alone?
#
# </details>

# %%
@lab.exercise("02.5")
def cut():
    """The tokens of the word `and`, as strings."""
    ### BEGIN SOLUTION
    return ["a", "nd"]
    ### END SOLUTION

# %% [markdown] id="train"
# And the 25 sentences? 256 bytes, 255 merges and the end token make a vocabulary of 512. Is it the
# one that `llmcl` learns?

# %%
row = byte_row([piece for s in sentences for piece in GPT2_SPLIT.findall(s)])
pairs = learn(row, 255)
pieces = spell(pairs)
tokenizer = ByteBPE.train(sentences, vocab_size=512)
assert pieces == [tokenizer.token_bytes(i) for i in range(511)]
print("✓ the same 511 tokens, and the end token")
print(pieces[256:264])

# %%
ids = encode(sentence, pairs)
assert ids == tokenizer.encode(sentence)
print("|".join(pieces[i].decode("utf-8") for i in ids))

# %% [markdown] id="train-after"
# Nine tokens for eight words and a full stop. And the zebra?

# %% tags=["slide"]
for text in ("The zebra sees the sea.", "the sea", "The  sun", korean):
    assert tokenizer.decode(tokenizer.encode(text)) == text
print("|".join(tokenizer.decode([i]) for i in tokenizer.encode("The zebra sees the sea.")))

# %% [markdown] id="train-end"
# All four texts come back. What was never seen falls into small parts.
#
# The end token has a name, `<|endoftext|>`. If somebody types this name, is it the end? Better not:
# a text must not be able to stop a model.

# %%
assert tokenizer.end_id not in tokenizer.encode("<|endoftext|>")
print(len(tokenizer.encode("<|endoftext|>")), "ordinary tokens")

# %% [markdown] id="item"
# ## One pair at a time
#
# Counting is most of the work, so it goes to the device. What is one work-item's job? One place in
# the row: it looks at its own id and at its right neighbor, and adds 1 in the table. `atomic_inc` does
# the adding; why it is not `+= 1` comes right after.

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
few = np.array([1, 2, 1, 2, -1, 1], np.int32)
counts = np.zeros((3, 3), np.int32)
run = lab.run_items(count_item, 6, few, counts, 6, 3)
run.report()
assert (counts == count_pairs(few, 3)).all()

# %%
lab.view_items(run, start=2)

# %% [markdown] id="item-see"
# Move the slider over the six work-items. Two of them add to the same element. Which ones? And
# which ones add to none?
#
# Why not `counts[p] = counts[p] + 1`? That is three things: read, add, write. Nobody promises that
# they stay together. The next function spells them out. Its `yield` is a moment in which others may
# come in between:

# %%
def hasty_item(ids, counts, n, V):
    i = get_global_id(0)
    left, right = ids[i], ids[i + 1]
    found = counts[left * V + right]
    yield
    counts[left * V + right] = found + 1

same = np.full(9, 2, np.int32)
counts = np.zeros((3, 3), np.int32)
run = lab.run_items(hasty_item, 8, same, counts, 9, 3, group=8)
print(counts[2, 2], "instead of 8")
run.report()

# %% [markdown] id="atomic"
# All eight read 0, and all eight wrote 1, as NumPy did.
#
# Does a barrier help? No: the `yield` *is* one, and behind it all eight write to the same place. They
# would have to take turns, and groups cannot wait for each other at all. What helps is an **atomic**:
# the device reads, adds and writes in one piece, and nobody comes in between.

# %% [markdown] id="opencl"
# ## The same in OpenCL
#
# Compare it with `count_item`, line for line. `atomic_inc` wants to know *where* to add, so it gets
# the place and not the number: `&counts[…]` means "the address of". `||` is C's "or".

# %%
lab.show_kernel("pair_counts", "pair_counts")

# %% [markdown] id="opencl-float"
# Why do the first lines speak of whole numbers? Nobody says which work-item comes first. Whole numbers
# add up to the same in any order; a sum of float32 changes with its order, as lesson 01a showed. So
# `llmcl` counts with an atomic, and adds floats in ways that give the same bits every time.

# %% [markdown] id="check"
# ## Is it right?
#
# A thousand and nine ids, some of them -1, in a vocabulary of 71. Whole numbers are not rounded, so
# the bound is zero.

# %%
from llmcl.engine import get_engine

engine = get_engine()
ids = np.random.default_rng(2).integers(-1, 71, size=1009)
got = engine.to_host(engine.pair_counts(engine.from_host(ids), 71))
lab.check("pair_counts", got, count_pairs(ids, 71), 0.0)

# %%
assert ByteBPE.train(sentences, 512, engine).merges == tokenizer.merges
print("✓ the same merges when the device counts")

# %% [markdown] id="see"
# ## See it
#
# Our sentence, and below it the Korean one, each piece with its bytes. Move the slider, or use the
# arrow keys: it goes through the 255 merges, and what is new has a thick border. Which English word
# is whole first? What happens to the Korean?

# %% tags=["slide"]
def pieces_after(count):
    """The pieces of both sentences after so many merges."""
    return [pieces[i] for i in encode(sentence + "\n" + korean, pairs[:count])]

def caption(count):
    english, other = (len(encode(text, pairs[:count])) for text in (sentence, korean))
    return f"After {count} merges: English in {english} tokens, Korean in {other}."

stops = [0, 1, 2, 3, 4, 6, 9, 14, 22, 32, 45, 64, 90, 128, 180, 255]
steps = [(str(count), pieces_after(count)) for count in stops]
lab.explore_pieces(steps, [caption(count) for count in stops], name="merges", start=11)

# %% [markdown] id="cost"
# ## The bill for Korean
#
# At the end of the slider it says: English in 9 tokens, Korean in 47. The merges come from English
# text, so they fuse English. What does that mean for a model that can look back 256 tokens?

# %% tags=["slide"]
for name, text in (("English", sentence), ("Korean", korean)):
    count = len(tokenizer.encode(text))
    print(f"{name}: {count / len(text):.2f} tokens per character,")
    print(f"    {256 // count} such sentences fit into 256 tokens")

# %% [markdown] id="cost-means"
# A syllable holds more than a letter, so compare sentences, not characters. With five times as many
# tokens the model looks back a fifth as far, and works five times as long for the same answer. And it
# must first learn which three bytes make a syllable. Byte-level BPE loses nothing in any language,
# and is cheap in those that it was trained on. So let us add four of the 25 sentences in Korean. Ours
# is among them, so this is the best case:

# %%
more_korean = [
    "태양은 땅과 바다를 따뜻하게 해요.",
    "심장은 밤낮으로 피를 보내요.",
    "달은 매달 지구를 돌아요.",
    "강은 비를 바다로 돌려보내요.",
]
both = ByteBPE.train([*sentences, *more_korean], vocab_size=800)
parts = [both.token_bytes(i) for i in both.encode(sentence + "\n" + korean)]
english, other = (len(both.encode(text)) for text in (sentence, korean))
lab.show_pieces(parts, f"Trained on both: English in {english} tokens, Korean in {other}.")

# %% [markdown] id="break"
# ## Break it, 1: ties without a rule
#
# `Counter.most_common` is a natural way to find the best pair in Python. Among equals it takes the
# one that it met first.

# %%
from collections import Counter

def first_met(row, size):
    """The pair that stands most often; of equals, the one that stands first in the text."""
    met = Counter((a, b) for a, b in zip(row, row[1:]) if a >= 0 and b >= 0)
    return met.most_common(1)[0][0] if met else None

def learn_from(texts, best):
    row = byte_row([piece for text in texts for piece in GPT2_SPLIT.findall(text)])
    return learn(row, 255, best)

# %% [markdown] id="break-order"
# Now train twice on the same 25 sentences: from the first to the last, and from the last to the
# first. Encode with one, decode with the other. What do you expect?

# %% tags=["slide"]
forth, back = learn_from(sentences, first_met), learn_from(sentences[::-1], first_met)
ids = encode(sentence, forth)
for name, pairs_used in (("its own", forth), ("the other", back)):
    text = b"".join(spell(pairs_used)[i] for i in ids).decode("utf-8", "replace")
    print(f"{name} tokenizer reads: {text}")

# %% [markdown] id="break-order-why"
# After one tie that goes the other way, later numbers mean other things. A model that was trained
# with one list reads nonsense through the other, and no error is raised. (A C# `Dictionary` promises
# no order at all.) With the rule, the order of the sentences does not matter:

# %%
assert learn_from(sentences, best_pair) == learn_from(sentences[::-1], best_pair)
print("✓ with the rule: the same merges in both orders")

# %% [markdown] id="break-words"
# ## Break it, 2: merging across words
#
# And without the cut before each space? Take one piece for each sentence:

# %%
loose = learn(byte_row(sentences), 255)
found = [piece for piece in spell(loose) if b" " in piece[1:]]
print(len(found), "tokens have a space inside or at the end, such as", found[32:35])

# %% [markdown] id="break-words-see"
# More than a third of the 255 merges went into such tokens. What does that do to a word?

# %%
loose_pieces = spell(loose)

def encode_loose(text, cut):
    row = byte_row(cut(text))
    for number, pair in enumerate(loose):
        row = merge(row, pair, 256 + number)
    return [loose_pieces[i].decode("utf-8") for i in row if i >= 0]

print("|".join(encode_loose("The land and the sea.", lambda text: [text])))
print("|".join(encode_loose("The land", lambda text: [text])))

# %% [markdown] id="break-words-why"
# `land` is cut in two ways, depending on what stands behind it, and `sea` hides in `the sea`. A model
# has to learn each form by itself.
#
# It gets worse. llama.cpp follows GPT-2's pattern: it cuts before it merges, whatever we did in
# training. Then the merges that cross a space are never used:

# %%
print("|".join(encode_loose("The land and the sea.", GPT2_SPLIT.findall)))
assert encode_loose("The land", GPT2_SPLIT.findall) != encode_loose("The land", lambda t: [t])
print("✗ llama.cpp would hand the model other ids than it was trained with")

# %% [markdown] id="break-kernel"
# ## Break it, 3: a count that is not atomic
#
# A kernel with `+= 1` in place of the atomic compiles without a word. Eight ids, on your device:

# %% tags=["varies"]
lab.device_answer("02.no_atomic", engine)

# %% [markdown] id="break-kernel-strict"
# A processor often runs the work-items of a group one after the other. Then every number is right,
# by luck. What does the strict device say?

# %% tags=["slide"]
lab.run_broken("02.no_atomic")

# %% [markdown] id="exercise-kernel"
# The simulator got the right numbers too, and found the race all the same: nothing kept two
# work-items apart.
#
# **Exercise 02.6** · medium · 5 minutes. This kernel counts single tokens. Mend it with the smallest
# change you can find.
#
# <details><summary>Hint</summary>
#
# The kernel above counts pairs. Which line does there what `+= 1` does here, and what does it want to
# be told: the number, or its place?
#
# </details>

# %%
counts_text = lab.kernel_exercise("02.6", r"""
__kernel void token_counts(__global const int *restrict ids,   // (n)
                           __global int *restrict counts,      // (V), starts at 0
                           const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    // BEGIN SOLUTION
    atomic_inc(&counts[ids[i]]);
    // INSTEAD
    counts[ids[i]] += 1;
    // END SOLUTION
}
""")

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 02.7** · easy · 3 minutes. How does a byte-level BPE learn? Put five of these six lines
# in order. One does not belong. Return the letters as one word.
#
# - **A** All pairs of neighbors are counted, and the most frequent one wins.
# - **B** Again, until there are enough tokens.
# - **C** Every piece becomes bytes.
# - **D** The pieces are joined into one long text.
# - **E** The text is cut into pieces, before each space.
# - **F** Wherever the pair stands, a new token takes its place.

# %%
@lab.exercise("02.7")
def training():
    """The letters of five lines, in order."""
    ### BEGIN SOLUTION
    return "ECAFB"
    ### END SOLUTION

# %% [markdown] id="extend"
# **Exercise 02.8** · hard · 8 minutes. Go back to `more_korean`, and take out its first sentence, the
# one that is measured, in a new cell. Guess first: how many tokens will it have when only *other* sentences were
# learned? Then add sentences, in Korean or in a language of yours. What helps more, a larger
# vocabulary or more text?
#
# <details><summary>What to expect</summary>
#
# Somewhere between 47 and 6; with three short sentences still above 30. Parts such as 은 and 요 stand
# in many sentences, so they become tokens first. A larger vocabulary helps as long as there are
# pairs to merge that the new text has too; after that, only more text does.
#
# </details>

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - A dictionary is short and loses every word that it lacks: all of them become `<unk>`.
# - Bytes lose nothing and are many. Merges make frequent things short.
# - Training counts pairs inside of pieces, with a rule for ties. Encoding repeats the merges in order.
# - Work-items that add to the same number need an atomic.
#
# In the package: `tokenizer.py` has `WordDictionary` and `ByteBPE`, `kernels/pair_counts.cl` counts.
#
# **q1.** A dictionary with `<unk>` reads `The zebra runs.` and decodes it again. What is true?
#
# - **A** The zebra is spelled with letters, so it comes back.
# - **B** The zebra comes back as `<unk>`, and a wolf would do the same.
# - **C** A KeyError is raised.

# %%
lab.quiz("02.q1")

# %% [markdown] id="recap-2"
# **q2.** A byte-level BPE was trained on English text. What becomes of a Korean sentence?
#
# - **A** It comes back without loss, and takes about as many tokens as it has bytes.
# - **B** It cannot be encoded.
# - **C** It comes back without loss, and takes as many tokens as it has characters.

# %%
lab.quiz("02.q2")

# %% [markdown] id="recap-3"
# **q3.** Thousands of work-items do `counts[p] += 1`, many of them for the same `p`. What makes it
# right?
#
# - **A** A barrier before it, and one behind it.
# - **B** A launch with fewer work-items.
# - **C** An atomic.

# %%
lab.quiz("02.q3")

# %% [markdown] id="recap-4"
# **q4.** From lesson 01b: what does a barrier do?
#
# - **A** It holds up all work-items of the launch, until everybody has come.
# - **B** It holds up the work-items of one group, until all of them have come.
# - **C** It makes the work-items run in the order of their ids.

# %%
lab.quiz("02.q4")

# %% [markdown] id="recap-5"
# **q5.** From lesson 00: a model that has learned nothing has a loss near the logarithm of the
# number of tokens. Why?
#
# - **A** Because it always finds the right token.
# - **B** Because the loss of each place is the same.
# - **C** Because to it all tokens are about equally likely.

# %%
lab.quiz("02.q5")

# %%
lab.summary("02")

# %% [markdown] id="bridge"
# **Next:** lesson 02b, *Counting pairs*. The table that found the merges is a language model
# already, if you count pairs of tokens instead of pairs of bytes. A small one, and every model that
# you build later has to beat it.
