"""The teachers' material is about the lessons as they stand, and the slides show what is stored."""

import functools
import importlib
import re
from html.parser import HTMLParser

import pytest

from lesson_helpers import LESSONS, PLAN, number_of
from notebook_builder import build, places

slides = importlib.import_module("builder.slides")
teaching = importlib.import_module("builder.teaching")
NUMBERS = [number_of(name) for name in LESSONS]
# Lesson 14 has its page when it has its source.
PAGES = [number for number in PLAN if number in NUMBERS or number != "14"]
PATHS = (teaching.FOLDER / "paths.md").read_text(encoding="utf-8")
CARDS = teaching.sections((teaching.FOLDER / "cards.md").read_text(encoding="utf-8"), "## ")
SESSIONS = {"Four sessions": 4, "Eight sessions": 8, "Fourteen sessions": 14}
MEETINGS = (45, 90)
MINUTES_OF_A_SESSION = 90


@functools.cache
def notebook_of(number):
    """The lesson as its source says, not run."""
    return build.assemble(LESSONS[NUMBERS.index(number)])


@functools.cache
def headings_of(number):
    """All headings of a lesson."""
    cells = [c.source for c in notebook_of(number).cells if c.cell_type == "markdown"]
    return {h for text in cells for h in slides.HEADING.findall(text)}


def numbered_of(number):
    """The numbers of a lesson's exercises and questions."""
    text = "\n".join(cell.source for cell in notebook_of(number).cells)
    exercises = re.findall(r"\*\*Exercise (\S+?)\*\*", text)
    return {*exercises, *re.findall(r'lab\.quiz\("([^"]+)"', text)}


@pytest.fixture(params=PAGES)
def page(request):
    """A lesson's page for teachers."""
    return teaching.read(request.param)


# ---- the pages ----


def test_the_plan_fills_a_meeting(page):
    assert page.plan[0].begin == 0 and page.plan[-1].end in MEETINGS
    for row, following in zip(page.plan, page.plan[1:], strict=False):
        assert row.begin < row.end == following.begin, row
    for row in page.plan:
        assert row.teacher and row.learners, f"{row.begin}: who does what?"
        assert row.headings or row.exercises, f"{row.begin}: which cells?"


def test_what_a_page_names_is_in_the_lesson(page):
    headings, numbered = headings_of(page.number), numbered_of(page.number)
    named = [name for row in page.plan for name in row.headings]
    named += [name for m in page.misconceptions for name in teaching.named(m.cure)[0]]
    named += [vote.heading for vote in page.votes]
    assert set(named) <= headings, set(named) - headings
    own = set(re.findall(rf"`({page.number}\.[eq]?\d+)`", page.text))
    assert own and own <= numbered, own - numbered


def test_every_exercise_has_its_time_or_is_left_for_home(page):
    exercises = {n for n in numbered_of(page.number) if re.fullmatch(r"\d\d[a-z]?\.\d+", n)}
    plan = {name for row in page.plan for name in row.exercises}
    home = re.search(r"^\*\*For home:\*\*(.*?)(?=^\s*$|^## )", page.text, re.M | re.S)[1]
    forgotten = exercises - plan - set(teaching.EXERCISE.findall(home))
    assert not forgotten, f"neither in the plan nor for home: {sorted(forgotten)}"


def test_three_misconceptions_each_with_its_question(page):
    assert len(page.misconceptions) == 3
    for m in page.misconceptions:
        assert m.ask.count("?") >= 1, m.belief
        assert m.believed and m.right and m.believed != m.right, m.belief
        assert any(teaching.named(m.cure)), f"{m.belief}: no cell and no exercise cures it"


def test_two_votes_of_four_options_with_one_right(page):
    assert len(page.votes) == 2
    for vote in page.votes:
        assert list(vote.options) == ["A", "B", "C", "D"], vote.question
        assert len(set(vote.options.values())) == 4 and vote.because, vote.question
        assert set(vote.reveals) == set("ABCD") - {vote.right}, vote.question


def test_materials_and_where_it_sticks(page):
    parts = teaching.sections(page.text, "## ")
    for part in ("Materials", "Where it sticks"):
        assert parts[part].startswith("- "), part
    assert parts["Where it sticks"].count("\n- ") >= 2


def test_a_page_that_lacks_a_part_is_refused(tmp_path):
    text = (teaching.FOLDER / "04a.md").read_text(encoding="utf-8")
    for old, new, words in [
        ("## Votes", "## Questions", "lacks the part 'Votes'"),
        ("**Cure:**", "**So:**", "lacks the part 'Cure'"),
        ("| 0–10 |", "| 0 to 10 |", "is not: minutes"),
        ("· after *The future", "· behind *The future", "not 'Vote 1"),
        ("- **A** 0.25", "- 0.25", "does not begin with its letter"),
    ]:
        assert old in text
        (tmp_path / "04a.md").write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(places.BuildError, match=words):
            teaching.read("04a", tmp_path)


# ---- the paths and the cards ----


@pytest.fixture(params=SESSIONS)
def path(request):
    """A path: its name, its lines (session, minutes, lesson, parts), and the lessons it skips."""
    text = teaching.sections(PATHS, "## ")[request.param]
    skipped = re.search(r"^\*\*Skipped, with a card:\*\* (.+?)\n\n", text + "\n\n", re.M | re.S)[1]
    return request.param, teaching.table(text), skipped.replace("\n", " ").split(", ")


def test_a_path_has_its_sessions_and_none_is_too_long(path):
    name, lines, _ = path
    minutes = {}
    for session, length, *_ in lines:
        minutes[int(session)] = minutes.get(int(session), 0) + int(length)
    assert list(minutes) == list(range(1, SESSIONS[name] + 1))
    assert all(m <= MINUTES_OF_A_SESSION for m in minutes.values()), minutes


