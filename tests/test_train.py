"""Batches, the training loop, what is not finite, and what a model is found to know."""

import dataclasses
import warnings

import numpy as np
import pytest

from llmcl.config import Config
from llmcl.data import IGNORED, Dialogue, pretrain_rows, tokenizer_texts, tune_rows
from llmcl.engine import get_engine
from llmcl.errors import DeviceError, TrainingError
from llmcl.evaluate import answers, finishes, recall
from llmcl.model import GPT
from llmcl.optimizer import AdamW, Schedule
from llmcl.reference import Engine
from llmcl.tokenizer import ByteBPE
from llmcl.train import Batches, check_finite, train_steps

SENTENCES = ["The sun is warm.", "Rivers reach the sea.", "Bees make honey from flowers."]
DIALOGUES = [Dialogue("Hello", "Hello, friend."), Dialogue("What do bees make?", "Honey.")]
TOKENIZER = ByteBPE.train(tokenizer_texts(SENTENCES, DIALOGUES), 290)
CONFIG = Config(TOKENIZER.vocab_size, context_length=64, d_model=16, n_heads=2, n_layers=1, d_ff=32)
ROWS = pretrain_rows(SENTENCES, TOKENIZER)
BATCHES = Batches([ROWS], 8, TOKENIZER.end_id)


@pytest.fixture(params=["numpy", "OpenCL"], scope="module")
def engine(request):
    return Engine(np.float32) if request.param == "numpy" else get_engine()


def start(engine, seed=0):
    model = GPT(CONFIG, engine)
    model.initialize(seed)
    return model, AdamW(model)


def equal(a, b):
    return all(np.array_equal(a[name], b[name]) for name in a)


# ---- batches ----


def numbered_rows(count, length=3):
    return [([i] * length, [i] * length) for i in range(count)]


def rows_of(batch):
    return batch[0][:, 0].tolist()


def test_few_rows_are_taken_whole_and_in_order():
    batches = Batches([numbered_rows(3), numbered_rows(8)], 8, pad_id=0)
    for step in (1, 2, 77):
        assert rows_of(batches(step)) == [0, 1, 2, 0, 1, 2, 3, 4, 5, 6, 7]


def test_many_rows_are_drawn_by_seed_and_step_alone():
    source = numbered_rows(200)
    drawn = {step: rows_of(Batches([source], 8, 0, seed=5)(step)) for step in (3, 1, 2)}
    again = Batches([source], 8, 0, seed=5)
    for step in (1, 2, 3):
        assert rows_of(again(step)) == drawn[step]
        assert len(set(drawn[step])) == 8
    assert drawn[1] != drawn[2]
    assert rows_of(Batches([source], 8, 0, seed=6)(1)) != drawn[1]


def test_every_row_gets_its_turn():
    batches = Batches([numbered_rows(200)], 8, 0)
    seen = [row for step in range(1, 301) for row in rows_of(batches(step))]
    counts = np.bincount(seen, minlength=200)
    assert counts.min() > 0 and counts.max() < 40  # 12 are expected


def test_each_source_gives_its_own_share():
    batches = Batches([numbered_rows(2), [([9], [9])] * 50], 4, 0)
    for step in (1, 2):
        assert sorted(rows_of(batches(step))) == [0, 1, 9, 9, 9, 9]


def test_padding_has_no_target():
    ids, targets = Batches([[([1, 2, 3], [2, 3, 4]), ([5], [6])]], 8, pad_id=7)(1)
    assert ids.tolist() == [[1, 2, 3], [5, 7, 7]]
    assert targets.tolist() == [[2, 3, 4], [6, IGNORED, IGNORED]]


@pytest.mark.parametrize("size", [0, -1])
def test_batch_size_below_one_is_refused(size):
    with pytest.raises(TrainingError, match=f"batch_size {size}"):
        Batches([numbered_rows(3)], size, 0)
    assert len(rows_of(Batches([numbered_rows(3)], 1, 0)(1))) == 1


# ---- the loop ----


def test_loss_falls_and_is_read_at_logged_steps_only(engine):
    model, optimizer = start(engine)
    steps = list(train_steps(model, optimizer, BATCHES, Schedule(1e-2, 25)))
    assert [step.step for step in steps] == list(range(1, 26))
    logged = {step.step: step for step in steps if step.loss is not None}
    assert list(logged) == [1, 10, 20, 25]
    assert logged[1].loss == pytest.approx(np.log(TOKENIZER.vocab_size), rel=0.1)
    assert logged[25].loss < 0.6 * logged[1].loss
    assert all(step.norm > 0 and step.speed > 0 for step in logged.values())
    assert all(step.norm is None and step.speed is None for step in steps if step.loss is None)
    assert [step.rate for step in steps] == [Schedule(1e-2, 25).at(n) for n in range(1, 26)]


