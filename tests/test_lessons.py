"""Exercises and broken kernels of every lesson: right ones pass, wrong ones are told why."""

import pytest

from llmcl.errors import LlmclError
from llmcl.lab import exercises, kernel_exercises, lessons, strict
from llmcl.resources import kernels_dir
from notebook_builder import FOLDER

NUMBERS = sorted(path.stem.split("_")[0] for path in (FOLDER / "src").glob("[0-8]*.py"))
BOOKS = {number: lessons.of(number) for number in NUMBERS}
FUNCTIONS = {n: e for b in BOOKS.values() for n, e in b.exercises.items()
             if isinstance(e, lessons.Exercise)}  # fmt: skip
KERNELS = {n: e for b in BOOKS.values() for n, e in b.exercises.items()
           if isinstance(e, lessons.KernelTask)}  # fmt: skip
BROKEN = {n: broken for b in BOOKS.values() for n, broken in b.broken.items()}
needs_oclgrind = pytest.mark.skipif(
    not strict.available(), reason="Oclgrind's wheel exists for Linux on x86-64 only"
)


def empty(*args):
    raise NotImplementedError()


@pytest.mark.parametrize("number", FUNCTIONS)
def test_the_reference_of_an_exercise_passes(number):
    assert exercises.judge(FUNCTIONS[number].reference, FUNCTIONS[number]).state == "right"


@pytest.mark.parametrize("number", FUNCTIONS)
def test_an_empty_exercise_is_missing_and_a_grader_hears_of_it(number, monkeypatch, capsys):
    assert exercises.exercise(number)(empty) is FUNCTIONS[number].reference
    assert capsys.readouterr().out.startswith("○")
    monkeypatch.setenv("LLMCL_GRADE", "1")
    with pytest.raises(LlmclError, match=number):
        exercises.exercise(number)(empty)


@pytest.mark.parametrize("number", FUNCTIONS)
def test_a_function_to_mend_counts_as_missing(number):
    task = FUNCTIONS[number]
    if task.given:
        assert exercises.judge(task.given, task).state == "missing"


@pytest.mark.parametrize("number", FUNCTIONS)
def test_the_usual_wrong_answers_are_told_their_cause(number, monkeypatch):
    task = FUNCTIONS[number]
    assert task.mistakes, "an exercise needs at least one usual mistake"
    for wrong, question in task.mistakes:
        outcome = exercises.judge(wrong, task)
        assert outcome.state == "wrong", question
        assert outcome.line.endswith(question), outcome.line
    monkeypatch.setenv("LLMCL_GRADE", "1")
    with pytest.raises(LlmclError, match=number):
        exercises.exercise(number)(task.mistakes[0][0])


@pytest.mark.parametrize("number", KERNELS)
def test_the_reference_of_a_kernel_exercise_passes(number):
    task = KERNELS[number]
    outcome = kernel_exercises.judge_kernel(number, task.text, task)
    assert outcome.state == "right", outcome.line


@pytest.mark.parametrize("number", KERNELS)
def test_an_empty_kernel_is_missing_and_a_grader_hears_of_it(number, monkeypatch, capsys):
    stub = "__kernel void x()\n{\n#error not written yet\n}\n"
    assert kernel_exercises.kernel_exercise(number, stub) == KERNELS[number].text
    assert capsys.readouterr().out.startswith("○")
    monkeypatch.setenv("LLMCL_GRADE", "1")
    with pytest.raises(LlmclError, match=number):
        kernel_exercises.kernel_exercise(number, stub)


@pytest.mark.parametrize("number", KERNELS)
def test_a_kernel_to_mend_counts_as_missing(number):
    task = KERNELS[number]
    if task.given:
        text = "// as given\n" + lessons.changed(task, *task.given).replace("\n", "\n\n")
        assert kernel_exercises.judge_kernel(number, text, task).state == "missing"


@needs_oclgrind
@pytest.mark.parametrize("number", KERNELS)
def test_the_usual_wrong_kernels_are_told_their_cause(number, monkeypatch):
    task, known, run = KERNELS[number], {}, strict.run_texts
    # What the known mistakes do is asked for with every one of them; once is enough.
    monkeypatch.setattr(
        strict,
        "run_texts",
        lambda n, texts: (
            known.setdefault(tuple(texts), run(n, texts))
            if tuple(texts) not in known
            else known[tuple(texts)]
        ),
    )
    assert task.mistakes, "an exercise needs at least one usual mistake"
    for old, new, question in task.mistakes:
        wrong = lessons.changed(task, old, new)
        outcome = kernel_exercises.judge_kernel(number, wrong, task)
        assert outcome.state == "wrong", question
        assert outcome.line.endswith(question), outcome.line


@needs_oclgrind
@pytest.mark.parametrize("number", BROKEN)
def test_a_broken_kernel_is_found_and_the_right_one_is_not(number):
    broken = BROKEN[number]
    assert broken.reason.endswith(".")
    verdicts = strict.run_texts(number, [broken.task.text, broken.text], tries=True)
    right = strict.need(verdicts[0])
    assert not any(right.cases) and not right.findings
    wrong = strict.need(verdicts[1])
    if broken.finder == "check":
        assert any(wrong.cases)
    else:
        assert broken.finder in {finding.kind for finding in wrong.findings}


@pytest.mark.parametrize("number", BROKEN)
def test_a_broken_kernel_is_one_small_change_of_a_kernel_that_is_used(number):
    broken = BROKEN[number]
    assert abs(len(broken.text) - len(broken.task.text)) < 200
    files = [path.read_text(encoding="utf-8") for path in kernels_dir().glob("*.cl")]
    taught = [task.text for task in KERNELS.values()]
    source = next((FOLDER / "src").glob(f"{number.split('.')[0]}_*.py")).read_text(encoding="utf-8")
    assert broken.task.text in files + taught or f'show_broken("{number}")' in source
