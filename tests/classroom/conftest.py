"""What a teacher uses, tried for real; `make test-class` runs it in an environment of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def outside(tmp_path_factory):
    """The environment variables of a program that knows nothing of the checkout or of Jupyter's
    settings on this machine."""
    kept = {
        n: v for n, v in os.environ.items() if not n.startswith(("LLMCL_", "JUPYTER", "PYTHON"))
    }
    place = tmp_path_factory.mktemp("jupyter")
    kept["JUPYTER_CONFIG_DIR"] = str(place / "config")
    kept["JUPYTER_DATA_DIR"] = str(place / "data")
    kept["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    return kept


@pytest.fixture
def run(outside):
    """run(*command, cwd, **variables): what a command prints; fails with that if it fails."""

    def call(*command, cwd, timeout=600, **variables):
        done = subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            env=outside | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    return call
