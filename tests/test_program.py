"""program.py: signatures, compile errors in words, arguments that are refused before they run."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyopencl as cl
import pytest

from llmcl.device import choose
from llmcl.errors import KernelError
from llmcl.ops import Engine
from llmcl.program import (
    MOST_GRIDS,
    PORTABLE_LOCAL_BYTES,
    Program,
    explain_build_log,
    read_signatures,
)
from llmcl.resources import kernels_dir
from llmcl.tensor import Tensor


@pytest.fixture(scope="module")
def engine():
    return Engine(choose())


def described(parameter) -> tuple:
    marks = [m for m in ("written", "restrict", "optional") if getattr(parameter, m)]
    return (parameter.name, parameter.type, parameter.space, *marks)


# ---- signatures ----

SIGNATURES = {
    "plain": (
        "__kernel void f(__global const float *restrict x, __global float *y, const int n) {}",
        {"f": [("x", "float", "global", "restrict"), ("y", "float", "global", "written"),
               ("n", "int", "value")]},
    ),
    "without underscores, const behind": (
        "kernel void f(global float const *x, global int* restrict y, local float*z, uint n) {}",
        {"f": [("x", "float", "global"), ("y", "int", "global", "written", "restrict"),
               ("z", "float", "local"), ("n", "uint", "value")]},
    ),
    "comments, commas and brackets in them": (
        "__kernel void f(__global float *x, // (rows, n), not (n)\n /* int y, */ const int n) {}\n"
        "// __kernel void g(const int n) {}\n/* __kernel void h(const int n)\n{} */",
        {"f": [("x", "float", "global", "written"), ("n", "int", "value")]},
    ),
    "attributes": (
        "__kernel __attribute__((reqd_work_group_size(16, 1, 1)))\nvoid f(const int n) {}\n"
        "__attribute__((vec_type_hint(float4))) __kernel void g(const int n) {}",
        {"f": [("n", "int", "value")], "g": [("n", "int", "value")]},
    ),
    "what may be NULL": (
        "__kernel void f(__global const float *x,   // (n) or NULL\n"
        "  __global const float *y, const int n,   // (3)\n"
        "  __global const int *z // (n), or NULL for none\n) {}",
        {"f": [("x", "float", "global", "optional"), ("y", "float", "global"),
               ("n", "int", "value"), ("z", "int", "global", "optional")]},
    ),
    "several kernels, helpers between": (
        "float h(__global const float *p) { return p[0]; }\n"
        "__kernel void f(\n    __global float *x\n)\n{ x[0] = h(x); }\n"
        "__kernel void g(const float a, const unsigned int n) {}",
        {"f": [("x", "float", "global", "written")],
         "g": [("a", "float", "value"), ("n", "uint", "value")]},
    ),
    "none at all": ("void f(const int n) {}", {}),
    "no parameters": ("__kernel void f(void) {} __kernel void g() {}", {"f": [], "g": []}),
    "constant memory, an array": (
        "__kernel void f(__constant float *x, __global float y[]) {}",
        {"f": [("x", "float", "global"), ("y", "float", "global", "written")]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SIGNATURES)
def test_signatures_are_read_from_the_text(case):
    text, want = SIGNATURES[case]
    found = read_signatures(text)
    assert {name: [described(p) for p in found[name]] for name in found} == want


@pytest.mark.parametrize("kind", ("float4", "double", "size_t", "image2d_t"))
def test_a_parameter_of_a_type_that_cannot_be_checked_is_refused(kind):
    with pytest.raises(KernelError, match=f"'const {kind} a' has a type .* use float, int, uint"):
        read_signatures(f"__kernel void f(const {kind} a, const int n) {{}}")


@pytest.mark.parametrize("path", sorted(kernels_dir().glob("*.cl")), ids=lambda path: path.stem)
def test_the_signatures_that_we_read_are_those_that_the_compiler_sees(engine, path):
    """By clGetKernelArgInfo, which needs a flag that is set only here."""
    text = path.read_text(encoding="utf-8")
    options = ["-cl-std=CL1.2", "-cl-kernel-arg-info"]
    program = cl.Program(engine.device.context, text).build(options, cache_dir=False)
    kernels = {kernel.function_name: kernel for kernel in program.all_kernels()}
    info, qualifiers = cl.kernel_arg_info, cl.kernel_arg_type_qualifier
    spaces = cl.kernel_arg_address_qualifier
    signatures = read_signatures(text)
    assert signatures.keys() == kernels.keys()
    for name, parameters in signatures.items():
        assert kernels[name].num_args == len(parameters)
        for i, parameter in enumerate(parameters):

            def ask(what, kernel=kernels[name], i=i):
                return kernel.get_arg_info(i, what)

            assert ask(info.NAME).removeprefix("_cl_") == parameter.name  # PoCL renames some
            assert ask(info.TYPE_NAME).rstrip("*") == parameter.type
            space = {spaces.GLOBAL: "global", spaces.LOCAL: "local", spaces.PRIVATE: "value"}
            assert space[ask(info.ADDRESS_QUALIFIER)] == parameter.space
            qualifier = ask(info.TYPE_QUALIFIER)
            assert bool(qualifier & qualifiers.RESTRICT) == parameter.restrict
            if parameter.space == "global":
                assert bool(qualifier & qualifiers.CONST) != parameter.written


# ---- compile errors ----

BEFORE = "__kernel void f(__global float *x, const int n)\n{\n    const int i = get_global_id(0);\n"
MISTAKES = {
    "an undeclared name": ("    if (i < n) x[i] = y;\n", 4, "undeclared identifier 'y'"),
    "a missing semicolon": ("    x[i] = 1.0f\n", 4, "expected ';'"),
    "an unknown function": ("\n    x[i] = cube(2.0f);\n", 5, "cube"),
    "a wrong type": ("\n\n    int *p = 1.0f;\n", 6, "incompatible type"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("device", ("default", "oclgrind"))
def test_a_compile_error_shows_the_numbered_line_of_our_text(request, device, mistake):
    """And nothing of the compiler's own: no folder, no repeated error code."""
    program = request.getfixturevalue("engine").program
    if device == "oclgrind":
        program = request.getfixturevalue("simulator")
    line, number, words = MISTAKES[mistake]
    text = f"{BEFORE}{line}}}\n"
    with pytest.raises(KernelError) as raised:
        program.compile(text, "my kernel")
    said = str(raised.value).splitlines()
    assert said[0].startswith(f"my kernel does not compile. Line {number}:")
    assert words in said[0]
    marked = [part for part in said[1:] if part.startswith(">")]
    assert marked == [f">{number:4d} | {text.splitlines()[number - 1]}"]
    assert "BUILD_PROGRAM_FAILURE" not in str(raised.value) and len(said) <= 6
    assert "/" not in str(raised.value)


