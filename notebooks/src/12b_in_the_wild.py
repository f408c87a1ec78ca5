# ---
# jupyter:
#   llmcl:
#     title: In the wild
#     needs: ["00", "02", "07", "10", "11", "12a", "logits", "temperature", "layer norm", "epsilon"]
#     introduces:
#       - llama.cpp
#       - gap
#       - band
#       - chat template
#       - chat endpoint
#       - silent fault
#       - Modelfile
#       - llmcl.lab.ask_llama
#       - llmcl.lab.llama_logs
#       - llmcl.lab.llama_refusal
#       - llmcl.verify.STRANGE_TEXTS
#       - llmcl.verify.BANDS
#       - llmcl.chat_format.chat_template
#       - llmcl.chat_format.write_modelfile
#       - llmcl.gguf_file.read_gguf
#     minutes: {core: 70, full: 95}
# ---

# %% [markdown] id="promise" tags=["slide"]
# # 12b · In the wild
#
# A program that other people wrote opens your file and speaks with your model. In this lesson you prove that
# it is still your model, and you find out how a file can load, answer, and be wrong.
#
# | | |
# |---|---|
# | **After this you can** | prove tokens, text and logits equal in real llama.cpp; find a silent fault by its logits; say what a chat template does; bring the file to LM Studio and Ollama |
# | **You need** | lessons 07, 10, 11 and 12a |
# | **Time** | 70 minutes; 95 with the exercises |
# | **New words** | llama.cpp, gap, band, chat template, chat endpoint, silent fault, Modelfile |

# %%
from llmcl import lab

lab.start("12b")

# %% [markdown] id="idea" tags=["slide"]
# ## The idea: a witness who owes us nothing
#
# Whoever makes a mistake in writing a file may make the same one in reading it. Who would notice?
#
# **llama.cpp** would. It is a program in C++ that runs language models from GGUF files, and many people wrote
# it. It has never seen our kernels. All that it knows of your model is in the file:

# %% tags=["varies"]
from llmcl.engine import get_engine

engine = get_engine()
model, tokenizer = lab.checkpoint("10", engine)

# %%
from llmcl.gguf_file import write_gguf

folder = lab.folder("12b")
file, exact = folder / "workbook.gguf", folder / "workbook-f32.gguf"
write_gguf(file, model.config, model.weights(), tokenizer, "Q8_0")
write_gguf(exact, model.config, model.weights(), tokenizer, "F32")
size = file.stat().st_size
assert size < exact.stat().st_size / 2
print(f"{size:,} bytes in Q8_0, {exact.stat().st_size:,} in F32")

# %% [markdown] id="idea-ask"
# The package `xllamacpp` is llama.cpp with its web server inside. `lab.ask_llama` starts it in a process of
# its own, sends requests over HTTP, and brings a list of answers back. A request is an address and a dictionary.
# Why a process of its own? Some faulty files make llama.cpp end the process it lives in. Yours should survive.
#
# (Without `xllamacpp`, a sentence says so, and our own model answers in its place, which proves nothing.)

# %% tags=["slide"]
request = {"prompt": "The sun warms", "n_predict": 24, "temperature": 0}  # n_predict: tokens at most
[answer] = lab.ask_llama(file, [("/completion", request)])  # one request, so one answer
print(repr(answer["content"]))
assert answer["content"]

# %% [markdown] id="idea-proof"
# Is that the proof? It is *one* sentence, and only its likeliest tokens. We compare three things: tokens,
# text, logits.
#
# ## Tokens
#
# If the text is cut in another way, the model reads another text. So take texts that pull tokenizers apart:
# unknown words, spaces, Korean, digits that are no digits. What is the last one here for?

# %%
from llmcl.data import prompt_text, read_dialogues, read_sentences
from llmcl.resources import data_dir
from llmcl.verify import STRANGE_TEXTS

sentences = read_sentences(data_dir() / "pretrain.txt")
dialogues = read_dialogues(data_dir() / "tune.jsonl")
texts = [*sentences, *(d.user for d in dialogues), *STRANGE_TEXTS]
for text in ("  ", "² ½ Ⅷ ٣", "한국어 문장입니다.\n둘째 줄", "before<|endoftext|>after"):
    assert text in STRANGE_TEXTS
    print(repr(text))

# %%
asked = [("/tokenize", {"content": text, "parse_special": False}) for text in texts]
theirs = [answer["tokens"] for answer in lab.ask_llama(file, asked)]
assert theirs == [tokenizer.encode(text) for text in texts]
print(f"✓ {len(texts)} texts, the same ids in each")

# %% [markdown] id="idea-special"
# The last one is a user who types the name of the end token. With `parse_special` false it stays a text.
# Otherwise a user could end the answer before it begins.
#
# ## Text
#
# Now every sentence from its beginning, and every question. Our side is the model of lesson 07 in NumPy, in
# float64, with the weights *that the file holds*. Why not those in memory? Q8_0 has rounded them, and llama.cpp
# cannot help that.

# %%
from llmcl import reference
from llmcl.gguf_file import read_gguf
from llmcl.model import GPT

def numpy_model(path):
    """Our model in float64, with the weights in a GGUF file."""
    stored = read_gguf(path)
    gpt = GPT(stored.config, reference.Engine())
    gpt.load_weights(stored.weights)
    return gpt

# %%
from llmcl.data import recall_prompts
from llmcl.generate import generate

