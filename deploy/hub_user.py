"""Starts a learner's server: copies the lessons that are not there yet, then becomes JupyterLab.

It runs as the learner, so it can write nowhere but where the learner may. A lesson that is there
already holds the learner's work, and is left alone.
"""

import os
import shutil
import sys
from pathlib import Path


def bring_lessons(source: Path, target: Path) -> None:
    """Copies each notebook of a folder that the other folder lacks."""
    target.mkdir(exist_ok=True)
    for lesson in sorted(source.glob("*.ipynb")):
        if not (target / lesson.name).exists():
            shutil.copyfile(lesson, target / lesson.name)


if __name__ == "__main__":
    bring_lessons(Path(os.environ["LLMCL_LESSONS"]), Path.home() / "llmcl")
    os.execv(sys.executable, [sys.executable, "-m", "jupyterhub.singleuser", *sys.argv[1:]])