@pytest.fixture(scope="module")
def simulator():
    from strict import _installed

    if not _installed():
        pytest.skip("Oclgrind's wheel exists for Linux on x86-64 only")
    return Program(choose("oclgrind"))


LOGS = {
    "clang": "input.cl:3:9: error: use of undeclared identifier 'y'\n x = y;\n     ^",
    "PoCL 3": "error: /cache/a b/tempfile_x1.cl:3:9: use of undeclared identifier 'y'",
    "Intel": "Compilation started\n3:9: error: use of undeclared identifier 'y'\nfailed",
    "NVIDIA": "<kernel>:3:9: error: use of undeclared identifier 'y'",
    "without a column": "prog.cl:3: error: use of undeclared identifier 'y'",
    "a warning": "a.cl:1:1: warning: unused\na.cl:3:9: error: use of undeclared identifier 'y'",
    "two errors": "a.cl:3:9: error: use of undeclared identifier 'y'\na.cl:4:1: error: more",
}


@pytest.mark.parametrize("maker", LOGS)
def test_the_first_error_is_found_in_any_compiler_s_log(maker):
    said = explain_build_log("k.cl", "one\ntwo\nthree\nfour\n", LOGS[maker])
    first, *shown = said.splitlines()
    assert first == "k.cl does not compile. Line 3: use of undeclared identifier 'y'"
    assert shown == ["    1 | one", "    2 | two", ">   3 | three", "    4 | four"]


def test_a_log_without_a_line_is_passed_on_in_one_sentence():
    assert explain_build_log("k.cl", "", "\nout of registers\nmore") == (
        "k.cl does not compile: out of registers; if the text is right, the disk may be full or "
        "the driver broken, see `llmcl doctor`."
    )
    assert "the compiler gives no reason" in explain_build_log("k.cl", "", "")


def test_a_text_without_a_kernel_is_refused(engine):
    with pytest.raises(KernelError, match="notes.cl holds no __kernel function"):
        engine.program.compile("float half_of(float x) { return x / 2.0f; }", "notes.cl")


