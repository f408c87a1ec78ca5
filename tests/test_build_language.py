"""A translation over a lesson: which blocks are shown, which are not and why, and the PO file."""

import nbformat
import pytest

from notebook_builder import HEADER, build, own_folder, places, store, write

SOURCE = (
    HEADER
    + """\
# %% [markdown] id="promise"
# # A sun
#
# The sun warms 30% of the land, "and" the sea.

# %%
print("one")

# %% [markdown] id="second"
# <details><summary>Hint</summary>
#
# Water.
#
# </details>

# %%
def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION

# %% [markdown] id="third"
# The end.
"""
)
KOREAN = '# 해\n\n해는 땅의 30%와 바다를 "데워요".'


@pytest.fixture
def folder(monkeypatch, tmp_path):
    return own_folder(monkeypatch, tmp_path)


@pytest.fixture
def lesson(folder, monkeypatch):
    name = write(folder, SOURCE)
    store(folder, name)
    monkeypatch.setattr(build, "ROOT", folder)
    return name


def put(path, english, korean):
    """Writes a translation under its English, as a translator would."""
    text = path.read_text(encoding="utf-8")
    before, after = text.split(f'msgctxt "{english}"')
    start = after.index('msgstr ""')
    lines = "\n".join(
        f'"{line}\\n"'.replace('"데워요"', '\\"데워요\\"') for line in korean.split("\n")
    )
    lines = lines[: -len('\\n"')] + '"'
    text = before + f'msgctxt "{english}"' + after[:start]
    path.write_text(
        text + 'msgstr ""\n' + lines + after[start + len('msgstr ""') :], encoding="utf-8"
    )


def entry(path, block):
    """The lines of one block's entry."""
    (found,) = [
        part
        for part in path.read_text(encoding="utf-8").split("\n\n")
        if f'msgctxt "{block}"' in part
    ]
    return found


def test_a_template_has_every_block_and_an_update_changes_nothing(lesson):
    assert build.main(["--template", "ko", lesson]) == 0
    path = build.po_path("ko", lesson)
    assert path == places.FOLDER / "i18n" / "ko" / "77.po"
    first = path.read_bytes()
    assert b'"Language: ko\\n"' in first
    for block in ("promise", "second", "third"):
        english = dict(build.prose(lesson))[f"77-{block}"][1]
        assert f"#. english: {build.digest(english)}\n" in entry(path, block)
    assert b"double" not in first  # a folded solution is code, and not translated
    assert build.main(["--template", "ko", lesson]) == 0
    assert path.read_bytes() == first


def test_a_current_block_is_shown_and_the_rest_is_english_and_listed(lesson, folder, capsys):
    build.main(["--template", "ko", lesson])
    put(build.po_path("ko", lesson), "promise", KOREAN)
    assert build.main(["--template", "ko", lesson]) == 0  # an update keeps it
    capsys.readouterr()
    assert build.main(["--language", "ko", lesson]) == 0
    report = capsys.readouterr().out
    assert report.count(": not translated") == 2
    assert "promise" not in report
    english = nbformat.read(folder / f"{lesson}.ipynb", as_version=4)
    korean = nbformat.read(folder / "build" / "ko" / f"{lesson}.ipynb", as_version=4)
    assert korean.cells[0].source == KOREAN
    assert korean.cells[1:] == english.cells[1:]
    assert [cell.id for cell in korean.cells] == [cell.id for cell in english.cells]
    assert korean.metadata.llmcl.language == "ko"


def test_a_block_whose_english_has_changed_is_shown_in_english(lesson):
    build.main(["--template", "ko", lesson])
    path = build.po_path("ko", lesson)
    put(path, "promise", KOREAN)
    write(places.FOLDER, SOURCE.replace("# A sun", "# The sun"))
    store(places.FOLDER, lesson)

    notebook, report = build.translate("ko", lesson)
    assert "promise: its English has changed" in report
    assert notebook.cells[0].source.startswith("# The sun")

    build.write_template("ko", lesson)
    assert "#, fuzzy" in entry(path, "promise")
    assert "데워요" in entry(path, "promise")
    assert any(
        line.startswith("promise: marked fuzzy") for line in build.translate("ko", lesson)[1]
    )

    looked_over = path.read_text(encoding="utf-8").replace("#, fuzzy", "#, ")
    path.write_text(looked_over.replace("#, , ", "#, ").replace("#, \n", ""), encoding="utf-8")
    notebook, report = build.translate("ko", lesson)
    assert notebook.cells[0].source == KOREAN
    assert not any("promise" in line for line in report)


def test_a_block_that_the_lesson_lacks_is_listed_and_kept(lesson):
    build.main(["--template", "ko", lesson])
    path = build.po_path("ko", lesson)
    put(path, "third", "끝.")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('msgctxt "third"', 'msgctxt "gone"'), encoding="utf-8")
    report = build.translate("ko", lesson)[1]
    assert "gone: the lesson has no such block" in report
    assert "third: not translated" in report

    build.write_template("ko", lesson)
    kept = path.read_text(encoding="utf-8")
    assert '#~ msgctxt "gone"' in kept
    assert "끝." in kept
    assert "gone" not in "".join(build.translate("ko", lesson)[1])
    build.write_template("ko", lesson)
    assert path.read_text(encoding="utf-8") == kept


def test_a_block_that_comes_back_finds_its_translation(lesson):
    build.write_template("ko", lesson)
    path = build.po_path("ko", lesson)
    put(path, "third", "끝.")
    write(places.FOLDER, SOURCE.replace('id="third"', 'id="last"'))
    build.write_template("ko", lesson)
    assert "#~" in path.read_text(encoding="utf-8")
    write(places.FOLDER, SOURCE)
    build.write_template("ko", lesson)
    assert "#~" not in path.read_text(encoding="utf-8").split('msgctxt "last"')[0]
    assert "#, fuzzy" in entry(path, "third")
    assert "끝." in entry(path, "third")


def test_a_translation_with_other_folded_blocks_is_not_shown(lesson):
    build.write_template("ko", lesson)
    put(build.po_path("ko", lesson), "second", "<details>물.")
    report = build.translate("ko", lesson)[1]
    assert any(line.startswith("second: its code or folded blocks") for line in report)


def test_without_a_file_everything_is_english(lesson):
    notebook, report = build.translate("ko", lesson)
    assert len(report) == 3
    assert notebook.cells[0].source.startswith("# A sun")


@pytest.mark.parametrize("language", ["klingon", "../ko", ""])
def test_a_language_that_is_none_is_refused(lesson, language):
    with pytest.raises(build.BuildError, match="is no language"):
        build.translate(language, lesson)


def test_a_broken_file_is_named(lesson):
    path = build.po_path("ko", lesson)
    path.parent.mkdir(parents=True)
    path.write_bytes('msgid "a"\nmsgstr "끝"\n'.encode("cp949"))
    with pytest.raises(build.BuildError, match="77.po is not a PO file"):
        build.translate("ko", lesson)
