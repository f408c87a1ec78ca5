"""A room without a net installs from the wheelhouse alone, and lesson 00 runs there."""

import re
import sys
import time

import nbformat

from lesson_outputs import differing
from notebook_builder import ROOT

RUN = """
import nbformat, sys
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
nbformat.write(notebook, "done.ipynb")
"""
# No index can be reached, whatever a machine's own settings say.
NO_NET = {
    "PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": "http://127.0.0.1:9", "PIP_RETRIES": "0",
    "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9",
}  # fmt: skip


def test_the_commands_of_install_txt_work_without_a_net(tmp_path, run):
    folder, began = tmp_path / "stick", time.monotonic()
    said = run(sys.executable, ROOT / "deploy" / "wheelhouse.py", "--out", folder, cwd=tmp_path)
    print(f"\nwheelhouse: {said.strip()} ({time.monotonic() - began:.0f} s)")
    text = (folder / "INSTALL.txt").read_text(encoding="utf-8")
    assert str(ROOT) not in text and str(tmp_path) not in text
    commands = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    venv, install, doctor, lab = commands
    assert venv.startswith("python3.") and "jupyterlab lessons/00_start_here.ipynb" in lab
    began = time.monotonic()
    run("sh", "-c", venv, cwd=folder, **NO_NET)
    # As where there is no C compiler, which holds for this machine or not.
    run("sh", "-c", install.replace("verify]", "verify,linker]"), cwd=folder, **NO_NET)
    print(f"installed in {time.monotonic() - began:.0f} s")
    line = run("sh", "-c", doctor, cwd=folder, LLMCL_CACHE="off", **NO_NET)
    assert re.match(r"llmcl-class=ok .* kernels=(\d+)-of-\1 .* lessons=yes llama.cpp=yes\n$", line)
    check = run(folder / ".venv/bin/llmcl", "check", cwd=tmp_path, LLMCL_CACHE="off", **NO_NET)
    assert check.endswith("every kernel agrees with NumPy\n")

    python, lesson = folder / ".venv/bin/python", folder / "lessons" / "00_start_here.ipynb"
    began = time.monotonic()
    run(python, "-c", RUN, lesson, cwd=tmp_path, LLMCL_CACHE="off", **NO_NET)
    done = nbformat.read(tmp_path / "done.ipynb", as_version=4)
    stored = nbformat.read(ROOT / "notebooks" / lesson.name, as_version=4)
    outputs = {cell.id: cell.outputs for cell in done.cells if cell.cell_type == "code"}
    count, lines = differing(stored, outputs)
    print(f"lesson 00 in {time.monotonic() - began:.0f} s, {count} cells compared")
    assert count > 30 and not lines, "\n".join(lines)


def test_a_folder_of_something_else_is_not_emptied(tmp_path, run):
    (tmp_path / "mine.txt").write_text("keep", encoding="utf-8")
    command = f"'{sys.executable}' '{ROOT / 'deploy' / 'wheelhouse.py'}' --out . || echo kept"
    assert "holds something else" in (said := run("sh", "-c", command, cwd=tmp_path))
    assert said.endswith("kept\n") and (tmp_path / "mine.txt").exists()
