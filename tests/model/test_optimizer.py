"""AdamW over the whole model: the schedule, one step, decay, and steps that must not happen."""

import math

import numpy as np
import pytest
from model_helpers import CONFIG, make_batch, make_model, random_weights, rounding_of_a_pass

from llmcl import reference
from llmcl.check import compare
from llmcl.config import Config
from llmcl.errors import CheckpointError, ConfigError
from llmcl.model import GPT, decays
from llmcl.ops import Engine
from llmcl.optimizer import AdamW, AdamWSettings, Schedule
from llmcl.reference.bounds import U

# ---- the schedule ----


def test_the_rate_warms_up_and_falls_along_half_a_cosine():
    schedule = Schedule(rate=0.01, steps=110, warmup=10, floor=0.1)
    assert [schedule.at(k) for k in (1, 5, 10)] == pytest.approx([0.001, 0.005, 0.01])
    assert schedule.at(60) == pytest.approx(0.01 * (0.1 + 0.9 / 2))
    assert schedule.at(35) == pytest.approx(0.01 * (0.1 + 0.45 * (1 + math.cos(math.pi / 4))))
    assert schedule.at(110) == pytest.approx(0.001)
    assert schedule.at(500) == pytest.approx(0.001)  # past the end it stays


def test_the_ends_of_what_is_possible_are_possible():
    assert Schedule(1.0, 20, warmup=0, floor=0).at(20) == pytest.approx(0, abs=1e-12)
    assert Schedule(1.0, 1, warmup=0, floor=1).at(1) == 1
    assert Schedule(1.0, 7, warmup=7).at(7) == 1  # nothing but a warm-up


def test_the_rate_never_rises_after_the_warmup_and_is_never_zero():
    for warmup in (0, 1, 10, 50):
        rates = [Schedule(1.0, 50, warmup).at(k) for k in range(1, 51)]
        top = max(warmup, 1) - 1
        assert rates[: top + 1] == sorted(rates[: top + 1])
        assert rates[top:] == sorted(rates[top:], reverse=True)
        assert min(rates) > 0 and max(rates) <= 1.0


@pytest.mark.parametrize(
    "wrong", [{"rate": 0}, {"rate": -1}, {"rate": math.nan}, {"steps": 0}, {"warmup": -1},
              {"floor": -0.1}, {"floor": 1.1}],
)  # fmt: skip
def test_an_impossible_schedule_is_refused_with_its_values(wrong):
    with pytest.raises(ConfigError, match=str(next(iter(wrong.values())))):
        Schedule(**({"rate": 0.1, "steps": 10} | wrong))


@pytest.mark.parametrize(
    "wrong", [{"beta1": 1}, {"beta1": -0.1}, {"beta2": 1}, {"beta2": 1.5}, {"beta2": math.nan},
              {"epsilon": -1}, {"epsilon": 0}, {"epsilon": math.inf}, {"decay": -0.5},
              {"decay": math.nan}, {"decay": math.inf}, {"max_norm": 0}, {"max_norm": -2},
              {"max_norm": math.nan}],
)  # fmt: skip
def test_impossible_settings_of_adamw_are_refused_with_their_values(wrong):
    name, value = next(iter(wrong.items()))
    with pytest.raises(ConfigError, match=f"{name} {value}"):
        AdamWSettings(**wrong)
    assert AdamWSettings(beta1=0, beta2=0, decay=0, max_norm=math.inf).max_norm == math.inf


# ---- one step ----


def prepared(engine, settings):
    """A model with its gradient, and an AdamW whose moments are those of a run on its way."""
    model, (ids, targets) = make_model(engine), make_batch()
    optimizer, rng = AdamW(model, settings), np.random.default_rng(3)
    shapes = CONFIG.parameter_shapes()
    m = {name: 0.1 * rng.normal(size=shape) for name, shape in shapes.items()}
    v = {name: 0.1 + 0.1 * rng.random(shape) for name, shape in shapes.items()}
    optimizer.load_moments(m, v, 4)
    loss = model.loss(ids, targets)
    model.backward()
    return model, optimizer, loss


