"""Twelve questions in the order of the lessons, with numbers drawn from a seed.

Each function draws its numbers, and returns the question's text, the numbers by name, and the
answer, computed by the code that the lesson is about: kernels' items, the tokenizer, the float64
reference. The text names every number that the answer needs.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import quantize

from ... import reference
from ...bigram import bigram_counts, bigram_shares
from ...config import Config
from ...errors import LlmclError
from ...generate import Sampling, next_shares
from ...tokenizer import ByteBPE
from ..items import get_global_id, run_items
from .draw import Draw


@dataclass(frozen=True)
class Item:
    """A question: its lesson, its text in Markdown, the numbers in it by name, and its answer.

    decimals: how many digits behind the point are asked for; 0 for a whole number.
    """

    lesson: str
    text: str
    given: dict
    answer: float
    decimals: int


def items(number: str, word: str = "", lessons: Iterable[str] = ()) -> list[Item]:
    """The questions of a learner's number, all twelve or those of some lessons.

    The same number and word give the same questions for ever. The word is a teacher's secret:
    without it, nobody can compute the key from the number. Raises LlmclError for an empty number
    and for a lesson that has no question.
    """
    number, wanted = str(number).strip(), list(lessons)
    if not number:
        raise LlmclError("the number is empty; give the learner's number, or another text.")
    for lesson in wanted:
        if lesson not in LESSONS:
            raise LlmclError(
                f"lesson {lesson!r} has no question on the sheet; these have: {', '.join(LESSONS)}."
            )
    return [_item(lesson, number, word) for lesson in LESSONS if lesson in (wanted or LESSONS)]


def _item(lesson: str, number: str, word: str) -> Item:
    text, given, answer = _MAKERS[lesson](Draw(f"{lesson}\n{number}\n{word}"))
    whole = isinstance(answer, (int, np.integer))
    return Item(lesson, text, given, int(answer) if whole else float(answer), 0 if whole else 3)


def _shown(values) -> str:
    return "[" + ", ".join(f"{value:g}" for value in values) + "]"


def _tables(rows) -> str:
    return "[" + ", ".join(_shown(row) for row in rows) + "]"


def idle_items(draw):
    """How many work-items of a launch leave at the guard."""
    group = draw.pick([4, 8, 16, 32])
    n = group * draw.whole(2, 9) + draw.whole(1, group - 1)
    idle = []

    def kernel(x, n):
        i = get_global_id(0)
        if i >= n:
            idle.append(i)
            return
        x[i] = 1.0

    run_items(kernel, n, np.zeros(n, np.float32), n, group=group)
    text = (
        f"An array has {n} elements. Work-groups have {group} work-items, and the launch is "
        "rounded up to whole groups. How many work-items leave at the guard "
        "`if (i >= n) return;`?"
    )
    return text, {"n": n, "group": group}, len(idle)


def merged_tokens(draw):
    """How many tokens a text has after a few merges of BPE."""
    merges = 3
    while True:
        text = draw.pick("abc")
        while len(text) < 14:  # no letter twice in a row: such pairs overlap
            text += draw.pick([letter for letter in "abc" if letter != text[-1]])
        tokenizer = ByteBPE.train([text], vocab_size=257 + merges)
        if len(tokenizer.merges) == merges:
            break
    question = (
        f"Byte-level BPE is trained on the single text `{text}` until it has learned {merges} "
        "merges. Of pairs that are equally frequent, the one with the lowest ids is taken, its "
        "left id first; `a`, `b`, `c` have rising ids, and each new token has the highest so far. "
        "How many tokens does the text have then?"
    )
    return question, {"text": text, "merges": merges}, len(tokenizer.encode(text))


def share_of_pair(draw):
    """The bigram model's share of one word after another."""
    words = ["sun", "sea", "land"]
    while True:
        row = [draw.whole(0, 2) for _ in range(16)]
        a, b = draw.some(2, 0, 2)
        shares = bigram_shares(bigram_counts([row[:-1]], [row[1:]], 3))
        if 0 < shares[a, b] < 1:
            break
    text = " ".join(words[i] for i in row)
    question = (
        f"A bigram model counts the pairs of words in: *{text}*. Which share does it give to "
        f"`{words[b]}` after `{words[a]}`?"
    )
    return question, {"text": text, "first": words[a], "then": words[b]}, shares[a, b]


def causal_share(draw):
    """One share of a row of causal softmax."""
    scores = draw.some(5, -2, 3)
    row = draw.whole(2, 3)
    column = draw.whole(0, row)
    table = np.zeros((5, 5)) + np.array(scores, np.float64)
    share = reference.causal_softmax(table)[row, column]
    text = (
        f"One head, five tokens. Row {row} of its scores (counted from 0) is {_shown(scores)}. "
        f"After the causal mask and softmax, what is this row's share at column {column}?"
    )
    return text, {"scores": scores, "row": row, "column": column}, share


def scaled_score(draw):
    """The score of one head: its part of q times its part of k, scaled."""
    heads, width = 2, draw.pick([4, 8])
    head = draw.whole(0, 1)
    q, k = draw.some(width), draw.some(width)
    qkv = np.array([[q + k + [0] * width]], np.float64)
    score = reference.attention_scores(qkv, heads)[0, head, 0, 0]
    text = (
        f"d_model is {width}, and there are {heads} heads. A token has the query {_shown(q)} and "
        f"the key {_shown(k)}. What is its score with itself in head {head} (counted from 0), "
        "scaled as in the lesson?"
    )
    return text, {"q": q, "k": k, "heads": heads, "head": head}, score


