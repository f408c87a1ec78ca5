"""The README's table of lessons says what the lessons say of themselves."""

import re

import pytest

from lesson_helpers import LESSONS, about, number_of
from notebook_builder import FOLDER

README = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| (\d\d[a-z]?) \| (.*) \|$", README, re.MULTILINE))


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_has_a_row_with_its_link_its_title_and_its_minutes(lesson):
    row = ROWS[number_of(lesson)]
    assert f"[{about(lesson)['title']}](notebooks/{lesson}.ipynb)" in row
    assert row.endswith(f"| {about(lesson)['minutes']['full']}")


def test_no_row_is_left_over_and_the_hours_add_up():
    assert list(ROWS) == [number_of(lesson) for lesson in LESSONS]
    total = sum(about(lesson)["minutes"]["full"] for lesson in LESSONS) / 60
    (said,) = re.findall(r"about (\d+) hours with every exercise", README)
    assert abs(int(said) - total) < 1