def test_speed_is_tokens_that_count_over_the_time_since_the_last_logged_step(monkeypatch):
    clock = iter(range(100, 200, 4))  # every look at the clock is four seconds after the last
    monkeypatch.setattr("llmcl.train.time.perf_counter", lambda: float(next(clock)))

    def batches(step):
        ids, targets = BATCHES(step)
        targets[0, 0] = 0  # the first token of the vocabulary counts like any other
        return ids, targets

    model, optimizer = start(Engine(np.float32))
    steps = list(train_steps(model, optimizer, batches, Schedule(1e-2, 13), log_every=5))
    counted = (batches(1)[1] >= 0).sum()
    speeds = {step.step: step.speed for step in steps if step.speed is not None}
    assert speeds == {1: counted / 4, 5: counted, 10: 5 * counted / 4, 13: 3 * counted / 4}


def test_a_step_that_finds_no_room_gives_back_what_it_kept(monkeypatch):
    """Also what layers inside of layers keep: it is most of the memory."""
    model, optimizer = start(Engine(np.float32))

    def no_room(*args):
        raise DeviceError("no room")

    monkeypatch.setattr(optimizer, "step", no_room)
    with pytest.raises(DeviceError):
        list(train_steps(model, optimizer, BATCHES, Schedule(1e-2, 1)))
    block = model.blocks[0]
    inside = block.attention, block.attention.qkv, block.ffn_norm, block.feed_forward.down
    for layer in (model.embedding, *inside, model.output_norm, model.head):
        assert layer.saved == ()


def test_both_engines_learn_the_same():
    losses = []
    for engine in (Engine(np.float32), get_engine()):
        steps = train_steps(*start(engine), BATCHES, Schedule(1e-2, 12))
        losses.append([step.loss for step in steps if step.loss is not None])
    # Ten steps of AdamW carry rounding of the first losses on; the losses are near 5.
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


@pytest.mark.parametrize("interruptions", [(1,), (7,), (7, 8), (10, 13), (24,)])
def test_interrupted_and_resumed_gives_the_same_bits(engine, interruptions):
    rows = ROWS * 3  # nine rows in batches of four: drawn anew for each step
    batches, schedule = Batches([rows], 4, TOKENIZER.end_id, seed=3), Schedule(1e-2, 25)
    model, optimizer = start(engine)
    whole = list(train_steps(model, optimizer, batches, schedule))
    other, resumed, done, parts = *start(engine), 0, []
    for stop in (*interruptions, 25):
        weights, moments = other.weights(), resumed.moments()
        other, resumed = start(engine, seed=99)
        other.load_weights(weights)
        resumed.load_moments(*moments, done)
        fresh = Batches([rows], 4, TOKENIZER.end_id, seed=3)
        for step in train_steps(other, resumed, fresh, schedule, first=done + 1):
            parts.append(step)
            if step.step == stop:
                break
        done = stop
    assert equal(model.weights(), other.weights())
    for a, b in zip(optimizer.moments(), resumed.moments(), strict=True):
        assert equal(a, b)
    assert [(s.step, s.loss, s.norm) for s in whole] == [(s.step, s.loss, s.norm) for s in parts]


def test_tuning_rows_train_the_answer_only(engine):
    model, optimizer = start(engine)
    batches = Batches([tune_rows(DIALOGUES, TOKENIZER)], 8, TOKENIZER.end_id)
    _, targets = batches(1)
    answered = sum(len(TOKENIZER.encode(s + d.assistant)) + 1 for d in DIALOGUES for s in (" ", ""))
    assert (targets != IGNORED).sum() == answered
    steps = list(train_steps(model, optimizer, batches, Schedule(1e-2, 12)))
    assert steps[-1].loss < 0.8 * steps[0].loss


# ---- what is not finite ----


def first_error(model, optimizer, schedule, poison=None, **options):
    """The message of the error, and the weights just before the damage and after the error."""
    with warnings.catch_warnings(), pytest.raises(TrainingError) as caught:
        warnings.simplefilter("error")
        for step in train_steps(model, optimizer, BATCHES, schedule, **options):
            if poison and step.step == poison[0]:
                weights = model.weights()
                weights[poison[1]].flat[3] = poison[2]
                model.load_weights(weights)
    return str(caught.value)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", ["blk.0.ffn_up.weight", "output_norm.bias"])
