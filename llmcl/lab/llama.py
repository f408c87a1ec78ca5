"""llama.cpp as a notebook asks it: quiet, and with a stand-in where it is not installed.

The stand-in is our own model in NumPy, in float64, on the weights that the file holds. It answers
the same requests in the same form, so that a lesson can go on; it says once that it is not
llama.cpp.
"""

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .. import llama_cpp
from ..data import prompt_text
from ..errors import GgufError
from ..generate import generate
from ..gguf_file import read_gguf
from ..model import GPT
from ..reference import Engine

TRIES = 5  # on a busy machine llama.cpp may end before its last word is written
_told = False


def ask_llama(path: str | os.PathLike, requests: Sequence[tuple[str, dict]]) -> list[dict]:
    """llama.cpp's answers to (address, body) requests for a GGUF file.

    Raises GgufError, with the file's name and llama.cpp's words, when it refuses the file or a
    request.
    """
    ask = _ask_real if importlib.util.find_spec("xllamacpp") else _ask_stand_in
    try:
        return ask(path, requests)
    except GgufError as error:
        # The message is the same on every machine.
        text = str(error).replace(os.path.abspath(path), Path(path).name)
        raise GgufError(text.replace(str(path), Path(path).name)) from None


def llama_refusal(path: str | os.PathLike) -> str:
    """Why llama.cpp does not take a GGUF file, in its words; "" if it does."""
    try:
        ask_llama(path, [("/tokenize", {"content": "a"})])
    except GgufError as error:
        return str(error).split(f"{Path(path).name}: ", 1)[-1].removesuffix(".")
    return ""


def llama_logs(path: str | os.PathLike, prompts: Sequence[Sequence[int]]) -> np.ndarray:
    """The logarithm of every token's share after each prompt, by llama.cpp: (len(prompts), V).

    The prompts are lists of token ids; what the shares leave out of the logits is one number that
    is common to a row. A token that llama.cpp does not report is NaN.
    """
    body: dict = {"n_predict": 1, "temperature": 0, "n_probs": 2**20, "cache_prompt": False}
    # A token that is part of a character is not reported with its shares; a dot is whole. The
    # shares are those before this wish.
    body["logit_bias"] = [[".", 1000.0]]
    asked = [("/completion", body | {"prompt": [int(i) for i in ids]}) for ids in prompts]
    steps = [answer["completion_probabilities"][0] for answer in ask_llama(path, asked)]
    size = 1 + max(token["id"] for step in steps for token in step["top_logprobs"])
    logs = np.full((len(steps), size), np.nan)
    for row, step in zip(logs, steps, strict=True):
        for token in step["top_logprobs"]:
            row[token["id"]] = token["logprob"]
    return logs


def _ask_real(path, requests):
    for last in range(1, TRIES + 1):
        try:
            return llama_cpp.ask_llama(path, requests)[0]
        except GgufError as error:
            if "it gave no reason" not in str(error) or last == TRIES:
                raise


# ---- the stand-in ----


def _ask_stand_in(path, requests):
    global _told
    if not _told:
        print(
            "xllamacpp is not installed, so our own model in NumPy answers in llama.cpp's place; "
            "pip install 'llmcl[verify]' brings the real one."
        )
        _told = True
    stand_in = _StandIn(path)
    return [stand_in.answers[address](body) for address, body in requests]


class _StandIn:
    """Our own model behind the addresses that the lessons use."""

    def __init__(self, path):
        stored = read_gguf(path)
        self.tokenizer = stored.tokenizer
        self.gpt = GPT(stored.config, Engine(np.float64))
        self.gpt.load_weights(stored.weights)
        self.answers = {
            "/tokenize": lambda body: {"tokens": self.tokenizer.encode(body["content"])},
            "/apply-template": lambda body: {"prompt": self._prompt(body)},
            "/completion": self._completion,
            "/v1/chat/completions": self._chat,
        }

    def _prompt(self, body):
        last = body["messages"][-1]
        return last["content"] if last["role"] == "assistant" else prompt_text(last["content"])

    def _completion(self, body):
        prompt = body["prompt"]
        ids = self.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
        stop = self.tokenizer.end_id
        new = generate(self.gpt, ids, max_new_tokens=body["n_predict"], stop_ids=(stop,))
        text = self.tokenizer.decode([i for i in new if i != stop])
        answer = {"content": text, "tokens": new}
        if body.get("n_probs"):
            logits = self.gpt.forward(np.array([ids]))[0, -1]
            logs = logits - logits.max()
            logs -= np.log(np.exp(logs).sum())
            order = np.argsort(-logs, kind="stable")[: body["n_probs"]]
            top = [
                {"id": int(i), "token": self.tokenizer.decode([int(i)]), "logprob": float(logs[i])}
                for i in order
            ]
            answer["completion_probabilities"] = [{"top_logprobs": top}]
        return answer

    def _chat(self, body):
        asked = {"prompt": self._prompt(body), "n_predict": body["max_tokens"]}
        message = {"role": "assistant", "content": self._completion(asked)["content"].strip()}
        return {"object": "chat.completion", "choices": [{"message": message}]}
