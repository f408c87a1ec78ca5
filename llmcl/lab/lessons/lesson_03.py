"""Lesson 03, Embeddings."""

import numpy as np

from ...reference import bounds
from ...reference import embedding as reference
from . import Broken, Exercise, KernelTask, Question, blank, kernel_file
from .lesson_00 import orders


def _case(seed, B, T, C, V, P, first=0):
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, V, (B, T)).astype(np.int32)
    tables = (rng.normal(size=(n, C)).astype(np.float32) for n in (V, P))
    return (ids, *tables, first)


def _launch(engine, kernel, ids, tokens, positions, first):
    (B, T), C = ids.shape, tokens.shape[1]
    x = blank(engine, B, T, C)
    moved = [engine.from_host(array) for array in (ids, tokens, positions)]
    kernel((C, B * T), (4, 2), *moved, x, B, T, C, first)
    return engine.to_host(x)


def _want(ids, tokens, positions, first):
    exact = ids, tokens.astype(np.float64), positions.astype(np.float64), first
    return reference(*exact), bounds.embedding(*exact)[0]


EMBEDDING = KernelTask(
    kernel_file("embedding"),
    "embedding_forward",
    _launch,
    _want,
    cases=[_case(1, 2, 3, 5, 7, 4), _case(2, 1, 4, 3, 6, 9, first=2)],
)


def _look_up(engine, kernel, ids, table):
    n, C = len(ids), table.shape[1]
    x = blank(engine, n, C)
    kernel((C, n), (4, 2), engine.from_host(ids), engine.from_host(table), x, n, C)
    return engine.to_host(x)


def _rows_case(seed, n, V, C):
    rng = np.random.default_rng(seed)
    return rng.integers(0, V, n).astype(np.int32), rng.normal(size=(V, C)).astype(np.float32)


LOOK_UP = KernelTask(
    """__kernel void look_up(__global const int *restrict ids,       // (n)
                      __global const float *restrict table,   // (V, C)
                      __global float *restrict x,             // (n, C)
                      const int n, const int C)
{
    const int c = get_global_id(0);
    const int place = get_global_id(1);
    if (c >= C || place >= n) return;
    x[place * C + c] = table[ids[place] * C + c];
}
""",
    "look_up",
    _look_up,
    lambda ids, table: (table[ids], 0.0),
    cases=[_rows_case(3, 5, 9, 3), _rows_case(4, 3, 4, 7)],
    mistakes=[
        ("    if (c >= C || place >= n) return;\n", "", "Who has no element of x, and leaves?"),
        ("table[ids[place] * C + c]", "table[place * C + c]", "Where is the id looked at?"),
        ("table[ids[place] * C + c]", "table[ids[place] + c]", "How long is a row of the table?"),
        ("table[ids[place] * C + c]", "table[ids[c] * C + c]", "Whose id is it: the place's?"),
        (
            "table[ids[place] * C + c]",
            "table[ids[place] * n + c]",
            "How long is a row of the table?",
        ),
        ("x[place * C + c] =", "x[c * n + place] =", "How long is a row of x?"),
        ("] = table", "] += table", "What stands in x before anybody has written there?"),
        ("c >= C || place >= n", "c >= C", "The channels are guarded. And the places?"),
        (
            "int c = get_global_id(0);\n    const int place = get_global_id(1)",
            "int c = get_global_id(1);\n    const int place = get_global_id(0)",
            "Which dimension counts the channels?",
        ),
    ],
)


def embed(ids, tokens, positions, first=0):
    """The exercise's reference: one sequence of ids."""
    return tokens[ids] + positions[first : first + len(ids)]


def _embed_case(seed, T, V, P, C, first):
    rng = np.random.default_rng(seed)
    return rng.integers(0, V, T), rng.normal(size=(V, C)), rng.normal(size=(P, C)), first


def _diagnose_case(seed, ids, V=9, C=4):
    table = np.random.default_rng(seed).normal(size=(V, C))
    return table[np.array(ids)], table


def _diagnose(rows, table):
    return [int(np.abs(table - row).sum(axis=1).argmin()) for row in rows]


