"""The sabotaged model: every fault is found by its own probe, and points are given for a reason."""

import inspect
import json
import subprocess
import sys

import pytest

from llmcl.errors import LlmclError
from llmcl.lab import sabotage
from llmcl.lab.sabotage import faults, grade
from llmcl.lab.sabotage.child import answer
from llmcl.lab.sabotage.copies import NAME, load, write_copy
from llmcl.lab.sabotage.faults import EXAMPLE, FAULTS, GROUPS
from llmcl.lab.sabotage.places import places, why_not_named
from llmcl.resources import kernels_dir

ALL = {fault.name: fault for fault in (*FAULTS, EXAMPLE)}
PACKAGE = kernels_dir().parent / "llmcl"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    write_copy(folder, [])
    return folder


def test_the_sound_package_passes_every_probe(sound):
    assert answer(sound, list(ALL), "") == dict.fromkeys(ALL, "")
    assert grade.run(sound, probes=["copy", "gate"]) == {"copy": "", "gate": ""}


@pytest.mark.parametrize("name", ALL)
def test_a_fault_is_found_by_its_probe_and_blames_no_other_group(name, tmp_path):
    write_copy(tmp_path, [ALL[name]])
    said = answer(tmp_path, list(ALL), "")
    found = {other for other, error in said.items() if error}
    assert name in found
    assert {ALL[other].group for other in found} == {ALL[name].group}, said
    assert "AssertionError" in said[name], said[name]


@pytest.mark.parametrize("name", ALL)
def test_a_fault_names_where_it_stands(name):
    fault = ALL[name]
    for file, right, wrong in fault.changes:
        root = PACKAGE if file.endswith(".py") else PACKAGE.parent
        text = (root / file).read_text(encoding="utf-8")
        assert text.count(right) >= 1 and text.replace(right, wrong) != text
    assert (fault.file.split("/")[-1], fault.function) in places(fault)
    assert why_not_named(fault, {"file": fault.file, "function": fault.function}) == ""
    assert fault.why.endswith(".") and fault.group in GROUPS


NAMED = [
    ("gate", "gelu.cl", "gelu8"),  # what a CPU runs
    ("gate", "sabotaged\\kernels\\gelu.cl", "gelu_forward_wide"),
    ("three", "kernels/gelu.cl", "gelu8_slope"),
    ("no_root", "global_norm_gpu.cl", "global_norm_status_group"),
    ("short_cut", "layers.py", "Block.backward()"),
    ("one_norm", "llmcl/layers.py", "Block"),
    ("twice_m", "optimizer.py", "load_moments(self, m, v, steps)"),
    ("padding", "data.py", "data.batch"),
]
NOT_NAMED = [
    ("gate", "", "", "no note"),
    ("gate", "gelu", "gelu_forward", "with its ending"),
    ("gate", "ops/gelu.py", "gelu", "another file than gelu.py"),
    ("gate", "gelu.cl", "gelu_backward", "another function than gelu_backward"),
    ("short_cut", "layers.py", "Head.backward", "another function"),
    ("short_cut", "layers.py", "backward", "has 7 functions backward; say whose"),
    ("heads", "gguf_file.py", "write_gguf", "another function than write_gguf"),
]


@pytest.mark.parametrize(("name", "file", "function"), NAMED)
def test_every_place_of_a_fault_counts_as_named(name, file, function):
    assert why_not_named(ALL[name], {"file": file, "function": function}) == ""


@pytest.mark.parametrize(("name", "file", "function", "reason"), NOT_NAMED)
def test_another_place_does_not_and_the_reason_gives_nothing_away(name, file, function, reason):
    said = why_not_named(ALL[name], {"file": file, "function": function})
    assert reason in said and ALL[name].function not in said


