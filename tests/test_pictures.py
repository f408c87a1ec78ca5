"""The README's moving pictures are what docs/pictures.py makes now, and show what they say."""

import importlib.util

import numpy as np
import pytest
from PIL import Image

from notebook_builder import FOLDER

ROOT = FOLDER.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pictures():
    place = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["who_reads_what", "the_file"])
def test_the_stored_frames_are_those_that_are_made_now(pictures, name):
    made = getattr(pictures, name)()
    with Image.open(ROOT / "docs" / "pictures" / f"{name}.gif") as stored:
        assert stored.n_frames == len(made) > 5
        for i, frame in enumerate(made):
            stored.seek(i)
            assert stored.size == frame.size
            # Fonts may differ by a shade here and there; another picture differs in its areas.
            apart = np.abs(
                np.asarray(stored.convert("L"), int) - np.asarray(frame.convert("L"), int)
            )
            assert np.mean(apart > 60) < 0.02, f"{name}, frame {i}"


def test_what_is_known_is_counted_up_to_a_step(pictures, monkeypatch):
    known = np.zeros((3, 38), bool)
    known[0, :25] = known[1, :7] = known[2, 25:] = True
    both = {name: {str(s): row for s, row in zip((0, 5, 10), known, strict=True)}
            for name in ("naive", "mixed")}  # fmt: skip
    made = []
    monkeypatch.setattr(pictures, "picture", made.append)
    for last in range(3):
        pictures.known_until(both, [0, 5, 10], last)
    titles = [figure.axes[0].get_title().splitlines()[1] for figure in made]
    assert titles == [
        "25 of 25 sentences, 0 of 13 answers",
        "7 of 25 sentences, 0 of 13 answers",
        "0 of 25 sentences, 13 of 13 answers",
    ]


def test_every_picture_has_words_for_who_does_not_see_it():
    for name in ("who_reads_what", "forgetting", "the_file"):
        words = README.partition(f"](docs/pictures/{name}.gif)")[0].rpartition("![")[2]
        assert len(words) > 60, name