EXERCISES = {
    "03.1": Exercise(
        lambda: (2, 8, 3),
        cases=[()],
        mistakes=[
            (lambda: (2, 8), "Each id is replaced by a row. Where do its channels go?"),
            (lambda: (2, 3), "Each of the places gets a row of its own; where are the eight?"),
            (lambda: (7, 3), "Is the whole table wanted, or a row for each id?"),
            (lambda: (8, 2, 3), "Which comes first in ids2: sentences, or places?"),
            (lambda: (2, 3, 8), "What does an id turn into, and where does that stand?"),
            (lambda: (3, 2, 8), "What does an id turn into, and where does that stand?"),
            (lambda: (16, 3), "Are the two sentences still apart?"),
            (lambda: (8, 3), "That is one sentence. How many are there?"),
            (lambda: (2, 8, 7), "An id is replaced by a row. How long is a row?"),
            (lambda: (2, 8, 7, 3), "An id is replaced by one row. By how many of the seven?"),
            (lambda: 48, "That is how many numbers come out. In which shape?"),
            (lambda: "(2, 8, 3)", "Right, but as text. Write the tuple without quotes."),
        ],
        secret=True,
    ),
    "03.2": Exercise(
        embed,
        cases=[_embed_case(1, 4, 7, 9, 3, 0), _embed_case(2, 3, 5, 9, 2, 5)],
        mistakes=[
            (
                lambda i, t, p, first=0: t[i] + p[: len(i)],
                "Which position does the first one have?",
            ),
            (lambda i, t, p, first=0: t[i], "Where do the positions come in?"),
            (lambda i, t, p, first=0: t[i] + p[first], "Does every place get the same position?"),
            (lambda i, t, p, first=0: t[i] * p[first : first + len(i)], "Are the rows multiplied?"),
            (
                lambda i, t, p, first=0: np.concatenate([t[i], p[first : first + len(i)]], axis=1),
                "Side by side, or added?",
            ),
            (
                lambda i, t, p, first=0: p[first : first + len(i)],
                "Where does the row of the token come in?",
            ),
            (
                lambda i, t, p, first=0: t[i] + p[first + 1 : first + 1 + len(i)],
                "Do positions begin at 0, or at 1?",
            ),
            (
                lambda i, t, p, first=0: t[i] + p[first : first + len(i)][::-1],
                "Which position comes first?",
            ),
            (
                lambda i, t, p, first=0: t[i] + p[i],
                "Is the row of the position chosen by the id, or by the place?",
            ),
            (
                lambda i, t, p, first=0: t[i] + p[np.minimum(i, len(p) - 1)],
                "Is the row of the position chosen by the id, or by the place?",
            ),
        ],
    ),
    "03.3": Exercise(
        _diagnose,
        cases=[_diagnose_case(5, [3, 0, 1, 0]), _diagnose_case(6, [8, 8, 2])],
        mistakes=[
            (lambda rows, table: list(range(len(rows))), "Is the row compared with the table?"),
            (
                lambda rows, table: [int(np.abs(table - r).sum(axis=1).argmax()) for r in rows],
                "Is the wanted row the nearest one, or the farthest?",
            ),
            (
                lambda rows, table: [int((table - r).sum(axis=1).argmin()) for r in rows],
                "Can a distance be below zero? What does np.abs do?",
            ),
            (
                lambda rows, table: [int(np.abs(table - r).sum(axis=0).argmin()) for r in rows],
                "Is there a sum for each row of the table, or for each channel?",
            ),
            (
                lambda rows, table: [int(np.abs(table - r).argmin()) for r in rows],
                "Is there one distance for each row of the table?",
            ),
            (
                lambda rows, table: [np.abs(table - r).sum(axis=1).min() for r in rows],
                "Is the smallest distance wanted, or the row where it is?",
            ),
            (
                lambda rows, table: int(np.abs(table - rows[0]).sum(axis=1).argmin()),
                "That is one id. How many rows were fetched?",
            ),
            (lambda rows, table: rows, "Those are the rows. What are their numbers in the table?"),
        ],
    ),
    "03.4": LOOK_UP,
    "03.5": Exercise(
        lambda vocab_size, context_length, d_model: (vocab_size + context_length) * d_model,
        cases=[(7, 5, 3), (512, 256, 96)],
        mistakes=[
            (lambda v, p, c: v * c, "There are two tables. How many rows does the second have?"),
            (lambda v, p, c: v * p * c, "Does every token have a row for each position?"),
            (lambda v, p, c: v * c + p, "Is a position one number, or a row of numbers?"),
            (lambda v, p, c: v + p * c, "Is a token one number, or a row? Are brackets missing?"),
            (lambda v, p, c: v + p + c, "Those are the rows. How many numbers has each of them?"),
            (lambda v, p, c: v + p, "Those are the rows. How many numbers has each of them?"),
            (lambda v, p, c: 2 * v * c, "Do both tables have the same number of rows?"),
            (lambda v, p, c: p * c, "That is the table of positions. And the tokens?"),
            (lambda v, p, c: v * c * p * c, "Are two tables held together, or multiplied?"),
        ],
    ),
    "03.6": Exercise(
        lambda: "DBCA",
        cases=[()],
        mistakes=orders(
            "DBCA",
            "E",
            "One line takes the position of the place in the whole batch.",
            [
                ("D", "B", "Can a work-item leave before it knows who it is?"),
                ("D", "C", "Where does `place` come from?"),
                ("C", "A", "What does the sum need before it can be written?"),
                ("B", "C", "What does ids[place] read in a work-item that has no place?"),
                ("B", "A", "May a work-item without an element write one?"),
            ],
        ),
        secret=True,
    ),
}

QUESTIONS = {
    "03.q1": Question("B", {
        "A": "nothing is multiplied; the product with a one-hot matrix only gives the same rows",
        "B": "an id is the number of a row, and the row is copied",
        "C": "ids are names: 200 is not twice 100, and their rows have nothing in common",
    }),
    "03.q2": Question("C", {
        "A": "the shapes fit, so no shape can tell",
        "B": "the kernel cannot see what kind of numbers lie in memory",
        "C": "each 64-bit id is read as two 32-bit ones, and the second of them is 0",
    }),
    "03.q3": Question("A", {
        "A": "the row of the last token, and of nothing before it",
        "B": "a bigram knows pairs only: from the token before the last on, it has forgotten all",
        "C": "it has no positions: a pair counts the same wherever it stands",
    }),
    "03.q4": Question("C", {
        "A": "a guard is about work-items without an element",
        "B": "one launch may hold as many barriers as it likes",
        "C": "until all of the group are there, nobody reads what others have yet to write",
    }),
    "03.q5": Question("B", {
        "A": "that depends on the numbers; rounding is small for some and large for others",
        "B": "rounding has rules, and the bound follows from them",
        "C": "equal to the last bit is too much to ask of a sum in another order",
    }),
}  # fmt: skip

BROKEN = {
    "03.place_for_time": Broken(
        EMBEDDING,
        "    const int t = place % T;\n",
        "    const int t = place;\n",
        tries=[
            ("one sentence", _case(6, 1, 4, 5, 7, 8)),
            ("two sentences", _case(7, 2, 4, 5, 7, 8)),
        ],
        finder="check",
        reason="The second sentence begins at position 0 again, not behind the first.",
    ),
}
