"""Lesson 02, Tokens."""

import numpy as np

from ...reference import pair_counts as exact_pairs
from . import Broken, Exercise, KernelTask, Question, kernel_file

GROUP = 16  # every case fits into one group, so the strict device finds the same in every run


def _pairs(engine, kernel, ids, size):
    counts = engine.from_host(np.zeros((size, size), np.int32))
    counts.host = None  # the kernel changes what was uploaded
    kernel((len(ids),), (GROUP,), engine.from_host(ids), counts, len(ids), size)
    return engine.to_host(counts)


def _singles(engine, kernel, ids, size):
    counts = engine.from_host(np.zeros(size, np.int32))
    counts.host = None
    kernel((len(ids),), (GROUP,), engine.from_host(ids), counts, len(ids))
    return engine.to_host(counts)


def _ids(*ids):
    return np.array(ids, np.int32)


PAIRS = KernelTask(
    kernel_file("pair_counts"),
    "pair_counts",
    _pairs,
    lambda ids, size: (exact_pairs(ids, size), 0.0),
    cases=[(_ids(5, 7, 5, 7, -1, 5), 8), (_ids(2), 3)],
)

TOKENS = KernelTask(
    """__kernel void token_counts(__global const int *restrict ids,   // (n)
                           __global int *restrict counts,      // (V), starts at 0
                           const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    atomic_inc(&counts[ids[i]]);
}
""",
    "token_counts",
    _singles,
    lambda ids, size: (np.bincount(ids, minlength=size), 0.0),
    cases=[(_ids(3, 0, 3, 3, 6), 7), (_ids(*range(12), 5), 13), (_ids(0), 1)],
    mistakes=[
        ("atomic_inc(&counts[ids[i]]);", "counts[ids[i]] = counts[ids[i]] + 1;",
         "Another work-item may come in between reading and writing. What keeps the two together?"),
        ("atomic_inc(&counts[ids[i]]);",
         "barrier(CLK_GLOBAL_MEM_FENCE);\n    counts[ids[i]] += 1;",
         "After a barrier, who of those that waited may add first, and do the others wait for it?"),
        ("    if (i >= n) return;\n", "",
         "Which work-items have no element of their own, and do they leave?"),
        ("i >= n", "i + 1 >= n", "Does the last id have a right neighbor, and does it need one?"),
        ("counts[ids[i]]", "counts[i]", "Which box belongs to an id: the i-th one?"),
    ],
    given=("atomic_inc(&counts[ids[i]]);", "counts[ids[i]] += 1;"),
)  # fmt: skip


def _word_ids(text, number_of):
    return [number_of.get(word, 0) for word in text.split()]


def _merge(row, pair, new):
    out, i = [], 0
    while i < len(row):
        if tuple(row[i : i + 2]) == tuple(pair):
            out.append(new)
            i += 2
        else:
            out.append(row[i])
            i += 1
    return out


def _merge_without_last(row, pair, new):
    out, i = [], 0
    while i < len(row) - 1:
        if tuple(row[i : i + 2]) == tuple(pair):
            out.append(new)
            i += 2
        else:
            out.append(row[i])
            i += 1
    return out


def _merge_step_by_step(row, pair, new):
    places = range(len(row) - 1)
    return [new if tuple(row[i : i + 2]) == tuple(pair) else row[i] for i in places]


def _merge_and_keep(row, pair, new):
    out, i = [], 0
    while i < len(row):
        out.append(new if tuple(row[i : i + 2]) == tuple(pair) else row[i])
        i += 1
    return out


def _merge_from_the_right(row, pair, new):
    return _merge(row[::-1], tuple(pair)[::-1], new)[::-1]


def _merge_once(row, pair, new):
    for i in range(len(row) - 1):
        if tuple(row[i : i + 2]) == tuple(pair):
            return [*row[:i], new, *row[i + 2 :]]
    return list(row)


_DICTIONARY = {"The": 1, "sun": 2, "the": 3, "sea.": 4}
_ORDER = "What must be known before it can be done?"
_ODD = "One line does not belong. Which of them would let a merge fuse two words?"

