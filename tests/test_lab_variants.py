"""The sheets with numbers of one's own: right answers, worked out here in another way; equal
numbers give equal sheets, different ones different sheets."""

import hashlib
import math
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import pytest

from llmcl.errors import LlmclError
from llmcl.lab import lessons, variants
from llmcl.lab.variants.__main__ import main
from llmcl.lab.variants.sheet import is_right

NUMBERS = [str(4000 + i) for i in range(40)]


# ---- the answers, by hand: no NumPy, and nothing of llmcl ----


def shares(scores):
    total = sum(math.exp(s) for s in scores)
    return [math.exp(s) / total for s in scores]


def tokens_left(text, merges):
    pieces, known = list(text), {"a": 0, "b": 1, "c": 2}
    for _ in range(merges):
        counts = Counter(zip(pieces, pieces[1:], strict=False))
        most = max(counts.values())
        left, right = min(
            (pair for pair in counts if counts[pair] == most),
            key=lambda pair: (known[pair[0]], known[pair[1]]),
        )
        fused = []
        while pieces:
            size = 2 if pieces[:2] == [left, right] else 1
            fused.append("".join(pieces[:size]))
            pieces = pieces[size:]
        pieces = fused
        known[left + right] = len(known)
    return len(pieces)


def share_after(text, first, then):
    pairs = list(zip(text.split(), text.split()[1:], strict=False))
    followers = [b for a, b in pairs if a == first]
    return Fraction(followers.count(then), len(followers))


def normed(x, gamma, beta, place):
    mean = sum(x) / 4
    variance = sum((v - mean) ** 2 for v in x) / 4
    return (x[place] - mean) / math.sqrt(variance + 1e-5) * gamma + beta


def all_parameters(
    vocab_size, context_length, d_model, n_heads, n_layers, d_ff, layer_norm_epsilon
):
    c, f = d_model, d_ff
    block = 4 * c + (3 * c * c + 3 * c) + (c * c + c) + (c * f + f) + (f * c + c)
    return (vocab_size + context_length) * c + n_layers * block + 2 * c


def first_step(grads, place, weight, rate, decay):
    norm = math.sqrt(sum(g * g for g in grads))
    g = grads[place] / max(1.0, norm)
    m, v = 0.1 * g, 0.01 * g * g
    step = (m / (1 - 0.9)) / (math.sqrt(v / (1 - 0.99)) + 1e-8)
    return weight - rate * (step + decay * weight)


def kept(scores, temperature, top_p):
    found = shares([s / temperature for s in scores])
    total = count = 0
    while total < top_p:
        total += found[count]
        count += 1
    return found[0] / total


def scaled(q, k, heads, head):
    width = len(q) // heads
    mine = range(head * width, (head + 1) * width)
    return sum(q[i] * k[i] for i in mine) / math.sqrt(width)


