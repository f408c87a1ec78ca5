"""Engines: one interface on OpenCL and on NumPy, and everything that goes in and out of them."""

import inspect
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from llmcl import ops, reference, versions
from llmcl.device import choose
from llmcl.engine import get_engine
from llmcl.errors import DeviceError, ShapeError
from llmcl.layout import STEP, layout
from llmcl.ops import Engine


@pytest.fixture(scope="module")
def opencl():
    return Engine(choose())


@pytest.fixture(scope="module", params=["NumPy", "OpenCL", "OpenCL, exact"])
def engine(request):
    if request.param == "NumPy":
        return reference.Engine(np.float32)
    if request.param == "OpenCL":
        return request.getfixturevalue("opencl")
    return Engine(request.getfixturevalue("opencl").device, exact=True)


# ---- one interface ----


def test_both_engines_offer_the_same_operations_with_the_same_arguments():
    assert [op.__name__ for op in ops.OPERATIONS] == [op.__name__ for op in reference.OPERATIONS]
    for ours, theirs in zip(ops.OPERATIONS, reference.OPERATIONS, strict=True):
        assert inspect.signature(ours) == inspect.signature(theirs), ours.__name__
        assert ours.__doc__ and theirs.__doc__, ours.__name__


def test_every_operation_lies_in_a_module_of_one_name_in_both_packages():
    for ours, theirs in zip(ops.OPERATIONS, reference.OPERATIONS, strict=True):
        assert ours.__module__.rsplit(".", 1)[1] == theirs.__module__.rsplit(".", 1)[1]


def test_both_engines_offer_the_same_methods_for_data():
    shared = ("from_host", "to_host", "empty", "zeros", "flat", "write", "copy", "finish")
    for name in shared:
        ours = inspect.signature(getattr(Engine, name)).parameters
        theirs = inspect.signature(getattr(reference.Engine, name)).parameters
        assert list(ours) == list(theirs), name
    for engine in (Engine(choose()), reference.Engine()):
        for operation in ops.OPERATIONS:
            assert callable(getattr(engine, operation.__name__))


# ---- get_engine ----


def test_numpy_is_an_engine_in_either_precision(monkeypatch):
    assert get_engine("numpy").dtype == np.float32
    assert get_engine(" NumPy ").dtype == np.float32
    assert get_engine("numpy64").dtype == np.float64
    monkeypatch.setenv("LLMCL_DEVICE", "numpy")
    assert get_engine().dtype == np.float32 and get_engine().device is None


def test_an_engine_is_taken_from_a_device_s_name_or_the_variable(monkeypatch, opencl):
    assert get_engine(opencl.device.info.index).name == opencl.name
    assert get_engine(exact=True, wanted=0).exact
    monkeypatch.setenv("LLMCL_DEVICE", "no such thing")
    with pytest.raises(DeviceError, match="no such thing.*numpy"):
        get_engine()


@pytest.mark.parametrize("local_size", (1, 3, 7, 16, 64))
def test_a_group_may_have_any_size_that_the_device_allows(local_size):
    engine = Engine(choose(local_size=local_size))
    assert engine.local_size == local_size
    x = engine.from_host(np.arange(5.0))
    np.testing.assert_array_equal(engine.to_host(engine.residual(x, x)), 2 * np.arange(5))


# ---- into the engine and out of it ----


@given(
    array=arrays.arrays(
        dtype=st.sampled_from([np.float64, np.float32, np.float16, np.int64, np.int32, np.uint8]),
        shape=arrays.array_shapes(max_dims=4, max_side=5),
        elements=st.integers(0, 100),
    ),
    view=st.sampled_from(["as it is", "transposed", "Fortran", "every second", "reversed"]),
)
def test_what_goes_in_comes_out_whatever_its_order_in_memory(engine, array, view):
    array = {
        "as it is": lambda a: a, "transposed": lambda a: a.T, "Fortran": np.asfortranarray,
        "every second": lambda a: a[..., ::2], "reversed": lambda a: a[::-1],
    }[view](array)  # fmt: skip
    tensor = engine.from_host(array)
    assert tuple(tensor.shape) == array.shape
    assert tensor.dtype == (np.float32 if array.dtype.kind == "f" else np.int32)
    np.testing.assert_array_equal(engine.to_host(tensor), array)


