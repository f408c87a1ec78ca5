"""The whole model: its gradient, what it may not see, and what it does with padding."""

import numpy as np
import pytest
from model_helpers import (
    CONFIG,
    assert_gradients_agree,
    loss_and_gradients,
    make_batch,
    make_model,
    random_weights,
    rounding_of_a_pass,
)
from ops_helpers import check_gradient, remainder_ratio

from llmcl import reference
from llmcl.config import Config
from llmcl.errors import CheckpointError, DataError, ShapeError
from llmcl.model import GPT, decays
from llmcl.optimizer import AdamW
from llmcl.program import Kernel

SHARE = rounding_of_a_pass(CONFIG, 3, 11)


# ---- the gradient ----


@pytest.mark.parametrize("name", CONFIG.parameter_shapes())
def test_the_gradient_of_every_parameter_agrees_with_central_differences(name, rng):
    model, (ids, targets) = make_model(reference.Engine()), make_batch()
    _, gradients = loss_and_gradients(model, ids, targets)

    def loss():
        return float(model.loss(ids, targets)[0])

    check_gradient(loss, model.parameters[name], gradients[name], rng, entries=5)


def test_the_whole_gradient_leaves_a_remainder_of_second_order(rng):
    model, (ids, targets) = make_model(reference.Engine()), make_batch()
    loss_and_gradients(model, ids, targets)
    (weights,), (gradient,) = model.flat_parameters, model.flat_gradients

    def loss():
        return float(model.loss(ids, targets)[0])

    step = 2.0**-14
    assert remainder_ratio(loss, weights, gradient, rng, step) == pytest.approx(4, abs=0.2)
    assert remainder_ratio(loss, weights, 1.03 * gradient, rng, step) < 2.5


def test_opencl_s_gradient_agrees_with_the_reference(versioned):
    ids, targets = make_batch()
    want_loss, want = loss_and_gradients(make_model(reference.Engine()), ids, targets)
    got_loss, got = loss_and_gradients(make_model(versioned), ids, targets)
    assert got_loss == pytest.approx(want_loss, rel=SHARE)
    assert_gradients_agree(got, want, SHARE)
    wrong = dict(want, **{"blk.1.attn_qkv.bias": 1.01 * want["blk.1.attn_qkv.bias"]})
    with pytest.raises(AssertionError, match="blk.1.attn_qkv.bias"):
        assert_gradients_agree(got, wrong, SHARE)


def test_a_second_backward_gives_the_same_gradient_not_twice_as_much(engine):
    model, (ids, targets) = make_model(engine), make_batch()
    _, once = loss_and_gradients(model, ids, targets)
    _, twice = loss_and_gradients(model, ids, targets)
    for name, gradient in once.items():
        np.testing.assert_array_equal(twice[name], gradient)


def test_the_tied_table_gets_both_of_its_gradients(engine):
    model, (ids, targets) = make_model(engine), make_batch()
    loss, gradients = loss_and_gradients(model, ids, targets)
    got = gradients["token_embd.weight"].astype(np.float64)
    # What the head brings: dlogits^T h. What the look-up brings on top: the rest.
    twin = make_model(reference.Engine())
    logits = twin.forward(ids)
    hidden = twin.head.saved[0].reshape(-1, CONFIG.d_model)
    wanted = twin.engine.from_host(targets)
    _, log_sum = twin.engine.cross_entropy(logits, wanted)
    dlogits = twin.engine.cross_entropy_backward(logits, wanted, log_sum)
    head = dlogits.reshape(-1, CONFIG.vocab_size).T @ hidden
    largest = np.abs(got).max()
    unused = np.setdiff1d(np.arange(CONFIG.vocab_size), ids)
    assert 36 in unused
    np.testing.assert_allclose(got[unused], head[unused], rtol=0, atol=SHARE * largest)
    used = np.unique(ids)
    assert (np.abs(got[used] - head[used]).max(axis=1) > 100 * SHARE * largest).all()


def test_only_positions_that_occur_get_a_gradient(engine):
    _, gradients = loss_and_gradients(make_model(engine), *make_batch(length=11))
    table = gradients["position_embd.weight"]
    assert np.abs(table[:11]).min(axis=1).all() and (table[11:] == 0).all()


