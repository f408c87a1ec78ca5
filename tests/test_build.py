"""The builder of the notebooks: what it makes of a source, and what it refuses."""

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from notebook_builder import HEADER, LESSON, build, own_folder, write


@pytest.fixture
def folder(monkeypatch, tmp_path):
    return own_folder(monkeypatch, tmp_path)


def test_two_builds_give_the_same_bytes_and_check_notices_a_change(folder, capsys):
    name = write(folder, LESSON)
    assert "not been built" in build.out_of_date(name)
    assert build.main([]) == 0
    first = (folder / f"{name}.ipynb").read_bytes()
    assert build.main([f"notebooks/{name}.ipynb"]) == 0
    assert (folder / f"{name}.ipynb").read_bytes() == first
    assert build.main(["--check"]) == 0

    notebook = nbformat.reads(first.decode("utf-8"), as_version=4)
    promise, bundle, task, solution, varies, streams = notebook.cells
    assert promise.id == "77-promise"
    assert bundle.outputs[0].data == {"text/plain": "words"}
    assert "raise NotImplementedError()" in task.source
    assert "2 * x" not in task.source
    assert solution.source.startswith("<details><summary>Solution</summary>")
    assert 'def double(x):\n    """Twice x."""\n    return 2 * x\n' in solution.source
    assert varies.outputs[0].text == build.VARIES
    assert varies.metadata.tags == ["varies", "nbval-ignore-output"]
    assert [output.text for output in streams.outputs] == ["one\ntwo\n"]

    write(folder, LESSON.replace("two", "three"))
    capsys.readouterr()
    assert build.main(["--check"]) == 1
    assert "its source has changed" in capsys.readouterr().out
    assert (folder / f"{name}.ipynb").read_bytes() == first


def test_a_readers_own_work_is_never_overwritten(folder, capsys):
    name = write(folder, HEADER + "# %%\nprint(1)\n")
    assert build.main([]) == 0
    path = folder / f"{name}.ipynb"
    mine = path.read_text(encoding="utf-8").replace("print(1)", "print(2)")
    path.write_text(mine, encoding="utf-8")
    assert "somebody has written in it" in build.out_of_date(name)
    assert build.main([]) == 1
    assert "work of your own" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == mine
    assert build.main(["--force"]) == 0
    assert build.out_of_date(name) == ""


def test_a_notebook_without_a_source_is_named(folder):
    nbformat.write(nbformat.v4.new_notebook(), folder / "78_alone.ipynb")
    assert "no source" in build.out_of_date("78_alone")


def test_solutions_become_stubs_in_either_language():
    kernel = 'TEXT = """\n    // BEGIN SOLUTION\n    y[i] = x[i];\n    // END SOLUTION\n"""'
    stub, solution = build.stub_and_solution(kernel)
    assert stub == 'TEXT = """\n    #error not written yet\n"""'
    assert solution == 'TEXT = """\n    y[i] = x[i];\n"""'
    with pytest.raises(build.BuildError, match="do not match"):
        build.stub_and_solution("### BEGIN SOLUTION\nx = 1")


def test_a_line_to_mend_stands_in_place_of_the_solution():
    lines = ["  // BEGIN SOLUTION", "  x = 2.0f;", "  // INSTEAD", "  x = 2;", "  // END SOLUTION"]
    stub, solution = build.stub_and_solution("\n".join(["{", *lines, "}"]))
    assert stub == "{\n  x = 2;\n}"
    assert solution == "{\n  x = 2.0f;\n}"


def test_solutions_run_in_place_of_stubs(folder):
    task = LESSON.split("# %% tags")[0] + "\n# %%\nassert double(2) == 4\n"
    seconds = build.run_solutions(write(folder, task))
    assert list(seconds) == ["77-code-1", "77-code-2", "77-code-3"]
    with pytest.raises(CellExecutionError):
        build.run_solutions(write(folder, task.replace("2 * x", "3 * x")))


def test_prose_blocks_have_ids_and_digests(folder):
    name = write(folder, LESSON)
    blocks = build.prose(name)
    assert list(blocks) == ["77-promise", "77-code-2-solution"]
    assert blocks["77-promise"] == (build.digest("# A title"), "# A title")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# %%\nprint(1)\n", "the header needs title"),
        (HEADER + "# %% [markdown]\n# Words\n", "'Words' needs an id of its own"),
        (HEADER + '# %% [markdown] id="a"\n# A\n\n# %% [markdown] id="a"\n# B\n', "'B' needs"),
        (HEADER + "# %%\nimport sys\nprint(1, file=sys.stderr)\n", "writes to standard error"),
        (HEADER + "# %%\nimport os\nprint(os.getcwd())\n", "this machine's own"),
        (HEADER + "# %%\nprint(1 // 0)\n", "ZeroDivisionError"),
    ],
)
def test_what_is_refused(folder, capsys, text, words):
    name = write(folder, text)
    assert build.main([name]) == 1
    assert words in capsys.readouterr().err
    assert not (folder / f"{name}.ipynb").exists()


def test_an_unknown_name_is_named(folder, capsys):
    assert build.main(["79_none"]) == 1
    assert "there is no notebooks/src/79_none.py" in capsys.readouterr().err


def test_what_takes_too_long_is_named():
    assert build.too_slow({"a": 29.0, "b": 30.0}) == []
    assert build.too_slow({"a": 31.0}) == ["cell a takes 31 s, more than 30 s"]
    assert build.too_slow({"a": 31.0}, factor=2) == []
    assert build.too_slow({c: 25.0 for c in "abcd"}) == ["the lesson takes 100 s, more than 90 s"]
