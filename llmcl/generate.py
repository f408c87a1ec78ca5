"""Writing on from a text, one token at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .data import prompt_text
from .errors import DataError
from .model import GPT
from .tokenizer_base import StreamDecoder, Tokenizer

# Where the next turn begins, an answer is over even if the end token was not chosen.
TURN = "User:"


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen from the logits.

    temperature 0 takes the largest logit. Otherwise the logits are divided by the temperature, only
    the top_k largest stay (0: all), then the fewest whose shares reach top_p (Holtzman et al.
    2020), and one of them is drawn by its share, with random numbers from `seed`.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self):
        if not 0 <= self.temperature < float("inf"):
            raise DataError(f"temperature {self.temperature} is not possible; choose 0 or more.")
        if self.top_k < 0 or not 0 < self.top_p <= 1:
            raise DataError(
                f"top_k {self.top_k} and top_p {self.top_p} are not possible; "
                "choose top_k 0 or more and top_p above 0, at most 1."
            )


def next_shares(logits: np.ndarray, sampling: Sampling) -> np.ndarray:
    """The share (V,) with which each token is drawn, from logits (V,), in float64."""
    logits = np.asarray(logits, np.float64)
    largest = _largest(logits)
    if sampling.temperature == 0:
        return np.eye(1, len(logits), largest)[0]
    order = np.argsort(-logits, kind="stable")
    ranked = np.exp((logits[order] - logits[order[0]]) / sampling.temperature)
    if sampling.top_k:
        ranked[sampling.top_k :] = 0
    ranked /= ranked.sum()
    # A token stays while the shares before it have not reached top_p; the first one always stays.
    before = np.cumsum(ranked) - ranked
    ranked[before >= sampling.top_p] = 0
    shares = np.zeros_like(ranked)
    shares[order] = ranked / ranked.sum()
    return shares


def _largest(logits: np.ndarray) -> int:
    """The first token with the largest logit; DataError when a logit is not finite."""
    if not np.isfinite(logits).all():
        raise DataError("the model gives logits that are not finite; its weights are damaged.")
    return int(np.argmax(logits))


def stream(
    model: GPT,
    ids: Sequence[int],
    *,
    max_new_tokens: int | None = None,
    sampling: Sampling = Sampling(),
    stop_ids: Sequence[int] = (),
    use_cache: bool = True,
) -> Iterator[int]:
    """Yields the new token ids one by one, the stop id too when it comes.

    Ends after max_new_tokens, at a stop id, or when the context is full. With the cache only the
    newest token is computed at each step; without it the whole text again: the tokens are equal.
    Raises DataError for an empty prompt, or one that is longer than the context.
    """
    text = [int(i) for i in ids]
    room = model.config.context_length
    if not text:
        raise DataError("there is no token to go on from; write at least one character.")
    model.check_length(len(text))
    caches = model.new_caches() if use_cache else None
    rng = np.random.default_rng(sampling.seed)
    done = 0
    while len(text) < room and (max_new_tokens is None or max_new_tokens > 0):
        first = done if use_cache else 0
        logits = model.forward(np.array([text[first:]]), caches, first)
        done = len(text)
        last = model.engine.to_host(logits)[0, -1]
        if sampling.temperature == 0:
            text.append(_largest(last))
        else:
            text.append(int(rng.choice(len(last), p=next_shares(last, sampling))))
        yield text[-1]
        max_new_tokens = None if max_new_tokens is None else max_new_tokens - 1
        if text[-1] in stop_ids:
            return


def generate(
    model: GPT,
    ids: Sequence[int],
    *,
    max_new_tokens: int | None = None,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    stop_ids: Sequence[int] = (),
    use_cache: bool = True,
) -> list[int]:
    """The new token ids, as stream() yields them."""
    sampling = Sampling(temperature, top_k, top_p, seed)
    return list(
        stream(
            model,
            ids,
            max_new_tokens=max_new_tokens,
            sampling=sampling,
            stop_ids=stop_ids,
            use_cache=use_cache,
        )  # fmt: skip
    )


def reply(
    model: GPT,
    tokenizer: Tokenizer,
    question: str,
    *,
    max_new_tokens: int | None = None,
    sampling: Sampling = Sampling(),
) -> Iterator[str]:
    """Yields the answer to a question piece by piece, without the space that it begins with.

    Ends at the end token or where the next turn ("User:") begins. Raises DataError for an empty
    question and for one that does not fit into the context.
    """
    if not question.strip():
        raise DataError("the question is empty; write something.")
    ids = tokenizer.encode(prompt_text(question.strip()))
    decoder, held, started = StreamDecoder(tokenizer), "", False
    for token in stream(
        model, ids, max_new_tokens=max_new_tokens, sampling=sampling, stop_ids=[tokenizer.end_id]
    ):
        held += decoder.push(token)
        held = held if started else held.lstrip()
        if TURN in held:
            yield held.split(TURN)[0].rstrip()
            return
        # What may be the beginning of the next turn, with the space before it, is held back until
        # it is clear.
        turn = next((k for k in range(len(TURN) - 1, 0, -1) if held.endswith(TURN[:k])), 0)
        keep = len(held[: len(held) - turn].rstrip())
        ready, held = held[:keep], held[keep:]
        started = started or bool(ready)
        if ready:
            yield ready
    yield held + decoder.finish()