BY_HAND = {
    "01a": lambda n, group: -n % group,
    "02": tokens_left,
    "02b": lambda text, first, then: share_after(text, first, then),
    "04a": lambda scores, row, column: shares(scores[: row + 1])[column],
    "04b": scaled,
    "06": normed,
    "07": all_parameters,
    "08a": lambda x, dy, row, column: sum(a[row] * b[column] for a, b in zip(x, dy, strict=True)),
    "08b": lambda scores, target, count, at: (shares(scores)[at] - (at == target)) / count,
    "09": first_step,
    "11": kept,
    "12a": lambda rows, columns: rows * (columns // 32) * (2 + 32),
}


@pytest.mark.parametrize("lesson", variants.LESSONS)
def test_every_answer_is_what_another_calculation_gives(lesson):
    for number in NUMBERS:
        (item,) = variants.items(number, lessons=[lesson])
        wanted = BY_HAND[lesson](**item.given)
        assert item.answer == pytest.approx(float(wanted), abs=1e-9), item.text
        assert isinstance(item.answer, int) == (item.decimals == 0)


@pytest.mark.parametrize("lesson", variants.LESSONS)
def test_the_text_holds_every_number_that_is_drawn(lesson):
    (item,) = variants.items("4711", lessons=[lesson])
    for name, value in item.given.items():
        if name == "layer_norm_epsilon":
            continue
        for part in value if isinstance(value, list) else [value]:
            part = str(part) if isinstance(part, list) else part
            shown = part if isinstance(part, str) else f"{part:g}"
            assert shown in item.text, (name, shown)


def test_each_lesson_exists_and_most_sheets_differ_in_every_question():
    for lesson in variants.LESSONS:
        assert lessons.of(lesson).exercises
    for lesson in variants.LESSONS:
        texts = {variants.items(number, lessons=[lesson])[0].text for number in NUMBERS}
        answers = {variants.items(number, lessons=[lesson])[0].answer for number in NUMBERS}
        assert len(texts) > 30 and len(answers) > 4, lesson


def test_equal_numbers_give_equal_sheets_and_others_give_others():
    sheets = [variants.sheet(n, variants.items(n)) for n in ["4711", "4711", "4712"]]
    assert sheets[0] == sheets[1] != sheets[2]
    assert len({variants.sheet("", variants.items(n)) for n in NUMBERS}) == len(NUMBERS)
    assert variants.items(" 4711 ") == variants.items("4711")
    with_word = variants.items("4711", word="heron")
    assert [i.text for i in with_word] != [i.text for i in variants.items("4711")]
    assert with_word == variants.items("4711", word="heron")


def test_a_sheet_that_was_handed_out_is_the_same_in_every_later_version():
    text = variants.sheet("4711", variants.items("4711")) + variants.key(
        "4711", variants.items("4711")
    )
    assert hashlib.sha256(text.encode("utf-8")).hexdigest()[:16] == "51f5006d0ff3fc51"


# ---- marking ----


def filled(number, change=()):
    """A sheet with the right answers, but for those in `change`, by place."""
    questions = variants.items(number)
    text = variants.sheet(number, questions)
    for place, item in enumerate(questions, start=1):
        answer = dict(change).get(place, f"{item.answer:.{item.decimals}f}")
        text = text.replace(f"Answer {place}: \n", f"Answer {place}: {answer}\n")
    return text


@pytest.mark.parametrize("number", NUMBERS[:10])
def test_right_answers_earn_all_points_and_empty_ones_none(number):
    questions = variants.items(number)
    right = variants.marks(questions, variants.read_answers(filled(number)))
    assert [mark.right for mark in right] == [True] * 12
    empty = variants.marks(questions, variants.read_answers(variants.sheet(number, questions)))
    assert [mark.right for mark in empty] == [False] * 12


def test_another_learners_answers_earn_little():
    found = variants.read_answers(filled("4711"))
    points = [sum(m.right for m in variants.marks(variants.items(n), found)) for n in NUMBERS]
    assert max(points) <= 4


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("1234", True), (" 1,234 ", True), ("1 234", True), ("`1234`", True), ("1234.0", True),
        ("1235", False), ("", False), ("many", False), ("nan", False), ("12,34", True),
    ],
)  # fmt: skip
def test_how_whole_numbers_may_be_written(written, right):
    item = variants.Item("07", "", {}, 1234, 0)
    assert is_right(item, written) == right


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("-0.333", True), ("-0,333", True), ("\N{MINUS SIGN}0.3333333", True), ("-0.335", True),
        ("-0.336", False), ("0.333", False), ("-1/3", False), ("nan", False), ("inf", False),
    ],
)  # fmt: skip
def test_how_decimal_numbers_may_be_written(written, right):
    item = variants.Item("08b", "", {}, -1 / 3, 3)
    assert is_right(item, written) == right


# ---- the command ----


def test_sheet_key_and_grade_from_the_command_line(tmp_path, capsys):
    assert main(["sheet", "4711"]) == 0
    assert capsys.readouterr().out == variants.sheet("4711", variants.items("4711"))
    assert main(["key", "4711", "--lessons", "07", "12a"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    path = tmp_path / "sheet.md"
    path.write_text(filled("4711", {7: "1", 12: ""}), encoding="utf-8-sig", newline="\r\n")
    assert main(["grade", "4711", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "10 of 12 points"
    assert "✗ 1 " in lines[7] and "key: " in lines[7] and "○" in lines[12]
    path.write_text(filled("4711"), encoding="utf-8")
    assert main(["grade", "4711", str(path), "--word", "heron"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] != "12 of 12 points"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sheet", " "], "the number is empty"),
        (["key", "1", "--lessons", "99"], "lesson '99' has no question"),
        (["grade", "1", "nowhere.md"], "nowhere.md cannot be read: No such file"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(arguments, words):
    with pytest.raises(LlmclError, match=words):
        main(arguments)


def test_a_file_that_is_no_sheet(tmp_path):
    for name, data in (("a.md", b"Answers: 4"), ("b.md", b"\xff\xfe\x00")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(LlmclError, match="no line such as|no text in UTF-8"):
            main(["grade", "1", str(tmp_path / name)])


def test_an_error_is_one_line_and_status_2():
    command = [sys.executable, "-m", "llmcl.lab.variants", "sheet", ""]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "variants: the number is empty; give the learner's number, or another text.\n"
    )