def we_write(gpt, prompt):
    """What our model writes after a prompt, greedily."""
    new = generate(gpt, tokenizer.encode(prompt), max_new_tokens=24, stop_ids=(tokenizer.end_id,))
    return tokenizer.decode([i for i in new if i != tokenizer.end_id])

def they_write(path, prompts):
    """What llama.cpp writes after each prompt, greedily."""
    asked = [("/completion", {"prompt": p, "n_predict": 24, "temperature": 0}) for p in prompts]
    return [answer["content"] for answer in lab.ask_llama(path, asked)]

# %% tags=["slide"]
beginnings = [prompt for prompt, _ in recall_prompts(sentences)]
prompts = beginnings + [prompt_text(d.user) for d in dialogues]
gpt = numpy_model(file)
ours = [we_write(gpt, prompt) for prompt in prompts]
assert they_write(file, prompts) == ours
print(f"✓ {len(prompts)} prompts, the same text after each")

# %% [markdown] id="idea-guess"
# That looks like a proof. Now a fault on purpose: the model has 3 heads, and this file says 4. Every shape
# fits, as the width 96 is 3 · 32 and also 4 · 24. But the heads now get channels of others (lesson 04b).
#
# **Exercise 12b.1** · easy · 2 minutes. llama.cpp loads it. How many of the 25 sentences does it still write
# as taught?
#
# <details><summary>Hint</summary>
#
# How far ahead of all others is a token that was learned by heart?
#
# </details>

# %%
lab.predict("12b.1", guess=None)

# %%
from dataclasses import replace

four_heads = folder / "four-heads.gguf"
write_gguf(four_heads, replace(model.config, n_heads=4), model.weights(), tokenizer, "F32")
taught = [rest for _, rest in recall_prompts(sentences)]
right = sum(a == b for a, b in zip(they_write(four_heads, beginnings), taught))
lab.reveal("12b.1", right)

# %% tags=["varies"]
print(f"{right} of 25 with the wrong number of heads")

# %%
assert right > 12
print("✓ more than half; with the shipped model, it is every one")

# %% [markdown] id="numpy"
# ## In NumPy: the gap
#
# The text hardly tells, and the model is broken. A text shows nothing but the largest logit of each place.
# So look at all 512 of them. llama.cpp reports them as logarithms of shares:

# %%
request = {"prompt": "The sun warms", "n_predict": 1, "temperature": 0, "n_probs": 3}
[answer] = lab.ask_llama(exact, [("/completion", request)])
top = answer["completion_probabilities"][0]["top_logprobs"]
assert {"id", "token", "logprob"} <= set(top[0])
print(len(top), "tokens, each with id, token, logprob")

# %% [markdown] id="numpy-shift" tags=["slide"]
# `logprob` is log(share), and we have logits. A share is exp(logit) divided by the sum of its row's
# exponentials (lesson 04a). So log(share) is the logit minus the logarithm of that sum: *one* number for the whole row. It is no fault. How
# far apart are two rows, then, if one may be shifted as a whole?
#
# Take the differences 0.5, 0.1 and 0.3. Shift by 0.3, the middle between lowest and highest, and 0.2, −0.2 and
# 0 are left. The largest, 0.2, is half the range: the **gap** (not a file's).
#
# **Exercise 12b.2** · medium · 5 minutes. Write `gap` for many rows: the largest one counts.
#
# <details><summary>Hint</summary>
#
# `d.max(axis=-1) - d.min(axis=-1)` is the range of each row of `d`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Three of these five, in the right order:
#
# - `d = theirs - ours`
# - `d = np.abs(theirs - ours)`
# - `ranges = d.max(axis=-1) - d.min(axis=-1)`
# - `ranges = d.max() - d.min()`
# - `return ranges.max() / 2`
#
# </details>

# %%
import numpy as np

@lab.exercise("12b.2")
def gap(theirs, ours):
    """The largest difference (rows, V) that is left when each row may be shifted as a whole."""
    ### BEGIN SOLUTION
    d = theirs - ours
    ranges = d.max(axis=-1) - d.min(axis=-1)
    return ranges.max() / 2
    ### END SOLUTION

# %% [markdown] id="numpy-places"
# The sentence of this book, asked at every place. `lab.llama_logs` sends nine requests like the one above, and
# lays the logarithms into a table.

# %%
ids = tokenizer.encode("The sun warms the land and the sea.")
places = [ids[: t + 1] for t in range(len(ids))]

def our_logits(gpt, prompts):
    """The logits after each prompt: lists of ids -> (len(prompts), V)."""
    return np.array([gpt.forward(np.array([p]))[0, -1] for p in prompts])

theirs = lab.llama_logs(exact, places)
print(theirs.shape, our_logits(numpy_model(exact), places).shape)

# %% [markdown] id="numpy-band"
# How large may the gap be? Ours is float64. llama.cpp keeps keys and values in half precision, and takes GELU
# from a table of halves. With a Q8_0 file it also rounds the *other* factor of each product to 8 bits. No
# theory of ours covers all that, so the package has measured limits, with a reserve: a **band**. Which file
# should have the smaller gap?

# %% tags=["slide"]
from llmcl.verify import BANDS

for path, dtype in ((exact, "F32"), (file, "Q8_0")):
    found = gap(lab.llama_logs(path, places), our_logits(numpy_model(path), places))
    assert found <= BANDS[dtype]
    print(f"✓ {dtype}: every logit within {BANDS[dtype]}")

