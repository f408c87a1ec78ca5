"""The bigram model: its counts, its shares, and the least loss that looking back one token has."""

import numpy as np
import pytest

from llmcl.bigram import bigram_counts, bigram_loss, bigram_shares
from llmcl.data import IGNORED
from llmcl.errors import ShapeError

INPUTS = np.array([[0, 1, 0, 1], [2, 0, 3, 3]], np.int32)
TARGETS = np.array([[1, 0, 1, 2], [0, 1, IGNORED, IGNORED]], np.int32)


def test_every_place_with_a_target_counts_once():
    counts = bigram_counts(INPUTS, TARGETS, 4)
    assert counts[0, 1] == 3 and counts[1, 0] == 1 and counts[1, 2] == 1 and counts[2, 0] == 1
    assert counts.sum() == (TARGETS != IGNORED).sum()


def test_each_row_of_shares_sums_to_one():
    shares = bigram_shares(bigram_counts(INPUTS, TARGETS, 4))
    assert np.allclose(shares.sum(axis=1), 1)
    assert shares[1].tolist() == [0.5, 0, 0.5, 0]
    assert shares[3].tolist() == [0.25] * 4  # a row that counted nothing
    smooth = bigram_shares(bigram_counts(INPUTS, TARGETS, 4), 0.5)
    assert np.allclose(smooth[1], np.array([1.5, 0.5, 1.5, 0.5]) / 4)


def test_the_loss_is_that_of_a_hand_computed_text():
    # Four places are certain, two have one half.
    assert bigram_loss(INPUTS, TARGETS, 4) == pytest.approx(2 * np.log(2) / 6)
    assert str(bigram_loss([[0, 1]], [[1, 0]], 2)) == "0.0"


def test_no_other_table_has_a_lower_loss():
    rng = np.random.default_rng(0)
    inputs, targets = rng.integers(0, 7, (2, 5, 60))
    least = bigram_loss(inputs, targets, 7)
    counts = bigram_counts(inputs, targets, 7)
    assert least < np.log(7)
    for seed in range(20):
        moved = counts * np.exp(np.random.default_rng(seed).normal(size=counts.shape) / 10)
        shares = bigram_shares(moved)
        assert -np.log(shares[inputs, targets]).mean() > least
    for extra in (0.01, 0.1, 1.0):
        assert bigram_loss(inputs, targets, 7, extra) > least


def test_more_smoothing_goes_to_the_loss_of_knowing_nothing():
    assert bigram_loss(INPUTS, TARGETS, 4, 1e9) == pytest.approx(np.log(4))


@pytest.mark.parametrize(
    ("inputs", "targets", "words"),
    [
        ([[0, 1]], [[1]], "differ in shape"),
        ([[0, 4]], [[1, 1]], "the input 4"),
        ([[0, 1]], [[1, -2]], "the target -2"),
        ([[0, 1]], [[IGNORED, IGNORED]], "no place has a target"),
    ],
)
def test_what_cannot_be_counted_is_told(inputs, targets, words):
    with pytest.raises(ShapeError, match=words):
        bigram_loss(inputs, targets, 4)
