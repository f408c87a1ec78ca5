"""Lesson 15, Your own text."""

from itertools import combinations

import numpy as np

from ...data import split_documents
from . import Exercise

# ---- the split ----


def _split(documents, share, seed):
    return split_documents(documents, share, seed)


def _split_twins(documents, share, seed):
    order = np.random.default_rng(seed).permutation(len(documents))
    held = set(order[: max(1, round(share * len(documents)))].tolist())
    sides = ([], [])
    for place, text in enumerate(documents):
        sides[place in held].append(text)
    return sides


def _split_first_ones(documents, share, seed):
    texts = list(dict.fromkeys(documents))
    held = set(texts[: max(1, round(share * len(texts)))])
    return [d for d in documents if d not in held], [d for d in documents if d in held]


def _split_other_way_round(documents, share, seed):
    return _split(documents, share, seed)[::-1]


def _split_twins_lost(documents, share, seed):
    return tuple(list(dict.fromkeys(side)) for side in _split(documents, share, seed))


def _split_none(documents, share, seed):
    texts = list(dict.fromkeys(documents))
    order = np.random.default_rng(seed).permutation(len(texts))
    held = {texts[i] for i in order[: int(share * len(texts))]}
    return [d for d in documents if d not in held], [d for d in documents if d in held]


def _split_in_drawn_order(documents, share, seed):
    texts = list(dict.fromkeys(documents))
    order = np.random.default_rng(seed).permutation(len(texts))
    count = max(1, round(share * len(texts)))
    return [texts[i] for i in order[count:]], [texts[i] for i in order[:count]]


def _split_held_as_drawn(documents, share, seed):
    return _split(documents, share, seed)[0], _split_in_drawn_order(documents, share, seed)[1]


def _split_held_once(documents, share, seed):
    train, held = _split(documents, share, seed)
    return train, list(dict.fromkeys(held))


def _drawn(documents, texts, order, count):
    held = {texts[i] for i in order[:count]}
    return [d for d in documents if d not in held], [d for d in documents if d in held]


def _split_last_ones(documents, share, seed):
    texts = list(dict.fromkeys(documents))
    order = np.random.default_rng(seed).permutation(len(texts))
    return _drawn(documents, texts, order[::-1], max(1, round(share * len(texts))))


def _split_twins_drawn_twice(documents, share, seed):
    order = np.random.default_rng(seed).permutation(len(documents))
    return _drawn(documents, documents, order, max(1, round(share * len(documents))))


def _split_share_of_all(documents, share, seed):
    texts = list(dict.fromkeys(documents))
    order = np.random.default_rng(seed).permutation(len(texts))
    return _drawn(documents, texts, order, max(1, round(share * len(documents))))


def _split_most_held(documents, share, seed):
    texts = list(dict.fromkeys(documents))
    order = np.random.default_rng(seed).permutation(len(texts))
    return _drawn(documents, texts, order, round((1 - share) * len(texts)))


_LETTERS = list("abcdefghijklmnopqrst")

# ---- the validation loss ----


def _mean_loss(loss, batches):
    places = [int((y >= 0).sum()) for _, y in batches]
    sums = [n * loss(x, y) for n, (x, y) in zip(places, batches, strict=True)]
    return sum(sums) / sum(places)


def _mean_of_means(loss, batches):
    return sum(loss(x, y) for x, y in batches) / len(batches)


def _pads_in_the_count(loss, batches):
    total = sum((y >= 0).sum() * loss(x, y) for x, y in batches)
    return total / sum(y.size for _, y in batches)


def _sum_not_divided(loss, batches):
    return sum((y >= 0).sum() * loss(x, y) for x, y in batches)


def _sum_by_batches(loss, batches):
    return _sum_not_divided(loss, batches) / len(batches)


def _losses_by_places(loss, batches):
    return sum(loss(x, y) for x, y in batches) / sum((y >= 0).sum() for _, y in batches)


