"""Generation: shares that are known, the cache, every way to stop, and replies."""

import numpy as np
import pytest
from model_helpers import CONFIG, make_model

from llmcl import reference
from llmcl.config import Config
from llmcl.errors import DataError
from llmcl.generate import Sampling, generate, next_shares, reply, stream
from llmcl.model import GPT
from llmcl.tokenizer import ByteBPE

LOGITS = np.log([0.5, 0.3, 0.15, 0.05])


def fixed_model(engine, logits=LOGITS, context_length=16) -> GPT:
    """A model that gives these logits after any text: its last norm gives out a constant."""
    config = Config(len(logits), context_length, d_model=4, n_heads=2, n_layers=1, d_ff=4)
    model = GPT(config, engine)
    weights = {name: np.zeros(shape) for name, shape in config.parameter_shapes().items()}
    weights["token_embd.weight"][:, 0] = logits
    weights["output_norm.bias"][0] = 1
    model.load_weights(weights)
    return model


def speaking_model(engine, tokenizer, prompt: str, answer: list[int]) -> GPT:
    """A model that says `answer` after `prompt`: its positions point at the tokens that follow."""
    start, v = len(tokenizer.encode(prompt)) - 1, tokenizer.vocab_size
    config = Config(v, start + len(answer) + 20, d_model=v + 1, n_heads=1, n_layers=1, d_ff=1)
    model = GPT(config, engine)
    weights = {name: np.zeros(shape) for name, shape in config.parameter_shapes().items()}
    # Orthogonal directions without a mean, which the last norm would take away.
    directions = np.linalg.qr(np.eye(v + 1) - 1 / (v + 1))[0][:, :v].T
    weights["token_embd.weight"][:] = directions
    for i, token in enumerate(answer):
        weights["position_embd.weight"][start + i] = 100 * directions[token]
    weights["output_norm.weight"][:] = 1
    model.load_weights(weights)
    return model


# ---- how a token is chosen ----


def test_temperature_zero_takes_the_largest_logit():
    np.testing.assert_array_equal(next_shares(LOGITS, Sampling()), [1, 0, 0, 0])
    np.testing.assert_array_equal(next_shares([1.0, 3, 3], Sampling()), [0, 1, 0])  # the first one


@pytest.mark.parametrize(
    "sampling, want",
    [
        (Sampling(1.0), [0.5, 0.3, 0.15, 0.05]),
        (Sampling(2.0), np.sqrt([0.5, 0.3, 0.15, 0.05])),
        (Sampling(0.5), np.square([0.5, 0.3, 0.15, 0.05])),
        (Sampling(1.0, top_k=2), [0.5, 0.3, 0, 0]),
        (Sampling(1.0, top_k=1), [1, 0, 0, 0]),
        (Sampling(1.0, top_k=9), [0.5, 0.3, 0.15, 0.05]),
        (Sampling(1.0, top_p=0.4), [1, 0, 0, 0]),
        (Sampling(1.0, top_p=0.7), [0.5, 0.3, 0, 0]),
        (Sampling(1.0, top_p=0.9), [0.5, 0.3, 0.15, 0]),
        (Sampling(1.0, top_p=1e-9), [1, 0, 0, 0]),
        # top_k first, then top_p over what is left: 0.5 / 0.8 = 0.625 reaches 0.6 alone.
        (Sampling(1.0, top_k=2, top_p=0.6), [1, 0, 0, 0]),
        (Sampling(1.0, top_k=3, top_p=0.6), [0.5, 0.3, 0, 0]),
    ],
    ids=str,
)
def test_the_shares_are_the_known_ones(sampling, want):
    shares = next_shares(LOGITS, sampling)
    np.testing.assert_allclose(shares, np.array(want) / np.sum(want), rtol=1e-12, atol=1e-15)
    order = [2, 0, 3, 1]  # whatever the order of the vocabulary
    np.testing.assert_allclose(next_shares(LOGITS[order], sampling), shares[order], atol=1e-15)


def test_extreme_logits_and_temperatures_give_shares():
    for logits, t in (([1e30, -1e30, 0], 1e-3), ([5.0, 5.0], 1e6), ([-1e4, -2e4], 1e-6)):
        shares = next_shares(logits, Sampling(t))
        assert shares.sum() == pytest.approx(1) and np.isfinite(shares).all()