def test_a_whole_step_on_opencl_agrees_with_the_reference(versioned):
    settings, share = AdamWSettings(decay=0.1, max_norm=0.5), rounding_of_a_pass(CONFIG, 3, 11)
    sides, before = [], random_weights()
    for engine in (versioned, reference.Engine()):
        model, optimizer, loss = prepared(engine, settings)
        status = engine.to_host(optimizer.step(loss, 0.01))
        assert optimizer.steps == 5 and status[2] == 1 and 0 < status[1] < 1
        sides.append((model.weights(), *optimizer.moments(), status))
    got, want = sides
    np.testing.assert_allclose(got[3], want[3], rtol=share)
    for name, start in before.items():
        for i in (1, 2):
            bound = share * np.abs(want[i][name]).max()
            assert compare(got[i][name], want[i][name], bound).ok, f"{'_mv'[i]} of {name}"
        # The change is what is compared; the sum that it goes into is rounded once.
        moved, right = got[0][name] - start.astype(np.float64), want[0][name] - start
        bound = share * np.abs(right).max() + U * np.abs(want[0][name])
        comparison = compare(moved, right, bound)
        assert comparison.ok, f"the step of {name}: {comparison}"
        assert not compare(moved, 1.01 * right, bound).ok  # a wrong rate would be seen


def test_a_step_is_what_the_formula_says(engine):
    """Both engines get their numbers from the same code, so neither can check what it hands on."""
    settings = AdamWSettings(beta1=0.8, beta2=0.95, epsilon=0.01, decay=0.3, max_norm=0.5)
    model, optimizer, loss = prepared(engine, settings)
    before, (m, v) = random_weights(), optimizer.moments()
    gradients = {name: engine.to_host(g).astype(np.float64) for name, g in model.gradients.items()}
    clip = 0.5 / np.sqrt(sum((g**2).sum() for g in gradients.values()))
    assert clip < 1
    optimizer.step(loss, 0.02)
    for name, got in model.weights().items():
        grad = clip * gradients[name]
        mean = (0.8 * m[name] + 0.2 * grad) / (1 - 0.8**5)  # prepared() made four steps
        square = (0.95 * v[name] + 0.05 * grad**2) / (1 - 0.95**5)
        pull = 0.3 * before[name] if decays(name) else 0
        want = before[name] - 0.02 * (mean / (np.sqrt(square) + 0.01) + pull)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=name)


def test_without_a_gradient_exactly_the_matrices_shrink(engine):
    model = make_model(engine)
    optimizer = AdamW(model, AdamWSettings(decay=0.1))
    optimizer.step(engine.from_host(np.array([2.5])), 0.01)
    before = random_weights()
    for name, after in model.weights().items():
        if decays(name):
            np.testing.assert_allclose(after, before[name] * (1 - 0.01 * 0.1), rtol=1e-6)
        else:
            np.testing.assert_array_equal(after, before[name])


def test_the_gradient_is_clipped_by_the_norm_of_all_tensors_together(engine):
    model = make_model(engine)
    loss = model.loss(*make_batch())
    model.backward()
    gradients = [engine.to_host(g).astype(np.float64) for g in model.gradients.values()]
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    status = engine.to_host(AdamW(model, AdamWSettings(max_norm=norm / 3)).step(loss, 1e-3))
    assert status[0] == pytest.approx(norm, rel=1e-4)
    assert status[1] == pytest.approx(1 / 3, rel=1e-4)
    assert status[3] == pytest.approx(float(engine.to_host(loss)[0]))


def test_training_lowers_the_loss(engine):
    model, (ids, targets) = make_model(engine), make_batch()
    optimizer, losses = AdamW(model), []
    for _ in range(15):
        loss = model.loss(ids, targets)
        losses.append(float(engine.to_host(loss)[0]))
        model.backward()
        optimizer.step(loss, 0.01)
    assert losses[-1] < 0.7 * losses[0]


def test_of_random_tokens_nothing_can_be_learned(opencl):
    config = Config(vocab_size=16, context_length=16, d_model=32, n_heads=2, n_layers=1, d_ff=64)
    rng, schedule = np.random.default_rng(0), Schedule(0.003, 120, 5)
    fresh, losses = rng.integers(0, 16, (64, 17)), []
    # A target that stands in the input is what a wrong shift or a leaking mask would give.
    for shift in (1, 0):
        model = GPT(config, opencl)
        model.initialize(0)
        optimizer = AdamW(model)
        for step in range(1, 121):
            texts = rng.integers(0, 16, (16, 17))
            loss = model.loss(texts[:, : 17 - shift][:, :16], texts[:, shift:][:, :16])
            model.backward()
            optimizer.step(loss, schedule.at(step))
        loss = model.loss(fresh[:, :16], fresh[:, shift:][:, :16])
        losses.append(float(opencl.to_host(loss)[0]))
    assert losses[0] > math.log(16) - 0.02
    assert losses[1] < 0.2