# ---- what it says before it has learned, and what it may see ----


@pytest.mark.parametrize("vocab_size", (40, 512))
def test_an_untrained_model_is_surprised_by_ln_v(vocab_size, rng):
    config = Config(vocab_size=vocab_size, context_length=64)
    model = GPT(config, reference.Engine(np.float32))
    model.initialize(0)
    loss = model.loss(*rng.integers(0, vocab_size, (2, 4, 64)))
    assert float(loss[0]) == pytest.approx(np.log(vocab_size), abs=0.06)


def test_no_place_sees_its_future(engine, rng):
    model, (ids, _) = make_model(engine), make_batch(rows=2, length=13)
    before = engine.to_host(model.forward(ids))
    for t in range(13):
        changed = ids.copy()
        changed[:, t + 1 :] = rng.integers(0, 37, changed[:, t + 1 :].shape)
        after = engine.to_host(model.forward(changed))
        np.testing.assert_array_equal(after[:, : t + 1], before[:, : t + 1])
        if t + 1 < 13:
            assert (after[:, t + 1 :] != before[:, t + 1 :]).any()


def test_the_first_place_says_what_a_prompt_of_one_token_says(engine):
    model, (ids, _) = make_model(engine), make_batch()
    whole, alone = model.forward(ids), model.forward(ids[:, :1])
    whole, alone = engine.to_host(whole)[:, 0], engine.to_host(alone)[:, 0]
    np.testing.assert_allclose(whole, alone, rtol=0, atol=SHARE * np.abs(whole).max())


def test_every_row_of_a_batch_is_computed_by_itself(engine):
    model, (ids, _) = make_model(engine), make_batch()
    together = engine.to_host(model.forward(ids))
    for row in range(len(ids)):
        alone = engine.to_host(model.forward(ids[row : row + 1]))[0]
        np.testing.assert_allclose(together[row], alone, rtol=0, atol=SHARE * np.abs(alone).max())


def test_positions_matter(engine):
    model = make_model(engine)
    logits = engine.to_host(model.forward(np.array([[7, 7, 7]])))[0]
    assert np.abs(logits[0] - logits[1]).max() > 1e-3


@pytest.mark.parametrize("pads", (1, 5, 20))
def test_padding_changes_neither_the_loss_nor_any_gradient(engine, pads):
    ids, targets = make_batch()
    model = make_model(engine)
    want_loss, want = loss_and_gradients(model, ids, targets)
    # The padding's token, 0, is a real token of the text as well.
    behind = ((0, 0), (0, pads))
    longer, wanted = np.pad(ids, behind), np.pad(targets, behind, constant_values=-1)
    loss, gradients = loss_and_gradients(model, longer, wanted)
    assert loss == pytest.approx(want_loss, rel=SHARE)
    assert_gradients_agree(gradients, want, SHARE if engine.dtype == np.float32 else 1e-12)


def test_the_cache_gives_the_same_logits(engine):
    model, (ids, _) = make_model(engine), make_batch(rows=1, length=19)
    want = engine.to_host(model.forward(ids))[0]
    caches, got = model.new_caches(), []
    for first, last in ((0, 5), (5, 6), (6, 7), (7, 18), (18, 19)):
        logits = model.forward(ids[:, first:last], caches, first)
        got.append(engine.to_host(logits)[0])
    got = np.concatenate(got)
    np.testing.assert_allclose(got, want, rtol=0, atol=SHARE * np.abs(want).max())
    assert (got.argmax(-1) == want.argmax(-1)).all()


# ---- bad input ----


def test_bad_ids_are_refused_with_the_value_and_leave_the_model_usable(engine):
    model = make_model(engine)
    for ids, error, said in (
        ([[1, 37]], DataError, r"token id 37 at \(0, 1\) is outside the vocabulary of 37"),
        ([[-1, 3]], DataError, r"token id -1 at \(0, 0\)"),
        ([[2**31]], ShapeError, "2147483648"),
        ([[0.5, 1.5]], ShapeError, "whole numbers"),
        ([1, 2, 3], ShapeError, r"\(batch, time\), and are \(3,\)"),
        (np.zeros((1, 34), np.int64), DataError, "34 tokens do not fit into the context of 33"),
    ):
        with pytest.raises(error, match=said):
            model.forward(np.array(ids))
    assert np.isfinite(engine.to_host(model.forward(np.array([[1, 2]])))).all()