def normed(draw):
    """One element behind layer norm."""
    x = draw.some(4, -4, 6)
    gamma, beta = draw.whole(1, 4) / 2, float(draw.whole(-2, 2))
    place = draw.whole(0, 3)
    row = np.array([x], np.float64)
    y, _, _ = reference.layer_norm(row, np.full(4, gamma), np.full(4, beta))
    text = (
        f"Layer norm gets the row {_shown(x)}; every gamma is {gamma:g}, every beta {beta:g}, and "
        f"epsilon is 0.00001. What stands at place {place} (counted from 0) of the result?"
    )
    return text, {"x": x, "gamma": gamma, "beta": beta, "place": place}, y[0, place]


def parameters(draw):
    """All parameters of a model."""
    config = Config(
        vocab_size=draw.whole(300, 900, 10),
        context_length=draw.whole(64, 256, 32),
        d_model=draw.whole(48, 144, 24),
        n_heads=3,
        n_layers=draw.whole(1, 4),
        d_ff=draw.whole(128, 512, 64),
    )
    given = config.to_dict()
    sizes = ", ".join(f"{n} {v}" for n, v in given.items() if n != "layer_norm_epsilon")
    text = (
        f"How many parameters has the model with {sizes}? Matrices have biases, each block has two "
        "layer norms, one more stands before the head, and the head shares the table of the tokens."
    )
    return text, given, config.parameter_count()


def weight_gradient(draw):
    """One element of dW of a linear layer."""
    x = [draw.some(3), draw.some(3), draw.some(3)]
    dy = [draw.some(2), draw.some(2), draw.some(2)]
    row, column = draw.whole(0, 2), draw.whole(0, 1)
    dw, db = np.zeros((3, 2)), np.zeros(2)
    reference.linear_backward(
        np.array(x, np.float64), np.zeros((3, 2)), np.array(dy, np.float64), dw, db
    )
    text = (
        f"y = x W + b, with x = {_tables(x)}, a row for each token, and dy = {_tables(dy)}. What "
        f"is dW at row {row}, column {column} (both counted from 0)?"
    )
    return text, {"x": x, "dy": dy, "row": row, "column": column}, int(dw[row, column])


def logit_gradient(draw):
    """One element of the gradient behind softmax with loss."""
    scores = draw.some(4, -2, 3)
    target, count, at = draw.whole(0, 3), draw.whole(2, 5), draw.whole(0, 3)
    logits = np.zeros((count, 4)) + np.array(scores, np.float64)
    targets = np.full(count, target, np.int32)
    _, log_sum = reference.cross_entropy(logits, targets)
    found = reference.cross_entropy_backward(logits, targets, log_sum)[0, at]
    text = (
        f"A place has the scores {_shown(scores)}, and its target is token {target} (counted from "
        f"0). The loss is the mean over {count} places. What is the gradient of the loss with "
        f"respect to this place's score of token {at}?"
    )
    return text, {"scores": scores, "target": target, "count": count, "at": at}, found


def clipped_step(draw):
    """A weight after AdamW's first step, with clipping."""
    grads = draw.some(3, -4, 4)
    place = int(np.flatnonzero(grads)[0])
    weight, rate, decay = draw.whole(1, 8) / 4, 0.1, draw.whole(1, 4) / 10
    w, g = np.full(3, weight), np.array(grads, np.float64)
    status = reference.global_norm([g], np.zeros(1), 1.0)
    reference.adamw(
        w, g, np.zeros(3), np.zeros(3), status,
        rate=rate, beta1=0.9, beta2=0.99, epsilon=1e-8, decay=decay, step=1, n_decay=3,
    )  # fmt: skip
    text = (
        f"Three weights are all {weight:g}; their gradients are {_shown(grads)}. The gradient is "
        "clipped to the norm 1, then AdamW takes its very first step, with rate "
        f"{rate}, beta1 0.9, beta2 0.99, epsilon 0.00000001 and weight decay {decay:g}. What is "
        f"the weight at place {place} (counted from 0) then?"
    )
    given = {"grads": grads, "place": place, "weight": weight, "rate": rate, "decay": decay}
    return text, given, w[place]


def kept_share(draw):
    """The share of the likeliest token after temperature and top-p."""
    scores = sorted((draw.whole(-4, 8) / 2 for _ in range(5)), reverse=True)
    scores[0] += 0.5  # so that one is the likeliest
    temperature, top_p = draw.whole(1, 4) / 2, draw.whole(60, 90, 10) / 100
    shares = next_shares(np.array(scores), Sampling(temperature, top_p=top_p))
    text = (
        f"Five tokens have the scores {_shown(scores)}. With temperature {temperature:g} and top-p "
        f"{top_p:g}, which share is the first one drawn with?"
    )
    given = {"scores": scores, "temperature": temperature, "top_p": top_p}
    return text, given, shares[0]


def block_bytes(draw):
    """The bytes of a matrix in Q8_0."""
    rows, columns = draw.whole(40, 900, 4), draw.whole(64, 512, 32)
    stored = quantize(np.ones((rows, columns), np.float32), GGMLQuantizationType.Q8_0)
    text = (
        f"A matrix has {rows} rows of {columns} numbers. How many bytes does it take in a GGUF "
        "file as Q8_0, without the padding behind it?"
    )
    return text, {"rows": rows, "columns": columns}, stored.nbytes


_MAKERS: dict[str, Callable] = {
    "01a": idle_items,
    "02": merged_tokens,
    "02b": share_of_pair,
    "04a": causal_share,
    "04b": scaled_score,
    "06": normed,
    "07": parameters,
    "08a": weight_gradient,
    "08b": logit_gradient,
    "09": clipped_step,
    "11": kept_share,
    "12a": block_bytes,
}
LESSONS = tuple(_MAKERS)