def test_padding_between_parameters_stays_zero(opencl):
    for engine in (opencl, reference.Engine(np.float32)):
        model, (ids, targets) = make_model(engine), make_batch()
        optimizer = AdamW(model, AdamWSettings(decay=0.1))
        for _ in range(3):
            loss = model.loss(ids, targets)
            model.backward()
            optimizer.step(loss, 0.01)
        wholes = *model.flat_parameters, *model.flat_gradients, *optimizer.flat_m, *optimizer.flat_v
        total = sum(math.prod(shape) for shape in CONFIG.parameter_shapes().values())
        for whole in wholes:
            host = engine.to_host(whole)
            assert host.size > total  # there is padding
            inside = np.zeros(host.size, bool)
            start = 0
            for name in model.names:
                size = math.prod(CONFIG.parameter_shapes()[name])
                inside[start : start + size] = True
                start += -(-size // 256) * 256
            assert (host[~inside] == 0).all() and np.count_nonzero(host[inside]) > 0.9 * total


def test_one_buffer_for_each_tensor_gives_the_same_step(opencl):
    """The exact engine of the strict runs is the model that is trained, tensor for tensor."""
    sides = []
    for engine in (opencl, Engine(opencl.device, exact=True)):
        model, optimizer, loss = prepared(engine, AdamWSettings(decay=0.1))
        optimizer.step(loss, 0.01)
        sides.append(model.weights())
    share = rounding_of_a_pass(CONFIG, 3, 11)  # the norm is summed in another order
    for name, want in sides[0].items():
        np.testing.assert_allclose(sides[1][name], want, rtol=0, atol=share * np.abs(want).max())


# ---- steps that must not happen ----


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")
@pytest.mark.parametrize("where", ("weight", "loss", "gradient"))
@pytest.mark.parametrize("bad", (np.nan, np.inf))
def test_what_is_not_finite_changes_nothing_and_stays_flagged(engine, where, bad):
    model, (ids, targets) = make_model(engine), make_batch()
    optimizer = AdamW(model, AdamWSettings(decay=0.1))
    loss = model.loss(ids, targets)
    model.backward()
    optimizer.step(loss, 0.01)
    before = model.weights(), *optimizer.moments()
    if where == "weight":
        damaged = before[0]["blk.1.ffn_up.bias"].copy()
        damaged[3] = bad
        engine.write(model.parameters["blk.1.ffn_up.bias"], damaged)
    loss = model.loss(ids, targets)
    model.backward()
    if where == "loss":
        loss = engine.from_host(np.array([bad]))
    if where == "gradient":
        engine.fill(model.gradients["blk.0.attn_norm.bias"], bad)
    status = engine.to_host(optimizer.step(loss, 0.01))
    assert status[2] == 0 and status[4] == 2
    if where == "weight":
        engine.write(model.parameters["blk.1.ffn_up.bias"], before[0]["blk.1.ffn_up.bias"])
    for _ in range(2):  # healthy again, and still nothing moves until somebody looks
        loss = model.loss(ids, targets)
        model.backward()
        status = engine.to_host(optimizer.step(loss, 0.01))
        assert status[2] == 0 and status[4] == 2 and np.isfinite(status[[0, 3]]).all()
    for old, new in zip(before, (model.weights(), *optimizer.moments()), strict=True):
        for name, array in old.items():
            np.testing.assert_array_equal(new[name], array)


def test_moments_go_out_and_in_unchanged(engine):
    _, first, loss = prepared(engine, AdamWSettings())
    first.step(loss, 0.01)
    m, v = first.moments()
    second = AdamW(make_model(engine))
    second.load_moments(m, v, first.steps)
    assert second.steps == 5
    for old, new in zip((m, v), second.moments(), strict=True):
        for name, array in old.items():
            np.testing.assert_array_equal(new[name], array)


def test_a_run_cannot_go_on_without_moments(engine):
    optimizer = AdamW(make_model(engine))
    m, v = optimizer.moments()
    for missing in (({}, {}), (m, {}), ({}, v)):
        with pytest.raises(CheckpointError, match="no moments of AdamW"):
            optimizer.load_moments(*missing, 3)