def test_a_transposed_array_arrives_transposed_in_a_kernel_too(engine):
    x = np.arange(6.0).reshape(2, 3)
    for view, want in (
        (x.T, [[0, 3], [1, 4], [2, 5]]),
        (x[:, ::2], [[0, 2], [3, 5]]),
        (np.asfortranarray(x), [[0, 1, 2], [3, 4, 5]]),
    ):
        moved = engine.from_host(view)
        zero = engine.zeros(view.shape)
        np.testing.assert_array_equal(engine.to_host(engine.residual(moved, zero)), want)


def test_doubles_and_lists_are_rounded_to_float32(engine):
    moved = engine.from_host([0.1, 1e-3, 16777217.0])
    np.testing.assert_array_equal(engine.to_host(moved), np.float32([0.1, 1e-3, 16777216]))


@pytest.mark.parametrize(
    "array, said",
    [
        (np.array([[1, 2**31]]), r"2147483648 at \(0, 1\) does not fit into 32 bits"),
        (np.array([0, -(2**31) - 1]), r"-2147483649 at \(1,\)"),
        (np.array([2**32 - 1], np.uint32), r"4294967295 at \(0,\)"),
        (np.array([2**63], np.uint64), "9223372036854775808"),
    ],
)
def test_a_whole_number_that_needs_more_bits_is_named_with_its_place(engine, array, said):
    with pytest.raises(ShapeError, match=said):
        engine.from_host(array)


def test_the_largest_whole_numbers_pass(engine):
    ids = np.array([2**31 - 1, -(2**31)], np.int64)
    np.testing.assert_array_equal(engine.to_host(engine.from_host(ids)), ids)


@pytest.mark.parametrize("array", (np.array(["a"]), np.array([True]), np.array([1j]), [None]))
def test_what_is_no_number_is_refused(engine, array):
    with pytest.raises(ShapeError, match="use numbers"):
        engine.from_host(array)


def test_an_array_may_be_changed_as_soon_as_it_was_handed_over(engine):
    for k in range(100):
        array, ids = np.full(1000, float(k), np.float32), np.full((1, 10), k % 5, np.int32)
        moved, tokens = engine.from_host(array), engine.from_host(ids)
        array += 1
        ids += 1000
        assert (engine.to_host(moved) == k).all()
        assert (engine.to_host(tokens) == k % 5).all()
        engine.embedding(tokens, engine.zeros((5, 2)), engine.zeros((10, 2)))  # still ids below 5
        out = engine.to_host(moved)
        out += 1
        assert (engine.to_host(moved) == k).all()


def test_zeros_are_zeros_and_empty_has_the_shape(engine):
    assert (engine.to_host(engine.zeros((3, 4))) == 0).all()
    counts = engine.zeros((2,), np.int32)
    assert counts.dtype == np.int32 and (engine.to_host(counts) == 0).all()
    assert tuple(engine.empty((2, 5)).shape) == (2, 5)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (2**16, 2**15), (2**31,)])
def test_a_tensor_of_no_elements_or_too_many_is_refused_with_its_size(opencl, shape):
    with pytest.raises(ShapeError, match=f"{int(np.prod(shape, dtype=np.int64))} elements"):
        opencl.empty(shape)


@pytest.mark.parametrize("shapes", [{"a": (2**30,), "b": (2, 2**29)}, {"a": (2**31 - 1,)}])
def test_parameters_that_are_too_many_in_all_are_refused_before_they_take_room(opencl, shapes):
    with pytest.raises(ShapeError, match="2147483648 elements"):
        opencl.flat(shapes)


def test_an_array_of_no_elements_is_refused(opencl):
    with pytest.raises(ShapeError, match=r"shape \(0, 3\) has 0 elements"):
        opencl.from_host(np.zeros((0, 3)))


