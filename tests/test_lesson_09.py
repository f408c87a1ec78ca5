"""Lesson 09: the item is the kernel, the figures show what is said, the rules are the package's."""

import math

import numpy as np
import pytest
from touches import assert_same_touches

from lesson_helpers import code
from llmcl import reference
from llmcl.config import Config
from llmcl.lab import lessons, models
from llmcl.model import GPT
from llmcl.optimizer import AdamW, Schedule
from notebook_builder import build

ENDS = "Now the real thing"  # from here on the lesson trains the model


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the cells before the training define, with the solutions, without the kernels' cells."""
    skipped = "run_broken", "kernel_exercise", "quiz"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        for cell in cells_before_training() + [
            cell_with("def clip_each"),
            cell_with("def rate_at"),
        ]:
            lines = cell.source.splitlines()
            if not any(word in cell.source for word in skipped):
                exec("\n".join(x for x in lines if not x.startswith("lab.explore(")), defined)
        yield defined


def solved():
    return build.assemble("09_training", solved=True)


def cells_before_training():
    cells = solved().cells
    end = next(i for i, cell in enumerate(cells) if ENDS in cell.source)
    return [cell for cell in cells[:end] if cell.cell_type == "code"]


def cell_with(text):
    (found,) = [cell for cell in code(solved()) if text in cell.source]
    return found


def item_args(n=5, t=3):
    rng = np.random.default_rng(3)
    w, g, m = rng.normal(size=(3, n)).astype(np.float32)
    v = rng.uniform(0.5, 2, n).astype(np.float32)
    return w, g, m, v, 0.01, 0.1, 0.01, 1e-8, 0.1, 1 / (1 - 0.9**t), 1 / (1 - 0.99**t), n


def test_the_item_touches_what_the_exercise_s_kernel_touches(names):
    text = lessons.find("09.4").text
    assert_same_touches(names["adamw_item"], 5, item_args(), text, "adamw_one", group=2)


@pytest.mark.parametrize("t", [1, 2, 50])
def test_the_lesson_s_adamw_is_the_package_s(names, t):
    w, g, m, v = (a.astype(float) for a in item_args(7, t)[:4])
    got = names["adamw"](w, g, m, v, t, 0.02, decay=0.3)
    options = {"rate": 0.02, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "decay": 0.3, "step": t}
    reference.adamw(w, g, m, v, np.array([1.0, 1, 1, 1, 0]), n_decay=7, **options)
    np.testing.assert_allclose(got, (w, m, v), rtol=1e-12)


def test_known_values_of_one_update(names):
    """Worked by hand: w 1, g 0.1, rate 0.01, decay 0.1, first step; and the same with g 0."""
    for g, want in ((0.1, 0.989), (0.0, 0.999)):
        w, m, v = names["adamw"](np.ones(1), np.full(1, g), np.zeros(1), np.zeros(1), 1, 0.01, 0.1)
        assert math.isclose(w[0], want, abs_tol=1e-7)
    assert math.isclose(names["beside"](1.0, 0.1), 0.999)
    assert math.isclose(names["through"](1.0, 0.1), 0.99)


def test_the_lesson_s_clip_is_the_package_s(names):
    grads = [np.array([3.0, 4.0]), np.array([12.0])]
    np.testing.assert_allclose(np.concatenate(names["clip"](grads, 1.0)), np.array([3, 4, 12]) / 13)
    status = reference.global_norm(grads, np.ones(1), 1.0)
    assert math.isclose(status[1], 1 / 13)
    each = np.concatenate(names["clip_each"](grads, 1.0))
    np.testing.assert_allclose(each, [0.6, 0.8, 1.0])


def test_the_lesson_s_schedule_is_the_package_s(names):
    for step in range(1, 151):
        assert math.isclose(names["rate_at"](step, 0.003, 150, 10), Schedule(0.003, 150).at(step))


def test_the_race_shows_what_its_words_say(names):
    ways, valley = names["ways"], names["valley"]
    for steps in (1, 20, 80):
        said = names["race_words"](steps)
        for name, way in ways.items():
            assert f"{name} {valley(way[steps]):.2g}" in said
    turns = np.diff(np.sign(np.diff(ways["descent"][:, 1])))
    assert (turns != 0).all(), "descent zigzags across the valley"
    flat = ways["descent"][:, 0]
    assert (np.diff(flat) > 0).all() and flat[-1] < 1, "and crawls along it"
    assert ways["momentum"][:, 0].max() > 2.5, "momentum rolls past the bottom"
    assert ways["Adam"][:, 0].max() > 2.5, "and so does Adam"
    short = names["BOTTOM"][0] - ways["AdamW"][-1, 0]
    assert short > 0.15 > abs(names["BOTTOM"][0] - ways["Adam"][-1, 0]), "decay stops short"


def test_no_correction_is_a_rate_times_a_factor():
    """What the lesson's Uncorrected schedule stands for, up to epsilon and the decay."""
    rng = np.random.default_rng(5)
    w, m, v, old = rng.normal(size=4), np.zeros(4), np.zeros(4), None
    for t in range(1, 20):
        g, old = rng.normal(size=4), w.copy()
        status = np.array([1.0, 1, 1, 1, 0])
        factor = (1 - 0.9**t) / np.sqrt(1 - 0.999**t)
        options = {"beta1": 0.9, "beta2": 0.999, "epsilon": 0.0, "decay": 0.0, "step": t}
        reference.adamw(w, g, m, v, status, rate=0.003 * factor, n_decay=4, **options)
        np.testing.assert_allclose(w, old - 0.003 * m / np.sqrt(v), rtol=1e-12)


def test_a_kept_model_is_the_one_that_later_lessons_get(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LLMCL_LAB", str(tmp_path))
    _, tokenizer = models.checkpoint("09", reference.Engine())
    config = Config(vocab_size=tokenizer.vocab_size, d_model=8, n_heads=2, n_layers=1, d_ff=16)
    model = GPT(config, reference.Engine())
    model.initialize(seed=3)
    models.keep_checkpoint("09", model, tokenizer)
    capsys.readouterr()
    again, _ = models.checkpoint("09", reference.Engine())
    assert "your own" in capsys.readouterr().out
    for name, weights in model.weights().items():
        np.testing.assert_allclose(again.weights()[name], weights, atol=1e-7)


def test_only_matrices_decay():
    """All gradients are zero: a step changes the matrices alone."""
    config = Config(vocab_size=257, d_model=8, n_heads=2, n_layers=1, d_ff=16)
    model = GPT(config, reference.Engine())
    rng = np.random.default_rng(4)
    shapes = config.parameter_shapes()
    model.load_weights({name: rng.normal(1, 0.1, shape) for name, shape in shapes.items()})
    before = model.weights()
    AdamW(model).step(np.ones(1), rate=0.1)
    for name, weights in model.weights().items():
        is_matrix = weights.ndim == 2 and name != "position_embd.weight"
        want = before[name] * (1 - 0.1 * 0.01) if is_matrix else before[name]
        np.testing.assert_allclose(weights, want, rtol=1e-6)
