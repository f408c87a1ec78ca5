"""Every message has an entry in llmcl/lab/troubles, every entry a message; search finds them."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import llmcl
from llmcl import data, errors, lab
from llmcl.config import Config
from llmcl.errors import GgufError, LlmclError
from llmcl.gguf_file import read_gguf, write_gguf
from llmcl.lab import troubles
from llmcl.lab.checks import CheckFailed
from llmcl.lab.troubles import AREAS, TROUBLES
from llmcl.lab.troubles.entry import KINDS
from llmcl.lab.troubles.search import LEAST_LETTERS, letters, plain
from llmcl.llama_cpp import ask_llama
from llmcl.optimizer import Schedule
from llmcl.pipeline import Stopped
from llmcl.reference import Engine
from llmcl.tokenizer import ByteBPE, WordDictionary

PACKAGE = Path(llmcl.__file__).parent
OWN = {
    name for name, kind in vars(errors).items() if isinstance(kind, type)
} | {CheckFailed.__name__, Stopped.__name__}  # fmt: skip
# Raised texts that are made elsewhere, or of which a part says what is wrong; with the reason.
ELSEWHERE = {
    ("device.py", "…"): "the sentences of remedies.py, which have entries",
    ("program.py", "…"): "explain_build_log, whose two sentences have entries",
    ("reference/shapes.py", "…"): "need() raises what its callers hand over",
    ("lab/strict.py", "…"): "the verdict of the child process, whose sentences have entries",
    ("lab/llama.py", "…"): "llama_cpp's own error, raised again with a shorter path",
    ("tokenizer_base.py", "…: …"): "a path before another error of the tokenizer",
    ("data.py", "… …."): "has two endings, each of which has an entry",
}
# Entries whose words stand in the package in two pieces.
COMPOSED = {
    "… is a file; name the folder that it lies in.",
    "… does not exist; check the name and the folder.",
}


# ---- what the package says ----


def text_of(node, constants=()) -> str:
    """A string expression with "…" for what differs; the module's own constants as they are."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else text_of(part.value, constants)
            for part in node.values
        )
    if isinstance(node, ast.BinOp):
        return text_of(node.left, constants) + text_of(node.right, constants)
    return constants[node.id] if isinstance(node, ast.Name) and node.id in constants else "…"


def tidy(text: str) -> str:
    return re.sub("…+", "…", " ".join(text.split()))


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith("lab/troubles/") or name.endswith("__init__.py"):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def constants_of(tree) -> dict[str, str]:
    return {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }


def variants(node, constants) -> set[str]:
    """The text with the module's constants as "…" and with their values."""
    return {tidy(text_of(node)), tidy(text_of(node, constants))}


def called(node) -> str:
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def raised():
    """(module, line, variants of the text) of every error of ours, also where need() raises it."""
    for name, tree in modules():
        constants = constants_of(tree)
        for node in ast.walk(tree):
            call = node.exc if isinstance(node, ast.Raise) else node
            if not isinstance(call, ast.Call) or not call.args:
                continue
            own = isinstance(node, ast.Raise) and (
                called(call) in OWN or (name, called(call)) == ("files.py", "error")
            )
            needed = name == "reference/shapes.py" and called(call) == "need"
            if own or needed:
                text = call.args[1 if needed else 0]
                yield name, node.lineno, variants(text, from_others(constants))


def from_others(constants: dict[str, str]) -> dict[str, str]:
    return SHARED | constants


REMEDIES = dict(modules())["remedies.py"]
SHARED = constants_of(REMEDIES)  # GO_ON, which device.py takes from there
RAISED = list(raised())
ALL_TEXTS = {
    text
    for _, tree in modules()
    for node in ast.walk(tree)
    if isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp))
    for text in variants(node, from_others(constants_of(tree)))
}
PIECES = "\n".join(ALL_TEXTS)
WHOLE = ("pyopencl_remedy", "no_device_remedy")
KNOWN = {entry.message for entry in TROUBLES}


