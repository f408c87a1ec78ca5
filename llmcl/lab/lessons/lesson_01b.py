"""Lesson 01b, Groups."""

import numpy as np

from ...reference import bounds
from . import Broken, Exercise, KernelTask, Question, blank

U = bounds.U

_WHO_READS = "Who reads what another one writes, and is there a barrier between the two?"
_ALL_REACH = "Does every work-item of the group come to each barrier?"
_NEUTRAL = "What does a work-item bring that has no number, so that nothing changes?"
_ODD = "If the width is 7, where does the upper half begin, and who has no partner?"


def _numbers(seed, *shapes):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).astype(np.float32) for shape in shapes)


def _sum_bound(terms):
    """The largest error of a float32 sum along the last axis, in any order."""
    return terms.shape[-1] * U * np.abs(terms).sum(axis=-1)


def _one_for_each_group(engine, kernel, x, group):
    out = blank(engine, -(-len(x) // group))
    kernel((len(x),), (group,), engine.from_host(x), out, 4 * group, len(x))
    return engine.to_host(out)


def _in_groups(x, group, filling):
    """The numbers, a row for each group, with `filling` where there are no more."""
    filled = np.full(-(-len(x) // group) * group, filling)
    filled[: len(x)] = x
    return filled.reshape(-1, group)


# ---- 01b.2: one sum for each group ----


def _sums(x, group):
    parts = _in_groups(x, group, 0.0)
    return parts.sum(axis=1), _sum_bound(parts)


ZERO_TO_15 = (np.arange(16, dtype=np.float32), 16)

GROUP_SUM = KernelTask(
    """
__kernel void group_sum(__global const float *x, __global float *sums,
                        __local float *part, const int n)
{
    const int i = get_global_id(0);
    const int me = get_local_id(0);
    part[me] = i < n ? x[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = get_local_size(0); width > 1; width = (width + 1) / 2) {
        const int upper = (width + 1) / 2;
        if (me < width / 2) part[me] += part[me + upper];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (me == 0) sums[get_group_id(0)] = part[0];
}
""",
    "group_sum",
    _one_for_each_group,
    _sums,
    cases=[ZERO_TO_15, (*_numbers(1, 20), 8), (*_numbers(2, 21), 7), (*_numbers(3, 3), 1)],
    mistakes=[
        ("0.0f;\n    barrier(CLK_LOCAL_MEM_FENCE);\n", "0.0f;\n", _WHO_READS),
        ("upper];\n        barrier(CLK_LOCAL_MEM_FENCE);\n", "upper];\n", _WHO_READS),
        ("    part[me] = i < n ? x[i] : 0.0f;\n",
         "    if (i >= n) return;\n    part[me] = x[i];\n", _ALL_REACH),
        ("part[me] += part[me + upper];\n        barrier(CLK_LOCAL_MEM_FENCE);",
         "{\n            part[me] += part[me + upper];\n"
         "            barrier(CLK_LOCAL_MEM_FENCE);\n        }", _ALL_REACH),
        ("i < n ? x[i] : 0.0f", "x[i]", _NEUTRAL),
        ("x[i] : 0.0f", "x[i] : 1.0f", _NEUTRAL),
        ("x[i] : 0.0f", "x[me] : 0.0f", "Where in x are the numbers of the second group?"),
        ("upper = (width + 1) / 2", "upper = width / 2", _ODD),
        ("width = (width + 1) / 2", "width = width / 2", _ODD),
        ("if (me < width / 2)", "if (me < upper)", _ODD),
        ("if (me < width / 2) part", "part", "Who adds in this round, and who has nothing to add?"),
        ("width > 1", "width > 2", "Is one number left when the loop ends, or are there two?"),
        ("part[me] += part", "part[me] = part", "Is the upper half added, or does it take the "
         "place of the lower?"),
        ("if (me == 0) sums[get_group_id(0)] = part[0];", "", "Who of the group writes its "
         "sum, and where?"),
        ("sums[get_group_id(0)]", "sums[i]", "How many sums are there, and which one is this "
         "group's?"),
        ("me = get_local_id(0)", "me = get_global_id(0)", "How many places does part have, and how "
         "far do the numbers of me go?"),
    ],
)  # fmt: skip


# ---- 01b.3: a barrier inside a branch ----


def _largest(x, group):
    return _in_groups(x, group, -np.inf).max(axis=1), 0.0


GROUP_MAX = KernelTask(
    """
__kernel void group_max(__global const float *x, __global float *largest,
                        __local float *part, const int n)
{
    const int i = get_global_id(0);
    const int me = get_local_id(0);
    part[me] = i < n ? x[i] : -INFINITY;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = get_local_size(0); width > 1; width = (width + 1) / 2) {
        const int upper = (width + 1) / 2;
        if (me < width / 2) {
            part[me] = fmax(part[me], part[me + upper]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (me == 0) largest[get_group_id(0)] = part[0];
}
""",
    "group_max",
    _one_for_each_group,
    _largest,
    cases=[(*_numbers(4, 16), 8), (*_numbers(5, 19), 7)],
    given=(
        "        }\n        barrier(CLK_LOCAL_MEM_FENCE);\n",
        "            barrier(CLK_LOCAL_MEM_FENCE);\n        }\n",
    ),
    mistakes=[
        ("        }\n        barrier(CLK_LOCAL_MEM_FENCE);\n", "        }\n", _WHO_READS),
        ("        }\n        barrier(CLK_LOCAL_MEM_FENCE);\n    }\n",
         "        }\n    }\n    barrier(CLK_LOCAL_MEM_FENCE);\n", _WHO_READS),
        ("            part[me] = fmax(part[me], part[me + upper]);\n        }\n        barrier",
         "            part[me] = fmax(part[me], part[me + upper]);\n"
         "            barrier(CLK_LOCAL_MEM_FENCE);\n        }\n        else barrier", "Is it one "
         "barrier that all reach, or are there two, and each has only some of them?"),
    ],
)  # fmt: skip


# ---- 01b.6: the tiled product, and its second barrier ----


def _product(engine, kernel, a, b):
    (m, k), n = a.shape, b.shape[1]
    c = blank(engine, m, n)
    kernel((n, m), (4, 4), engine.from_host(a), engine.from_host(b), c, m, n, k)
    return engine.to_host(c)


def _exact(a, b):
    exact = a.astype(np.float64), b.astype(np.float64)
    return exact[0] @ exact[1], bounds.matmul(*exact)[0]


TILED = KernelTask(
    """
#define T 4
__kernel void tiled(__global const float *a, __global const float *b,
                    __global float *c, const int m, const int n, const int k)
{
    __local float ta[T * T], tb[T * T];
    const int x = get_local_id(0), y = get_local_id(1);
    const int col = get_global_id(0), row = get_global_id(1);
    float sum = 0.0f;
    for (int start = 0; start < k; start += T) {
        const int pa = start + x, pb = start + y;
        ta[y * T + x] = row < m && pa < k ? a[row * k + pa] : 0.0f;
        tb[y * T + x] = pb < k && col < n ? b[pb * n + col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int p = 0; p < T; ++p) sum += ta[y * T + p] * tb[p * T + x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < m && col < n) c[row * n + col] = sum;
}
""",
    "tiled",
    _product,
    _exact,
    cases=[_numbers(6, (8, 8), (8, 8)), _numbers(7, (5, 9), (9, 7))],
    given=("tb[p * T + x];\n        barrier(CLK_LOCAL_MEM_FENCE);\n", "tb[p * T + x];\n"),
    mistakes=[
        ("tb[p * T + x];\n        barrier(CLK_LOCAL_MEM_FENCE);\n    }\n",
         "tb[p * T + x];\n    }\n    barrier(CLK_LOCAL_MEM_FENCE);\n",
         "Who loads the next tile, and has everyone read the last one by then?"),
        ("        barrier(CLK_LOCAL_MEM_FENCE);\n        for (int p = 0; p < T; ++p) sum",
         "        for (int p = 0; p < T; ++p) sum",
         _WHO_READS),
    ],
)  # fmt: skip


# ---- 01b.7: a group for each row ----


def _row_sums(engine, kernel, x, group):
    rows, n = x.shape
    sums = blank(engine, rows)
    kernel((rows * group,), (group,), engine.from_host(x), sums, 4 * group, n)
    return engine.to_host(sums)


ROW_SUMS = KernelTask(
    """
__kernel void row_sums(__global const float *x, __global float *sums,
                       __local float *part, const int n)
{
    const int row = get_group_id(0);
    const int me = get_local_id(0);
    float own = 0.0f;
    for (int j = me; j < n; j += get_local_size(0)) own += x[row * n + j];
    part[me] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = get_local_size(0); width > 1; width = (width + 1) / 2) {
        const int upper = (width + 1) / 2;
        if (me < width / 2) part[me] += part[me + upper];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (me == 0) sums[row] = part[0];
}
""",
    "row_sums",
    _row_sums,
    lambda x, group: (x.astype(np.float64).sum(axis=1), _sum_bound(x.astype(np.float64))),
    cases=[(*_numbers(8, (3, 13)), 4), (*_numbers(9, (2, 10)), 7), (*_numbers(10, (4, 2)), 5)],
    mistakes=[
        ("row = get_group_id(0)", "row = get_global_id(0)", "Does a row belong to a work-item, or "
         "to a group?"),
        ("j += get_local_size(0)) own", "++j) own", "Is a number of the row added by more than one "
         "of the group?"),
        ("int j = me; j < n; j += get_local_size(0)", "int j = 0; j < n; ++j", "Is a number of the "
         "row added by more than one of the group?"),
        ("int j = me; j", "int j = 0; j", "Do two work-items begin at the same number?"),
        ("    for (int j = me; j < n; j += get_local_size(0)) own += x[row * n + j];\n",
         "    if (me < n) own = x[row * n + me];\n", "What if the row is longer than the group?"),
        ("x[row * n + j]", "x[row * get_local_size(0) + j]", "How long is a row of x?"),
        ("x[row * n + j]", "x[j]", "Which row is this group's?"),
        ("    part[me] = own;\n    barrier(CLK_LOCAL_MEM_FENCE);\n", "    part[me] = own;\n",
         _WHO_READS),
        ("upper = (width + 1) / 2", "upper = width / 2", _ODD),
        ("j < n; j += get", "j <= n; j += get", "Which place is the last one of a row of n?"),
    ],
)  # fmt: skip


# ---- the rest ----


def _pieces(places):
    return len({place // 8 for place in places})


EXERCISES = {
    "01b.2": GROUP_SUM,
    "01b.3": GROUP_MAX,
    "01b.4": Exercise(
        _pieces,
        cases=[
            (list(range(32)),),
            (list(range(0, 64, 2)),),
            ([4, 5, 6, 7, 8, 9],),
            ([100, 3, 100, 7],),
            (list(range(0, 32 * 1024, 1024)),),
        ],
        mistakes=[
            (lambda places: -(-len(places) // 8), "Do places far from each other lie in one "
             "piece?"),
            (lambda places: len(set(places)), "Do neighbouring places share a piece, and is it / "
             "or // that gives its number?"),
            (lambda places: len([p // 8 for p in places]), "If two lie in the same piece, how "
             "often is it fetched?"),
            (lambda places: (max(places) - min(places)) // 8 + 1, "Is a piece fetched in which "
             "nobody wants anything?"),
            (lambda places: max(p // 8 for p in places), "Do you want the last piece's number, or "
             "how many pieces there are?"),
            (lambda places: {p // 8 for p in places}, "Those are the pieces. How many are there?"),
            (lambda places: max(p // 8 for p in places) + 1, "Is a piece fetched in which nobody "
             "wants anything?"),
            (lambda places: len(places) // 8, "Do places far from each other lie in one piece?"),
            (lambda places: len({p % 8 for p in places}), "Is it the number of the piece, or the "
             "place inside of it?"),
        ],
    ),
    "01b.5": Exercise(
        lambda: "CADBE",
        cases=[()],
        mistakes=[
            (lambda: "CDABE", "Is the tile whole when the first one adds?"),
            (lambda: "CADEB", "What happens to the tile while another one still reads it?"),
            (lambda: "CADB", "And where does the sum go?"),
            (lambda: "CABDE", "Is anything loaded between the two barriers?"),
            *(
                (lambda order=order: order, "One step does not belong. Who would be missed at a "
                 "barrier?")
                for order in ("FCADBE", "CFADBE", "CAFDBE", "FCADB", "CADBF", "CADBEF", "CADBFE")
            ),
        ],
        secret=True,
    ),
    "01b.6": TILED,
    "01b.7": ROW_SUMS,
}  # fmt: skip

QUESTIONS = {
    "01b.q1": Question("C", {
        "A": "that one would wait for the other seven without end",
        "B": "who has nothing to add must come as well",
        "C": "every work-item of the group comes to every barrier, whether it has work or not",
    }),
    "01b.q2": Question("B", {
        "A": "the card fetches whole pieces; of each, one number is used",
        "B": "neighbours are 512 apart, so no two of them share a piece",
        "C": "the order of the reads changes the speed, not the result",
    }),
    "01b.q3": Question("C", {
        "A": "it cannot know: a buffer is bytes without a type",
        "B": "nobody converts; convert before you make the buffer",
        "C": "without a word, and the result is nonsense",
    }),
    "01b.q4": Question("A", {
        "A": "frequent words are one piece, rare ones are several",
        "B": "a token may be a word, a part of one, or a single byte",
        "C": "weights are numbers that training changes; a token is a piece of text",
    }),
    "01b.q5": Question("B", {
        "A": "the largest score gets the largest share, but the others keep theirs",
        "B": "out of any scores, and in the same order",
        "C": "scores go in; shares come out",
    }),
}  # fmt: skip

BROKEN = {
    "01b.no_barrier": Broken(
        GROUP_SUM,
        "    part[me] = i < n ? x[i] : 0.0f;\n    barrier(CLK_LOCAL_MEM_FENCE);\n",
        "    part[me] = i < n ? x[i] : 0.0f;\n",
        tries=[("0 to 15 in one group", ZERO_TO_15)],
        finder="data race",
        reason="The first round reads what others may not have loaded yet.",
    ),
    "01b.early_return": Broken(
        GROUP_SUM,
        "    part[me] = i < n ? x[i] : 0.0f;\n",
        "    if (i >= n) return;\n    part[me] = x[i];\n",
        tries=[("14 numbers in groups of 8", (np.arange(14, dtype=np.float32), 8))],
        finder="a barrier that not all reach",
        reason="The surplus work-items leave, and the others of their group wait for them.",
    ),
}