def test_a_device_that_is_too_small_is_told_in_mebibytes(opencl, monkeypatch):
    def full(*_):
        raise cl.MemoryError("clCreateBuffer")

    monkeypatch.setattr(opencl, "_pool", SimpleNamespace(allocate=full))
    with pytest.raises(DeviceError, match=r"no room for 40.0 MiB more .* smaller batch"):
        opencl.empty((10, 2**20))


# ---- the block of its products ----


def test_the_block_is_chosen_once_for_a_device_and_kept(opencl, monkeypatch):
    assert Engine(opencl.device).block in versions.BLOCKS

    def again(_):
        raise AssertionError("measured although the choice is known")

    monkeypatch.setattr(versions, "_fastest", again)
    assert Engine(opencl.device).block in versions.BLOCKS
    assert Engine(opencl.device, exact=True).block == versions.BLOCKS[0]


def test_any_chosen_block_gives_the_same_bits(opencl):
    rng, results = np.random.default_rng(0), set()
    x, w, b = (rng.normal(size=shape) for shape in ((53, 40), (40, 47), (47,)))
    for block in versions.BLOCKS:
        engine = Engine(opencl.device)
        engine.product, engine.block = "blocked", block
        y = engine.linear(*(engine.from_host(part) for part in (x, w, b)))
        results.add(engine.to_host(y).tobytes())
    assert len(results) == 1 < len(versions.BLOCKS)


# ---- rows in and out ----


def test_rows_are_written_and_copied_where_they_belong(engine):
    target, want = engine.zeros((1, 5, 3)), np.zeros((1, 5, 3))
    engine.write(target, np.full((2, 3), 7.0), row=1)
    want[0, 1:3] = 7
    np.testing.assert_array_equal(engine.to_host(target), want)
    engine.copy(target, engine.from_host(np.full((1, 2, 3), 9.0)), row=3)
    want[0, 3:] = 9
    np.testing.assert_array_equal(engine.to_host(target), want)


@pytest.mark.parametrize("rows, row", [((1, 2, 3), 4), ((1, 2, 3), -1), ((6, 3), 0), ((2, 4), 0)])
def test_rows_that_do_not_fit_are_refused_and_nothing_changes(engine, rows, row):
    target = engine.zeros((1, 5, 3))
    with pytest.raises(ShapeError, match=rf"do not fit into \(1, 5, 3\) from row {row}"):
        engine.copy(target, engine.from_host(np.ones(rows)), row=row)
    with pytest.raises(ShapeError, match="do not fit"):
        engine.write(target, np.ones(rows), row=row)
    assert (engine.to_host(target) == 0).all()


def test_ids_that_are_written_later_are_checked_as_well(engine):
    ids = engine.from_host(np.zeros((1, 3), np.int32))
    engine.write(ids, np.array([[1, 2, 9]]))
    with pytest.raises(Exception, match=r"token id 9 at \(0, 2\)"):
        engine.embedding(ids, engine.zeros((5, 2)), engine.zeros((4, 2)))


# ---- parameters in one piece ----

SHAPES = {"a": (3, 5), "b": (256,), "c": (257,), "d": (1,)}


def test_every_part_starts_at_a_multiple_of_1024_bytes():
    starts, end = layout(SHAPES)
    assert STEP * 4 == 1024
    assert starts == {"a": 0, "b": 256, "c": 512, "d": 1024} and end == 1280
    assert layout({}) == ({}, 0)


def test_parts_are_views_of_the_whole_and_the_padding_is_zero(engine):
    whole, parts = engine.flat(SHAPES)
    assert {name: tuple(part.shape) for name, part in parts.items()} == SHAPES
    for k, (name, part) in enumerate(parts.items()):
        assert (engine.to_host(part) == 0).all()
        engine.write(part, np.full(SHAPES[name], k + 1.0))
        engine.fill(part, k + 1.0)
    assert [len(whole)] == [4 if engine.exact else 1]
    if not engine.exact:
        want = np.zeros(1280)
        for k, (start, size) in enumerate(((0, 15), (256, 256), (512, 257), (1024, 1))):
            want[start : start + size] = k + 1
        np.testing.assert_array_equal(engine.to_host(whole[0]), want)
    engine.finish()
