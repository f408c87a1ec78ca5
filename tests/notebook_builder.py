"""notebooks/build.py as a module (it lies outside the package), and small sources to build."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "notebooks"

sys.path.insert(0, str(FOLDER))  # as `python notebooks/build.py` does
_spec = importlib.util.spec_from_file_location("build", FOLDER / "build.py")
build = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build)
places = sys.modules["builder.places"]

HEADER = """\
# ---
# jupyter:
#   llmcl:
#     title: A title
#     needs: []
#     introduces: []
#     minutes: {core: 1, full: 1}
# ---

"""
LESSON = (
    HEADER
    + '''\
# %% [markdown] id="promise"
# # A title

# %%
from IPython.display import display
display({"text/plain": "words", "application/vnd.jupyter.widget-view+json": {"model_id": "x"}},
        raw=True)

# %%
def double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION

# %% tags=["varies"]
import time
print(time.time_ns())

# %%
print("one")
print("two")
'''
)


def own_folder(monkeypatch, tmp_path):
    """A folder of notebooks of a test's own, without any lesson."""
    (tmp_path / "src").mkdir()
    monkeypatch.setattr(places, "FOLDER", tmp_path)
    return tmp_path


def write(folder, text, name="77_a_title"):
    """Stores a source in the folder, and returns its name."""
    (folder / "src" / f"{name}.py").write_text(text, encoding="utf-8")
    return name


def store(folder, name):
    """Stores the notebook of a source as if it had run."""
    build.write(build.assemble(name), folder / f"{name}.ipynb", force=True)