def noted():
    """(module, line, variants) of sentences that are printed or noted rather than raised."""
    notes = {
        "doctor.py": ("append",),
        "device.py": ("append", "Trial"),
        "vendors.py": ("append",),
        "cache.py": ("_temporary",),
        "trial.py": ("Trial",),
        "lab/items.py": ("find",),
        "lab/races.py": ("find",),
        "lab/strict.py": ("Verdict",),
    }
    for name, tree in modules():
        constants = from_others(constants_of(tree))
        # The other functions of remedies.py give parts of these two's sentences.
        whole = [f for f in tree.body if getattr(f, "name", "") in WHOLE]
        returns = [n.value for f in whole for n in ast.walk(f) if isinstance(n, ast.Return)]
        for node in ast.walk(tree):
            if name == "remedies.py" and node in returns:
                texts = [node]
            elif isinstance(node, ast.Call) and called(node) in notes.get(name, ()):
                texts = [*node.args, *(e for a in node.args if isinstance(a, ast.List)
                                       for e in a.elts)]  # fmt: skip
            else:
                texts = []
            for text in filter(None, texts):
                said = variants(text, constants)
                if max(map(letters, said)) >= 10:
                    yield name, node.lineno, said


def marks():
    """(module, line, variants) of what begins with ○ or ✗ in the lab."""
    for name, tree in modules():
        if name.startswith("lab/") and not name.startswith("lab/lessons/"):
            for node in ast.walk(tree):
                if isinstance(node, (ast.Constant, ast.JoinedStr)):
                    said = variants(node, constants_of(tree))
                    if any(text.startswith(("○ ", "✗ ")) for text in said):
                        yield name, node.lineno, said


def fits(text: str) -> bool:
    """Whether an entry's message is the text, or says the same with more or fewer values."""
    pieces = [piece.strip() for piece in text.split("…") if letters(piece) > 2]
    return text in KNOWN or any(all(piece in message for piece in pieces) for message in KNOWN)


def test_the_reader_of_the_package_sees_its_messages():
    assert len(RAISED) > 200
    assert {"shapes.py", "program.py"} <= {name.split("/")[-1] for name, _, _ in RAISED}
    texts = set().union(*(said for _, _, said in RAISED))
    assert "… has no room for … MiB of parameters; use a smaller model." in texts
    assert "linear: x …, w … and b … do not fit; they must be (..., K), (K, N) and (N,)." in texts


@pytest.mark.parametrize("name", sorted({name for name, _, _ in RAISED}))
def test_every_raised_message_has_an_entry(name):
    if name.startswith("lab/lessons/lesson_"):
        pytest.skip("the inner workings of a lesson")
    missing = [
        f"{name}:{line} {sorted(said)[0]}"
        for module, line, said in RAISED
        if module == name and not said & KNOWN and not {(name, s) for s in said} & set(ELSEWHERE)
    ]
    assert not missing, "add these to llmcl/lab/troubles:\n" + "\n".join(missing)


def test_every_exception_is_still_needed():
    used = {(name, text) for name, _, said in RAISED for text in said}
    assert set(ELSEWHERE) <= used
    assert COMPOSED <= KNOWN


def test_every_note_of_the_device_and_of_a_run_has_an_entry():
    found = list(noted())
    assert len(found) > 25
    missing = [f"{n}:{line} {said}" for n, line, said in found if not any(map(fits, said))]
    assert not missing, "\n".join(missing)


def test_every_mark_of_the_lab_has_an_entry():
    found = list(marks())
    assert len(found) > 8
    missing = [f"{n}:{line} {said}" for n, line, said in found if not any(map(fits, said))]
    assert not missing, "\n".join(missing)


# ---- the entries ----


