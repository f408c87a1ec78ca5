"""The glossary: every new word of every lesson, in Korean too, where links and readers find it."""

import re

import pytest
from test_lesson_order import WATCHED

from lesson_helpers import LESSONS, WARM_UPS, about, number_of, prose
from llmcl import lab
from llmcl.lab import glossary
from llmcl.lab.glossary import TERMS, find
from notebook_builder import FOLDER, HEADER, build, own_folder, places, write

PAGE = "90_glossary"
HANGUL = re.compile(r"[가-힣]")
NEW_WORDS = re.compile(r"^\| \*\*New words\*\* \| (.*) \|$", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
# The lesson, and what its table and its header call new.
LISTED = {name: [c for c in about(name)["introduces"] if "llmcl." not in c] for name in LESSONS}


def new_words(name):
    """The words in the table of a lesson's first block, as its source has them."""
    _, promise = build.prose(name)[f"{number_of(name)}-promise"]
    return NEW_WORDS.search(promise)[1].split(", ")


def introducers():
    """Each entry's word -> the numbers of the lessons that call it new, in the order of reading."""
    found = {}
    for name in LESSONS:
        for word in {*LISTED[name], *new_words(name)}:
            numbers = found.setdefault(find(word).word, [])
            numbers += [number_of(name)] * (number_of(name) not in numbers)
    return found


def page():
    """The text of the glossary's notebook, as it would be built today."""
    return "\n\n".join(cell.source for cell in prose(build.assemble(PAGE)))


def anchors(text):
    """What links can reach: every heading, as JupyterLab names it."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return [heading.replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("name", LESSONS)
def test_every_new_word_has_an_entry(name):
    missing = [word for word in (*LISTED[name], *new_words(name)) if find(word) is None]
    assert not missing, f"write entries in llmcl/lab/glossary for these words of {name}: {missing}"


def test_no_name_stands_for_two_things():
    names = [(name, term.word) for term in TERMS for name in glossary.names_of(term)]
    plain = [name for name, _ in names]
    assert not {(n, word) for n, word in names if plain.count(n) > 1}


def test_each_entry_names_the_lesson_that_introduces_it():
    lessons = introducers()
    assert set(lessons) == {term.word for term in TERMS}, "an entry that no lesson calls new"
    for term in TERMS:
        numbers = lessons[term.word]
        first = next((n for n in numbers if n not in WARM_UPS), numbers[0])
        assert term.lesson == first, f"{term.word}: lesson {first} introduces it"


def test_the_entries_are_sorted_and_whole():
    words = [term.word for term in TERMS]
    assert words == sorted(words, key=str.casefold)
    for term in TERMS:
        assert HANGUL.search(term.korean), term.word
        assert term.meaning[0].isupper() and term.meaning[-1] in ".:)", term.word
        assert len(term.meaning.split()) <= 45, f"{term.word}: shorter, the lesson has the rest"
        assert (term.meaning[-1] == ":") <= bool(term.formula), term.word
        assert "`" not in term.formula + term.word, term.word


def test_no_korean_term_stands_twice():
    korean = [re.sub(r"\(.*", "", term.korean).strip() for term in TERMS]
    assert not {k for k in korean if korean.count(k) > 1}


def test_a_word_of_the_lessons_is_never_explained_by_one_that_is_nowhere_explained():
    """All watched concepts are explained here, so no meaning can use one that is not."""
    used = {
        c for c, (look, _) in WATCHED.items() for t in TERMS if re.search(look, t.meaning, re.I)
    }
    missing = {concept for concept in used | set(WATCHED) if find(concept) is None}
    assert not missing


def test_the_page_has_every_entry_once_and_its_links_lead_somewhere():
    text = page()
    found = anchors(text)
    assert len(set(found)) == len(found)
    for term in TERMS:
        assert term.meaning in text and f"**{term.korean}** · [lesson {term.lesson}](" in text
        assert f"→ [{term.word}](#" in text, "the Korean index"
    for label, target in LINK.findall(text):
        file, _, fragment = target.partition("#")
        if file:
            assert (FOLDER / "src" / file).with_suffix(".py").is_file(), target
        else:
            assert fragment in found, f"[{label}]({target})"
            assert target.isascii(), "JupyterLab finds no heading in Hangul"


def test_the_page_s_order_is_that_of_both_alphabets():
    english, korean = page().split("\n## Korean\n")
    words = re.findall(r"^(?:### |\*\*(?=[^*]+\*\*: see))([^*\n]+)", english, re.MULTILINE)
    keys = [word.strip("_").casefold() for word in words]
    assert keys == sorted(keys) and len(keys) == len(TERMS) + sum(len(t.also) for t in TERMS)
    terms = re.findall(r"^(.+) → \[", korean, re.MULTILINE)
    keys = [term.split("(")[0].casefold() for term in terms]
    assert keys == sorted(keys) and len(keys) == len(TERMS)
    assert re.findall(r"^\*\*([가-힣])\*\*", korean, re.MULTILINE) == sorted(
        set(re.findall(r"^\*\*([가-힣])\*\*", korean, re.MULTILINE))
    )


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_s_new_words_are_links_to_their_entries(name):
    promise = build.assemble(name).cells[0].source
    links = LINK.findall(NEW_WORDS.search(promise)[1])
    assert [label for label, _ in links] == new_words(name)
    reachable = set(anchors(page()))
    for label, target in links:
        file, fragment = target.split("#")
        assert file == f"{PAGE}.ipynb" and fragment in reachable, target
        assert fragment.replace("-", " ") == find(label).word.replace("-", " ")
    assert build.prose(name)[f"{number_of(name)}-promise"][1] == LINK.sub(
        lambda m: m[1] if m[2].startswith(PAGE) else m[0], promise
    )


def promise(word, label="New words"):
    table = f"# | | |\n# |---|---|\n# | **Time** | 1 minute |\n# | **{label}** | {word} |\n"
    return f'{HEADER}# %% [markdown] id="promise"\n# # A title\n#\n{table}'


def test_a_new_word_without_an_entry_stops_the_build(monkeypatch, tmp_path, capsys):
    folder = own_folder(monkeypatch, tmp_path)
    name = write(folder, promise("token, flurb"))
    assert build.main([name]) == 1
    assert "the new word 'flurb' has no entry" in capsys.readouterr().err
    write(folder, promise("token, top-p (nucleus)"))
    assert build.main([name]) == 0
    row = "| [token](90_glossary.ipynb#token), [top-p (nucleus)](90_glossary.ipynb#top-p) |"
    assert row in (folder / f"{name}.ipynb").read_text(encoding="utf-8")


def test_a_translation_s_new_words_are_links_too(monkeypatch, tmp_path):
    folder = own_folder(monkeypatch, tmp_path)
    name = write(folder, promise("token, work-item"))
    build.build(name)
    path = build.write_template("ko", name)
    text = path.read_text(encoding="utf-8")
    assert PAGE not in text, "a translator sees the words, not the links"
    korean = "| **새 낱말** | 토큰, 작업 항목, 여우 |"
    head, entry = text.rsplit('msgstr ""', 1)
    path.write_text(f'{head}msgstr "{korean}"{entry}', encoding="utf-8")
    notebook, report = build.translate("ko", name)
    assert report == []
    links = "[토큰](90_glossary.ipynb#token), [작업 항목](90_glossary.ipynb#work-item), 여우 |"
    assert notebook.cells[0].source.endswith(links)


def test_a_changed_glossary_makes_a_notebook_out_of_date(monkeypatch, tmp_path):
    folder = own_folder(monkeypatch, tmp_path)
    name = write(folder, promise("token"))
    build.build(name)
    assert build.out_of_date(name) == ""
    maker = build.assemble.__globals__["glossary"]
    monkeypatch.setattr(maker, "PAGE", "91_other.ipynb")
    assert "the glossary, or the builder, has changed" in build.out_of_date(name)
    assert places.FOLDER == folder


def test_an_entry_of_a_lesson_that_is_not_there_is_refused(monkeypatch, tmp_path):
    own_folder(monkeypatch, tmp_path)
    with pytest.raises(build.BuildError, match="lesson 09 introduces 'Adam'"):
        build.assemble.__globals__["glossary"].blocks()


@pytest.mark.parametrize(
    "asked",
    [
        "work-item",
        "Work item",
        "WORKITEM",
        "작업 항목",
        "작업항목",
        "작업 항목(work-item)",
        "thread",
    ],
)
def test_a_word_is_found_in_either_language(asked, capsys):
    lab.term(asked)
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "work-item · 작업 항목(work-item) · lesson 00"
    assert " ".join(rest[:-1]) == find("work-item").meaning and rest[-1] == "also: thread"


def test_a_formula_is_printed_with_its_word(capsys):
    lab.term("소프트맥스")
    assert "exp(x_i) / Σ_j exp(x_j)" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("asked", "near"), [("sofmax", "softmax"), ("역전바", "backpropagation"), ("logist", "logits")]
)
def test_an_unknown_word_gets_the_nearest_ones(asked, near, capsys):
    lab.term(asked)
    out = capsys.readouterr().out
    assert out.startswith(f"The glossary has no {asked!r}. Near it: ") and near in out


def test_a_word_that_is_like_none_is_said_to_be_missing(capsys):
    lab.term("xylophone")
    assert capsys.readouterr().out == "The glossary has no 'xylophone'.\n"