def test_a_number_chooses_one_fault_of_each_group_always_the_same():
    assert [fault.group for fault in sabotage.faults_of("4711")] == list(GROUPS)
    assert sabotage.faults_of("4711") == sabotage.faults_of(" 4711 ")
    chosen = {fault.name for n in range(200) for fault in sabotage.faults_of(str(n))}
    assert chosen == {fault.name for fault in FAULTS}
    assert EXAMPLE not in FAULTS


def test_a_folder_is_kept_and_belongs_to_one_number(tmp_path):
    folder = sabotage.prepare("4711", tmp_path / "mine")
    assert {path.name for path in folder.iterdir()} == {"number.txt", NAME, "tests.py"}
    (folder / NAME / "data.py").write_text("changed", encoding="utf-8")
    sabotage.prepare("4711", folder)
    assert (folder / NAME / "data.py").read_text(encoding="utf-8") == "changed"
    with pytest.raises(LlmclError, match="number 4711"):
        sabotage.prepare("4712", folder)
    with pytest.raises(LlmclError, match="cannot be imported: NameError"):
        load(folder)


def test_a_changed_copy_is_imported_afresh(sound):
    package = load(sound)
    assert package.model.GPT.__module__.startswith(NAME) and NAME in package.__file__
    assert load(sound) is not package


def test_two_copies_do_not_mix(tmp_path):
    """A function that imports late finds its own package, not the one that was loaded last."""
    bad = load(sabotage.example(tmp_path / "bad"))
    good = load(sabotage.example(tmp_path / "good", sound=True))
    for package, sees_it in ((bad, True), (good, False)):
        try:
            EXAMPLE.probe(package)
            assert not sees_it
        except AssertionError:
            assert sees_it


def test_findings_are_kept_and_a_damaged_file_is_none(tmp_path, capsys):
    sabotage.note_finding(tmp_path, "data", "data.py ", "windows()", "it copies")
    assert "data: noted, 1 of 5." in capsys.readouterr().out
    assert sabotage.read_findings(tmp_path)["data"]["file"] == "data.py"
    with pytest.raises(LlmclError, match="no group 'dat'"):
        sabotage.note_finding(tmp_path, "dat", "", "", "")
    (tmp_path / "findings.json").write_text('{"data": 3, "x": {}}', encoding="utf-8")
    assert sabotage.read_findings(tmp_path) == {}
    (tmp_path / "findings.json").write_text("{", encoding="utf-8")
    assert sabotage.read_findings(tmp_path) == {}


def mend(folder, fault):
    for file, right, wrong in fault.changes:
        path = folder / NAME / file
        root = PACKAGE if file.endswith(".py") else PACKAGE.parent
        assert wrong in path.read_text(encoding="utf-8") or right
        path.write_text((root / file).read_text(encoding="utf-8"), encoding="utf-8")


def written_tests(chosen):
    """A student's file of tests, made of the probes and what they use."""
    source = inspect.getsource(faults.probes)
    for fault in chosen:
        source = source.replace(f"def {fault.probe.__name__}(", f"def test_{fault.name}(")
    return source


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory):
    """A folder in which everything was done, and one as it is handed out."""
    done = sabotage.prepare("4711", tmp_path_factory.mktemp("done") / "4711")
    chosen = sabotage.faults_of("4711")
    for fault in chosen:
        mend(done, fault)
        sabotage.note_finding(done, fault.group, fault.file, fault.function, "a reason")
    (done / "tests.py").write_text(written_tests(chosen), encoding="utf-8")
    return done, sabotage.prepare("4711", tmp_path_factory.mktemp("new") / "4711")


def test_all_points_for_everything_and_none_for_nothing(by_hand):
    done, new = by_hand
    assert [mark.points for mark in sabotage.marks("4711", done)] == [3] * 5
    assert [mark.points for mark in sabotage.marks("4711", new)] == [0] * 5


def test_the_table_names_the_faults_for_the_teacher_only(by_hand):
    result = sabotage.marks("4711", by_hand[1])
    closed, opened = sabotage.table(result), sabotage.table(result, open_book=True)
    assert "0 of 15 points" in closed
    for mark in result:
        assert mark.fault.why in opened and mark.fault.why not in closed
        assert mark.fault.file not in closed