@pytest.mark.parametrize("area", AREAS)
def test_every_entry_of_ours_still_has_its_message(area):
    for entry in AREAS[area]:
        if entry.kind == "raised" and entry.message not in COMPOSED:
            assert entry.message in ALL_TEXTS, entry.message
        elif entry.kind in ("raised", "printed"):
            for piece in re.split(r"…|✗|○|WRONG|: |, ", entry.message):
                assert piece.strip(" ,;.[]") in PIECES, (entry.message, piece)


def test_no_message_has_two_entries():
    seen = [plain(entry.message).rstrip(".") for entry in TROUBLES]
    twice = {message for message in seen if seen.count(message) > 1}
    assert not twice


@pytest.mark.parametrize("entry", TROUBLES, ids=lambda entry: entry.message[:40])
def test_an_entry_says_more_than_its_message(entry):
    assert entry.kind in KINDS
    assert entry.message == tidy(entry.message)
    for text in (entry.cause, entry.cure):
        assert text == " ".join(text.split()) and text[-1] in ".?" and len(text) < 320, text
        assert text not in entry.message
        assert text.count("`") % 2 == 0
        assert "/tmp" not in text and "!" not in re.sub("`[^`]*`", "", text)


def test_every_area_stays_readable():
    for area in AREAS:
        path = PACKAGE / "lab" / "troubles" / f"{area}.py"
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 300, area


# ---- the search ----


@pytest.mark.parametrize("entry", TROUBLES, ids=lambda entry: entry.message[:40])
def test_a_message_finds_its_entry(entry):
    values = iter("kappa (3, 5) 'zeta' 17 /a/b.gguf 0.5 omega 4096 rho tau".split() * 3)
    message = re.sub("…", lambda _: next(values), entry.message)
    found, exact = troubles._search.find(f"SomeError: {message}\n(in line 3 of the cell)")
    if letters(entry.message) >= LEAST_LETTERS:
        assert exact
        assert entry in found[:3] if entry.wraps else found[0] == entry, found[0].message


def first(message) -> str:
    found, _ = troubles._search.find(str(message))
    return found[0].message if found else ""


def provoke():
    """Real errors, each with a piece of the entry that belongs to it."""
    engine, bpe = Engine(), ByteBPE([])
    x = np.ones((3, 5))
    config = Config(bpe.vocab_size, d_model=32, n_heads=2, n_layers=1, d_ff=64)
    return {
        "do not fit; … must equal": lambda: engine.matmul(x, x),
        "gamma … and beta": lambda: engine.layer_norm(x, np.ones(3), np.ones(5)),
        "is outside the vocabulary": lambda: engine.embedding(np.array([[9]]), x, x),
        "no target counts": lambda: engine.cross_entropy(x, np.full(3, -1)),
        "cannot be computed with": lambda: engine.from_host(["a"]),
        "equal heads; choose": lambda: Config(d_model=32, n_heads=3),
        "a schedule of rate": lambda: Schedule(0.0, 10),
        "… does not exist": lambda: data.read_sentences("no such file.txt"),
        "there are 0 sentences": lambda: data.pretrain_rows([], bpe),
        "a batch of 0 rows": lambda: data.batch([], 0),
        "pieces of … characters": lambda: data.cut_documents(["a"], 0),
        "different documents cannot": lambda: data.split_documents(["a"]),
        "a tokenizer reads text": lambda: bpe.encode(b"a"),
        "put the one text in a list": lambda: ByteBPE.train("text", 300),
        "needs 257": lambda: ByteBPE.train(["text"], 100),
        "would drop unknown words": lambda: WordDictionary.train(["a b"]).merges,
        "outside the vocabulary of … tokens": lambda: bpe.decode([999]),
        "dtype is …": lambda: write_gguf("x.gguf", config, {}, bpe, "Q4"),
        "the tensors are not those": lambda: write_gguf("x.gguf", config, {}, bpe, "F32"),
        "… cannot be read: …": lambda: read_gguf("no such file.gguf"),
        "above its bound": lambda: lab.check("softmax", x, x + 1, 1e-6),
        "no work-item is running": lambda: lab.get_global_id(0),
        "there is no lesson": lambda: lab.quiz("99.q1", "A"),
        "has no answer": lambda: lab.quiz("00.q1", "Z"),
        "there is no kernels/….cl": lambda: lab.show_kernel("nothing", "nothing"),
        "a picture needs a text": lambda: lab.figure(" "),
        "no area … of troubles": lambda: lab.show_troubles("weather"),
        "No device is called|No OpenCL driver|No OpenCL device": no_such_device,
    }