@pytest.mark.parametrize("bad", (np.nan, np.inf, -np.inf))
@pytest.mark.parametrize("temperature", (0.0, 1.0))
def test_logits_that_are_not_finite_are_refused(bad, temperature):
    with pytest.raises(DataError, match="not finite; its weights are damaged"):
        next_shares([0.0, bad, 1.0], Sampling(temperature))


@pytest.mark.parametrize(
    "wrong", [{"temperature": -1}, {"temperature": np.nan}, {"temperature": np.inf},
              {"top_k": -1}, {"top_p": 0}, {"top_p": 1.5}, {"top_p": np.nan}],
)  # fmt: skip
def test_an_impossible_way_of_sampling_is_refused_with_its_value(wrong):
    with pytest.raises(DataError, match=str(next(iter(wrong.values())))):
        Sampling(**wrong)


def test_tokens_are_drawn_as_often_as_their_shares_say(engine):
    model, n = fixed_model(engine, context_length=601), 600
    drawn = generate(model, [0], max_new_tokens=n, temperature=1.0, seed=1)
    counts, shares = np.bincount(drawn, minlength=4), np.exp(LOGITS)
    spread = np.sqrt(n * shares * (1 - shares))
    assert (np.abs(counts - n * shares) < 4 * spread).all()
    narrow = generate(model, [0], max_new_tokens=100, temperature=1.0, top_k=2, seed=1)
    assert set(narrow) == {0, 1}


def test_a_seed_gives_the_same_tokens_and_another_seed_others(engine):
    model = make_model(engine)
    texts = [generate(model, [3, 1], max_new_tokens=20, temperature=1.5, seed=s) for s in (5, 5, 6)]
    assert texts[0] == texts[1] != texts[2]


def test_greedy_tokens_are_those_with_the_largest_share(engine):
    model = make_model(engine)
    text = generate(model, [3, 1], max_new_tokens=8)
    for i, token in enumerate(text):
        logits = engine.to_host(model.forward(np.array([[3, 1, *text[:i]]])))[0, -1]
        assert next_shares(logits, Sampling())[token] == 1


# ---- with the cache and without ----


@pytest.mark.parametrize("temperature", (0.0, 1.0))
@pytest.mark.parametrize("prompt", ([7], [3, 1, 4, 1, 5, 9, 2, 6]))
def test_the_cache_gives_the_same_tokens_as_none(engine, prompt, temperature):
    model = make_model(engine)
    options = dict(max_new_tokens=25, temperature=temperature, seed=3)
    with_cache = generate(model, prompt, **options)
    assert with_cache == generate(model, prompt, use_cache=False, **options)
    assert len(with_cache) == 25 and len(set(with_cache)) > 1


def test_with_the_cache_only_the_newest_token_is_computed(monkeypatch):
    model, computed = make_model(reference.Engine()), []
    forward = model.forward

    def counted(ids, caches=None, first=0):
        computed.append(ids.shape[1])
        return forward(ids, caches, first)

    monkeypatch.setattr(model, "forward", counted)
    generate(model, [3, 1, 4], max_new_tokens=4)
    assert computed == [3, 1, 1, 1]
    computed.clear()
    generate(model, [3, 1, 4], max_new_tokens=4, use_cache=False)
    assert computed == [3, 4, 5, 6]


def test_two_texts_from_one_model_do_not_disturb_each_other(engine):
    model = make_model(engine)
    want = [generate(model, prompt, max_new_tokens=10) for prompt in ([1, 2, 3], [9])]
    one, two = (stream(model, prompt, max_new_tokens=10) for prompt in ([1, 2, 3], [9]))
    assert list(map(list, zip(*zip(one, two, strict=True), strict=True))) == want


def test_opencl_and_numpy_write_the_same_text(opencl):
    texts = [
        generate(make_model(engine), [5, 6], max_new_tokens=20)
        for engine in (opencl, reference.Engine(), reference.Engine(np.float32))
    ]
    assert texts[0] == texts[1] == texts[2]


# ---- where it ends ----