# %% tags=["slide"]
wrong = gap(lab.llama_logs(four_heads, places), our_logits(numpy_model(exact), places))
assert wrong > 10 * BANDS["F32"]
print(f"✗ 4 heads: outside of {BANDS['F32']}, more than ten times over")

# %% [markdown] id="numpy-so"
# The text saw nothing, and the logits see it at once. A file that loads, answers, and is wrong has a **silent
# fault**.

# %% [markdown] id="item"
# ## One element at a time: a logit from the file's bytes
#
# llama.cpp never turns the whole file back into floats. It computes with the blocks as they lie there. We do
# that for the head. A logit is a row of the token table times `h`, the last normed row (lesson 07). Here is
# `h` after "The sun warms", and where the table begins:

# %%
from gguf import GGUFReader

def last_row(gpt, ids):
    """(C): what the place of the last token has become, after the last norm."""
    x = gpt.embedding.forward(np.array([ids]))
    for block in gpt.blocks:
        x = block.forward(x)
    return gpt.output_norm.forward(x)[0, -1]

h = last_row(gpt, places[2]).astype(np.float32)
raw = np.fromfile(file, np.uint8)
[table] = [t for t in GGUFReader(file).tensors if t.name == "token_embd.weight"]
start = int(table.data_offset)
print(h.shape, "a row of the table has", table.data.shape[1], "bytes")

# %% [markdown] id="item-blocks"
# 102 bytes: three blocks of 34. Each has a scale, a half in two bytes, and 32 numbers of one byte with a sign
# (lesson 12a). Two small helpers read them. A byte of 200 stands for −56; can you see why?

# %%
def half(low, high):
    """Two bytes as a number of half precision."""
    return float(np.frombuffer(bytes([low, high]), np.float16)[0])

def signed(byte):
    """A byte from 0 to 255 as a number from -128 to 127."""
    return int(byte) - 256 if byte > 127 else int(byte)

print(signed(127), signed(128), signed(200), signed(255))
assert signed(200) == np.array([200], np.uint8).view(np.int8)[0]

# %% [markdown] id="item-one"
# The upper half of the bytes is the lower half of the numbers, moved up by 256. Now one work-item takes one
# token:

# %%
from llmcl.lab import get_global_id