def test_unknown_files_and_kernels_are_answered_with_what_there_is(engine, tmp_path):
    with pytest.raises(KernelError, match=r"no kernel file sofmax.cl; there are: .*softmax"):
        engine.program.kernel("sofmax", "softmax_forward")
    with pytest.raises(KernelError, match=r"softmax.cl has no kernel 'softmax'; .*softmax_forward"):
        engine.program.kernel("softmax", "softmax")
    with pytest.raises(KernelError, match="there are: none"):
        Program(engine.device, tmp_path).kernel("softmax", "softmax_forward")


def test_kernels_are_built_once_and_kept(engine, recwarn):
    first = engine.program.kernel("fill", "fill")
    x = engine.zeros((5,))
    for _ in range(3):
        assert engine.program.kernel("fill", "fill") is first
        engine.fill(x, 1.0)
    assert engine.program.kernel("matmul", "matmul_naive", ("-DTILE=8",)) is not (
        engine.program.kernel("matmul", "matmul_naive", ("-DTILE=4",))
    )
    assert not recwarn.list


# ---- arguments ----

TEXT = """
__kernel void scale(__global const float *restrict x, __global float *restrict y,
                    __global const int *restrict ids, const float factor, const int n)
{
    const int i = get_global_id(0);
    if (i < n) y[i] = factor * x[i] + ids[i];
}
__kernel void group(__global float *restrict y, __local float *part, const uint n)
{
    part[get_local_id(0)] = n;
    y[get_global_id(0)] = part[get_local_id(0)];
}
__kernel void maybe(__global float *restrict y,
                    __global const float *restrict x)        // (1) or NULL
{
    y[0] = x ? x[0] : -1.0f;
}
"""


@pytest.fixture(scope="module")
def kernels(engine):
    return engine.program.compile(TEXT, "text")


@pytest.fixture
def tensors(engine):
    """x, y and ids of 5 elements."""
    return (
        engine.from_host(np.arange(5.0)),
        engine.from_host(np.full(5, 7.0)),
        engine.from_host(np.arange(5)),
    )


def test_right_arguments_run_with_a_global_size_that_is_rounded_up(engine, kernels, tensors):
    x, y, ids = tensors
    numbers = [(2.0, 5), (2, 5), (np.float32(2), np.int32(5)), (np.float64(2), np.int64(5))]
    for n, (factor, count) in zip((1, 5, 7, 16), numbers, strict=True):
        engine.fill(y, 0.0)
        kernels["scale"]((5,), (n,), x, y, ids, factor, count)
        np.testing.assert_array_equal(engine.to_host(y), 3 * np.arange(5))


def refused(kernel, *args, sizes=((5,), (4,))) -> str:
    """What a launch says that must not take place."""
    with pytest.raises(KernelError) as raised:
        kernel(*sizes, *args)
    return str(raised.value)


def test_a_wrong_number_of_arguments_lists_the_right_ones(kernels, tensors):
    x, y, ids = tensors
    said = refused(kernels["scale"], x, y, 2.0, 5)
    assert said == "scale takes 5 arguments (x, y, ids, factor, n); 4 were given."
    assert "6 were given" in refused(kernels["scale"], x, y, ids, 2.0, 5, 5)


def wrong(place, value):
    """Arguments of `scale` of which one is wrong."""

    def build(tensors):
        args = [*tensors, 2.0, 5]
        args[place] = value(tensors) if callable(value) else value
        return args

    return build