def _first_batch(loss, batches):
    return loss(*batches[0])


def _token_0_ignored(loss, batches):
    total = sum((y > 0).sum() * loss(x, y) for x, y in batches)
    return total / sum((y > 0).sum() for _, y in batches)


def _some_loss(x, y):
    """The mean of x over the places that have a target, in place of a model's loss."""
    return float(x[y >= 0].mean())


def _batches(*rows):
    """For each list of rows of targets a batch; x is a number for each place."""
    made = []
    for number, targets in enumerate(rows):
        y = np.array(targets)
        made.append((np.arange(y.size).reshape(y.shape) + 3.0 * number, y))
    return made


# ---- the judge ----


def _judge(train, held):
    best = held.index(min(held))
    if held[-1] <= 1.02 * held[best]:
        return "learning", best
    return ("overfitting" if train[-1] < train[best] else "broken"), best


def _judge_the_gap(train, held):
    best = held.index(min(held))
    return ("overfitting" if held[-1] > 1.02 * train[-1] else "learning"), best


def _judge_every_bump(train, held):
    verdict, best = _judge(train, held)
    turned = "overfitting" if train[-1] < train[best] else "broken"
    return (turned if held[-1] > held[best] else verdict), best


def _judge_last_two(train, held):
    return ("overfitting" if held[-1] > held[-2] else "learning"), held.index(min(held))


def _judge_never_broken(train, held):
    verdict, best = _judge(train, held)
    return ("overfitting" if verdict == "broken" else verdict), best


def _judge_best_of_training(train, held):
    return _judge(train, held)[0], train.index(min(train))


def _judge_the_loss_not_the_place(train, held):
    verdict, best = _judge(train, held)
    return verdict, held[best]


def _judge_all_by_training(train, held):
    best = train.index(min(train))
    if held[-1] <= 1.02 * held[best]:
        return "learning", best
    return ("overfitting" if train[-1] < train[best] else "broken"), best


def _judge_against_training(train, held):
    verdict, best = _judge(train, held)
    turned = "overfitting" if train[-1] < train[best] else "broken"
    return ("learning" if held[-1] <= 1.02 * train[-1] else turned), best


def _judge_20_percent(train, held):
    verdict, best = _judge(train, held)
    return ("learning" if held[-1] <= 1.2 * held[best] else verdict), best


# ---- copies ----


def _longest_copied(sample, known):
    words, text, most = sample.split(), f" {' '.join(known.split())} ", 0
    for start in range(len(words)):
        while start + most < len(words):
            if f" {' '.join(words[start : start + most + 1])} " not in text:
                break
            most += 1
    return most


def _copied_parts_of_words(sample, known):
    words, most = sample.split(), 0
    for start in range(len(words)):
        while start + most < len(words) and " ".join(words[start : start + most + 1]) in " ".join(
            known.split()
        ):
            most += 1
    return most


def _words_in_common(sample, known):
    return len(set(sample.split()) & set(known.split()))


def _copied_from_the_start(sample, known):
    words, text, most = sample.split(), f" {' '.join(known.split())} ", 0
    while most < len(words) and f" {' '.join(words[: most + 1])} " in text:
        most += 1
    return most


def _copied_characters(sample, known):
    words, text, longest = sample.split(), f" {' '.join(known.split())} ", 0
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            run = " ".join(words[start:end])
            longest = max(longest, len(run) * (f" {run} " in text))
    return longest


def _copied_last_word_unasked(sample, known):
    words = sample.split()
    text, most = f" {' '.join(known.split())} ", 0
    for start in range(len(words)):
        while start + most < len(words) - 1:
            if f" {' '.join(words[start : start + most + 1])} " not in text:
                break
            most += 1
    return most


