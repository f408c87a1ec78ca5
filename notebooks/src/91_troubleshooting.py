# ---
# jupyter:
#   llmcl:
#     title: Troubleshooting
#     needs: []
#     introduces:
#       - llmcl.lab.show_troubles
#       - llmcl.lab.trouble
#     minutes: {core: 5, full: 15}
# ---

# %% [markdown] id="promise"
# # 91 · Troubleshooting
#
# This page is for looking up, not for reading. It holds every message that this workbook's own program can
# show you, and those of llama.cpp that our experiments met. Each has its cause and its cure.
#
# | Where are you? | Go to |
# |---|---|
# | You have a message | [Search for it](#How-to-search), just below |
# | You have no message, and something is wrong | [No message of ours](#No-message-of-ours) |
# | You found nothing here | [How to report a fault](#How-to-report-a-fault) |
#
# Do not run a program that a stranger's reply offers as a "fix". Archives with a password and single DLL files
# are a known trap below reports like yours. Nothing here needs a download beside pip, conda, the packages of
# your system and the driver page of your card's maker.

# %% [markdown] id="search"
# ## How to search
#
# **With `lab.trouble`.** Paste the message, or any part of it, between the quotes. It prints what is known, the
# best first, at most three entries.
#
# **With your browser.** The tables below are stored in this page, so *Ctrl+F* finds them without running
# anything, on GitHub too. In JupyterLab, open its own search (*Ctrl+F* on the page) and switch on the search of
# outputs, behind the funnel. Search for a few words that are no names and no numbers: where your message has
# `12.5 MiB`, the table has `… MiB`. The sign `…` stands for what differs from case to case.
#
# Everything on this page runs without OpenCL, apart from the last report. So it works when nothing else does.

# %%
from llmcl import lab

lab.trouble("The notebook's kernel died")

# %% [markdown] id="example"
# ## An example
#
# Let us make a real error, on purpose. Two matrices shall be multiplied whose shapes do not fit. NumPy's engine
# refuses them with the same sentence as a device.

# %%
import numpy as np
from llmcl.errors import LlmclError
from llmcl.reference import Engine

engine = Engine()
a = b = engine.from_host(np.ones((3, 5)))
try:
    engine.matmul(a, b)
except LlmclError as error:
    message = str(error)
print(message)

# %% [markdown] id="example-found"
# What does it mean, and what is to be done?

# %%
lab.trouble(message)

# %% [markdown] id="example-part"
# A part is enough. Here somebody remembers only the end of a sentence of llama.cpp's:

# %%
lab.trouble("wrong shape; expected 32, 300")

# %% [markdown] id="example-none"
# And what nobody knows is said to be unknown. A guess would only lead you astray.

# %%
lab.trouble("The zebra juggles xylophones.")

# %% [markdown] id="device"
# ## Drivers, devices and memory
#
# These stop the program before it computes, or when the device has no room left. `LLMCL_DEVICE=numpy` always
# leads around them: then NumPy computes, slowly.

# %%
lab.show_troubles("device")

# %% [markdown] id="doctor"
# ## Notes of `llmcl doctor`
#
# The doctor tries each device and writes down what it sees. A note is no error: the program went on, with
# another device or another folder.

# %%
lab.show_troubles("doctor")

# %% [markdown] id="kernels"
# ## Kernels and launches
#
# A kernel that does not compile, a launch with wrong arguments, and what the strict device finds in a kernel
# that runs. (OpenCL's kernels, not the *Kernel* in the menu, which is the Python behind this page.)

# %%
lab.show_troubles("kernels")

# %% [markdown] id="shapes"
# ## Shapes, types and ids
#
# An operation looks at the shapes before anything is launched. The word before the colon is its name.

# %%
lab.show_troubles("shapes")

# %% [markdown] id="data"
# ## Texts and dialogues
#
# Most of these concern a file of your own: where it lies, how it was saved, what stands in it.

# %%
lab.show_troubles("data")

# %% [markdown] id="tokens"
# ## Tokens and tokenizers
#
# A tokenizer and a model belong together. Many of these say that the two come from different runs.

# %%
lab.show_troubles("tokens")

# %% [markdown] id="training"
# ## Settings, training, generating, the command line
#
# A setting that contradicts another one is found before the first step. What stops a run later leaves a
# checkpoint behind.

# %%
lab.show_troubles("training")

# %% [markdown] id="files"
# ## Checkpoints and GGUF files
#
# What our own program says about a file that it reads or writes.

# %%
lab.show_troubles("files")

# %% [markdown] id="llama"
# ## llama.cpp: it refuses, or it ends
#
# Its messages are long; the end says most. The place that it names is where it stumbled, and the cause may lie
# before it. A key that is missing can show as a wrong shape.

# %%
lab.show_troubles("llama_cpp")

# %% [markdown] id="programs"
# ## llama.cpp: it loads, and is wrong
#
# The worst faults have no message. The file loads, the model talks, and it talks nonsense. The first rows say
# which faults do that. Then come the rows of `llmcl verify`, which finds them, and what Ollama and LM Studio say.

# %%
lab.show_troubles("programs")

# %% [markdown] id="notebook"
# ## Exercises, the notebook, the installation
#
# `○` means: not done yet, and nothing is wrong. `✗` means: done, and the result is not the one that is wanted.
# Below these stand the errors of Python, pip and Jupyter that people meet on the way here.

# %%
lab.show_troubles("notebook")

# %% [markdown] id="tools"
# ## The lab's tools
#
# `lab.run_items` and its findings, pictures, sliders, and lesson 16.

# %%
lab.show_troubles("tools")

# %% [markdown] id="questions"
# ## No message of ours
#
# These show no message of ours. They are written as you would ask them. `lab.trouble` finds them as well.

# %%
lab.show_troubles("questions")

# %% [markdown] id="report"
# ## How to report a fault
#
# You found nothing here, or the cure did not help. Then somebody else has to look, and can only see what you
# write. Four things tell nearly everything:
#
# 1. **The whole message**, copied as text, not as a picture.
# 2. **What you did**, so that somebody else can do it: the lesson and the cell, or the command.
# 3. **`llmcl doctor --json`**: versions, settings, the loader, each driver, each device and what became of its
#    test. It tells a driver that is missing from a loader that looks elsewhere.
# 4. **`llmcl check`**: each kernel against NumPy, with its error and its bound. A line with `WRONG` means that
#    *your device computes otherwise*; if all agree, the fault lies elsewhere, most likely in the code above it.
#
# For a GGUF file, add what `llmcl verify model.gguf` prints. In a terminal, `.venv/bin/llmcl` is the command.
# Read the report before you post it: it holds names of folders, and so perhaps your own. Here is yours, in the
# short form for people:

# %% tags=["varies"]
from llmcl import doctor

found = doctor.report()
print(doctor.text(found))

# %% [markdown] id="report-read"
# How to read it: first the versions, then where compiled kernels go, then the loader with the folders in which
# it looks for drivers. Each device has a line that ends in `works` or `FAILS`; the star marks the one that is
# taken. At the end stand notes, and what there is to do.

# %%
assert {"versions", "loader", "devices", "chosen", "notes", "remedies"} <= set(found)
print("✓ the report has all its parts")

# %% [markdown] id="report-check"
# A last thought, before you write: does it happen again after *Kernel → Restart Kernel and Run All Cells*? Many
# troubles with notebooks end there: cells had been run in another order than they stand.
