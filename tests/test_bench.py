"""llmcl bench: what it compares, and what it writes. The speeds themselves are never tested."""

import json

import pytest

from llmcl import bench
from llmcl.cli import main
from llmcl.engine import get_engine


@pytest.fixture
def small(monkeypatch):
    """The same measurements at sizes that take no time."""
    monkeypatch.setattr(bench, "PRODUCTS", ((5, 7, 3),))
    monkeypatch.setattr(bench, "BATCH", 2)
    monkeypatch.setattr(bench, "TIME", 5)
    monkeypatch.setattr(bench, "CONTEXTS", (8, 16))
    monkeypatch.setattr(bench, "WIDTHS", (32,))
    real = bench.compare
    monkeypatch.setattr(bench, "compare", lambda ours, theirs, *_, **__: real(ours, theirs, 0.01))


def test_a_ratio_above_one_means_that_ours_is_faster():
    result = bench.Result("a product", "NumPy", ours=0.5, theirs=2.0, work=10, unit="GFLOP/s")
    assert result.ratio == 4
    assert "20 GFLOP/s" in str(result) and "5 GFLOP/s" in str(result) and "4.00" in str(result)


def test_contestants_take_turns_and_both_run_warm():
    calls = []
    bench.compare(lambda: calls.append("ours"), lambda: calls.append("theirs"), 0.01)
    assert calls[:6] == ["ours", "theirs"] * 3
    assert calls.count("ours") == calls.count("theirs") >= 7


def test_the_command_measures_everything_and_writes_it(small, tmp_path, capsys):
    path = tmp_path / "bench.json"
    assert main(["bench", "--json", str(path), "--scaling"]) == 0
    report = json.loads(path.read_text(encoding="utf-8"))
    names = [result["what"] for result in report["results"]]
    assert names[:3] == ["5x7x3 a b", "5x7x3 a b^T", "5x7x3 a^T b"]
    assert {"training step, 1 block", "training step, 2 blocks"} <= set(names)
    assert all(result["ours"] > 0 and result["theirs"] > 0 for result in report["results"])
    assert report["limits"]["bytes_per_s"] > 0 and report["limits"]["flop_per_s"] > 0
    assert [row["size"] for row in report["scaling"]] == [8, 16, 32]
    assert report["device"] in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--model", "no such file"], "no such file is no file"),
        (["--json", "no such folder/x.json"], "no such folder is no folder"),
        (["--device", "numpy"], "bench measures OpenCL devices"),
    ],
)
def test_what_cannot_be_measured_is_said_at_once(arguments, words, capsys):
    assert main(["bench", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_memory_does_not_grow_with_the_steps():
    resource = pytest.importorskip("resource")
    import numpy as np

    from llmcl.config import Config

    engine = get_engine()
    ids = np.random.default_rng(0).integers(0, 31, (3, 13))
    step = bench.make_step(engine, Config(31, 13, 32, 2, 2, 64), ids)
    for _ in range(50):
        step()
    held, resident = engine.memory_held(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(1000):
        step()
    assert engine.memory_held() == held
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident) / 1024
    assert grown < 20, f"{grown:.0f} MiB more after 1,000 steps"