def _copied_from_raw_text(sample, known, around=" "):
    words, most = sample.split(), 0
    for start in range(len(words)):
        while start + most < len(words):
            run = " ".join(words[start : start + most + 1])
            if around + run + around not in known:
                break
            most += 1
    return most


def _words_known(sample, known):
    return sum(word in known.split() for word in sample.split())


def _same_beginning(sample, known):
    pairs = list(zip(sample.split(), known.split(), strict=False))
    return next((n for n, (a, b) in enumerate(pairs) if a != b), len(pairs))


_KNOWN = "The fox sat in the catch of the cart.\nThe cart was old, and the fox was young."
_EXTRA = {
    "B": "Which cell measured understanding?",
    "C": "Which number did longest_copied give? Was it 0?",
    "E": "Which cell looked at that?",
}
_MISSING = {
    "A": "The picture of the two curves shows one of these sentences. Which?",
    "D": "What did verify compare, and how often?",
    "F": "Look at the stories. Which languages are in them?",
}


def _letters(text):
    return lambda: text


def _honest_mistakes():
    """Every other choice of letters, with the question for the first letter that is wrong."""
    choices = ["".join(c) for count in range(1, 7) for c in combinations("ABCDEF", count)]
    for chosen in choices:
        questions = [why for letter, why in _EXTRA.items() if letter in chosen]
        questions += [why for letter, why in _MISSING.items() if letter not in chosen]
        if len(_EXTRA.keys() & set(chosen)) == 3:
            questions = ["Three of them were never measured. Which?"]
        if questions:
            yield _letters(chosen), questions[0]


