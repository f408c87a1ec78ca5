# ---
# jupyter:
#   llmcl:
#     title: Glossary
#     needs: []
#     introduces: [llmcl.lab.term]
#     minutes: {core: 1, full: 1}
# ---

# %% [markdown] id="promise"
# # 90 · Glossary
#
# Every new word of the lessons: what it is called in Korean, the lesson that introduces it, and its
# meaning in a sentence or two. This page is for looking up. Read a word's lesson if you want to know
# why.
#
# The new words at the top of each lesson lead here. (If a link has only just opened this page, JupyterLab
# may stay at its top: click the word once more, or take its letter below.) In any notebook you can also
# ask from a cell, in English or in Korean:

# %%
from llmcl import lab

lab.term("softmax")

# %%
lab.term("작업 항목")

# %% [markdown] id="near"
# A word that is not here? You get the nearest ones.

# %%
lab.term("quantisation")

# %% [markdown] id="terms" made="glossary"
# builder/glossary.py writes the terms here, from llmcl/lab/glossary.
