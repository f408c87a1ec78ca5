"""Collects all that a room without a net needs: every wheel, the lessons, and how to install them.

    python deploy/wheelhouse.py [--out build/wheelhouse] [--lessons notebooks]

The wheels are those for the system and the Python that run this, so run it on a machine like the
ones in the room. Nothing is built from source but this project's own wheel.
"""

import argparse
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "lab,verify"  # what the lessons use
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
INSTALL = """\
llmcl {version}: all that the lessons need, for {system} with Python {python}.
{count} wheels, {size} MB. No net is needed.

Copy this folder to the machine, open a terminal in it, and type:

    {venv}
    {bin}python -m pip install --no-index --find-links . "llmcl[{extras}]"
    {bin}llmcl doctor --class
    {bin}python -m jupyterlab lessons/00_start_here.ipynb

The third line prints one line that begins with llmcl-class=ok. If it begins with llmcl-class=no,
look at `{bin}llmcl doctor`. On Linux without a C compiler, write "llmcl[{extras},linker]" in the
second line.
"""


def main(arguments: list[str] | None = None) -> int:
    """Fills the folder anew, and says how large it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "wheelhouse")
    parser.add_argument("--lessons", type=Path, default=ROOT / "notebooks")
    options = parser.parse_args(arguments)
    lessons = sorted(options.lessons.glob("*.ipynb"))
    if not lessons:
        parser.error(f"{options.lessons} has no notebooks; try `make class` first")
    folder = options.out
    if folder.exists() and not (folder / "INSTALL.txt").exists() and any(folder.iterdir()):
        parser.error(f"{folder} holds something else; name another folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "INSTALL.txt").touch()  # so that a folder left half full is known as ours
    own = fill(folder)
    (folder / "lessons").mkdir()
    for lesson in lessons:
        shutil.copy(lesson, folder / "lessons")
    wheels = list(folder.glob("*.whl"))
    size = sum(wheel.stat().st_size for wheel in wheels) / 1e6
    text = instructions(own.name.split("-")[1], len(wheels), size)
    (folder / "INSTALL.txt").write_text(text, encoding="utf-8")
    print(f"{len(wheels)} wheels, {size:.0f} MB, and {len(lessons)} lessons; see INSTALL.txt")
    return 0


def fill(folder: Path) -> Path:
    """Puts the wheels into the folder; the path of our own."""
    subprocess.run([*PIP, "wheel", "-qq", "--no-deps", "-w", folder, ROOT], check=True)
    (own,) = folder.glob("llmcl-*.whl")
    # By its path: an index may know another project of this name.
    wanted = f"{own}[{EXTRAS},linker]"
    subprocess.run(
        [*PIP, "download", "-qq", "--only-binary=:all:", "-d", folder, wanted], check=True
    )
    return own


def instructions(version: str, count: int, size: float) -> str:
    """The text of INSTALL.txt."""
    windows = sys.platform == "win32"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return INSTALL.format(
        version=version,
        count=count,
        size=round(size),
        extras=EXTRAS,
        python=python,
        system=f"{platform.system()} on {platform.machine()}",
        venv=f"py -{python} -m venv .venv" if windows else f"python{python} -m venv .venv",
        bin=".venv\\Scripts\\" if windows else ".venv/bin/",
    )


if __name__ == "__main__":
    sys.exit(main())
