"""The stories of lesson 15: the same bytes everywhere, in English that agrees with itself."""

import hashlib
import re
from random import Random

import pytest

from llmcl.data import read_folder, split_documents
from llmcl.errors import DataError
from llmcl.lab import grammar

TEXTS = grammar.texts()
HASH = "f6245d27a571f7250b352c7bfcf64d9d996ee967cc5f0e95b4727b92451391e6"
STORIES = [story for text in TEXTS.values() for story in text.rstrip("\n").split(grammar.BREAK)]
SINGULAR = "|".join(grammar.ANIMALS)
PLURAL = "|".join(plural for plural, _, _ in grammar.ANIMALS.values())


def test_the_bytes_are_the_same_everywhere():
    data = "\0".join(f"{name}\0{text}" for name, text in sorted(TEXTS.items())).encode("ascii")
    assert hashlib.sha256(data).hexdigest() == HASH


def test_it_is_about_a_megabyte_of_different_stories():
    assert 1_000_000 <= sum(map(len, TEXTS.values())) < 1_002_000
    assert len(STORIES) > 1500 and len(set(STORIES)) == len(STORIES)
    assert len({story.split("\n")[1] for story in STORIES}) == len(STORIES)
    assert sorted(TEXTS) == sorted(f"{place}.txt" for place in grammar.PLACES)


def test_the_seed_decides():
    assert grammar.texts(5000, seed=1) == grammar.texts(5000, seed=1)
    assert grammar.texts(5000, seed=1) != grammar.texts(5000, seed=2)
    first = grammar.story(Random(3))
    assert first == grammar.story(Random(3)) != grammar.story(Random(4))


@pytest.mark.parametrize("weather", grammar.WEATHERS, ids=lambda w: w.feel)
def test_a_weather_has_three_effects_and_a_reason(weather):
    assert len(set(weather.effects)) == 3
    assert weather.question.endswith("?") and not weather.reason.endswith(".")


def test_no_slot_is_left_and_every_sentence_has_an_end():
    for story in STORIES:
        title, text = story.split("\n")
        assert not re.search(r"[{}]|  | ,|\.\.", story), story
        assert title[0].isupper() and not title.endswith(".")
        for sentence in re.split(r'(?<=[.?]) (?=[A-Z"])', text):
            assert sentence.strip('"')[0].isupper(), (sentence, story)
        assert text[-1] in '."'
        assert text.count('"') % 2 == 0


def test_subject_and_verb_agree():
    for story in STORIES:
        assert not re.search(r"\b(they|we) (was|is|am)\b|\b(it) (were|are)\b", story, re.I), story
        assert not re.search(r"\bI (are|is|were)\b", story), story
        many = re.match(r"(two|three|four) ", story, re.I)
        pronoun = re.search(r"\b(its|their) (home|favorite)", story)
        if pronoun:
            assert (pronoun[1] == "their") == bool(many), story
        # Sheep and deer are the same in both numbers.
        plural = "|".join(p for s, (p, _, _) in grammar.ANIMALS.items() if p != s)
        singular = "|".join(s for s, (p, _, _) in grammar.ANIMALS.items() if p != s)
        assert not re.search(rf"\b({plural}) (was|likes)\b", story, re.I), story
        wrong = rf"(?<!and )\b(the|a) ({singular}) (were|like)\b"
        assert not re.search(wrong, story, re.I), story


def test_articles_fit_the_sound():
    text = " ".join(STORIES)
    assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", text, re.I)


def test_a_story_keeps_its_facts():
    for name, text in TEXTS.items():
        place = grammar.PLACES[name.removesuffix(".txt")]
        for story in text.rstrip("\n").split(grammar.BREAK):
            thing = re.match(r".* and the (.*)", story)[1]
            assert thing in grammar.THINGS and story.count(thing) >= 2, story
            assert any(spot in story.lower() for spot in place[1:]), story
            assert sum(w.over in story for w in grammar.WEATHERS) == 1, story
            food = re.search(r"favorite food was ([\w ]+)\.|nothing better than ([\w ]+)\.", story)
            animal = re.match(rf"(?:The|Two|Three|Four) ({PLURAL}|{SINGULAR})\b", story)[1]
            kept = next(a for a, (p, _, _) in grammar.ANIMALS.items() if animal in (a, p))
            if food:
                assert (food[1] or food[2]) == grammar.ANIMALS[kept][1], story


def test_it_is_written_once_and_read_as_documents(tmp_path):
    folder = grammar.write_stories(tmp_path / "stories")
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    (folder / "mill.txt").write_text("changed", encoding="utf-8")
    grammar.write_stories(folder)
    for name, text in TEXTS.items():
        assert (folder / name).read_bytes() == text.encode("ascii")
    after = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert [name for name in after if after[name] != before[name]] == ["mill.txt"]
    files = read_folder(folder)
    assert sum(map(len, files.values())) == len(STORIES)
    train, held = split_documents([t for texts in files.values() for t in texts])
    assert sorted(train + held) == sorted(STORIES)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="file"):
        grammar.write_stories(tmp_path / "file" / "stories")
