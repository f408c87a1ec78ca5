"""The Python items of the lessons touch what the kernels touch; and the proof can fail."""

import numpy as np
import pytest
from touches import Unfollowable, assert_same_touches, instrument

from llmcl.lab.items import (
    atomic_inc,
    get_global_id,
    get_group_id,
    get_local_id,
    get_local_size,
    local,
)
from llmcl.resources import kernels_dir

rng = np.random.default_rng(4)


def kernel_text(file):
    return (kernels_dir() / f"{file}.cl").read_text(encoding="utf-8")


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


# ---- the items, line for line as the kernels ----


def matmul_item(a, b, c, m, n, k):
    row, col = get_global_id(0), get_global_id(1)
    if row >= m or col >= n:
        return
    total = np.float32(0)
    for p in range(k):
        total += a[row * k + p] * b[p * n + col]
    c[row * n + col] = total


def swapped_item(a, b, c, m, n, k):
    col, row = get_global_id(0), get_global_id(1)
    if row >= m or col >= n:
        return
    total = np.float32(0)
    for p in range(k):
        total += a[row * k + p] * b[p * n + col]
    c[row * n + col] = total


def softmax_item(scores, shares, rows, n):
    row = get_global_id(0)
    if row >= rows:
        return
    x, out = scores + row * n, shares + row * n
    largest = x[0]
    for j in range(1, n):
        largest = max(largest, x[j])
    total = np.float32(0)
    for j in range(n):
        e = np.exp(x[j] - largest)
        out[j] = e
        total += e
    for j in range(n):
        out[j] /= total


def embedding_item(ids, tokens, positions, x, B, T, C, first):
    c, place = get_global_id(0), get_global_id(1)
    if c >= C or place >= B * T:
        return
    t = place % T
    x[place * C + c] = tokens[ids[place] * C + c] + positions[(first + t) * C + c]


def layer_norm_item(x, gamma, beta, y, mean, rstd, rows, C, epsilon):
    row = get_global_id(0)
    if row >= rows:
        return
    at, out = x + row * C, y + row * C
    m = sum(at[c] for c in range(C)) / C
    squares = np.float32(0)
    for c in range(C):
        d = at[c] - m
        squares += d * d
    r = 1 / np.sqrt(squares / C + epsilon)
    for c in range(C):
        out[c] = (at[c] - m) * r * gamma[c] + beta[c]
    mean[row] = m
    rstd[row] = r


def pairs_item(ids, counts, n, V):
    i = get_global_id(0)
    if i + 1 >= n:
        return
    left, right = ids[i], ids[i + 1]
    if left < 0 or right < 0:
        return
    atomic_inc(counts, left * V + right)


def tree_item(x, total, scratch):
    i = get_local_id(0)
    scratch[i] = x[get_global_id(0)]
    yield
    width = get_local_size(0) // 2
    while width:
        if i < width:
            scratch[i] += scratch[i + width]
        yield
        width //= 2
    if i == 0:
        total[get_group_id(0)] = scratch[0]


TREE = """
__kernel void tree(__global const float *x, __global float *total, __local float *scratch)
{
    const int i = get_local_id(0);
    scratch[i] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = get_local_size(0) / 2; width > 0; width /= 2) {
        if (i < width) scratch[i] += scratch[i + width];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i == 0) total[get_group_id(0)] = scratch[0];
}
"""
OWN_MEMORY = TREE.replace(", __local float *scratch", "").replace(
    "const int i", "__local float scratch[8];\n    const int i"
)

