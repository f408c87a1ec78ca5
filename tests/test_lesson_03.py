"""What lesson 03 says of its Python item and of ids with the wrong type."""

import re

import numpy as np
from touches import assert_same_touches

from llmcl.lab.items import get_global_id
from llmcl.resources import kernels_dir
from notebook_builder import FOLDER

SOURCE = (FOLDER / "src" / "03_embeddings.py").read_text(encoding="utf-8")


def item_of_the_lesson():
    """The function as the lesson's cell defines it."""
    cell = re.search(r"def embedding_item\(.*?\n(?=\n)", SOURCE, re.DOTALL)[0]
    names = {"get_global_id": get_global_id}
    exec(cell, names)
    return names["embedding_item"]


def test_the_item_and_the_kernel_touch_the_same_elements():
    rng = np.random.default_rng(0)
    B, T, C, V, P = 2, 3, 5, 7, 6
    ids = rng.integers(0, V, (B, T)).astype(np.int32)
    tokens, positions = (rng.normal(size=(n, C)).astype(np.float32) for n in (V, P))
    x = np.zeros((B, T, C), np.float32)
    text = (kernels_dir() / "embedding.cl").read_text(encoding="utf-8")
    args = (ids, tokens, positions, x, B, T, C, 1)
    assert_same_touches(
        item_of_the_lesson(), (C, B * T), args, text, "embedding_forward", group=(4, 4)
    )


def test_wide_ids_read_as_narrow_ones_have_a_zero_behind_each():
    narrow = np.array([3, 1, 4, 2], np.int64).view(np.int32)
    assert narrow.tolist() == [3, 0, 1, 0, 4, 0, 2, 0]