ALWAYS_OR_NEVER = """import sys


def test_always(m):
    assert False


def test_never(m):
    print("seen")


def test_exit(m):
    sys.exit(3)
"""


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        (ALWAYS_OR_NEVER, "test_always fails on the sound package too (line 5, assert False: Asse"),
        ("def broken(:\n", "tests.py cannot be run: SyntaxError"),
        ("", "tests.py has no test"),
        ("import llmcl\n\n\ndef test_it(m):\n    pass\n", "llmcl is another package"),
    ],
)
def test_a_test_that_always_or_never_fails_earns_nothing(by_hand, tests, reason):
    file = by_hand[1] / "tests.py"
    file.write_text(tests, encoding="utf-8")
    result = sabotage.marks("4711", str(by_hand[1]))
    assert not any(mark.caught for mark in result)
    assert sabotage.table(result).count(reason) == 1  # once for all groups


def test_what_tests_print_is_shown(by_hand, capsys):
    (by_hand[1] / "tests.py").write_text(ALWAYS_OR_NEVER, encoding="utf-8")
    sabotage.try_tests(by_hand[1])
    printed = capsys.readouterr().out
    assert "printed by the tests:\nseen\n" in printed
    assert "✗ test_always: line 5, assert False: AssertionError\n" in printed
    assert "✗ test_exit: line 13: SystemExit: 3" in printed


def test_a_folder_is_not_graded_by_another_number(by_hand):
    with pytest.raises(LlmclError, match="number 4711, and not of 4712"):
        sabotage.marks("4712", by_hand[0])


def test_a_copy_that_does_not_run_says_so(tmp_path):
    folder = sabotage.prepare(4711, tmp_path / "mine")
    (folder / NAME / "data.py").write_text("IGNORED = = 1", encoding="utf-8")
    (folder / "tests.py").unlink()
    told = sabotage.table(sabotage.marks(4711, folder))
    assert "mended, data, forward, backward, update, file: LlmclError: the copy cannot be" in told


def test_a_kernel_mended_in_one_of_its_versions_is_told(tmp_path):
    fault = ALL["gate"]
    number = next(str(n) for n in range(99) if fault in sabotage.faults_of(str(n)))
    folder = sabotage.prepare(number, tmp_path / "mine")
    (folder / "tests.py").unlink()
    path, (_, right, wrong) = folder / NAME / fault.file, fault.changes[0]
    before, _, after = path.read_text(encoding="utf-8").partition("float8 gelu8(")
    for text, left in (
        (before + "float8 gelu8(" + after.replace(wrong, right), "mended"),
        (before.replace(wrong, right) + "float8 gelu8(" + after, "mended"),
        (before.replace(wrong, right) + "float8 gelu8(" + after.replace(wrong, right), None),
    ):
        path.write_text(text, encoding="utf-8")
        mark = next(m for m in sabotage.marks(number, folder) if m.fault == fault)
        assert mark.mended if left is None else left in mark.remarks


def test_the_teacher_s_commands(by_hand):
    command = [sys.executable, "-m", "llmcl.lab.sabotage"]
    here = {"capture_output": True, "text": True, "encoding": "utf-8", "cwd": PACKAGE.parent}
    key = subprocess.run([*command, "key", "4711"], **here, check=True).stdout
    for fault in sabotage.faults_of("4711"):
        assert fault.why in key and f"def {fault.probe.__name__}(m)" in key
    told = subprocess.run([*command, "grade", "4711", by_hand[0]], **here, check=True).stdout
    assert "15 of 15 points" in told and "a reason" in told
    wrong = subprocess.run([*command, "grade", "4711", by_hand[0].parent], **here)
    assert wrong.returncode == 2 and "holds no folder" in wrong.stderr
    assert json.loads((by_hand[0] / "findings.json").read_text(encoding="utf-8"))
