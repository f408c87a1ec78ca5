"""Lesson 00 on a machine that has no OpenCL at all."""

import os
import subprocess
import sys

from notebook_builder import FOLDER, ROOT


def test_it_prints_the_same_words_without_opencl(tmp_path):
    # An import of pyopencl fails in every process that finds this file on its path.
    blocker = 'import sys\nsys.modules["pyopencl"] = None\n'
    (tmp_path / "sitecustomize.py").write_text(blocker, encoding="utf-8")
    outer = {name: v for name, v in os.environ.items() if not name.startswith("PYTEST_")}
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval"]
    command += ["--nbval-current-env", str(FOLDER / "00_start_here.ipynb")]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=outer | {"LLMCL_DEVICE": "numpy", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