EXERCISES = {
    "15.1": Exercise(
        _split,
        cases=[
            (_LETTERS, 0.1, 0),
            (["a", "b", "a", "c", "d", "b", "e"], 0.4, 3),
            (["one", "two", "three", "one"], 0.1, 1),
            (_LETTERS[::-1], 0.25, 7),
        ],
        mistakes=[
            (_split_twins, "Two equal texts: can one be learned and the other one asked?"),
            (_split_first_ones, "The first files may be of one kind. Where does the seed come in?"),
            (_split_other_way_round, "Which side is the large one?"),
            (_split_twins_lost, "Is a text that stands there twice still there twice?"),
            (_split_none, "How many are held out of three texts with a share of 0.1?"),
            (_split_in_drawn_order, "In which order are the texts of each side?"),
            (_split_held_as_drawn, "In which order are the texts of the held-out side?"),
            (_split_held_once, "Is a text that stands there twice still there twice?"),
            (_split_last_ones, "The first ones of the order are held out. Are yours the last?"),
            (_split_twins_drawn_twice, "Does a text that is there twice count once in the draw?"),
            (_split_share_of_all, "The share of which number: of all, or of the different ones?"),
            (_split_most_held, "Is `share` the part to learn from, or the part held out?"),
        ],
    ),
    "15.2": Exercise(
        _mean_loss,
        cases=[
            (_some_loss, _batches([[1, 2, 3], [4, -1, -1]], [[5, 6, -1], [2, -1, -1]])),
            (_some_loss, _batches([[0, 2, 0, 4]], [[1, -1, 7, -1]], [[9, -1, -1, -1]])),
        ],
        mistakes=[
            (
                _mean_of_means,
                "Does a batch with 2 places count as much as one with 2,000? `y.size` counts pads.",
            ),
            (_pads_in_the_count, "By how many places is the sum divided: all, or those asked?"),
            (_sum_by_batches, "A sum over places: is it divided by places, or by batches?"),
            (_losses_by_places, "A mean times what is a sum? Only sums can be added."),
            (_first_batch, "Does the `return` stand inside the loop?"),
            (_sum_not_divided, "Is that the sum, or the mean?"),
            (_token_0_ignored, "Token 0 is a token like any other. Does it count?"),
        ],
    ),
    "15.4": Exercise(
        lambda steps, batch, window, speed: steps * batch * window / speed / 60,
        cases=[(200, 8, 150.0, 10_000.0), (3000, 16, 200.0, 250_000.0)],
        mistakes=[
            (lambda s, b, w, v: s * b * w / v, "Those are seconds. How many make a minute?"),
            (lambda s, b, w, v: s * w / v / 60, "How many windows has a step?"),
            (lambda s, b, w, v: s * b / v / 60, "The speed is in tokens. And the batch?"),
            (lambda s, b, w, v: s * b * w * 60 / v, "Has a run more minutes than seconds?"),
            (lambda s, b, w, v: s * b * v / w / 60, "Does a faster device take longer?"),
            (lambda s, b, w, v: v / (s * b * w) / 60, "Does a faster device take longer?"),
        ],
    ),
    "15.5": Exercise(
        _judge,
        cases=[
            ([6.0, 3.0, 1.0, 0.3], [6.1, 3.5, 2.5, 2.4]),
            ([6.0, 3.0, 1.0, 0.3], [6.1, 3.5, 2.5, 2.9]),
            ([6.0, 3.0, 1.0, 0.4, 0.3], [6.1, 3.5, 2.50, 2.48, 2.52]),
            ([6.0, 3.0, 2.0, 5.0], [6.1, 3.5, 2.5, 5.5]),
            ([6.0, 3.0, 2.5, 2.0, 1.9], [6.1, 3.6, 3.0, 3.7, 3.6]),
            ([5.0, 4.0, 4.2], [5.1, 4.1, 4.1]),
        ],
        mistakes=[
            (_judge_the_gap, "There is a gap in nearly every run. Does the held-out loss turn?"),
            (_judge_every_bump, "Is a rise of less than 2% a turn?"),
            (_judge_last_two, "Two neighbors may wiggle. Which is the lowest of all?"),
            (_judge_never_broken, "If the training loss rises as well, is that overfitting?"),
            (_judge_best_of_training, "The best place of which of the two losses?"),
            (_judge_all_by_training, "The best place of which of the two losses?"),
            (_judge_against_training, "At most 2% above what: the training loss, or the lowest?"),
            (_judge_20_percent, "How much is 2% above: times 1.2, or times 1.02?"),
            (lambda t, h: _judge(t, h)[0], "Two things are asked for. Where is the second?"),
            (lambda t, h: _judge(t, h)[::-1], "Which of the two comes first?"),
            (_judge_the_loss_not_the_place, "The second thing is a place in the list, not a loss."),
        ],
    ),
    "15.6": Exercise(
        _longest_copied,
        cases=[
            ("An ox saw the fox sat in the rain", _KNOWN),
            ("the cat sat", _KNOWN),
            ("The cart was old, and the fox was young.", _KNOWN),
            ("of the cart. The cart was new", _KNOWN),
            ("zebra", _KNOWN),
            ("", _KNOWN),
            ("fox in cart", "the fox in the cart fox in"),
        ],
        mistakes=[
            (_copied_parts_of_words, 'Is "cat" a word of the known text, or a part of "catch"?'),
            (_words_in_common, "Do the words stand in a row there?"),
            (_copied_from_the_start, "May a run begin in the middle of the sample?"),
            (_copied_last_word_unasked, "Is the last word of the sample ever asked about?"),
            (
                _copied_from_raw_text,
                "Are there line breaks in the known text? And what stands at its two ends?",
            ),
            (
                lambda s, k: _copied_from_raw_text(s, k, ""),
                'Is "cat" a word of the known text, or a part of "catch"?',
            ),
            (_words_known, "Do the words stand in a row there?"),
            (_same_beginning, "May the run stand at another place in the known text?"),
            (_copied_characters, "Are words counted, or characters?"),
        ],
    ),
    "15.7": Exercise(
        lambda: "ADF",
        cases=[()],
        mistakes=[
            *_honest_mistakes(),
        ],
        secret=True,
    ),
}

QUESTIONS = {}
