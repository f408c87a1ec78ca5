"""Opens a GGUF file in real llama.cpp and compares what it does there with our own model.

Our side is the model in NumPy, in float64, with the weights that the file holds: what differs is
then llama.cpp's reading of the file, and rounding. Whether the file still holds what was exported
is a second question, which the answer kept in it decides.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .data import Dialogue, prompt_text, read_dialogues, read_sentences, recall_prompts
from .errors import LlmclError
from .generate import generate
from .gguf_file import GgufModel, answer, read_gguf
from .llama_cpp import ask_llama, warnings
from .model import GPT
from .reference import Engine
from .resources import data_dir

# How far llama.cpp's logits may be from ours, for the types the matrices are stored in. It keeps
# keys and values in F16, takes GELU from a table in F16, and rounds what it multiplies to F16 or,
# with Q8_0, to eight bits. Trained models were measured at 0.010 and 0.168 at most; a wrong number
# of heads or a transposed matrix moves logits by 1 and more.
BANDS = {"F32": 0.02, "F16": 0.02, "Q8_0": 0.25}
# Logits of a file whose weights and sizes nobody touched: rounding of float32, and a reserve.
KEPT_ANSWER_BOUND = 1e-5
# Below this a token's probability is lost in float32's rounding of all the others.
LEAST_LOGPROB = -30.0

# Texts that take tokenizers apart: unknown words, white space, other scripts, digits that are no
# digits, and the end token's name, which a user may type but never produce.
STRANGE_TEXTS = (
    "", " ", "  ", "\n", "\n\n", " \n x", "a  b", "x ", "\t\ttab", "a\r\nb", "Hello, world!",
    "The zebra quietly juggles xylophones.", "I'm sure they'll say it's 12345.67 km", "don't DON'T",
    "The sun", " the sun", "User: Why?\nAssistant:", "User: Why?\nAssistant: ", "--a--b__c",
    "안녕하세요, 세계!", "한국어 문장입니다.\n둘째 줄", "日本語とEnglish", "Ελληνικά ñandú Straße",
    "🙂", "👩‍👩‍👧‍👦 family", "e\u0301 é", "² ½ Ⅷ ٣", "\u00a0\u2003\u200b", "“curly” 'quotes'",
    "<|endoftext|>", "before<|endoftext|>after", "<unk>", "ÿ ÿÿ", "\U0010ffff",
)  # fmt: skip


class Row(NamedTuple):
    """One comparison: how many of all were right, and what is worth saying about it."""

    name: str
    right: int
    all: int
    detail: str = ""


@dataclass(frozen=True)
class Report:
    """What verify found; str() gives a short table."""

    path: str
    dtype: str
    rows: list[Row]

    @property
    def ok(self) -> bool:
        """Whether every row is right throughout."""
        return all(row.right == row.all for row in self.rows)

    def __str__(self) -> str:
        lines = [f"{self.path} ({self.dtype}) in llama.cpp, compared with our own model"]
        for row in self.rows:
            mark = "right" if row.right == row.all else "WRONG"
            count = f"{row.right} of {row.all}"
            lines.append(f"  {mark}  {row.name:<34} {count:>12}  {row.detail}".rstrip())
        return "\n".join(lines)


def verify(
    path: str | os.PathLike,
    sentences: Sequence[str] | None = None,
    dialogues: Sequence[Dialogue] | None = None,
) -> Report:
    """A Report on whether llama.cpp reads, splits and answers with this file as our own model does.

    The model is asked with the beginnings of the sentences and with the dialogues' questions, those
    of the data folder unless others are given. Raises GgufError if the file cannot be read, if
    xllamacpp is missing, and if llama.cpp refuses the file; the message is then llama.cpp's.
    """
    model = read_gguf(path)
    sentences = read_sentences(data_dir() / "pretrain.txt") if sentences is None else sentences
    dialogues = read_dialogues(data_dir() / "tune.jsonl") if dialogues is None else dialogues
    comparison = _Comparison(model, sentences, dialogues)
    requests = [request for check in comparison.checks for request in check[1]]
    answers, log = ask_llama(path, requests)
    if warnings(log) is None:  # on a busy machine llama.cpp may end before its log is written
        answers, log = ask_llama(path, requests)
    rows = [_log_row(log), _kept_answer_row(model)]
    for name, requests, judge in comparison.checks:
        rows.append(judge(name, answers[: len(requests)]))
        answers = answers[len(requests) :]
    rows.append(comparison.logits_row())
    return Report(Path(path).name, model.dtype, rows)


def _log_row(log: list[str]) -> Row:
    found = warnings(log)
    if found is None:
        return Row("load log", 0, 1, "it is not in the form that llama.cpp's logs have")
    return Row("load log", int(not found), 1, found[0] if found else "no warning")


def _kept_answer_row(model: GgufModel) -> Row:
    name = "answer kept in the file"
    if model.check is None:
        return Row(name, 0, 0, "this file keeps none")
    ids, kept = model.check
    difference = np.abs(answer(model.config, model.weights, ids) - kept).max()
    bound = KEPT_ANSWER_BOUND * max(1.0, np.abs(kept).max())
    return Row(name, int(difference <= bound), 1, f"largest difference {difference:.1g}")


# ---- the comparison ----


class _Comparison:
    """The checks, each a name, its requests, and the function that judges their answers."""

    def __init__(self, model: GgufModel, sentences: Sequence[str], dialogues: Sequence[Dialogue]):
        self.tokenizer, self.config = model.tokenizer, model.config
        self.band = BANDS.get(model.dtype, max(BANDS.values()))
        self.gpt = GPT(model.config, Engine(np.float64))
        self.gpt.load_weights(model.weights)
        self.differences: list[float] = []
        self._ours: dict[tuple[str, int], list[int]] = {}

        texts = [*sentences, *(d.user for d in dialogues), *(d.assistant for d in dialogues)]
        texts += STRANGE_TEXTS
        recall = recall_prompts(sentences)
        asked = [(prompt_text(d.user), " " + d.assistant) for d in dialogues]
        spaced = [(prompt + " ", rest.strip()) for prompt, rest in asked]
        chats = [[_message(d)] for d in dialogues]
        earlier = [dialogues[i - 1] for i in range(len(dialogues))]
        seconds = [
            [_message(e), {"role": "assistant", "content": e.assistant}, _message(d)]
            for e, d in zip(earlier, dialogues, strict=True)
        ]
        system = [[{"role": "system", "content": "Be brief."}, *chat] for chat in chats[:1]]
        self.checks: list[tuple[str, list, Callable]] = [
            self._tokens(texts),
            self._greedy("sentences from their beginnings", recall, 0),
            self._greedy("questions", asked),
            self._greedy('questions, "Assistant: "', spaced),
            self._template(chats + seconds + system),
            self._chat("chat", chats, asked),
            self._chat("chat after another turn", seconds, asked),
        ]

    def _tokens(self, texts):
        requests = [
            ("/tokenize", {"content": text, "add_special": True, "parse_special": False})
            for text in texts
        ]

        def judge(name, answers):
            ours = [self.tokenizer.encode(text) for text in texts]
            pairs = [(a["tokens"], ids) for a, ids in zip(answers, ours, strict=True)]
            return _row(name, pairs, texts)

        return "token ids", requests, judge

    def _template(self, chats):
        requests = [("/apply-template", {"messages": messages}) for messages in chats]
        expected = [prompt_text(messages[-1]["content"]) for messages in chats]

        def judge(name, answers):
            pairs = [(a["prompt"], e) for a, e in zip(answers, expected, strict=True)]
            return _row(name, pairs, expected)

        return "chat template", requests, judge

    def _greedy(self, name, asked, more=8):
        """Greedy text, and on the way the probabilities of all tokens at every position."""
        asked = [(p, rest, self._budget(p, rest, more)) for p, rest in asked if self._fits(p)]
        requests = [
            (
                "/completion",
                {
                    "prompt": prompt, "n_predict": budget, "temperature": 0, "cache_prompt": False,
                    "n_probs": self.config.vocab_size, "return_tokens": True,
                },
            )
            for prompt, _, budget in asked
        ]  # fmt: skip

        def judge(name, answers):
            pairs, as_taught = [], 0
            for (prompt, rest, budget), body in zip(asked, answers, strict=True):
                theirs = self._up_to_end(body["tokens"])
                pairs.append((self._text(theirs), self._text(self._our_ids(prompt, budget))))
                as_taught += self._text(theirs) == rest
                self._compare_logits(prompt, body["tokens"], body["completion_probabilities"])
            return _row(name, pairs, [prompt for prompt, _, _ in asked], as_taught)

        return name, requests, judge

    def _chat(self, name, chats, asked):
        asked = [
            (chat, p, rest, self._budget(p, rest, 8))
            for chat, (p, rest) in zip(chats, asked, strict=True)
            if self._fits(p)
        ]
        requests = [
            (
                "/v1/chat/completions",
                {"messages": chat, "max_tokens": budget, "temperature": 0, "cache_prompt": False},
            )
            for chat, _, _, budget in asked
        ]

        def judge(name, answers):
            theirs = [(a["choices"][0]["message"]["content"] or "").strip() for a in answers]
            ours = [self._text(self._our_ids(p, budget)).strip() for _, p, _, budget in asked]
            taught = [rest.strip() for _, _, rest, _ in asked]
            as_taught = sum(t == rest for t, rest in zip(theirs, taught, strict=True))
            pairs = list(zip(theirs, ours, strict=True))
            return _row(name, pairs, [p for _, p, _, _ in asked], as_taught)

        return name, requests, judge

    def _compare_logits(self, prompt: str, new: list[int], steps: list[dict]) -> None:
        ids = [*self.tokenizer.encode(prompt), *new]
        logits = self.gpt.engine.to_host(self.gpt.forward(np.array([ids[:-1]])))[0, -len(new) :]
        logits = logits - logits.max(axis=-1, keepdims=True)
        ours = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        for row, step in zip(ours[self._complete(new)], steps, strict=True):
            theirs = np.full(len(row), np.nan)
            for token in step["top_logprobs"]:
                theirs[token["id"]] = token["logprob"]
            d = (theirs - row)[row > LEAST_LOGPROB]
            # Probabilities do not show a shift common to all logits; without the best common shift
            # this is at most the largest difference of a logit, which is what the band is for.
            self.differences.append((d.max() - d.min()) / 2)

    def _complete(self, ids: list[int]) -> list[int]:
        """The positions after which no character is cut off; llama.cpp reports only those."""
        texts = [self.tokenizer.decode_bytes(ids[: i + 1]) for i in range(len(ids))]
        return [i for i, text in enumerate(texts) if not _is_cut_off(text)]

    def logits_row(self) -> Row:
        """How many positions have all logits within the band; NaN never has."""
        d = np.array(self.differences)
        detail = f"largest difference {d.max(initial=0.0):.2g}, allowed {self.band}"
        return Row("logits", int((d <= self.band).sum()), len(d), detail)

    def _our_ids(self, prompt: str, budget: int) -> list[int]:
        if (prompt, budget) not in self._ours:
            ids, end = self.tokenizer.encode(prompt), self.tokenizer.end_id
            new = generate(self.gpt, ids, max_new_tokens=budget, stop_ids=(end,))
            self._ours[prompt, budget] = self._up_to_end(new)
        return self._ours[prompt, budget]

    def _up_to_end(self, ids: list[int]) -> list[int]:
        end = self.tokenizer.end_id
        return ids[: ids.index(end)] if end in ids else ids

    def _text(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids)

    def _fits(self, prompt: str) -> bool:
        return 0 < len(self.tokenizer.encode(prompt)) < self.config.context_length

    def _budget(self, prompt: str, rest: str, more: int) -> int:
        room = self.config.context_length - len(self.tokenizer.encode(prompt))
        return min(room, len(self.tokenizer.encode(rest)) + more)


def _is_cut_off(text: bytes) -> bool:
    """Whether one of the last bytes begins a character of more bytes than follow it."""
    for count, byte in enumerate(reversed(text[-4:]), start=1):
        length = 1 + sum(byte >= first for first in (0xC0, 0xE0, 0xF0))
        if byte < 0xF8 and count < length:  # no character begins with a byte from 0xF8 on
            return True
    return False


def _message(dialogue: Dialogue) -> dict:
    return {"role": "user", "content": dialogue.user}


def _row(name: str, pairs: list[tuple], asked: list[str], as_taught: int | None = None) -> Row:
    """A row about (theirs, ours) pairs; the detail is the first that differs, if any does."""
    wrong = [(q, *pair) for q, pair in zip(asked, pairs, strict=True) if pair[0] != pair[1]]
    detail = "" if as_taught is None else f"{as_taught} as in the data"
    if wrong:
        detail = "{!r}: llama.cpp {!r}, ours {!r}".format(*wrong[0])
    return Row(name, len(pairs) - len(wrong), len(pairs), detail)


def main(arguments: list[str]) -> int:
    """Verifies one file, prints the report, and returns the exit status."""
    if len(arguments) != 1:
        print("usage: python -m llmcl.verify FILE", file=sys.stderr)
        return 2
    try:
        report = verify(arguments[0])
    except LlmclError as error:
        print(error, file=sys.stderr)
        return 2
    print(report)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