def test_a_batch_in_which_nothing_counts_is_refused(engine):
    with pytest.raises(DataError, match="no target counts"):
        make_model(engine).loss(np.array([[1, 2]]), np.array([[-1, -1]]))


# ---- weights ----


def test_weights_come_out_as_they_went_in(engine):
    weights = random_weights()
    model = GPT(CONFIG, engine)
    model.load_weights(weights)
    got = model.weights()
    assert got.keys() == weights.keys()
    for name, array in weights.items():
        np.testing.assert_array_equal(got[name], array)
    got["output_norm.bias"][:] = 9  # a copy, not the model's own
    np.testing.assert_array_equal(model.weights()["output_norm.bias"], weights["output_norm.bias"])


def test_weights_that_do_not_fit_are_refused_by_name_and_none_is_taken(engine):
    model, before = make_model(engine), random_weights()
    for change, said in (
        (lambda w: w.pop("output_norm.bias"), r"missing \['output_norm.bias'\], unknown none"),
        (lambda w: w.update(extra=np.zeros(1)), r"missing none, unknown \['extra'\]"),
        (lambda w: w.update({"blk.0.attn_qkv.weight": np.zeros((45, 15))}),
         r"blk.0.attn_qkv.weight has the shape \(45, 15\), the model needs \(15, 45\)"),
    ):  # fmt: skip
        other = random_weights(seed=9)
        change(other)
        with pytest.raises(CheckpointError, match=said):
            model.load_weights(other)
    for name, array in model.weights().items():
        np.testing.assert_array_equal(array, before[name])


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(engine):
    model, weights = GPT(CONFIG, engine), []
    for seed in (3, 3, 4):
        model.initialize(seed)
        weights.append(model.weights())
    for name in weights[0]:
        np.testing.assert_array_equal(weights[0][name], weights[1][name])
    assert (weights[0]["token_embd.weight"] != weights[2]["token_embd.weight"]).all()


def test_the_first_weights_have_the_published_deviations():
    config = Config()
    model = GPT(config, reference.Engine())
    model.initialize(0)
    for name, array in model.weights().items():
        if name.endswith("norm.weight"):
            assert (array == 1).all()
        elif name.endswith("bias"):
            assert (array == 0).all()
        else:
            smaller = name.endswith(("attn_output.weight", "ffn_down.weight"))
            want = 0.02 / 2 if smaller else 0.02  # two blocks: sqrt(2 x 2)
            assert array.std() == pytest.approx(want, rel=0.05), name
            assert abs(array.mean()) < 5 * want / np.sqrt(array.size)


def test_matrices_decay_and_stand_first():
    model = GPT(CONFIG, reference.Engine())
    flags = [decays(name) for name in model.names]
    assert flags == sorted(flags, reverse=True)
    decaying = {name for name in model.names if decays(name)}
    kinds = ("attn_qkv", "attn_output", "ffn_up", "ffn_down")
    assert decaying == {"token_embd.weight"} | {
        f"blk.{i}.{kind}.weight" for i in range(2) for kind in kinds
    }


# ---- the cost of a step ----


@pytest.mark.parametrize("layers, budget", [(1, 55), (2, 95), (3, 135)])
def test_a_training_step_keeps_to_its_budget_of_launches(opencl, monkeypatch, layers, budget):
    config = Config(37, 16, d_model=12, n_heads=2, n_layers=layers, d_ff=20)
    model = GPT(config, opencl)
    model.initialize(0)
    optimizer, ids = AdamW(model), np.zeros((2, 5), np.int64)
    launches, call = [], Kernel.__call__

    def step():
        loss = model.loss(ids, ids)
        model.backward()
        optimizer.step(loss, 1e-3)

    step()  # the first of a device tries which of two kernels is faster
    monkeypatch.setattr(Kernel, "__call__", lambda k, *a: (launches.append(k.name), call(k, *a))[1])
    step()
    assert 0 < len(launches) <= budget, launches