def test_it_ends_after_the_given_number_of_tokens(engine):
    model = fixed_model(engine)
    for n in (0, 1, 5):
        assert generate(model, [2], max_new_tokens=n) == [0] * n


def test_it_ends_at_a_stop_id_which_is_given_out(engine):
    model = fixed_model(engine, context_length=300)
    text = generate(model, [0], temperature=1.0, seed=2, stop_ids=[2, 3])
    assert text[-1] in (2, 3) and set(text[:-1]) <= {0, 1}


@pytest.mark.parametrize("use_cache", (True, False))
def test_the_context_is_filled_to_its_last_place(engine, use_cache):
    model = fixed_model(engine, context_length=8)
    for length in (1, 7, 8):
        text = generate(model, [1] * length, use_cache=use_cache)
        assert text == [0] * (8 - length)
    assert len(generate(model, [1] * 7, max_new_tokens=5, use_cache=use_cache)) == 1


@pytest.mark.parametrize("length", (9, 24))
def test_a_prompt_longer_than_the_context_is_refused_with_both_lengths(engine, length):
    model = fixed_model(engine, context_length=8)
    with pytest.raises(DataError, match=f"{length} tokens do not fit .* context of 8"):
        generate(model, [1] * length)


def test_an_empty_prompt_and_an_unknown_token_are_refused(engine):
    model = fixed_model(engine)
    with pytest.raises(DataError, match="no token to go on from"):
        generate(model, [])
    with pytest.raises(DataError, match=r"token id 4 at \(0, 1\)"):
        generate(model, [0, 4])


@pytest.mark.filterwarnings("ignore:invalid value")
def test_damaged_weights_are_told_instead_of_a_text(engine):
    model = make_model(engine)
    engine.write(model.parameters["output_norm.bias"], np.full(CONFIG.d_model, np.nan))
    for use_cache in (True, False):
        with pytest.raises(DataError, match="damaged"):
            generate(model, [1, 2], max_new_tokens=3, use_cache=use_cache)


# ---- replies ----

TOKENIZER = ByteBPE.train(["User: hi\nAssistant: Hello there."], 262)
PROMPT = "User: hi\nAssistant:"


def pieces(answer: str, *, end: bool = True, **options) -> list[str]:
    """The pieces of a reply by a model that says exactly this."""
    ids = TOKENIZER.encode(answer) + ([TOKENIZER.end_id] if end else [])
    model = speaking_model(reference.Engine(), TOKENIZER, PROMPT, ids)
    return list(reply(model, TOKENIZER, "hi", **options))


ANSWERS = ("Hello there.", "한 👍 é", "a  b\n\nc", "Use UserX: no", "U", "Us", "a b ", "a Us")


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_reply_is_the_answer_without_the_space_before_it(answer):
    found = pieces(" " + answer)
    assert "".join(found) == answer
    assert all("\ufffd" not in piece for piece in found)  # no half of a character


def test_a_reply_comes_in_pieces_as_it_is_written():
    assert len([piece for piece in pieces(" Hello there.") if piece]) > 3


def test_a_reply_ends_where_the_next_turn_begins():
    said = "".join(pieces(" Fine. User: and you?", end=False, max_new_tokens=30))
    assert said == "Fine."
    assert "".join(pieces(" a \n\n User: b", end=False, max_new_tokens=30)) == "a"
    assert "".join(pieces(" FineUser:")) == "Fine"


def test_a_reply_that_is_cut_inside_a_character_keeps_what_is_whole():
    whole = TOKENIZER.encode(" a한")
    text = "".join(pieces(" a한", max_new_tokens=len(whole) - 1))
    assert text.rstrip("\ufffd") == "a"


def test_an_empty_question_is_refused():
    model = speaking_model(reference.Engine(), TOKENIZER, PROMPT, [TOKENIZER.end_id])
    for question in ("", " ", "\n"):
        with pytest.raises(DataError, match="question is empty"):
            list(reply(model, TOKENIZER, question))


def test_a_question_that_does_not_fit_is_refused_with_both_lengths():
    model = speaking_model(reference.Engine(), TOKENIZER, PROMPT, [TOKENIZER.end_id])
    with pytest.raises(DataError, match=f"context of {model.config.context_length}"):
        list(reply(model, TOKENIZER, "hi " * 100))