EXERCISES = {
    "02.1": Exercise(
        _word_ids,
        cases=[("The zebra sees the sea.", _DICTIONARY), ("the The", _DICTIONARY),
               ("the sun the", _DICTIONARY), ("wolves", _DICTIONARY)],
        mistakes=[
            (lambda text, number_of: [number_of[w] for w in text.split() if w in number_of],
             "How many words go in, and how many ids come out?"),
            (lambda text, number_of: [number_of.get(w.lower(), 0) for w in text.split()],
             "Does the dictionary hold `The`, or `the`, or both?"),
            (lambda text, number_of: [number_of.get(w, 1) for w in text.split()],
             "Which number did no word get?"),
            (lambda text, number_of: [number_of.get(w, "<unk>") for w in text.split()],
             "Is an id a number or a word? Which number was kept free?"),
            (lambda text, number_of: [number_of.get(character, 0) for character in text],
             "A loop over a text goes through its characters. What cuts it into words?"),
            (lambda text, number_of: [number_of.get(w) for w in text.split()],
             "What does `get` return when the word is not there, and how is that changed?"),
        ],
    ),
    "02.3": Exercise(
        _merge,
        cases=[([1, 2, 3, 1, 2], (1, 2), 9), ([5, 5, 5], (5, 5), 9), ([5, 5, 5, 5], (5, 5), 9),
               ([4, -1, 7, 4], (4, 7), 9), ([1, 2, 1, 1, 2], (1, 2), 9), ([2], (2, 2), 9)],
        mistakes=[
            (_merge_and_keep, "Is the second one of the pair still there?"),
            (_merge_step_by_step, "Is the second one of the pair still there, and is the last id?"),
            (_merge_without_last, "What becomes of the last id, when nothing stands behind it?"),
            (_merge_from_the_right, "In 5 5 5, which two are met first, coming from the left?"),
            (_merge_once, "Does the pair stand there once, or several times?"),
            (lambda row, pair, new: list(row),
             "Was anything fused? A list such as `[1, 2]` never equals the tuple `(1, 2)`."),
        ],
    ),
    "02.4": Exercise(
        lambda: ["en", "hen", "ten"],
        cases=[()],
        mistakes=[
            (lambda: ["he", "hen", "ten"], "How often does `h e` stand there, and `e n`?"),
            (lambda: ["he", "hen", "then"], "How often does `h e` stand there, and `e n`?"),
            (lambda: ["en", "hen", "then"],
             "The last two stand there once each. Which has the lower ids: the newest is highest."),
            (lambda: ["en", "ten", "hen"], "After the first merge, which pair stands there twice?"),
            (lambda: ["en", "hen"], "Is that three merges?"),
            (lambda: ("en", "hen", "ten"), "A list stands in square brackets. Is yours a tuple?"),
            *((lambda third=third: ["en", "hen", third],
               "After two merges, do the two letters of the third still stand there by themselves?")
              for third in ("te", "th", "he")),
            *((lambda order=order: order, "Which of the four pairs stands there most often?")
              for order in (["he", "en", "ten"], ["he", "en", "then"], ["th", "the", "te"])),
            (lambda: ["en", "he", "ten"], "After the first merge, which `e` is still alone?"),
        ],
        secret=True,
    ),
    "02.5": Exercise(
        lambda: ["a", "nd"],
        cases=[()],
        mistakes=[
            (lambda: ["an", "d"], "Which of the two merges was learned first?"),
            (lambda: ["and"], "Is there a merge that fuses `a` with `nd`?"),
            (lambda: ["a", "n", "d"], "Does the first merge of the list stand in the word?"),
            (lambda: ("a", "nd"), "A list stands in square brackets. Is yours a tuple?"),
            (lambda: ["nd", "a"], "Can a merge change the order of the letters?"),
        ],
        secret=True,
    ),
    "02.6": TOKENS,
    "02.7": Exercise(
        lambda: "ECAFB",
        cases=[()],
        mistakes=[
            (lambda: "CEAFB", _ORDER),
            (lambda: "EACFB", _ORDER),
            (lambda: "ECAF", "Is one merge enough?"),
            (lambda: "ECFAB", _ORDER),
            (lambda: "CAFEB", "What are the pairs made of, before there are any merges?"),
            *((lambda order=order: order, _ODD)
              for order in ("DECAFB", "EDCAFB", "ECDAFB", "ECADFB", "ECAFDB", "ECAFBD", "DCAFB")),
        ],
        secret=True,
    ),
}  # fmt: skip

QUESTIONS = {
    "02.q1": Question("B", {
        "A": "a dictionary without the word has nothing to spell it with; only bytes could",
        "B": "every unknown word gets the same id, so which word it was is gone",
        "C": "that is what happens without an id for unknown words",
    }),
    "02.q2": Question("A", {
        "A": "a syllable is three bytes, and English merges fuse none of them",
        "B": "every byte has a token, so every text can be encoded and comes back",
        "C": "characters are not what it counts; a syllable of three bytes costs three tokens",
    }),
    "02.q3": Question("C", {
        "A": "a barrier is for one group; here work-items of all groups add to the same number",
        "B": "the launch may be as large as it likes; two work-items are enough for the fault",
        "C": "reading, adding and writing become one piece, so nobody comes in between",
    }),
    "02.q4": Question("B", {
        "A": "a group waits for its own work-items only; other groups are not held up",
        "B": "and every work-item of the group has to come to it",
        "C": "order is still free; only what was written before is there for all after it",
    }),
    "02.q5": Question("C", {
        "A": "that would be a model which is always right",
        "B": "the loss of one place can be anything; it was the mean that was near ln V",
        "C": "with V tokens equally likely, each has the share 1/V",
    }),
}  # fmt: skip

BROKEN = {
    "02.no_atomic": Broken(
        PAIRS,
        "atomic_inc(&counts[left * V + right]);",
        "counts[left * V + right] += 1;",
        tries=[
            ("eight ids, every pair another", (_ids(0, 1, 2, 3, 4, 5, 6, 7), 8)),
            ("eight ids, the same pair seven times", (_ids(*[2] * 8), 8)),
        ],
        finder="data race",
        reason="Two work-items read the same count before one of them has written it back.",
    ),
}