def no_such_device():
    pytest.importorskip("pyopencl")
    from llmcl.device import choose

    choose("abacus")


@pytest.mark.parametrize("piece", provoke())
def test_a_real_error_finds_its_entry(piece):
    with pytest.raises(LlmclError) as caught:
        provoke()[piece]()
    assert any(part in first(caught.value) for part in piece.split("|")), first(caught.value)


def test_the_example_of_the_notebook_is_printed_with_cause_and_cure(capsys):
    with pytest.raises(LlmclError) as caught:
        Engine().matmul(np.ones((3, 5)), np.ones((3, 5)))
    lab.trouble(caught.value)
    out = capsys.readouterr().out
    assert out.startswith("matmul: (…, …) and (…, …) do not fit; … must equal ….\n  why: ")
    assert "\n  do:  " in out and max(map(len, out.splitlines())) <= troubles.WIDTH


def test_the_inner_message_comes_before_the_one_around_it(tmp_path):
    (tmp_path / "text.gguf").write_text("no model", encoding="utf-8")
    with pytest.raises(GgufError) as caught:
        read_gguf(tmp_path / "text.gguf")
    found, exact = troubles._search.find(str(caught.value))
    assert exact and found[0].message.startswith("it does not begin as a GGUF file does")
    assert found[1].message == "… is no file that llmcl can use: …."


@pytest.mark.parametrize(
    ("part", "entry"),
    [
        ("has no room for", "… has no room for … MiB"),
        ("no room for 12.5 MiB more (it has 2048 MiB", "… has no room for … MiB more"),
        ("stopped being a number", "the loss (…) or the gradient's norm"),
        ("Wrong Number of Tensors", "wrong number of tensors"),
        ("kernel died", "The kernel died"),
        ("widgets do not show", "A slider or a button does not show"),
        ("the loss is nan", "the loss (…) or the gradient's norm"),
        ("nothing happens", "Nothing happens when I press Run"),
        ("wrong numer of tensors; expcted 28, got 29", "wrong number of tensors"),
        ("kernal dies", "The kernel died"),
        ("loss = nan after step 120", "the loss (…) or the gradient's norm"),
        ("my nvidia gpu is not found", "My GPU is not found"),
        ("the model does not stop talking", "The answer is right, and then the model"),
        ("clEnqueueNDRangeKernel failed: OUT_OF_RESOURCES", "OUT_OF_RESOURCES"),
        ("[Errno 98] Address already\nin use", "Address already in use"),
        ("zsh: command not found: lms", "command not found"),
        ("why does ollama refuse my file", "Ollama or LM Studio refuse"),
        ("model answers nonsense", "The model answers nonsense"),
        ("make: command not found", "make: command not found"),
        ("'cp949' codec can't decode byte 0xec in position 0", "codec can't decode byte"),
        ("tensor 'a' has wrong shape; expected     32,    300, got    300", "tensor '…' has"),
        ("✗ softmax: at (2, 1) you have 0.0619, expected 0.3766", "✗ …: at … you have"),
        ("○ softmax: not written yet; the lesson goes on with the reference", "○ …: not … yet"),
    ],
)  # fmt: skip
def test_a_part_of_a_message_is_enough(part, entry):
    assert first(part).startswith(entry), first(part)