def test_damaged_weight_stops_the_run_and_changes_nothing(engine, name, value):
    model, optimizer = start(engine)
    message = first_error(model, optimizer, Schedule(1e-2, 30), (13, name, value))
    assert "step 14, first in the weights " + name in message
    assert "no weight was changed from that step on" in message
    # The error comes at step 20, when the loss is read; step 14 to 20 changed nothing.
    untouched, same = start(engine)
    for _ in train_steps(untouched, same, BATCHES, Schedule(1e-2, 30)):
        if same.steps == 13:
            break
    expected = untouched.weights()
    expected[name].flat[3] = value
    for key, array in model.weights().items():
        np.testing.assert_array_equal(array, expected[key], err_msg=key)
    for a, b in zip(optimizer.moments(), same.moments(), strict=True):
        assert equal(a, b)


def test_absurd_rate_stops_behind_its_first_step(engine):
    model, optimizer = start(engine)
    message = first_error(model, optimizer, Schedule(1e30, 30))
    assert "step 2" in message and "the gradient of token_embd.weight" in message
    assert "smaller learning rate" in message and "nan" in message
    once, same = start(engine)
    next(train_steps(once, same, BATCHES, Schedule(1e30, 30)))
    assert equal(model.weights(), once.weights())


def test_check_finite_gives_loss_and_norm(engine):
    model, optimizer = start(engine)
    step = next(train_steps(model, optimizer, BATCHES, Schedule(1e-2, 30)))
    assert check_finite(model, optimizer.status) == (step.loss, step.norm)


def test_damage_between_logged_steps_is_found_when_asked(engine):
    model, optimizer = start(engine)
    steps = train_steps(model, optimizer, BATCHES, Schedule(1e30, 30))
    for _ in range(4):
        next(steps)
    with pytest.raises(TrainingError, match="at step 2"):
        check_finite(model, optimizer.status)


# ---- what it knows ----


@pytest.fixture(scope="module")
def learned():
    """A model that knows the sentences, and one that knows the dialogues as well."""
    model, optimizer = start(Engine(np.float32))
    for _ in train_steps(model, optimizer, BATCHES, Schedule(2e-2, 100)):
        pass
    tuned, optimizer = start(Engine(np.float32))
    tuned.load_weights(model.weights())
    batches = Batches([tune_rows(DIALOGUES, TOKENIZER), ROWS], 8, TOKENIZER.end_id)
    for _ in train_steps(tuned, optimizer, batches, Schedule(2e-2, 100)):
        pass
    return model, tuned


def test_recall_counts_sentences_word_for_word(learned):
    model, tuned = learned
    assert recall(model, TOKENIZER, SENTENCES) == [True, True, True]
    assert recall(tuned, TOKENIZER, SENTENCES) == [True, True, True]
    others = [SENTENCES[0], "Rivers reach the sun.", "Rivers reach the sea", "Bees make honey."]
    assert recall(model, TOKENIZER, others) == [True, False, False, False]
    assert recall(model, TOKENIZER, ["One", "Two"]) == []


def test_answers_counts_both_spellings_of_the_question(learned):
    model, tuned = learned
    assert answers(model, TOKENIZER, DIALOGUES) == [False, False]
    assert answers(tuned, TOKENIZER, DIALOGUES) == [True, True]
    other = [Dialogue("Hello", "Hello, friend"), Dialogue("What do bees make?", "Honey")]
    assert answers(tuned, TOKENIZER, other) == [False, False]


def test_a_sentence_must_end(learned):
    model, _ = learned
    assert finishes(model, TOKENIZER, "The sun", " is warm.")
    assert not finishes(model, TOKENIZER, "The sun", " is warm")  # it goes on with a full stop
    assert not finishes(model, TOKENIZER, "The sun", " is warm. ")


def test_what_does_not_fit_the_context_is_not_known(learned):
    model, _ = learned
    assert not finishes(model, TOKENIZER, "The sun", " is warm" * 64)


def test_a_full_context_is_no_end(learned):
    model, _ = learned
    end = len(TOKENIZER.encode("The sun is warm"))
    short = GPT(dataclasses.replace(CONFIG, context_length=end + 1), model.engine)
    weights = model.weights()
    weights["position_embd.weight"] = weights["position_embd.weight"][: end + 1]
    short.load_weights(weights)
    # It writes " is warm" and a full stop, and then there is no room left.
    assert not finishes(short, TOKENIZER, "The sun", " is warm")


def test_at_most_a_hundred_texts_are_asked(learned):
    model, tuned = learned
    assert len(recall(model, TOKENIZER, [f"The {n}" for n in range(120)])) == 100
    assert len(answers(tuned, TOKENIZER, DIALOGUES * 60)) == 100
