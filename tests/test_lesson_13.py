"""Lesson 13: the item touches what its kernel touches, and what is counted by hand is right."""

import re

import numpy as np
import pytest
from touches import assert_same_touches

from lesson_helpers import code
from llmcl.lab import kernels, lessons
from llmcl.resources import kernels_dir
from notebook_builder import FOLDER, build

BENCHMARKS = FOLDER.parent / "benchmarks"


@pytest.fixture(scope="module")
def cells():
    return [cell.source for cell in code(build.assemble("13_faster", solved=True))]


@pytest.fixture(scope="module")
def names(cells, tmp_path_factory):
    """What the lesson's cells define up to the first that needs a device, with the solutions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        for source in cells:
            if "get_engine" in source:
                break
            if not any(word in source for word in ("kernel_exercise", "explore(", "view_items")):
                exec(source, defined)
        for source in cells:
            if "def draw_side" in source:
                exec(source.split("lab.explore(")[0], defined)
            if "def one_pass" in source or "def table_bytes" in source:
                exec(source, defined)
        yield defined


@pytest.mark.parametrize("sizes", [(6, 5, 7), (5, 3, 2), (1, 4, 3)])
def test_four_rows_item_touches_what_the_exercise_s_kernel_touches(names, sizes):
    m, k, n = sizes
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((m, k), (k, n)))
    args = a, b, np.zeros((m, n), np.float32), m, n, k
    text = lessons.find("13.3").text
    size = n, -(-m // 4)
    assert_same_touches(names["four_rows_item"], size, args, text, "four_rows", group=(2, 2))


def test_naive_item_touches_what_matmul_naive_touches(names):
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((5, 6), (6, 7)))
    args = a, b, np.zeros((5, 7), np.float32), 5, 7, 6
    text = (kernels_dir() / "matmul.cl").read_text(encoding="utf-8")
    text = text[: text.index("__kernel void matmul_tiled")]
    assert_same_touches(names["naive_item"], (5, 7), args, text, "matmul_naive", group=(4, 4))


def test_the_intensity_is_the_work_by_the_bytes_of_the_arrays(names):
    for m, k, n in ((384, 384, 384), (1, 4096, 4096), (3, 5, 7)):
        carried = 4 * (m * k + k * n + m * n)
        assert names["intensity"](m, k, n) == pytest.approx(2 * m * k * n / carried, rel=1e-12)
    assert names["intensity"](384, 384, 384) == 384 / 6


def test_the_picture_of_the_roof_says_where_the_point_is(names):
    for side in (1, 2, 4, 8, 16, 32, 64):
        said = names["side_words"](side)
        reached = names["roof"](side / 4, 40, 200)
        assert f"at most {reached:g} GFLOP/s" in said
        assert ("carrying is the limit" in said) == (reached < 200)


def test_one_pass_is_softmax_and_a_sum_whatever_the_order(names):
    rng = np.random.default_rng(3)
    scores, values = rng.normal(0, 5, 30), rng.normal(size=(30, 4))
    shares = np.exp(scores - scores.max())
    want = shares @ values / shares.sum()
    for order in (np.arange(30), np.argsort(scores), np.argsort(-scores)):
        got = names["one_pass"](scores[order], values[order])
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)


def test_the_tables_are_those_that_three_kernels_write(names):
    from llmcl import reference

    qkv = np.random.default_rng(4).normal(size=(1, 32, 3 * 16))
    shares, log_sum = reference.attention(qkv, 4)[1], reference.fused_attention(qkv, 4)[1]
    assert names["table_bytes"](32) == 2 * 4 * shares.size
    assert names["kept_bytes"](32) == 4 * log_sum.size


def test_a_kernel_with_an_attribute_is_shown_from_its_comment_on():
    lines, first = kernels.find_kernel("matmul", "matmul_blocked")
    text = (kernels_dir() / "matmul.cl").read_text(encoding="utf-8").splitlines()
    assert lines == text[first - 1 : first - 1 + len(lines)]
    assert lines[0].startswith("// c = a b + bias") and lines[-1] == "}"
    assert sum("void " in line for line in lines) == 1


@pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the records lie in the repository only")
def test_the_recorded_ladder_is_read_as_it_stands(cells, capsys):
    (source,) = (cell for cell in cells if "ladder.md" in cell)
    exec(source, {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["1.0", "matmul_naive"]
    speeds = [float(line.split()[0]) for line in lines]
    assert speeds == sorted(speeds) and len(speeds) >= 5


@pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the records lie in the repository only")
def test_what_is_told_plainly_is_what_was_recorded(cells, capsys):
    """The prose of the honest comparison gives ranges; the files must be in them."""
    defined = {}
    (source,) = (cell for cell in cells if "ladder.md" in cell)
    exec(source, defined)
    ratios = {
        name: [(r["peer"], r["what"], r["ratio"]) for r in report["results"]]
        for name, report in defined["recorded"].items()
    }
    cublas = [ratio for peer, _, ratio in ratios["H200"] if peer.startswith("cuBLAS")]
    assert all(0.89 < ratio < 1 for ratio in cublas)
    by_numpy = {n: [r for peer, _, r in ratios[n] if peer == "NumPy"] for n in ("PoCL", "Intel")}
    assert sum(r < 1 for r in by_numpy["PoCL"]) > len(by_numpy["PoCL"]) / 2
    assert min(by_numpy["Intel"]) >= 1
    llama = [r for rows in ratios.values() for peer, _, r in rows if peer == "llama.cpp"]
    assert all(1 / 6 < r < 1 / 3 for r in llama)
    torch = [(w, r) for rows in ratios.values() for peer, w, r in rows if peer.startswith("PyT")]
    assert all(r > 1 for what, r in torch if "GPT-2" not in what)
    assert all(abs(r - 1) < 0.1 for what, r in torch if "GPT-2" in what)


def test_the_broken_tile_is_missing_the_second_of_two_barriers():
    broken = lessons.find("13.one_barrier")
    right, wrong = broken.task.text, broken.text
    assert right.count("barrier(") == 2 and wrong.count("barrier(") == 1
    assert re.search(r"barrier\(.*?sum\[r\] \+=", wrong, re.DOTALL), "the first one stays"