@pytest.mark.parametrize(
    "text", ["", "   ", "a", "The zebra juggles xylophones.", "42", "Traceback"]
)
def test_what_nobody_knows_is_said_to_be_unknown(text, capsys):
    lab.trouble(text)
    assert capsys.readouterr().out.startswith("Nothing like it is known here.")


def test_a_part_with_values_in_it_belongs_to_its_message_alone(capsys):
    lab.trouble("wrong shape; expected 32, 300")
    out = capsys.readouterr().out
    assert out.startswith("tensor '…' has wrong shape") and out.count("\n  do: ") == 1


def test_at_most_three_are_printed(capsys):
    lab.trouble("has the shape")
    assert 1 <= capsys.readouterr().out.count("\n  do: ") <= 3
    lab.trouble("the model and the tokenizer do not fit the file of tokens")
    out = capsys.readouterr().out
    assert "exactly this; the nearest" in out and out.count("\n  do: ") <= 3


# ---- the tables ----


@pytest.mark.parametrize("area", AREAS)
def test_a_table_holds_every_message_as_it_is_read(area):
    import html

    page = troubles.as_table(AREAS[area])
    bare = html.unescape(re.sub("<[^>]+>", "", page))
    for entry in AREAS[area]:
        if entry.kind == "question":
            assert re.sub("[`*]", "", entry.message) in bare
        else:
            assert entry.message in bare
    assert page.count("<tr>") == page.count("</tr>") == 1 + len(AREAS[area])
    # MathJax would take two dollar signs for a formula, except in code.
    assert "$" not in re.sub("<code>.*?</code>", "", page)


# ---- llama.cpp itself ----

FAULTS = {
    "tensor '…' has wrong shape": {"tensors": {"token_embd.weight": np.transpose}},
    "tensor '…' not found": {"drop": ("blk.1.ffn_down.bias",)},
    "wrong number of tensors": {"tensors": {"more.weight": np.zeros(4, np.float32)}},
    "key not found in model": {"drop": ("gpt2.context_length",)},
    "cannot find tokenizer merges": {"drop": ("tokenizer.ggml.merges",)},
    "cannot find tokenizer vocab": {"drop": ("tokenizer.ggml.tokens",)},
    "unknown model architecture": {"architecture": "tinygpt"},
}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    pytest.importorskip("xllamacpp")
    from gguf_helpers import sharp_weights, small_config, small_tokenizer

    path = tmp_path_factory.mktemp("good") / "good.gguf"
    tokenizer = small_tokenizer()
    config = small_config(tokenizer)
    write_gguf(path, config, sharp_weights(config), tokenizer, "F32")
    return path


def said_by_llama(path) -> str:
    with pytest.raises(GgufError) as caught:
        ask_llama(path, [])
    return str(caught.value)


@pytest.mark.parametrize("piece", FAULTS)
def test_what_llama_cpp_says_finds_its_entry(good, tmp_path, piece):
    from gguf_helpers import rewrite

    said = said_by_llama(rewrite(good, tmp_path / "bad.gguf", **FAULTS[piece]))
    assert first(said).startswith(piece), said


@pytest.mark.parametrize(
    ("end", "piece"),
    [
        (0, "failed to read magic"),
        (3000, "failed to read key-value pairs"),
        (-5000, "data is not within the file bounds"),
    ],
)
def test_a_file_that_is_cut_finds_its_entry(good, tmp_path, end, piece):
    (tmp_path / "cut.gguf").write_bytes(good.read_bytes()[:end])
    said = said_by_llama(tmp_path / "cut.gguf")
    assert first(said).startswith(piece), said


def test_a_file_that_is_none_finds_its_entry(tmp_path):
    pytest.importorskip("xllamacpp")
    (tmp_path / "text.gguf").write_text("no model", encoding="utf-8")
    assert first(said_by_llama(tmp_path / "text.gguf")).startswith("invalid magic characters")
