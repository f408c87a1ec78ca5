"""What a model knows: sentences that it finishes, and questions that it answers, word for word."""

from collections.abc import Sequence

from .data import Dialogue, prompt_text, recall_prompts
from .generate import generate
from .model import GPT
from .tokenizer_base import Tokenizer

# A long text of one's own is judged by its first sentences; each takes a moment.
AT_MOST = 100


def finishes(model: GPT, tokenizer: Tokenizer, prompt: str, rest: str) -> bool:
    """Whether the model, greedily, writes exactly `rest` after `prompt` and then the end token."""
    ids, wanted = tokenizer.encode(prompt), tokenizer.encode(rest)
    if len(ids) + len(wanted) >= model.config.context_length:
        return False
    end = tokenizer.end_id
    new = generate(model, ids, max_new_tokens=len(wanted) + 8, stop_ids=[end])
    return new[-1:] == [end] and tokenizer.decode(new[:-1]) == rest


def recall(model: GPT, tokenizer: Tokenizer, sentences: Sequence[str]) -> list[bool]:
    """For each sentence whether the model finishes it from its own beginning (recall_prompts)."""
    prompts = recall_prompts(sentences, tokenizer)[:AT_MOST]
    return [finishes(model, tokenizer, prompt, rest) for prompt, rest in prompts]


def answers(model: GPT, tokenizer: Tokenizer, dialogues: Sequence[Dialogue]) -> list[bool]:
    """For each dialogue whether the answer is right, asked with and without a last space."""
    right = []
    for dialogue in dialogues[:AT_MOST]:
        asked = prompt_text(dialogue.user)
        plain = finishes(model, tokenizer, asked, " " + dialogue.assistant)
        spaced = finishes(model, tokenizer, asked + " ", dialogue.assistant)
        right.append(plain and spaced)
    return right
