"""Lesson 00, Start here."""

from itertools import combinations, permutations

from . import Exercise, Question


def orders(right, odd, which, rules):
    """The mistakes of an exercise that asks for the letters of lines, in order.

    right is the answer, odd a letter that does not belong, which the question for an answer that
    holds it, rules are triples of a letter, one that comes later, and the question for an answer
    that has them the other way round. The first rule that an answer breaks is the one that counts.
    """
    found = {}
    for answer in map("".join, permutations(right)):
        if answer != right:
            broken = (q for a, b, q in rules if answer.index(a) > answer.index(b))
            found[answer] = next(broken)
    for i in range(len(right) + 1):
        found[right[:i] + odd + right[i:]] = which
        found[right[:i] + odd + right[i + 1 :]] = which
    for few in combinations(right, len(right) - 1):
        found["".join(few)] = f"Is one missing? The answer has {len(right)} letters."
    word = "The order is right. Write the letters as one word."
    told = [(lambda answer=answer: answer, question) for answer, question in found.items()]
    return [*told, (lambda: list(right), word)]


def _shifted(ids):
    return ids[:-1], ids[1:]


EXERCISES = {
    "00.1": Exercise(
        _shifted,
        cases=[([11, 12, 13, 14],), ([5, 5, 7],), ([1, 2],)],
        mistakes=[
            (lambda ids: (ids[1:], ids[:-1]), "Which of the two is the question?"),
            (lambda ids: (ids, ids), "Does the answer stand one token further on?"),
            (lambda ids: (ids, ids[1:]), "What follows the last token?"),
            (lambda ids: (ids[:-2], ids[2:]), "Is that one token further on, or two?"),
            (lambda ids: (ids[:-1], ids[:-1]), "Does the answer stand one token further on?"),
            (lambda ids: (ids[:-1], ids[2:]), "What should the model say at the first place?"),
            (lambda ids: (ids[:-1], ids[-1]), "Has only the last place an answer, or each?"),
            (lambda ids: (ids[:1], ids[1:]), "Where does the model guess: once, or at each place?"),
            (lambda ids: ids[1:], "That is one list. Where is what the model sees?"),
            (lambda ids: ids[:-1], "That is one list. Where is what the model should say?"),
            (
                lambda ids: list(zip(ids[:-1], ids[1:], strict=True)),
                "Two lists are wanted. Are these pairs?",
            ),
        ],
    ),
    "00.3": Exercise(
        lambda: "BEFAC",
        cases=[()],
        mistakes=orders(
            "BEFAC",
            "D",
            "One line does not belong. Which stays the same?",
            [
                ("B", "E", "Does the model read letters, or numbers?"),
                ("E", "F", "Can a mistake be measured before there is a prediction?"),
                ("F", "A", "Can the weights be mended before the mistake is measured?"),
                ("A", "C", "Which weights should be in the file: those before, or after learning?"),
            ],
        ),
        secret=True,
    ),
}

_SHAPES = "warm-up 00b, Shapes, is for you before lesson 03"
_C = "warm-up 00a, C for Python people, is for you before lesson 01a"
_SLOPES = "warm-up 07b, Slopes, is for you before lesson 08a"

QUESTIONS = {
    "00.e1": Question("C", {
        "A": f"both are whole numbers, so C drops what is behind the point; {_C}",
        "B": f"C does not round up, it drops what is behind the point; {_C}",
        "C": "both are whole numbers, so C drops what is behind the point of 3.5",
    }),
    "00.e2": Question("B", {
        "A": f"two rows lie before it, not one; {_C}",
        "B": "two rows of five lie before it, then one more step",
        "C": f"a row has five elements, not three; {_C}",
    }),
    "00.e3": Question("A", {
        "A": "the inner lengths, 3 and 3, agree and disappear; the outer ones remain",
        "B": f"the inner lengths, 3 and 3, disappear; {_SHAPES}",
        "C": f"3 and 3 stand next to each other, so they fit; {_SHAPES}",
    }),
    "00.e4": Question("B", {
        "A": f"at 3, y grows faster than x does: 3.001 times 3.001 is 9.006; {_SLOPES}",
        "B": "the slope of x squared is twice x, so 6; and 6 times 0.001 is 0.006",
        "C": f"9 is how large y is, not how fast it grows; {_SLOPES}",
    }),
    "00.q1": Question("B", {
        "A": "it can read any text: every byte has a token",
        "B": "it learns pairs of what stood before and what came next, nothing else",
        "C": "no sentence is stored; it holds the tokenizer's pieces and the weights",
    }),
    "00.q2": Question("C", {
        "A": "the last bit is too much to ask: the order of a sum changes its rounding",
        "B": "a tenth of a percent can hide a wrong formula; the bound comes from the arithmetic",
        "C": "the bound is what rounding can do, and odd shapes leave no place to hide",
    }),
    "00.q3": Question("A", {
        "A": "the lesson went on with the reference, and nothing stopped",
        "B": "Run All goes on; only a grader's run stops there",
        "C": "the cells below get the reference, which is right",
    }),
}  # fmt: skip
