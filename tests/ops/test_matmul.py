"""matmul: every rung of kernels/matmul.cl, every transpose, edges in both directions."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ops_helpers import (
    RUNGS,
    VERSIONS,
    assert_rejected,
    assert_within,
    at_any_size,
    check_operations,
    expected,
    rounded,
)

from llmcl import reference
from llmcl.errors import ShapeError
from llmcl.ops.linear import OPTIONS, multiply
from llmcl.versions import BIG, BLOCKS, GPU, MIDDLE, SMALL, Block, choose_tile

# Around tiles of 16, blocks of 16 and 32 columns, and stacks of 48 rows.
EDGES = st.sampled_from((1, 2, 5, 7, 13, 15, 16, 17, 31, 32, 33, 47, 49, 67, 97))
# The sum is taken in pieces of 256.
DEPTHS = st.sampled_from((1, 2, 5, 7, 15, 16, 17, 33, 67, 256, 257, 515))
# The package's own options, and others: tiles, blocks and stacks of any size are right.
EVERY_OPTIONS = [
    OPTIONS,
    ("-DTILE=5", "-DROWS=1", "-DVECTORS=3", "-DSTACK=1", "-DDEPTH=7"),
    ("-DTILE=8", "-DROWS=12", "-DVECTORS=2", "-DSTACK=3", "-DDEPTH=200"),
]
TRANSPOSES = [(False, False), (True, False), (False, True), (True, True)]


@at_any_size
def test_equals_numpy_at_any_size(engine, size, seed):
    check_operations(engine, ("matmul",), size, seed, 16)


@pytest.mark.parametrize("versions", VERSIONS, ids=str)
@pytest.mark.parametrize("transpose_a, transpose_b", TRANSPOSES)
@given(m=EDGES, n=EDGES, k=DEPTHS)
def test_every_edge_of_tiles_and_blocks(engine, versions, transpose_a, transpose_b, m, n, k):
    engine.use(versions)
    rng = np.random.default_rng(m * 10000 + n * 100 + k)
    a = rounded(rng, *((k, m) if transpose_a else (m, k)))
    b = rounded(rng, *((n, k) if transpose_b else (k, n)))
    c = engine.matmul(engine.from_host(a), engine.from_host(b), transpose_a, transpose_b)
    want, bound = expected("matmul", [a, b, transpose_a, transpose_b])
    assert_within(engine.to_host(c), want, bound)
    engine.check_guards()


@pytest.mark.parametrize("name", RUNGS["matmul"])
@pytest.mark.parametrize("local", [(1, 1), (3, 1), (1, 7), (16, 4), (8, 8)])
@given(m=EDGES, n=EDGES, k=DEPTHS)
def test_the_first_rungs(engine, name, local, m, n, k):
    rng = np.random.default_rng(m * 10000 + n * 100 + k)
    a, b = rounded(rng, m, k), rounded(rng, k, n)
    c = engine.empty((m, n))
    kernel = engine.program.kernel("matmul", name, OPTIONS)
    sizes = (m, n) if name == "matmul_naive" else (n, m)
    kernel(sizes, local, engine.from_host(a), engine.from_host(b), c, m, n, k)
    assert_within(engine.to_host(c), *expected("matmul", [a, b]))
    engine.check_guards()


def _run_rung(engine, name, a, b, start, options, transposed):
    """c of a rung that takes a bias or adds: a (m, k), b (k, n) in the order that it wants them."""
    (m, k), n = a.shape, b.shape[1]
    adds, tiled = name.endswith("_add"), "tiled" in name
    stored = np.ascontiguousarray(a.T) if transposed else a
    c = engine.from_host(start) if adds else engine.empty((m, n))
    bias = () if adds else (None if start is None else engine.from_host(start), None)
    strides = ((1, m) if transposed else (k, 1)) + (n, 1) if tiled else ()
    sizes = {part[0]: int(part[1]) for part in (o.removeprefix("-D").split("=") for o in options)}
    tile = sizes["TILE"]
    block = Block(*(sizes[part] for part in ("ROWS", "VECTORS", "STACK")))
    size, group = ((n, m), (tile, tile)) if tiled else (block.grid(name, m, n), (1, 1))
    if name == "matmul_packed":
        b = np.ascontiguousarray(b.T)
    args = engine.from_host(stored), engine.from_host(b), *bias, c, m, n, k, *strides
    engine.program.kernel("matmul", name, options)(size, group, *args)
    return engine.to_host(c)


@pytest.mark.parametrize("options", EVERY_OPTIONS)
@pytest.mark.parametrize("name", ["matmul_tiled", "matmul_blocked", "matmul_packed"])
@pytest.mark.parametrize("with_bias", [False, True])
@given(m=EDGES, n=EDGES, k=DEPTHS)
def test_a_bias_is_added_once_to_every_row(engine, options, name, with_bias, m, n, k):
    rng = np.random.default_rng(m * 10000 + n * 100 + k)
    a, b, bias = rounded(rng, m, k), rounded(rng, k, n), rounded(rng, n)
    got = _run_rung(engine, name, a, b, bias if with_bias else None, options, transposed=False)
    want, bound = expected("linear", [a, b, bias if with_bias else np.zeros(n)])
    assert_within(got, want, bound)
    engine.check_guards()


@pytest.mark.parametrize("options", EVERY_OPTIONS)
@pytest.mark.parametrize("name", ["matmul_tiled_add", "matmul_packed_add"])
@given(m=EDGES, n=EDGES, k=DEPTHS)
def test_a_transposed_product_is_added_to_what_is_there(engine, options, name, m, n, k):
    rng = np.random.default_rng(m * 10000 + n * 100 + k)
    a, b, start = rounded(rng, m, k), rounded(rng, k, n), rounded(rng, m, n)
    got = _run_rung(engine, name, a, b, start, options, transposed=True)
    # linear_backward adds x^T dy to dw, with a bound for it.
    args = [np.ascontiguousarray(a.T), np.zeros((m, n)), b, start, np.zeros(n)]
    assert_within(got, *expected("linear_backward", args, 1, written=(3, 4)))
    engine.check_guards()


@pytest.mark.parametrize("versions", VERSIONS, ids=str)
@pytest.mark.parametrize("add", (False, True))
@pytest.mark.parametrize("transpose_a", (False, True))
@pytest.mark.parametrize("transpose_b", (False, True))
def test_every_way_to_lie_adds_and_does_not(engine, versions, add, transpose_a, transpose_b):
    """The operations need some of these only; the others must not wait as traps."""
    engine.use(versions)
    a, b, start = np.random.default_rng(7).normal(size=(3, 9, 17))
    a, b, start = a[:5, :11], b[:7, :11].T, start[:5, :7]
    moved = [
        engine.from_host(np.ascontiguousarray(x.T if turned else x))
        for x, turned in ((a, transpose_a), (b, transpose_b))
    ]
    c = engine.from_host(start)
    options = {"transpose_a": transpose_a, "transpose_b": transpose_b, "add": add}
    multiply(*moved, c, 5, 7, 11, **options)
    want = a @ b + (start if add else 0)
    np.testing.assert_allclose(engine.to_host(c), want, rtol=1e-5, atol=1e-5)
    engine.check_guards()


@pytest.mark.parametrize("parts", [2, 3, 8])
def test_a_sum_cut_into_parts_is_the_same_sum(engine, monkeypatch, parts):
    engine.use(GPU)
    monkeypatch.setattr(
        sys.modules[multiply.__module__], "choose_tile", lambda *sizes: (SMALL, parts)
    )
    rng = np.random.default_rng(parts)
    a, b = rounded(rng, 17, 205), rounded(rng, 205, 33)
    c = engine.matmul(engine.from_host(a), engine.from_host(b))
    assert_within(engine.to_host(c), *expected("matmul", [a, b]))
    args = [a, b, rounded(rng, 33), rounded(rng, 17, 33)]
    y = engine.linear(*map(engine.from_host, args))
    assert_within(engine.to_host(y), *expected("linear", args))
    args = [a, b, rounded(rng, 17, 33), rounded(rng, 205, 33), rounded(rng, 33)]
    moved = [engine.from_host(array) for array in args]
    engine.linear_backward(*moved)
    want, bound = expected("linear_backward", args, 1, written=(3, 4))
    assert_within(engine.to_host(moved[3]), want, bound)
    engine.check_guards()


@pytest.mark.parametrize("k, slices", [(193, 2), (192, 2), (65, 2), (64, 2), (32, 1)])
def test_a_sum_is_cut_into_no_more_parts_than_asked(engine, monkeypatch, k, slices):
    """Each part holds whole tiles of the sum; a part too many takes room and time."""
    engine.use(GPU)
    seen, sizes, plain = [], [], engine.empty
    monkeypatch.setattr(
        sys.modules[multiply.__module__],
        "choose_tile",
        lambda *all: sizes.append(all) or (SMALL, 2),
    )
    monkeypatch.setattr(
        engine, "empty", lambda shape, *a: (seen.append(shape), plain(shape, *a))[1]
    )
    engine.matmul(engine.from_host(np.ones((3, k))), engine.from_host(np.ones((k, 5))))
    assert (slices, 3, 5) in seen and sizes[0][:3] == (3, 5, k)


@pytest.mark.parametrize("tile", (BIG, MIDDLE), ids=("big", "middle"))
@pytest.mark.parametrize("transposed", (False, True))
@pytest.mark.parametrize("m, n, k", [(67, 133, 41), (68, 132, 44)])  # one number a load, and four
def test_every_tile_of_a_gpu_is_right(engine, monkeypatch, tile, transposed, m, n, k):
    """The device of a test is too small to choose the large ones by itself."""
    engine.use(GPU)
    monkeypatch.setattr(sys.modules[multiply.__module__], "choose_tile", lambda *sizes: (tile, 1))
    rng = np.random.default_rng(m)
    a = rounded(rng, *((k, m) if transposed else (m, k)))
    b = rounded(rng, *((n, k) if transposed else (k, n)))
    c = engine.matmul(engine.from_host(a), engine.from_host(b), transposed, transposed)
    want, bound = expected("matmul", [a, b, transposed, transposed])
    assert_within(engine.to_host(c), want, bound)
    engine.check_guards()


@pytest.mark.parametrize(
    "m, n, k, tile, parts",
    [
        (4096, 4096, 4096, BIG, 1),
        (4096, 2304, 768, MIDDLE, 1),
        (768, 768, 4096, BIG, 6),  # few results, a long sum
        (800, 384, 128, SMALL, 1),  # too little for the chip
        (32, 50257, 768, SMALL, 1),  # thin: larger tiles would be half empty
    ],
)
def test_the_tile_of_a_gpu_suits_the_product(m, n, k, tile, parts):
    assert choose_tile(m, n, k, 132) == (tile, parts)


def test_small_whole_numbers_give_the_exact_product(any_engine):
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    c = any_engine.matmul(any_engine.from_host(a), any_engine.from_host(b))
    np.testing.assert_array_equal(any_engine.to_host(c), [[20, 23, 26, 29], [56, 68, 80, 92]])


@pytest.mark.parametrize("name", ["matmul_blocked", "matmul_packed", "matmul_packed_add"])
@given(m=EDGES, n=EDGES | st.sampled_from((48, 80, 128, 161)), k=DEPTHS)
def test_blocks_of_any_size_give_the_same_bits(engine, name, m, n, k):
    """What the timed trial chooses between must not show in any result, nor must packing."""
    rng = np.random.default_rng(m * 100000 + n * 1000 + k)
    a, b, add = rounded(rng, m, k), rounded(rng, k, n), name.endswith("_add")
    start = rounded(rng, m, n) if add else rounded(rng, n)
    every = [block.options for block in BLOCKS] + EVERY_OPTIONS[1:]
    results = [_run_rung(engine, name, a, b, start, options, add) for options in every]
    if name == "matmul_packed":
        results += [_run_rung(engine, "matmul_blocked", a, b, start, OPTIONS, add)]
    assert len({c.tobytes() for c in results}) == 1


def test_swapped_indices_and_a_short_sum_are_rejected():
    rng = np.random.default_rng(5)
    a, b = rounded(rng, 7, 7), rounded(rng, 7, 7)  # square: a swapped index keeps the shape
    assert_rejected("matmul", [a, b], b @ a)
    assert_rejected("matmul", [a, b], (a @ b).T)
    assert_rejected("matmul", [a, b], a.T @ b)
    assert_rejected("matmul", [a, b], a[:, :-1] @ b[:-1])
    assert_rejected("matmul", [a, b, True, False], a @ b)


def test_matrices_that_do_not_fit_are_named_with_their_sizes(any_engine):
    a, b = any_engine.from_host(np.zeros((2, 3))), any_engine.from_host(np.zeros((5, 3)))
    with pytest.raises(ShapeError, match=r"\(2, 3\) and \(5, 3\) do not fit; 3 must equal 5"):
        any_engine.matmul(a, b)
    assert any_engine.matmul(a, b, transpose_b=True).shape == (2, 5)
    with pytest.raises(ShapeError, match="two matrices are needed"):
        any_engine.matmul(a, any_engine.from_host(np.zeros(3)))


def test_the_reference_in_float64_is_far_more_exact_than_the_bound():
    rng = np.random.default_rng(6)
    a, b = rounded(rng, 5, 300), rounded(rng, 300, 4)
    want, bound = expected("matmul", [a, b])
    exact = [[sum(int(x * 2**40) * int(y * 2**40) for x, y in zip(row, col, strict=True))
              for col in b.T] for row in a]  # fmt: skip
    error = np.abs(want - np.array(exact, dtype=object) / 2**80).astype(float)
    assert (error < 1e-6 * bound).all()
    assert reference.matmul(a, b).dtype == np.float64