def test_a_path_takes_what_there_is_in_the_order_of_reading(path):
    _, lines, _ = path
    places = [PLAN.index(number) for _, _, number, _ in lines]
    assert path[0] == "Four sessions" or places == sorted(places)
    for _, _, number, parts in lines:
        named, missing = teaching.named(parts)[0], set()
        missing = set(named) - headings_of(number)
        assert not missing, f"lesson {number} has no heading {missing}"
        assert named or f"({number}.md)" in parts, f"lesson {number}: which parts?"


def test_a_path_takes_each_lesson_or_skips_it_with_a_card(path):
    _, lines, skipped = path
    taken = {number for _, _, number, _ in lines}
    assert taken | set(skipped) == set(PLAN) and not taken & set(skipped)
    cards = {title.split(" · ")[0] for title in CARDS}
    assert set(skipped) <= cards, set(skipped) - cards


def test_a_card_is_half_a_page_and_says_how_the_path_goes_on():
    for title, text in CARDS.items():
        assert 90 <= slides.count([text]) <= 330, title
        assert "**Question:**" in text and "**Goes on with:**" in text, title
        assert "```" in text or "|---" in text, f"{title}: neither picture nor formula"
        named = set(re.findall(r'lab\.checkpoint\("(\d\d)"', text))
        assert named <= {"09", "10"}, f"{title}: there is no such checkpoint"
        number, words = title.split(" · ")
        if number in NUMBERS:
            name = notebook_of(number).metadata["llmcl"]["title"]
            assert name.removeprefix("Warm-up: ") == words


def test_links_between_the_pages_lead_somewhere():
    for file in teaching.FOLDER.glob("*.md"):
        for target in re.findall(r"\]\(([^)#\s]+)\)", file.read_text(encoding="utf-8")):
            assert (teaching.FOLDER / target).is_file(), f"{file.name}: {target}"


def test_the_points_of_the_capstones():
    grading = (teaching.FOLDER / "grading.md").read_text(encoding="utf-8")
    rubric = teaching.table(teaching.sections(grading, "## ")["Capstone 15: a text of one's own"])
    assert sum(int(points) for points, *_ in rubric) == 10
    lesson = "\n".join(cell.source for cell in notebook_of("15").cells)
    told = re.search(r"Ten points: (.*?)\n\n", lesson, re.DOTALL)[1]
    assert [int(p) for p, *_ in rubric] == [int(p) for p in re.findall(r"\((\d)\)", told)]


# ---- the slides ----


@pytest.mark.parametrize("number", NUMBERS)
def test_eight_to_twelve_cells_of_a_lesson_are_slides(number):
    tagged = [c for c in notebook_of(number).cells if slides.TAG in c.metadata.get("tags", [])]
    assert 8 <= len(tagged) <= 12
    kinds = [cell.id.removeprefix(number + "-") for cell in tagged]
    assert kinds[0] == "promise" and kinds[-1] == "recap"
    assert "varies" not in {tag for c in tagged for tag in c.metadata["tags"]}, "no output to show"
    assert any(cell.cell_type == "code" for cell in tagged)


class Deck(HTMLParser):
    """A page of slides: each slide's text, and the addresses that the page names."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.addresses, self.hidden = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "section":
            self.texts.append("")
        self.addresses += [values[name] for name in ("src", "href") if values.get(name)]
        if "fragment" in (values.get("class") or ""):
            self.hidden.append(tag)

    def handle_data(self, data):
        if self.texts:
            self.texts[-1] += data


@pytest.mark.parametrize("number", ["00b", "04a", "12b"])
def test_slides_show_the_tagged_cells_and_the_votes(number):
    text = slides.page(LESSONS[NUMBERS.index(number)])
    deck = Deck(text)
    tagged = [c for c in notebook_of(number).cells if slides.TAG in c.metadata.get("tags", [])]
    votes = teaching.read(number).votes
    assert len(deck.texts) == len(tagged) + len(votes)
    for vote in votes:
        plain = re.sub(r"[`*]", "", vote.question)
        assert any(plain in " ".join(slide.split()) for slide in deck.texts), plain
    # The right option and the reason come with the next step: one of each for a vote.
    assert deck.hidden == ["li", "p"] * len(votes)
    outside = [a for a in deck.addresses if not a.startswith(("reveal/", "slides.css", "data:"))]
    assert not outside, f"slides need no net: {outside}"
    assert "NotImplementedError" not in text and "○" not in text


def test_a_long_cell_is_cut_to_its_first_paragraphs():
    long, short = "word " * 70, "A few words."
    assert slides.first_of([short, long, long]) == [short, long]
    assert slides.first_of([long, short, long]) == [long, short]
    assert slides.first_of([long, long]) == [long]
    assert slides.first_of([long, "| a |\n|---|\n" + long]) == [long, "| a |\n|---|\n" + long]


def test_a_formula_needs_no_script():
    pytest.importorskip("latex2mathml")
    made = slides.render(r"so $x_1$, and $$y = \frac{1}{2}$$ [there](90.ipynb#x)")
    assert "<math" in made and "<mfrac>" in made and "script" not in made and "<a" not in made


def test_code_is_made_as_large_as_fits():
    small = slides.fitting(["x" * 90] * 3, slides.WIDTH, 0)
    assert slides.fitting(["x = 1"], slides.WIDTH, 0) == max(slides.SIZES) > small
    assert slides.fitting(["x\n" * 40], slides.WIDTH, 0) < slides.fitting(
        ["x\n" * 20], slides.WIDTH, 0
    )
    assert slides.fitting(["x\n" * 400], slides.WIDTH, 0) == min(slides.SIZES)