m, n, k = 5, 7, 6
MATMUL = (normal(m, k), normal(k, n), zeros(m, n), m, n, k)
IDS = np.array([3, 1, 3, 0, 2, 3], np.int32)
CASES = {
    "matmul": (matmul_item, (m, n), MATMUL, "matmul", "matmul_naive", 1),
    "matmul in groups": (matmul_item, (m, n), MATMUL, "matmul", "matmul_naive", (4, 2)),
    "matmul swapped": (swapped_item, (n, m), MATMUL, "matmul", "matmul_swapped", 1),
    "softmax": (softmax_item, 5, (normal(5, 7), zeros(5, 7), 5, 7), "softmax",
                "softmax_forward", 2),
    "embedding": (embedding_item, (5, 6),
                  (IDS, normal(4, 5), normal(7, 5), zeros(6, 5), 2, 3, 5, 2),
                  "embedding", "embedding_forward", 1),
    "layer norm": (layer_norm_item, 4, (normal(4, 9), normal(9), normal(9), zeros(4, 9), zeros(4),
                                        zeros(4), 4, 9, 1e-5),
                   "layer_norm", "layer_norm_forward", 1),
    "pairs": (pairs_item, 7, (np.array([1, 2, 1, 2, -1, 1, 2], np.int32),
                              np.zeros((3, 3), np.int32), 7, 3), "pair_counts", "pair_counts", 1),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_an_item_touches_what_its_kernel_touches(case):
    item, size, args, file, kernel, group = CASES[case]
    assert_same_touches(item, size, args, kernel_text(file), kernel, group=group)


@pytest.mark.parametrize("text", [TREE, OWN_MEMORY])
def test_local_memory_is_left_out(text):
    args = (normal(24), zeros(3), local(8))
    assert_same_touches(tree_item, 24, args, text, "tree", group=8)


# ---- the proof can fail ----


def test_a_swapped_index_is_found():
    with pytest.raises(AssertionError, match=r"work-item \(0, 1\) and a: the item does"):
        args = (normal(5, 5), normal(5, 5), zeros(5, 5), 5, 5, 5)
        assert_same_touches(matmul_item, (5, 5), args, kernel_text("matmul"), "matmul_swapped")


def test_a_transposed_read_is_found_though_the_sums_are_equal():
    text = kernel_text("matmul").replace("b[p * n + col]", "b[col * n + p]", 1)
    ones = np.ones((5, 5), np.float32)
    with pytest.raises(AssertionError, match="and b: the item does"):
        assert_same_touches(
            matmul_item, (5, 5), (ones, ones, zeros(5, 5), 5, 5, 5), text, "matmul_naive"
        )


def test_another_order_is_found_unless_only_sets_count():
    text = kernel_text("matmul").replace("int p = 0; p < k; ++p", "int p = k - 1; p >= 0; --p", 1)
    args = (matmul_item, (m, n), MATMUL, text, "matmul_naive")
    with pytest.raises(AssertionError, match="and a: the item does"):
        assert_same_touches(*args)
    assert_same_touches(*args, order=False)


def test_a_write_for_a_read_and_a_missing_one_are_found():
    text = "__kernel void one(__global float *x) { x[get_global_id(0)] CHANGE }"

    def add(x):
        x[get_global_id(0)] += 1

    assert_same_touches(add, 3, (normal(3),), text.replace("CHANGE", "+= 1.0f;"), "one")
    for change in ("= 1.0f;", ";"):
        with pytest.raises(AssertionError, match="the item does"):
            assert_same_touches(add, 3, (normal(3),), text.replace("CHANGE", change), "one")


def test_another_result_is_found():
    text = kernel_text("matmul").replace("float sum = 0.0f;", "float sum = 0.5f;")
    with pytest.raises(AssertionError, match="the results in c"):
        assert_same_touches(matmul_item, (m, n), MATMUL, text, "matmul_naive")


def test_an_item_with_findings_is_refused():
    def past_the_end(x):
        x[get_global_id(0) + 1] = 0

    with pytest.raises(AssertionError, match=r"not clean: work-item 2 writes x\[3\]"):
        assert_same_touches(past_the_end, 3, (zeros(3),), "", "one")


def test_an_address_outside_of_all_arrays_is_found():
    def stay(x):
        return

    text = "__kernel void one(__global float *x) { if (x[-4] > 1e30f) x[0] = 1; }"
    with pytest.raises(AssertionError, match="which is in no array"):
        assert_same_touches(stay, 1, (zeros(3),), text, "one")


# ---- what cannot be followed is refused ----


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("*x = 1;", "x = 1"),
        ("f(x);", "x"),
        ("vstore4((float4)0, 0, x);", "x"),
        ("float y = *(__global float4 *)(x + 1).x;", "cast of a pointer"),
        ("int i = 0; x[i++] = 1;", "changes its own place"),
        ("float y = *(&x[0]);", "address of an element"),
        ("float y = AT(0);", "macro AT"),
    ],
)
def test_what_the_log_would_miss_is_refused(body, words):
    head = "#define AT(i) x[i]\nvoid f(__global float *p) { p[0] = 1; }\n"
    with pytest.raises(Unfollowable, match=words):
        instrument(f"{head}__kernel void one(__global float *x) {{ {body} }}", "one")


def test_derived_pointers_and_comments_are_followed():
    text = instrument(
        "__kernel void one(__global float *x) { // x[9]\n"
        "__global float *p = x + 1, *q = p + (int)x[0]; q[0] = p[1]; q += 2; }",
        "one",
    )
    assert text.count("touch_(log_,") == 3
    assert "x[9]" not in text
