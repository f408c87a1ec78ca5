"""embedding and unembedding, forward and backward: the table that is used at both ends."""

import numpy as np
import pytest
from ops_helpers import (
    LOCAL_SIZES,
    assert_rejected,
    assert_within,
    at_any_size,
    check_gradient,
    check_operations,
    expected,
    rounded,
)

from llmcl import reference
from llmcl.errors import DataError, ShapeError

NAMES = ("embedding", "embedding_backward", "unembedding", "unembedding_backward")


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@at_any_size
def test_equals_numpy_at_any_size(engine, local_size, size, seed):
    check_operations(engine, NAMES, size, seed, local_size)


@pytest.mark.parametrize("width", (1, 3, 8, 23))
def test_a_work_item_may_own_any_number_of_channels(engine, width):
    rng = np.random.default_rng(width)
    ids = rng.integers(0, 5, size=(3, 7), dtype=np.int32)
    dx, tokens, positions = rounded(rng, 3, 7, 23), rounded(rng, 11, 23), rounded(rng, 9, 23)
    dtokens = engine.from_host(tokens)
    kernel = engine.program.kernel("embedding", "embedding_backward_tokens")
    moved = engine.from_host(ids), engine.from_host(dx), dtokens
    kernel((-(-23 // width), 11), (3, 4), *moved, ids.size, 11, 23, width)
    want, bound = expected("embedding_backward", [ids, dx, tokens, positions], written=(2, 3))
    assert_within(engine.to_host(dtokens), want, bound)
    engine.check_guards()


def test_a_token_picks_its_row_and_its_position_another(any_engine):
    ids = any_engine.from_host(np.array([[3, 1, 3]]))
    tokens = any_engine.from_host(np.arange(8.0).reshape(4, 2))
    positions = any_engine.from_host(100.0 * np.arange(10).reshape(5, 2))
    x = any_engine.to_host(any_engine.embedding(ids, tokens, positions, 2))
    np.testing.assert_array_equal(x, [[[406, 507], [602, 703], [806, 907]]])


def test_a_repeated_token_collects_every_gradient(any_engine):
    ids = any_engine.from_host(np.array([[1, 1, 0]]))
    dtokens, dpositions = any_engine.zeros((4, 1)), any_engine.zeros((3, 1))
    dx = any_engine.from_host(np.ones((1, 3, 1)))
    any_engine.embedding_backward(ids, dx, dtokens, dpositions)
    np.testing.assert_array_equal(any_engine.to_host(dtokens)[:, 0], [1, 2, 0, 0])
    np.testing.assert_array_equal(any_engine.to_host(dpositions)[:, 0], [1, 1, 1])


def test_two_hundred_thousand_additions_to_one_row_lose_none(engine):
    ids = engine.from_host(np.full((200, 1000), 3, np.int32))
    dx = engine.from_host(np.ones((200, 1000, 1)))
    for _ in range(5):
        dtokens, dpositions = engine.zeros((5, 1)), engine.zeros((1000, 1))
        engine.embedding_backward(ids, dx, dtokens, dpositions)
        np.testing.assert_array_equal(engine.to_host(dtokens)[:, 0], [0, 0, 0, 200_000, 0])
        np.testing.assert_array_equal(engine.to_host(dpositions)[:, 0], 200)


def test_backward_agrees_with_central_differences_and_adds():
    rng = np.random.default_rng(1)
    ids = np.array([[2, 0, 2], [2, 4, 0]], np.int32)
    tokens, positions = rng.normal(size=(5, 4)), rng.normal(size=(6, 4))
    up = rng.normal(size=(2, 3, 4))
    starts = rng.normal(size=(5, 4)), rng.normal(size=(6, 4))
    dtokens, dpositions = starts[0].copy(), starts[1].copy()
    reference.embedding_backward(ids, up, dtokens, dpositions)

    def loss():
        return float((reference.embedding(ids, tokens, positions) * up).sum())

    check_gradient(loss, tokens, dtokens - starts[0], rng, entries=20)
    check_gradient(loss, positions, dpositions - starts[1], rng, entries=24)
    assert np.all(dtokens[[1, 3]] == starts[0][[1, 3]])  # tokens that do not occur
    assert np.all(dpositions[3:] == starts[1][3:])


def test_unembedding_backward_agrees_with_central_differences_and_adds():
    rng = np.random.default_rng(2)
    x, tokens, up = rng.normal(size=(2, 3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(2, 3, 5))
    start = rng.normal(size=(5, 4))
    dtokens = start.copy()
    dx = reference.unembedding_backward(x, tokens, up, dtokens)

    def loss():
        return float((reference.unembedding(x, tokens) * up).sum())

    check_gradient(loss, x, dx, rng, entries=24)
    check_gradient(loss, tokens, dtokens - start, rng, entries=20)


def test_plausible_mistakes_are_rejected():
    rng = np.random.default_rng(3)
    ids = np.array([[1, 1, 0]], np.int32)
    dx, dtokens, dpositions = rounded(rng, 1, 3, 4), rounded(rng, 4, 4), rounded(rng, 5, 4)
    once = dtokens.copy()
    once[ids] += dx  # adds once for each distinct token
    args = [ids, dx, dtokens, dpositions]
    assert_rejected("embedding_backward", args, once, written=(2, 3))
    tokens, positions = rounded(rng, 4, 4), rounded(rng, 5, 4)
    assert_rejected("embedding", [ids, tokens, positions], tokens[ids])
    assert_rejected("embedding", [ids, tokens, positions], tokens[ids] + positions[1:4])
    x, dlogits = rounded(rng, 1, 3, 4), rounded(rng, 1, 3, 4)
    assert_rejected("unembedding", [x, tokens], x @ tokens)
    args = [x, tokens, dlogits, dtokens]
    overwritten = dlogits[0].T @ x[0]
    assert_rejected("unembedding_backward", args, overwritten, 1, written=(3,))


@pytest.mark.parametrize("wrong, said", [(7, "7 at \\(0, 1\\)"), (-1, "-1 at \\(0, 1\\)")])
def test_an_id_outside_the_vocabulary_is_named_with_its_place(any_engine, wrong, said):
    ids = any_engine.from_host(np.array([[0, wrong, 2]]))
    tokens, positions = any_engine.zeros((7, 2)), any_engine.zeros((5, 2))
    with pytest.raises(DataError, match=f"token id {said} is outside the vocabulary of 7"):
        any_engine.embedding(ids, tokens, positions)


def test_ids_may_be_of_any_whole_type_but_not_fractions(any_engine):
    tokens = any_engine.from_host(np.arange(22.0).reshape(11, 2))
    positions = any_engine.zeros((4, 2))
    want = np.arange(22.0).reshape(11, 2)[[7, 8, 9, 10]]
    for ids in (
        [[7, 8, 9, 10]],
        np.array([[7, 8, 9, 10]], np.int64),
        np.array([[7, 8, 9, 10]], np.uint32),
        np.array([[7, 8, 9, 10]], np.int32),
        np.array([[7, 8, 9, 10]], np.uint8),
    ):
        x = any_engine.embedding(any_engine.from_host(ids), tokens, positions)
        np.testing.assert_array_equal(any_engine.to_host(x)[0], want)
    with pytest.raises(ShapeError, match="whole numbers, and are float"):
        any_engine.embedding(any_engine.from_host(np.ones((1, 2))), tokens, positions)


def test_a_text_longer_than_the_position_table_is_refused_with_both_lengths(any_engine):
    ids = any_engine.from_host(np.zeros((1, 4), np.int32))
    tokens, positions = any_engine.zeros((7, 2)), any_engine.zeros((5, 2))
    assert any_engine.embedding(ids, tokens, positions, 1).shape == (1, 4, 2)
    for first in (2, -1):
        with pytest.raises(DataError, match=f"{4 + first} tokens do not fit .* of 5"):
            any_engine.embedding(ids, tokens, positions, first)