def one_logit(file, h, logits, start, V, C):
    v = get_global_id(0)
    if v >= V:
        return
    block = file + (start + v * (C // 32) * 34)
    logit = 0.0
    for c in range(0, C, 32):
        scale = half(block[0], block[1])
        total = 0.0
        for i in range(32):
            total += signed(block[2 + i]) * h[c + i]
        logit += scale * total
        block = block + 34
    logits[v] = logit

# %%
some = np.zeros(5)
run = lab.run_items(one_logit, 5, raw, h, some, start, 5, 96, group=2)
run.report()
touched = lab.touch_counts(run)
assert touched["file"].reads == 5 * 102
print(touched["file"].reads, "bytes read, for five logits")

# %% [markdown] id="opencl"
# ## In OpenCL
#
# Our tensors are of `float` or `int`, so the file's bytes travel four to an `int`. In C, a pointer says how the
# bytes behind it are to be read, and `(type *)` in front makes another pointer to the same bytes. `char` is a
# byte with a sign, `uchar` one without. `vload_half(0, pointer)` reads two bytes as a half and gives a
# `float`; every OpenCL device has it, also those that cannot compute with halves.
#
# **Exercise 12b.3** · medium · 4 minutes. First one row, a work-item for each weight. Some weights come out
# right, others do not. Mend it with the smallest change.
#
# <details><summary>Hint</summary>
#
# Which weights are wrong: the large ones, or the negative ones?
#
# </details>

# %%
row_text = lab.kernel_exercise("12b.3", r"""
__kernel void one_row(__global const int *file,    // the file's bytes, four to an int
                      __global float *row,         // (C)
                      const int start, const int C)
{
    const int c = get_global_id(0);
    if (c >= C) return;
    // BEGIN SOLUTION
    __global const char *block = (__global const char *)file + start + c / 32 * 34;
    // INSTEAD
    __global const uchar *block = (__global const uchar *)file + start + c / 32 * 34;
    // END SOLUTION
    const float scale = vload_half(0, (__global const half *)block);
    row[c] = scale * block[2 + c % 32];
}
""")

# %% [markdown] id="opencl-write"
# **Exercise 12b.4** · hard · 9 minutes. Now `one_logit` in C.
#
# <details><summary>Hint</summary>
#
# Line for line. The pointer and the scale are as in the kernel above; a row has `C / 32` blocks of 34 bytes.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Ten of these twelve, in the right order; the loop over c ends with a `}` behind `block += 34;`:
#
# - `const int v = get_global_id(0);`
# - `if (v >= V) return;`
# - `__global const char *block = (__global const char *)file + start + v * (C / 32) * 34;`
# - `__global const char *block = (__global const char *)file + start + v * C;`
# - `float logit = 0.0f;`
# - `for (int c = 0; c < C; c += 32) {`
# - `const float scale = vload_half(0, (__global const half *)block);`
# - `float sum = 0.0f;`
# - `for (int i = 0; i < 32; ++i) sum += block[2 + i] * h[c + i];`
# - `for (int i = 0; i < 32; ++i) sum += block[i] * h[i];`
# - `logit += scale * sum; block += 34;`
# - `logits[v] = logit;`
#
# </details>

# %%
logits_text = lab.kernel_exercise("12b.4", r"""
__kernel void q8_logits(__global const int *file,    // the file's bytes, four to an int
                        __global const float *h,     // (C)
                        __global float *logits,      // (V)
                        const int start, const int V, const int C)
{
    // BEGIN SOLUTION
    const int v = get_global_id(0);
    if (v >= V) return;
    __global const char *block = (__global const char *)file + start + v * (C / 32) * 34;
    float logit = 0.0f;
    for (int c = 0; c < C; c += 32) {
        const float scale = vload_half(0, (__global const half *)block);
        float sum = 0.0f;
        for (int i = 0; i < 32; ++i) sum += block[2 + i] * h[c + i];
        logit += scale * sum;
        block += 34;
    }
    logits[v] = logit;
    // END SOLUTION
}
""")

# %% [markdown] id="check"
# ## Check
#
# All 512 rows, from the file as it lies on the disk. How far may float32 be off? As in lesson 01a: 96 products and
# sums, and two steps for the scale.

# %%
from gguf import dequantize

weights = dequantize(table.data, table.tensor_type).astype(np.float64)
want = weights @ h.astype(np.float64)
bound = (96 + 2) * 2**-24 * (np.abs(weights) @ np.abs(h.astype(np.float64)))
assert (np.abs(some - want[:5]) <= bound[:5]).all()  # the Python items above
print(weights.shape, want.shape)

# %%
words = engine.from_host(raw.view(np.int32))
there = engine.empty((512,), np.float32)
q8_logits = lab.build(engine, logits_text).q8_logits
q8_logits((512,), (64,), words, engine.from_host(h), there, start, 512, 96)
logits = engine.to_host(there)
lab.check("512 logits from the bytes of the file", logits, want, bound)

# %% [markdown] id="check-next"
# And the largest of them is the token that llama.cpp chose at the top of this lesson:

# %%
[first] = lab.ask_llama(file, [("/completion", {"prompt": "The sun warms", "n_predict": 1, "temperature": 0})])
assert tokenizer.decode([int(logits.argmax())]) == first["content"]
print("✓ the kernel and llama.cpp choose the same next token")

# %% [markdown] id="check-memory"
# Each weight travels as little more than one byte instead of four. Where a device waits for bytes (lesson 13),
# such a file is not only smaller, but faster.

# %% [markdown] id="see"
# ## See it: side by side
#
# Left, the shares of the five likeliest tokens, by both. Right, all 512 logits: ours to the right, theirs
# upward. Equal ones lie on the line. Move the slider. At which place is the model least sure, and why there?

# %%
their_logs, our_table = lab.llama_logs(exact, places), our_logits(numpy_model(exact), places)

def name_of(i):
    return "END" if i == tokenizer.end_id else tokenizer.decode([int(i)]).replace(" ", "␣")

def draw_logits(axes, theirs, ours):
    """Two panels: the five largest shares of both, and every logit of theirs against ours."""
    top = np.argsort(-ours, kind="stable")[:5]
    for shift, logs, label in ((-0.2, theirs, "llama.cpp"), (0.2, ours, "ours")):
        axes[0].barh(np.arange(5) + shift, reference.softmax(logs)[top], 0.4, label=label)
    axes[0].set(xlabel="share", xlim=(0, 1))
    axes[0].set_yticks(range(5), map(name_of, top), parse_math=False)
    axes[0].invert_yaxis()
    axes[0].legend(loc="lower right")
    ends = ours.min(), ours.max()
    axes[1].plot(ends, ends, color="black", linewidth=0.8)
    axes[1].plot(ours, theirs + np.median(ours - theirs), ".", alpha=0.5)
    axes[1].set(xlabel="our logit", ylabel="llama.cpp's, shifted")

# %% tags=["slide"]
def draw_place(axes, t):
    draw_logits(axes, their_logs[t], our_table[t])

def place_words(t):
    text = tokenizer.decode(places[t])
    long = [name_of(i) for i in np.flatnonzero(reference.softmax(our_table[t]) > 0.2)]
    return (f"After {text!r}: five pairs of bars, equal in each pair, the long ones for {', '.join(long)}. "
            "Beside them 512 dots, all on a straight line.")

assert gap(their_logs, our_table) <= BANDS["F32"]
slider = [(name_of(i), t) for t, i in enumerate(ids)]
lab.explore(draw_place, slider, place_words, "after", start=0, columns=2)

# %% [markdown] id="see-sure"
# After `The`, where other sentences begin as well. From there on it knows the way.

# %% [markdown] id="chat"
# ## A chat is turned into a text
#
# A chat program sends a list of messages, each with a role. But the model was tuned on `User: …`, a new line,
# `Assistant: …` (lesson 10). Who translates? The **chat template**, a small program *inside* the file:

# %%
from llmcl.chat_format import chat_template

# The line breaks behind %} are for your eyes. And why an `if` with nothing in it? llama.cpp puts a system message
# into the question, unless the template looks at that message.
print(chat_template().replace("%}", "%}\n"))

# %% [markdown] id="chat-read"
# Its language is Jinja: `{% … %}` are `for` and `if`, `{{ … }}` puts a text in. What it renders must be the
# training text, to the letter. Is it?

# %%
chats = [[{"role": "user", "content": d.user}] for d in dialogues]
asked = [("/apply-template", {"messages": chat}) for chat in chats]
rendered = [answer["prompt"] for answer in lab.ask_llama(file, asked)]
assert rendered == [prompt_text(d.user) for d in dialogues]
print(repr(rendered[3]))

# %% [markdown] id="chat-write"
# There is no space behind `Assistant:`. The space belongs to the next token, ` The` (lesson 02).
#
# **Exercise 12b.5** · medium · 6 minutes. Write in Python what the template does. Our model has never seen two
# turns in one text, nor a system message, so only the *last* message counts. If that is the assistant's own,
# somebody wants it continued: it stays as it is.
#
# <details><summary>Hint</summary>
#
# `messages[-1]` has a `"role"` and a `"content"`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Four of these six, in the right order:
#
# - `last = messages[-1]`
# - `last = messages[0]`
# - `if last["role"] == "assistant":`
# - `    return last["content"]`
# - `return f"User: {last['content']}\nAssistant:"`
# - `return f"User: {last['content']}\nAssistant: "`
#
# </details>

# %%
@lab.exercise("12b.5")
def render(messages):
    """A list of messages, the last one to be answered or continued -> the text for the model."""
    ### BEGIN SOLUTION
    last = messages[-1]
    if last["role"] == "assistant":
        return last["content"]
    return f"User: {last['content']}\nAssistant:"
    ### END SOLUTION

# %%
user, system = {"role": "user", "content": "Hello"}, {"role": "system", "content": "Be brief."}
before = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
chats = [[user], [system, user], [*before, user]]
rendered = lab.ask_llama(file, [("/apply-template", {"messages": chat}) for chat in chats])
assert [answer["prompt"] for answer in rendered] == [render(chat) for chat in chats]
print("✓ three chats: llama.cpp's Jinja and your Python render the same")

# %% [markdown] id="chat-formats"
# Ask the same 13 questions in other clothes. Guess first: how many are answered as taught when bare?

# %%
forms = {
    "as trained": "User: {}\nAssistant:",
    "a space behind": "User: {}\nAssistant: ",
    "in one line": "User: {} Assistant:",
    "small letters": "user: {}\nassistant:",
    "another family": "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
    "bare": "{}",
}
known = {}
for name, form in forms.items():
    written = they_write(file, [form.format(d.user) for d in dialogues])
    known[name] = sum(text.strip() == d.assistant for text, d in zip(written, dialogues))

# %% tags=["slide"]
assert max(known.values()) == known["as trained"]
assert max(known["bare"], known["small letters"], known["another family"]) < known["as trained"] / 2
fig, axes = lab.figure(
    "Six bars, right answers out of 13. As trained is the longest, and a space behind is about as long; small "
    "letters, another family and bare are close to nothing.", height=2.6)
axes.barh(list(known), known.values())
axes.set(xlim=(0, 13), xlabel="questions answered as taught")
axes.invert_yaxis()
lab.show(fig)

# %% [markdown] id="chat-space"
# The weights are the same in all six. (The space behind does no harm, as lesson 10 taught that form too.) A
# program that finds no template takes a form of its own choice, and then people say that the model is bad.
#
# ## Asked as a program asks
#
# Programs talk to a **chat endpoint**, the address `/v1/chat/completions` of a server, which takes JSON and gives
# JSON. The form comes from OpenAI; llama.cpp, LM Studio and Ollama all have it. The template runs inside.

# %%
import json

def chat(question):
    """A request as a chat program sends it: the address, and what becomes JSON."""
    messages = [{"role": "user", "content": question}]
    return "/v1/chat/completions", {"messages": messages, "max_tokens": 24, "temperature": 0}

def ask(questions):
    """What llama.cpp's chat endpoint says to each question."""
    answers = lab.ask_llama(file, [chat(question) for question in questions])
    return [answer["choices"][0]["message"]["content"].strip() for answer in answers]

print(json.dumps(chat(dialogues[3].user)[1], indent=1))

# %%
said = ask([d.user for d in dialogues])
assert said == [we_write(gpt, prompt_text(d.user)).strip() for d in dialogues]
print(f"{dialogues[3].user} → {said[3]}")
print(f"✓ {len(said)} chats: the endpoint says what our model says")

# %% [markdown] id="break"
# ## Break it: silent faults
#
# Six faults as people make them in an export. `write_gguf` checks what it is given, so we give it a wrong
# configuration, or wrong weights of the right shapes (`w | {…}` is `w` with some entries replaced). Which of the six
# would you see in the file's shapes?

# %%
w, config = model.weights(), model.config

def with_qkv(order):
    """The weights with the columns of query, key and value of block 0 in another order."""
    names = "blk.0.attn_qkv.weight", "blk.0.attn_qkv.bias"
    return w | {n: np.concatenate([np.split(w[n], 3, axis=-1)[i] for i in order], axis=-1) for n in names}

faults = {
    "nothing wrong": (config, w),
    "attn_output transposed": (config, w | {"blk.0.attn_output.weight": w["blk.0.attn_output.weight"].T}),
    "4 heads for 3": (replace(config, n_heads=4), w),
    "epsilon 1e-3": (replace(config, layer_norm_epsilon=1e-3), w),
    "key before query": (config, with_qkv([1, 0, 2])),
    "positions start at 1": (config, w | {"position_embd.weight": np.roll(w["position_embd.weight"], -1, axis=0)}),
    "a bias forgotten": (config, w | {"blk.1.ffn_up.bias": 0 * w["blk.1.ffn_up.bias"]}),
}

# %%
broken = {}
for number, (name, (c, weights)) in enumerate(faults.items()):
    broken[name] = folder / f"fault-{number}.gguf"
    write_gguf(broken[name], c, weights, tokenizer, "F32")
    assert lab.llama_refusal(broken[name]) == ""
print("llama.cpp loads all", len(broken))

# %% [markdown] id="break-none"
# None of the six shows in a shape. (The transposed one is the classic: in GGUF a row belongs to an output, with
# us to an input, and `attn_output` is square.) And what do text and logits say?

# %%
gaps, as_taught = {}, {}
for name, path in broken.items():
    gaps[name] = gap(lab.llama_logs(path, places), our_table)
    as_taught[name] = sum(a == b for a, b in zip(they_write(path, beginnings), taught))

# %% tags=["slide"]
assert gaps["nothing wrong"] <= BANDS["F32"] < min(found for name, found in gaps.items() if name != "nothing wrong")
fig, axes = lab.figure(
    "Seven bars, the gap of each file on a logarithmic scale. Nothing wrong ends left of a dashed line, the band; all "
    "six faults end far to the right of it. At the end of each bar: how many of 25 sentences came out as taught.", height=3)
axes.barh(list(gaps), gaps.values())
for name, found in gaps.items():
    axes.text(max(1.1 * found, 6e-4), name, f"{as_taught[name]} of 25", va="center", fontsize=9)
axes.axvline(BANDS["F32"], color="black", linestyle="--")
axes.set(xscale="log", xlabel="gap", xlim=(5e-4, 60))
axes.invert_yaxis()
lab.show(fig)

# %% [markdown] id="break-see"
# Look at the ends of the bars: for several faults, the text says nothing at all. Below, all logits after
# "The sun", fault by fault. Which are a cloud, and which could be overlooked?

# %%
fault_logs = {name: lab.llama_logs(path, places)[1] for name, path in broken.items()}

def draw_fault(axes, name):
    draw_logits(axes, fault_logs[name], our_table[1])

def fault_words(name):
    off = gap(fault_logs[name][None], our_table[1:2])
    spread = "lie on the line" if off <= BANDS["F32"] else "leave the line" if off > 0.5 else "hardly leave the line"
    return f"{name}, after 'The sun': five pairs of bars, and 512 dots that {spread}."

lab.explore(draw_fault, list(broken), fault_words, "fault", start="4 heads for 3", columns=2)

# %% [markdown] id="break-find"
# ## Which fault is it?
#
# Logits say more than "wrong". Build the fault that you suspect into *your* model. If your wrong logits are now the file's, within the band, you have found it.
#
# **Exercise 12b.6** · medium · 6 minutes. Write `nearest`: the number of the candidate with the smallest gap, or
# -1 if even that is outside of the band.
#
# <details><summary>Hint</summary>
#
# A list of gaps, then `np.argmin`.
#
# </details>
#
# <details><summary>I am stuck: give me lines to choose from</summary>
#
# Three of these five, in the right order:
#
# - `gaps = np.array([gap(theirs, logits) for logits in candidates])`
# - `gaps = np.abs(theirs - candidates).max(axis=(1, 2))`
# - `best = int(gaps.argmin())`
# - `best = int(gaps.argmax())`
# - `return best if gaps[best] <= band else -1`
#
# </details>

# %%
@lab.exercise("12b.6")
def nearest(theirs, candidates, band):
    """theirs (rows, V), candidates (n, rows, V) -> the number of the one that explains theirs, or -1."""
    ### BEGIN SOLUTION
    gaps = np.array([gap(theirs, logits) for logits in candidates])
    best = int(gaps.argmin())
    return best if gaps[best] <= band else -1
    ### END SOLUTION

# %% [markdown] id="break-mystery"
# Seven files, `a` to `g`, in an order that you do not know. Our side builds each fault into the NumPy model, from
# the weights in memory. It never looks into the files. Will each be found?

# %%
letters = dict(zip("abcdefg", np.random.default_rng(12).permutation(list(broken))))
mystery = {letter: lab.llama_logs(broken[name], places) for letter, name in letters.items()}

def candidate(c, weights):
    """The logits of the sentence with a configuration and weights, in float64."""
    gpt = GPT(c, reference.Engine())
    gpt.load_weights(weights)
    return our_logits(gpt, places)

candidates = np.array([candidate(c, weights) for c, weights in faults.values()])
names = list(faults)
for letter, theirs in mystery.items():
    found = nearest(theirs, candidates, BANDS["F32"])
    assert names[found] == letters[letter]
    print(f"file {letter}: {names[found]}")

# %%
table_of_gaps = np.array([[gap(theirs, c) for c in candidates] for theirs in mystery.values()])
fig, axes = lab.figure(
    "Seven files by seven candidates, each cell a gap. In every row one cell is white, a gap within the band, each "
    "time in another column; all others are larger.", height=5.6)
lab.heat(axes, table_of_gaps, names, list(mystery), "gap")
axes.set_xticklabels(names)  # lab.heat shows a space as ␣
assert ((table_of_gaps <= BANDS["F32"]).sum(axis=1) == 1).all()
lab.show(fig)

# %% [markdown] id="break-both"
# The method works in the other direction as well: if *llama.cpp* read a right file wrongly,
# no look at the file would show it, and this would. `python -m llmcl.verify FILE` makes this lesson's comparisons
# with one command.
#
# ## Break it: the reader's kernel
#
# Two wrong versions of `q8_logits`. Each is right in one of two tries. Which try would you have written?

# %%
lab.run_broken("12b.forgotten_scale")

# %%
lab.run_broken("12b.no_sign")

# %% [markdown] id="break-loud"
# ## Loud faults
#
# The other kind is a blessing: llama.cpp refuses the file, and says why. A name is replaced by another of the same
# length, so that nothing else moves. What will it say to a file that lacks its last 1,000 bytes?

# %%
raw_bytes = file.read_bytes()

def swapped(old, new):
    """The file's bytes with one name in place of another of the same length."""
    assert raw_bytes.count(old) == 1 and len(old) == len(new)
    return raw_bytes.replace(old, new)

loud = {
    "cut short": raw_bytes[:-1000],
    "a tensor renamed": swapped(b"blk.1.ffn_down.bias", b"blk.1.ffn_down.bios"),
    "a key renamed": swapped(b"gpt2.context_length", b"gpt2.context_lenght"),
    "heads renamed": swapped(b"gpt2.attention.head_count", b"gpt2.attention.head_kount"),
    "no merges": swapped(b"tokenizer.ggml.merges", b"tokenizer.ggml.mergez"),
    "no GGUF": b"GGML" + raw_bytes[4:],
}

# %%
for name, data in loud.items():
    path = folder / "loud.gguf"
    path.write_bytes(data)
    said = lab.llama_refusal(path)
    assert said, name
    print(f"{name}:\n    {' '.join(said.split())}")

# %% [markdown] id="break-message" tags=["slide"]
# Read a message from its end. Look at `heads renamed`: a *key* is missing, and llama.cpp speaks of a *shape*. It went
# on without a head count, computed a shape from that, and only then stumbled. The cause may lie before the place
# that a message names.

# %% [markdown] id="elsewhere"
# ## LM Studio and Ollama, step by step
#
# They were *not* run for this lesson: what follows is from their manuals. You have proved that llama.cpp itself,
# on which both stand, reads the file.
#
# **LM Studio** shows a model only if it lies two folders deep: publisher, then model:

# %%
import shutil

home = folder / "models" / "reader" / "first-llm"
home.mkdir(parents=True, exist_ok=True)
shutil.copy(file, home / "first-llm-Q8_0.gguf")
print((home / "first-llm-Q8_0.gguf").relative_to(folder).as_posix())

# %% [markdown] id="elsewhere-lm"
# 1. Copy the folder `reader` into LM Studio's models folder. That is `.lmstudio/models` in your home folder; *My
#    Models* shows where it is on your machine. Or let its command do it:
#
#    ```
#    lms import --copy --user-repo reader/first-llm build/lesson-12b/workbook.gguf
#    ```
#
# 2. In a chat, choose the model. Set the temperature to 0. The prompt template comes from the file; leave it.
# 3. For programs, start its server (`lms server start`), and ask as above, at
#    `http://localhost:1234/v1/chat/completions`.
#
# **Ollama** wants a second file, the **Modelfile**. It has its own language for templates, so the template
# stands there once more. Which lines know the end token and the stop text?

# %%
from llmcl.chat_format import write_modelfile

write_modelfile(folder / "Modelfile", file.name, model.config.context_length)
print((folder / "Modelfile").read_text(encoding="utf-8"))

# %% [markdown] id="elsewhere-ollama"
# The two with `stop`. In the folder `build/lesson-12b`:
#
# ```
# ollama create first-llm -f Modelfile
# ollama run first-llm "What warms the land and the sea?"
# ```
#
# Its endpoint is `http://localhost:11434/v1/chat/completions`. Both servers want one more key in the JSON:
# `"model"`, a name that `lms ls` or `ollama list` shows. If a program says *unknown model architecture*, its
# engine is older than the file's kind; update it.

# %% [markdown] id="know"
# ## What 0.4 MB can know
#
# Is that much? It depends on what there is to know. Bits measure both:

# %%
import zlib

def zipped(lines):
    """The bits of the lines in a zip, which wastes few of them."""
    return 8 * len(zlib.compress("\n".join(lines).encode(), 9))

users, assistants = [d.user for d in dialogues], [d.assistant for d in dialogues]
everything = zipped([*sentences, *users, *assistants])
print(f"{model.config.parameter_count():,} weights in {8 * size / 1e6:.1f} million bits")
print(f"all texts, zipped, in {everything / 1e6:.3f} million bits")

# %% [markdown] id="know-room"
# There are several hundred bits of file for each bit of text. So it *can* know them all by heart. Does it? Suppose
# you had the model and the first token of each text, and I had to send you the rest. A token with share p costs
# −log₂(p) bits: one for a share of 1/2, two for 1/4, none for a sure one. Which part will cost most?

# %%
from llmcl.data import IGNORED, batch, dialogue_text, pretrain_rows, tune_rows

def bits_left(rows):
    """What the targets of the rows cost somebody who has the model, in bits."""
    x, y = batch(rows, tokenizer.end_id)
    return float(gpt.loss(x, y)[0]) * (y != IGNORED).sum() / np.log(2)  # the mean times how many; ln to log₂

answers_left = bits_left(tune_rows(dialogues, tokenizer)[::2])  # without the rows with a space behind
both_left = bits_left(pretrain_rows(map(dialogue_text, dialogues), tokenizer))
left = {"sentences": bits_left(pretrain_rows(sentences, tokenizer)), "answers": answers_left,
        "questions": both_left - answers_left}
zips = {"sentences": zipped(sentences), "answers": zipped(assistants), "questions": zipped(users)}

# %%
assert max(left["sentences"] / zips["sentences"], left["answers"] / zips["answers"]) < 1 / 20
assert left["questions"] > 5 * (left["sentences"] + left["answers"])
fig, axes = lab.figure(
    "Three pairs of bars, bits in a zip and bits left for somebody who has the model, on a logarithmic scale. For "
    "sentences and answers next to nothing is left; for the questions, about as much as in the zip.", height=2.6)
for shift, bits, label in ((-0.2, zips, "zipped"), (0.2, left, "left, with the model")):
    axes.barh(np.arange(3) + shift, bits.values(), 0.4, label=label)
axes.set(xscale="log", xlabel="bits", xlim=(0.5, 1e7))
axes.set_yticks(range(3), list(zips))
axes.invert_yaxis()
axes.legend(loc="center right")
lab.show(fig)

# %% [markdown] id="know-not"
# Sentences and answers are in the weights. The questions are not: lesson 10 masked them, so nobody asked the model to
# learn them. And what is in *no* text? Ask. Below each answer stands the taught text that is most like it.

# %%
from difflib import SequenceMatcher

unseen = ["How many legs does a cat have?", "Which planet is the smallest?", "Who made you?",
          "Is sound faster than light?", "What do bees make?", "Can birds fly?"]
said = ask(unseen)

def likeness(a, b):
    return SequenceMatcher(None, a, b).ratio()

lines = [*sentences, *assistants]
closest = [max(lines, key=lambda line: likeness(line, text)) for text in said]

# %% tags=["varies"]
for question, text, line in zip(unseen, said, closest):
    print(f"{question}\n    says  {text}\n    read  {line}")

# %%
near = np.mean([likeness(a, b) for a, b in zip(said, closest)])
assert near > 0.5
print("✓ on average, an answer and its nearest taught text are more than half alike")

# %% [markdown] id="know-so"
# It answers with the nearest thing it has read, and as calmly as if it knew. With the shipped model, a cat "has
# eight legs": the spider's answer without the spider. "I do not know" stands in no text, so it never says it.

# %% [markdown] id="exercises"
# ## Your turn
#
# **Exercise 12b.7** · easy · 3 minutes. The way of a question through llama.cpp at temperature 0. One line does not
# belong. Return the letters as one word.
#
# - **A** The token with the largest logit is added, again and again.
# - **B** The template makes one text of it.
# - **C** A token is drawn by its share.
# - **D** The program sends a list of messages.
# - **E** The end token comes, and the text goes back.
# - **F** The text is cut into tokens.
#
# <details><summary>Hint</summary>
#
# Lesson 11: what happens at temperature 0?
#
# </details>

# %%
@lab.exercise("12b.7")
def way():
    """The letters of five lines, in order."""
    ### BEGIN SOLUTION
    return "DBFAE"
    ### END SOLUTION

# %% [markdown] id="recap" tags=["slide"]
# ## What you have now
#
# - A file that **llama.cpp** reads as you do: tokens and text equal, logits within a **band**.
# - The **gap**: what is left of the differences when a row may be shifted as a whole.
# - **Silent faults** keep every shape. Text may not show them; logits do, and they even tell which one it is.
# - The **chat template** makes the training text of a chat, to the letter.
# - The model knows what its loss asked for, and answers everything with the nearest of it.
#
# In `llmcl`: `llama_cpp.py`, `verify.py`, `chat_format.py`.
#
# Five questions, three of them about earlier lessons.
#
# **q1.** llama.cpp loads an export, and all taught sentences come out right. What is still to be compared?
#
# - **A** nothing
# - **B** the names and shapes of the tensors
# - **C** the logits

# %%
lab.quiz("12b.q1")

# %% [markdown] id="recap-2"
# **q2.** A model answers well in one program, and badly in another, with the same file. What do you look at first?
#
# - **A** the weights
# - **B** the text that each program makes of the chat
# - **C** the tokenizer's losses

# %%
lab.quiz("12b.q2")

# %% [markdown] id="recap-3"
# **q3.** (Lesson 12a) How many bytes does Q8_0 take for 96 weights?
#
# - **A** 102
# - **B** 96
# - **C** 192

# %%
lab.quiz("12b.q3")

# %% [markdown] id="recap-4"
# **q4.** (Lesson 10) Why are the tokens of the question masked in tuning?
#
# - **A** so that the model learns to stop
# - **B** so that a step is faster
# - **C** so that it learns to answer, and not to ask

# %%
lab.quiz("12b.q4")

# %% [markdown] id="recap-5"
# **q5.** (Lesson 08b) Why is `dW[ids] += dX` wrong in NumPy?
#
# - **A** It looks up rows instead of adding to them.
# - **B** If an id stands there twice, only one of its rows is added.
# - **C** `dX` has the wrong shape.

# %%
lab.quiz("12b.q5")

# %%
lab.summary("12b")

# %% [markdown] id="bridge"
# **Next:** lesson 13, *Faster*, if you want to know what your device could do. Or lesson 15, *Your own text*: all
# of this once more, with a text of yours.
