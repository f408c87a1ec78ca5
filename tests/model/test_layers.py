"""Layers: how they are put together, and what passes straight through."""

import numpy as np
import pytest
from model_helpers import CONFIG, make_batch, make_model

from llmcl.layers import Attention, Block, Embedding, FeedForward, Head, LayerNorm, Linear


def parts(engine, shapes: dict, seed: int = 0):
    """(parameters, gradients): random numbers and zeros of these shapes."""
    rng = np.random.default_rng(seed)
    return (
        {name: engine.from_host(rng.normal(size=shape)) for name, shape in shapes.items()},
        {name: engine.zeros(shape) for name, shape in shapes.items()},
    )


BLOCK = {
    name.removeprefix("blk.0."): shape
    for name, shape in CONFIG.parameter_shapes().items()
    if name.startswith("blk.0.")
}


def test_a_block_whose_branches_say_nothing_passes_everything_through(engine, rng):
    parameters, gradients = parts(engine, BLOCK)
    for name in ("attn_output.weight", "attn_output.bias", "ffn_down.weight", "ffn_down.bias"):
        engine.fill(parameters[name], 0.0)
    block = Block(engine, parameters, gradients, "", CONFIG.n_heads, 1e-5)
    x, dy = rng.normal(size=(2, 2, 5, 15)).astype(np.float32)
    np.testing.assert_array_equal(engine.to_host(block.forward(engine.from_host(x))), x)
    np.testing.assert_array_equal(engine.to_host(block.backward(engine.from_host(dy))), dy)


def test_a_block_normalizes_before_its_branches_and_adds_after(engine, rng):
    parameters, gradients = parts(engine, BLOCK)
    block = Block(engine, parameters, gradients, "", CONFIG.n_heads, 1e-5)
    x = engine.from_host(rng.normal(size=(1, 4, 15)))
    own = engine, parameters, gradients
    norm = LayerNorm(*own, "attn_norm.", 1e-5), LayerNorm(*own, "ffn_norm.", 1e-5)
    middle = engine.residual(x, Attention(*own, "", CONFIG.n_heads).forward(norm[0].forward(x)))
    want = engine.residual(middle, FeedForward(*own, "").forward(norm[1].forward(middle)))
    # The block adds inside its products, in another order of the same sums.
    got = engine.to_host(block.forward(x))
    np.testing.assert_allclose(got, engine.to_host(want), rtol=1e-5, atol=1e-5)


def test_attention_of_one_head_is_what_the_formula_says(engine, rng):
    shapes = {k: v for k, v in BLOCK.items() if k.startswith("attn_") and "norm" not in k}
    parameters, gradients = parts(engine, shapes)
    x = rng.normal(size=(4, 15)).astype(np.float32).astype(np.float64)
    w = {name: engine.to_host(p).astype(np.float64) for name, p in parameters.items()}
    q, k, v = np.split(x @ w["attn_qkv.weight"] + w["attn_qkv.bias"], 3, axis=-1)
    scores = np.where(np.tri(4, dtype=bool), q @ k.T / np.sqrt(15), -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    want = shares @ v @ w["attn_output.weight"] + w["attn_output.bias"]
    got = Attention(engine, parameters, gradients, "", 1).forward(engine.from_host(x[None]))
    np.testing.assert_allclose(engine.to_host(got)[0], want, rtol=1e-3, atol=1e-4)


def test_a_layer_finds_its_own_parameters_by_its_prefix(engine):
    parameters, gradients = parts(engine, {"a.weight": (2, 3), "a.bias": (3,), "b.weight": (1, 1)})
    layer = Linear(engine, parameters, gradients, "a.")
    assert layer.parameter("weight") is parameters["a.weight"]
    assert layer.gradient("bias") is gradients["a.bias"]


def test_the_head_reads_the_table_that_the_embedding_reads(engine):
    shapes = {"token_embd.weight": (7, 3), "position_embd.weight": (5, 3)}
    parameters, gradients = parts(engine, shapes)
    engine.fill(parameters["position_embd.weight"], 0.0)
    own = engine, parameters, gradients
    ids = engine.from_host(np.array([[2, 6]]))
    logits = Head(*own).forward(Embedding(*own).forward(ids))
    table = engine.to_host(parameters["token_embd.weight"]).astype(np.float64)
    np.testing.assert_allclose(engine.to_host(logits)[0], table[[2, 6]] @ table.T, rtol=1e-5)


@pytest.mark.parametrize("first", (0, 4, 10))
def test_attention_with_a_cache_gives_the_rows_that_it_gives_without(engine, first):
    model = make_model(engine)
    attention = model.blocks[0].attention
    x = np.random.default_rng(1).normal(size=(1, 11, 15))
    want = engine.to_host(attention.forward(engine.from_host(x)))[:, first:]
    cache = model.new_caches()[0]
    if first:
        attention.forward(engine.from_host(x[:, :first]), cache, 0)
    got = engine.to_host(attention.forward(engine.from_host(x[:, first:]), cache, first))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_the_model_has_the_published_order(engine):
    model = make_model(engine)
    ids, _ = make_batch()
    x = model.embedding.forward(engine.from_host(ids))
    for block in model.blocks:
        x = block.forward(x)
    want = engine.to_host(model.head.forward(model.output_norm.forward(x)))
    np.testing.assert_array_equal(engine.to_host(model.forward(ids)), want)