WRONG = {
    "a NumPy array": (wrong(0, np.zeros(5, np.float32)),
                      ["x must be a float32 tensor", "NumPy array of float32", "from_host"]),
    "a NumPy array of doubles": (wrong(0, np.zeros(5)), ["NumPy array of float64"]),
    "ids where numbers belong": (wrong(0, lambda t: t[2]), ["x must be a float32", "of int32"]),
    "numbers where ids belong": (wrong(2, lambda t: t[0]), ["ids must be a", "int32", "float32"]),
    "None": (wrong(0, None), ["x must be a float32 tensor", "None"]),
    "None for a result": (wrong(1, None), ["y must be a float32 tensor", "None"]),
    "a number for a tensor": (wrong(0, 3.5), ["x must be a float32 tensor", "3.5", "order"]),
    "a list": (wrong(0, [1.0, 2.0]), ["x must be a float32 tensor", r"\[1.0, 2.0\]"]),
    "a float for an int": (wrong(4, 5.0), ["n must be a whole number", "float 5.0"]),
    "a NumPy float for an int": (wrong(4, np.float32(5)), ["n must be a whole number", "float32"]),
    "a NumPy int for a float": (wrong(3, np.int32(2)), ["factor must be a number", "int32"]),
    "a text": (wrong(3, "2"), ["factor must be a number", "str '2'"]),
    "a tensor for a number": (wrong(3, lambda t: t[0]), ["factor must be a number", "Tensor"]),
    "an int that needs more bits": (wrong(4, 2**40), ["n is 1099511627776", "2147483647"]),
    "a negative int of too many": (wrong(4, -(2**31) - 1), ["n is -2147483649", "-2147483648"]),
    "a float that is too large": (wrong(3, 1e300), ["factor is 1e.300", "numbers from -3.40"]),
    "a whole number that is too large": (wrong(3, -(10**40)), ["factor is -1000", "3.40"]),
    "a NumPy float that is too large": (wrong(3, np.float64(4e38)), ["factor is 4e.38"]),
    "the wrong order": (lambda t: [t[0], t[1], 2.0, t[2], 5], ["ids must be", "2.0", "order"]),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_argument_is_named_and_nothing_runs(engine, kernels, tensors, mistake):
    build, words = WRONG[mistake]
    with pytest.raises(KernelError) as raised:
        kernels["scale"]((5,), (4,), *build(tensors))
    for word in ["scale", *words]:
        assert raised.match(word)
    np.testing.assert_array_equal(engine.to_host(tensors[1]), 7)  # y is as it was


def test_infinity_nan_and_every_numpy_float_are_numbers(engine, kernels, tensors):
    x, y, ids = tensors
    for factor, want in ((np.inf, np.inf), (np.nan, np.nan), (np.float16(2), 3), (True, 2)):
        kernels["scale"]((5,), (4,), x, y, ids, factor, 5)
        assert np.array_equal(engine.to_host(y)[1], want, equal_nan=True)


def test_every_launch_is_checked_however_often_it_went_well_before(engine, kernels, tensors):
    x, y, ids = tensors
    scale, sizes = kernels["scale"], ((5,), (4,))
    for _ in range(3):
        scale(*sizes, x, y, ids, 2.0, 5)
        assert "of int32" in refused(scale, Tensor(x.buffer, (5,), ids.dtype, engine), y, ids, 2, 5)
        assert "same buffer" in refused(scale, y, y, ids, 2.0, 5)
        assert "float 5.0" in refused(scale, x, y, ids, 2.0, 5.0)
        assert "were given" in refused(scale, x, y, ids, 2.0)
        assert "'5'" in refused(scale, x, y, ids, 2.0, 5, sizes=(("5",), (4,)))
        scale(*sizes, x, y, ids, 3, 4)  # other numbers, other results
        np.testing.assert_array_equal(engine.to_host(y), [0, 4, 8, 12, 12])


def test_a_buffer_that_is_given_back_and_taken_again_is_the_new_tensor_s(engine, kernels):
    ids = engine.from_host(np.zeros(5, np.int32))
    for k in range(50):
        x, y = engine.from_host(np.full(5, float(k))), engine.empty((5,))
        kernels["scale"]((5,), (4,), x, y, ids, 2.0, 5)
        np.testing.assert_array_equal(engine.to_host(y), 2 * k)
        del x, y
        if k % 10 == 9:
            engine.forget_free_memory()


def test_the_sizes_that_are_remembered_do_not_grow_without_end(engine, kernels, tensors):
    scale = kernels["scale"]
    for n in range(1, 3 * MOST_GRIDS):
        scale((n,), (1 + n % 4,), *tensors, 2.0, 0)
        assert len(scale._grids) <= MOST_GRIDS
    engine.finish()


def test_threads_and_engines_do_not_take_each_other_s_arguments(engine):
    def work(number):
        own = engine if number % 2 else Engine(engine.device)
        x, y, ids = own.zeros((5,)), own.empty((5,)), own.from_host(np.full(5, number))
        scale = own.program.compile(TEXT)["scale"] if own is not engine else shared
        for _ in range(100):
            scale((5,), (4,), x, y, ids, float(number), 5)
        return (own.to_host(y) == number).all()

    shared = engine.program.compile(TEXT)["scale"]
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_a_buffer_that_is_read_and_written_is_refused_where_restrict_forbids_it(
    engine, kernels, tensors
):
    x, _, ids = tensors
    said = refused(kernels["scale"], x, x, ids, 2.0, 5)
    assert "y and x are the same buffer" in said and "restrict" in said
    assert "same buffer" in refused(kernels["scale"], x, x.reshape(5, 1), ids, 2.0, 5)
    # residual_add promises nothing of the kind, and may work in place.
    engine.launch("residual", "residual_add", 5, x, x, x, 5)
    np.testing.assert_array_equal(engine.to_host(x), 2 * np.arange(5))


def test_null_is_only_taken_where_the_kernel_s_text_says_so(engine, kernels):
    y = engine.zeros((1,))
    kernels["maybe"]((1,), (1,), y, None)
    assert engine.to_host(y)[0] == -1
    kernels["maybe"]((1,), (1,), y, engine.from_host(np.array([3.0])))
    assert engine.to_host(y)[0] == 3
    assert "y must be" in refused(kernels["maybe"], None, y)


def test_a_group_above_the_limit_is_refused_with_both_numbers(engine, kernels, tensors):
    limit = kernels["scale"].max_group
    for size in (2 * limit, limit + 1):
        said = refused(kernels["scale"], *tensors, 2.0, 5, sizes=((5,), (size,)))
        assert f"work-group of {size}" in said and f"allows {limit}" in said
        assert engine.name in said
    flat = ((5, 1), (limit, 2))
    assert f"work-group of {2 * limit}" in refused(kernels["scale"], *tensors, 2.0, 5, sizes=flat)


@pytest.mark.parametrize(
    "sizes",
    [((5,), (4, 1)), ((5, 1), (4,)), (5, 4), ((), ()), ((0,), (4,)), ((5,), (0,)), ((-5,), (4,)),
     ((5, 1), (-4, -1)), ((5,), None), (("5",), (4,))],
)  # fmt: skip
def test_sizes_that_make_no_grid_are_refused_with_their_values(kernels, tensors, sizes):
    said = refused(kernels["scale"], *tensors, 2.0, 5, sizes=sizes)
    assert repr(sizes[0]) in said and repr(sizes[1]) in said and "whole numbers above zero" in said


def test_local_memory_above_the_portable_limit_is_refused_with_both_numbers(engine, kernels):
    y = engine.empty((16,))
    limit = min(engine.device.info.local_mem_bytes, PORTABLE_LOCAL_BYTES)
    kernels["group"]((16,), (16,), y, limit, 3)
    assert engine.to_host(y)[0] == 3
    kernels["group"]((16,), (16,), y, np.int64(64), 4)
    assert engine.to_host(y)[0] == 4
    # 66 is a count of numbers that somebody took for bytes, or the reverse.
    for count in (limit + 4, 40 * 1024, 0, -4, 64.0, 66, np.int64(limit + 4)):
        said = refused(kernels["group"], y, count, 3, sizes=((16,), (16,)))
        assert repr(count) in said and str(limit) in said
        assert str(engine.device.info.local_mem_bytes) in said and "part" in said
    assert PORTABLE_LOCAL_BYTES == 32768


def test_a_negative_number_for_an_unsigned_one_is_refused(engine, kernels):
    y = engine.empty((16,))
    for n in (-1, 2**32):
        assert f"n is {n}" in refused(kernels["group"], y, 64, n, sizes=((16,), (16,)))


def test_the_bits_that_a_wrong_type_would_have_become():
    """Why the checks exist: what a kernel sees of doubles, of 64-bit ids, of a whole number."""
    doubles = np.array([1.0, 2, 3, 4])
    np.testing.assert_array_equal(doubles.view(np.float32)[:4], [0, 1.875, 0, 2])
    np.testing.assert_array_equal(np.array([7, 8, 9, 10]).view(np.int32)[:4], [7, 0, 8, 0])
    assert np.int32(2).view(np.float32) == pytest.approx(2.8e-45)


# ---- tensors ----


def test_a_tensor_can_be_reshaped_but_not_resized(engine):
    x = engine.from_host(np.arange(6.0))
    y = x.reshape(2, 3)
    assert isinstance(y, Tensor) and y.shape == (2, 3) and y.buffer is x.buffer
    np.testing.assert_array_equal(engine.to_host(y), [[0, 1, 2], [3, 4, 5]])
    with pytest.raises(Exception, match=r"shape \(6,\) has 6 elements .* shape \(2, 2\)"):
        x.reshape(2, 2)
    assert repr(y) == f"Tensor(2, 3) float32 on {engine.name}"
