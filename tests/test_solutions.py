"""Every lesson runs through with every solution in place, anywhere, and in time.

With `--dist loadfile` each lesson of this file is handed out by itself (see conftest.py).
"""

import pytest

from lesson_helpers import NOTEBOOKS
from notebook_builder import build

# The limits are for a machine with two cores that does nothing else; the tests run in parallel.
FACTOR = 3


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_solution_passes_wherever_the_notebook_is_started(name, monkeypatch, tmp_path):
    elsewhere = tmp_path / "한글 folder"
    elsewhere.mkdir()
    monkeypatch.setenv("LLMCL_LAB", str(tmp_path))
    seconds = build.run_solutions(name, elsewhere)
    assert list(elsewhere.iterdir()) == []
    assert build.too_slow(seconds, FACTOR) == []
