"""The command as a person meets it: in processes of its own, with pipes, terminals and signals."""

import contextlib
import hashlib
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from gguf_helpers import rewrite

from llmcl.checkpoint import load_checkpoint
from llmcl.cli import build_parser, main
from llmcl.data import read_sentences
from llmcl.gguf_file import read_gguf
from llmcl.pipeline import RUNNING
from llmcl.resources import data_dir

ROOT = Path(__file__).resolve().parent.parent
posix_only = pytest.mark.skipif(os.name != "posix", reason="needs POSIX processes")
COMMANDS = ["doctor", "check", "train", "export", "chat", "verify", "bench"]
SENTENCES = "The sun rises in the east.\nRivers carry water to the sea.\nBees make honey.\n"
DIALOGUES = (
    '{"user": "Hello", "assistant": "Hello, nice to meet you."}\n'
    '{"user": "물은?", "assistant": "얼음은 물보다 가볍습니다."}\n'
)
SMALL = "--vocab-size 330 --d-model 32 --n-heads 2 --n-layers 1 --d-ff 64".split()
SMALL += "--pretrain-steps 12 --tune-steps 8".split()
LEARNS = "--pretrain-steps 90 --tune-steps 90 --pretrain-rate 1e-2 --tune-rate 3e-3".split()


def environment(device="numpy", **variables):
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG"))}
    paths = {"PYTHONPATH": str(ROOT), "LLMCL_DEVICE": device}
    return inherited | paths | {"LC_ALL": "C.UTF-8"} | variables


def start(*arguments, device="numpy", variables=None, **options):
    """The command as a running process."""
    command = [sys.executable, "-m", "llmcl.cli", *map(str, arguments)]
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
               "cwd": ROOT, "env": environment(device, **(variables or {}))} | options  # fmt: skip
    return subprocess.Popen(command, **options)


def run(*arguments, input=None, expect=0, **options):
    """(stdout, stderr) of the command, whose status must be `expect`."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    process = start(*arguments, **options)
    data = input.encode() if isinstance(input, str) else input
    out, err = ((part or b"").decode("utf-8") for part in process.communicate(data, timeout=100))
    assert process.returncode == expect, (process.returncode, out, err)
    assert "Traceback" not in err and "Warning" not in err
    return out, err


def refused(*arguments, **options):
    """The one line on stderr with which the command refuses; nothing is on stdout."""
    out, err = run(*arguments, expect=2, **options)
    assert out == "" and err.count("\n") == 1 and err.startswith("llmcl"), err
    assert len(re.findall(r"[.;:] ", err)) >= 1  # what is wrong, and what to do
    return err


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("글 texts")
    (folder / "sentences.txt").write_text(SENTENCES, encoding="utf-8")
    (folder / "dialogues.jsonl").write_text(DIALOGUES, encoding="utf-8")
    return ["--pretrain", folder / "sentences.txt", "--tune", folder / "dialogues.jsonl"]


@pytest.fixture(scope="module")
def model(texts, tmp_path_factory):
    """The folder of a model that has learned its texts, in a folder with spaces and Hangul."""
    folder = tmp_path_factory.mktemp("model") / "내 모델"
    out, err = run("train", "--out", folder, *texts, *SMALL, *LEARNS, cwd="/")
    assert out == "" and "2 of 2 questions answered" in err.splitlines()[-2]
    assert f"llmcl chat {folder / 'model.gguf'}" in err.splitlines()[-1]
    return folder


@pytest.fixture(scope="module")
def whole(texts, tmp_path_factory):
    """The GGUF of an uninterrupted short run on the OpenCL device, and its metrics."""
    folder = tmp_path_factory.mktemp("whole")
    run("train", "--out", folder, *texts, *SMALL, device="")
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return (folder / "model.gguf").read_bytes(), metrics


# ---- help ----


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    description = text.split("\n\n")[1]
    assert description[0].isupper() and description.rstrip().endswith(".")
    assert len(description.split()) >= 8
    assert "gguf" not in text.replace(".gguf", "") and "numpy on" not in text
    # Every option is explained, and every setting names its default.
    for option in re.findall(r"^  (-\S.*|[A-Za-z]+(?:  .*)?)$", text, re.MULTILINE):
        assert re.search(r" {2,}\S", option.strip()) or f"{option}\n    " in text, option
    if command == "train":
        assert text.count("(default") >= 14


def test_help_of_all(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(re.search(rf"^    {command} ", text, re.MULTILINE) for command in COMMANDS)
    assert "llmcl doctor" in text.split("Start with")[1]


def test_version_and_help_are_quick():
    # What takes time is imported by the command that needs it.
    code = (
        "import sys, llmcl.cli; llmcl.cli.build_parser()\n"
        "slow = {'pyopencl', 'gguf', 'tqdm', 'safetensors', 'regex', 'xllamacpp', 'matplotlib'}\n"
        "print(slow & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.strip() == "set()"
    seconds = []
    for _ in range(3):
        begun = time.perf_counter()
        assert run("--version")[0].startswith("llmcl ")
        seconds.append(time.perf_counter() - begun)
    assert min(seconds) < 2.0  # 0.15 s on a quiet core


# ---- bad arguments ----

BAD_ARGUMENTS = {
    "no command": ([], "COMMAND"),
    "unknown command": (["fly"], "'fly'"),
    "unknown option": (["doctor", "--fast"], "--fast"),
    "no folder": (["train"], "--out"),
    "no number": (["train", "--out", "x", "--seed", "abc"], "'abc' is no whole number"),
    "negative seed": (["train", "--out", "x", "--seed", "-1"], "'-1' is no whole number"),
    "check seed": (["check", "--seed", "1.5"], "'1.5'"),
    "chat seed": (["chat", "x", "--seed", "-3"], "'-3'"),
    "half a step": (["train", "--out", "x", "--tune-steps", "1.5"], "'1.5'"),
    "no rate": (["train", "--out", "x", "--tune-rate", "fast"], "'fast'"),
    "both": (["train", "--out", "x", "--resume", "--restart"], "not allowed with"),
    "no file": (["chat"], "FILE"),
    "no output": (["export", "x"], "--output"),
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_bad_arguments(case, capsys):
    arguments, names = BAD_ARGUMENTS[case]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    shown = capsys.readouterr()
    assert ended.value.code == 2 and shown.out == ""
    assert shown.err.count("\n") == 1 and names in shown.err and "--help" in shown.err


def test_defaults_are_the_settings():
    options = build_parser().parse_args(["train", "--out", "x"])
    from llmcl.settings import Settings

    assert all(getattr(options, name) == value for name, value in Settings().to_dict().items())


# ---- train: refusals ----


def test_refusals_of_train(model, texts, tmp_path):
    before = contents(model)
    bad = tmp_path / "나쁜.txt"
    bad.write_bytes(b"\xc7\xd1\n")
    for more, words in {
        ("--n-heads", "3"): "d_model 32 cannot be split into n_heads 3 equal heads; choose",
        ("--dtype", "Q4"): "dtype 'Q4' is unknown; choose F32, F16, Q8_0",
        ("--context-length", "64"): "context_length 64 .* train with 256",
        ("--pretrain-steps", "0"): "pretrain_steps is 0; choose",
        ("--device", "nosuch"): "No device is called 'nosuch'; give a number or a part",
        ("--device", "99"): "No device is called '99'; give",
        ("--pretrain", "없다.txt"): "없다.txt does not exist; check",
        ("--pretrain", bad): "나쁜.txt, line 1, byte 1: 0xC7 is not UTF-8; save",
        ("--tune", texts[1]): "sentences.txt, line 1, column 1: .*; write",
        ("--d-model", "1000000", "--n-heads", "1"): "[mM]emory|room|allocate.*; choose a smaller",
    }.items():
        assert re.search(words, refused("train", "--out", model, *texts, *SMALL, *more))
    assert contents(model) == before


def test_folders_that_cannot_be(texts, model):
    before = contents(model)
    for place in (model / "model.gguf" / "dir", model / "model.gguf", "/proc/nope"):
        err = refused("train", "--out", place, *texts, *SMALL)
        assert f"the folder {place} cannot be written" in err and "choose another folder" in err
    assert contents(model) == before


@posix_only
def test_file_size_limit_stands_for_a_full_disk(texts, model):
    import resource

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    before = contents(model)
    out, err = run("train", "--out", model, *texts, *SMALL, preexec_fn=limit, expect=2)
    last = err.splitlines()[-1]
    assert out == "" and last.startswith(f"llmcl: cannot write {model / 'pretrain.safetensors'}")
    assert "make room; what was there before is unchanged." in last
    assert contents(model) == before
    target = model / "other.gguf"
    target.write_bytes(b"old")
    command = "export", model / "tune.safetensors", "-o", target, "--dtype", "F32"
    assert "cannot write" in refused(*command, preexec_fn=limit)
    assert target.read_bytes() == b"old"
    target.unlink()
    assert contents(model) == before


@pytest.mark.parametrize("device", ["numpy", ""])
def test_absurd_rate(texts, tmp_path, device):
    out, err = run("train", "--out", tmp_path, *texts, *SMALL, "--tune-rate", "1e30",
                   device=device, expect=2)  # fmt: skip
    lines = err.splitlines()
    assert out == "" and len(lines) == 3, err  # the device, what pretraining gave, the error
    assert re.search(r"tune_without_mixing: .* at step 2, first in .*token_embd.weight", lines[2])
    assert "no weight was changed" in lines[2] and "are kept" in lines[2]
    assert load_checkpoint(tmp_path / RUNNING).state["stage"] == "pretrain"


@posix_only
def test_two_runs_in_one_folder(texts, tmp_path):
    endless = [*SMALL, "--pretrain-steps", "100000"]
    first = start("train", "--out", tmp_path, *texts, *endless)
    try:
        wait_for(tmp_path / ".lock", first)
        time.sleep(0.1)
        err = refused("train", "--out", tmp_path, *texts, *endless)
        assert f"another run is writing to {tmp_path}; wait for it, or choose another folder" in err
    finally:
        first.kill()
        first.communicate()
    run("train", "--out", tmp_path, *texts, *SMALL, "--restart")  # a dead run's lock does not hold


# ---- interrupted ----


def wait_for(path, process, seconds=60):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.005)


@posix_only
def test_interrupted_twice_and_resumed(texts, tmp_path, whole):
    command = ["train", "--out", tmp_path, *texts, *SMALL]
    for awaited in (".lock", "pretrain.safetensors"):
        process = start(*command, "--resume", device="")
        wait_for(tmp_path / awaited, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        text = err.decode()
        assert process.returncode == 130 and out == b"" and "Traceback" not in text
        assert not (tmp_path / "model.gguf").exists()
        if awaited != ".lock":  # the first may come before the first step
            assert re.search(r"llmcl: stopped at step \d+ of \w+; .* --resume goes on", text)
            assert "Stopping after this step; Ctrl-C once more" in text
            run("chat", tmp_path / RUNNING, input="Hello\n")
            assert "--resume" in refused(*command, device="")
    run(*command, "--resume", device="")
    assert (tmp_path / "model.gguf").read_bytes() == whole[0]
    assert (
        json.loads((tmp_path / "metrics.json").read_text())["tune"]["loss"]
        == (whole[1]["tune"]["loss"])
    )


@posix_only
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_a_random_moment_and_resumed(texts, tmp_path, whole, seed):
    command = ["train", "--out", tmp_path, *texts, *SMALL, "--resume"]
    for _ in range(2):
        process = start(*command, device="", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(random.Random(seed).uniform(0.5, 1.5))
        process.kill()
        process.wait()
        for path in tmp_path.glob("*.safetensors"):
            load_checkpoint(path)  # whatever there is, is whole
    run(*command, device="")
    assert (tmp_path / "model.gguf").read_bytes() == whole[0]


@posix_only
def test_second_ctrl_c_stops_at_once(texts, tmp_path):
    endless = [*SMALL, "--pretrain-steps", "100000", "--d-model", "256", "--d-ff", "2048"]
    lines = tmp_path / "lines.txt"  # a large step, so that the second signal comes within it
    lines.write_text("\n".join(f"{'word ' * 200}{n}" for n in range(64)), encoding="utf-8")
    out = tmp_path / "out"
    process = start("train", "--out", out, *texts, *endless, "--pretrain", lines)
    wait_for(out / ".lock", process)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    assert b"Ctrl-C once more" in read_until(process.stderr.fileno(), b"once more stops at once.\n")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and err.decode().splitlines()[-1].startswith("llmcl: stopped")
    assert b"Traceback" not in err and not list(out.glob("*.tmp"))


@posix_only
@pytest.mark.parametrize(
    "module", [b"llmcl.settings", b"llmcl.reference", b"pyopencl", b"llmcl.ops"]
)
@pytest.mark.parametrize("command", ["chat", "train"])
def test_ctrl_c_while_loading(command, module, model, texts, tmp_path):
    arguments = {"chat": [model / "model.gguf"], "train": ["--out", tmp_path, *texts, *SMALL]}
    # Python tells on stderr of every module that it has loaded.
    told = {"PYTHONPROFILEIMPORTTIME": "1"}
    process = start(command, *arguments[command], device="", variables=told, stdin=subprocess.PIPE)
    read_until(process.stderr.fileno(), b" " + module + b"\n")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, (out, err)
    assert b"llmcl: stopped" in err and b"Traceback" not in err and out == b""


# ---- chat ----


def test_answers_from_a_pipe(model):
    questions = "Hello\n\n  \n물은?\r\nHello"
    for name in ("model.gguf", "tune.safetensors"):
        out, err = run("chat", model / name, input=questions, device="")
        assert out.splitlines() == [
            "Hello, nice to meet you.", "얼음은 물보다 가볍습니다.", "Hello, nice to meet you."
        ]  # fmt: skip
        assert err == ""
    assert run("chat", model / "model.gguf", input="") == ("", "")


def test_sampling_repeats_with_its_seed(model):
    def ask(*options):
        return run("chat", model / "model.gguf", *options, input="What\nWhy\nHello\n")[0]

    hot = "--temperature", "2.5"
    assert ask(*hot, "--seed", "1") == ask(*hot, "--seed", "1") != ask(*hot, "--seed", "2")
    greedy = ask()
    assert ask(*hot, "--top-k", "1") == ask(*hot, "--top-p", "1e-9") == greedy
    assert ask("--temperature", "1e-300") == greedy


BAD_SAMPLING = {
    ("--temperature", "-1"): "temperature -1.0",
    ("--temperature", "nan"): "temperature nan",
    ("--temperature", "inf"): "temperature inf",
    ("--top-k", "-1"): "top_k -1",
    ("--top-p", "0"): "top_p 0.0",
    ("--top-p", "1.5"): "top_p 1.5",
}


def test_bad_sampling(model, capsys):
    for options, words in BAD_SAMPLING.items():
        assert main(["chat", str(model / "model.gguf"), "--device", "numpy", *options]) == 2
        err = capsys.readouterr().err
        assert words in err and "choose" in err and err.count("\n") == 1


def test_question_longer_than_the_context(model):
    out, err = run("chat", model / "model.gguf", input="Hello\n" + "Why " * 400 + "\n", expect=2)
    assert out == "Hello, nice to meet you.\n"
    assert re.fullmatch(
        r"llmcl: \d+ tokens do not fit into this model's context of 256; give .*\n", err
    )


def test_question_that_is_not_utf8(model):
    out, err = run("chat", model / "model.gguf", input=b"Hello\n\xc7\xd1\n", expect=2)
    assert out == "Hello, nice to meet you.\n"
    assert "bytes that are not utf-8" in err and err.count("\n") == 1


@pytest.mark.parametrize("coerce", [{}, {"PYTHONCOERCECLOCALE": "0"}])
def test_locale_of_ascii(model, texts, tmp_path, coerce):
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0"} | coerce
    out, _ = run("chat", model / "model.gguf", input="물은?\n", variables=plain)
    assert out == "얼음은 물보다 가볍습니다.\n"
    _, err = run("train", "--out", tmp_path / "한글", *texts, *SMALL, variables=plain)
    assert str(tmp_path / "한글") in err
    other, _ = run("train", "--help", variables=plain)
    assert "Ctrl-C" in other
    run("train", "--out", tmp_path / "other", *texts, *SMALL)
    files = [(tmp_path / name / "model.gguf").read_bytes() for name in ("한글", "other")]
    assert files[0] == files[1]


def test_terminal_of_another_encoding(model):
    korean = {"PYTHONIOENCODING": "euc_kr"}
    arguments = [sys.executable, "-m", "llmcl.cli", "chat", model / "model.gguf"]
    done = subprocess.run(
        arguments, input="물은?\n".encode("euc_kr"), capture_output=True, cwd=ROOT,
        env=environment(**korean), check=True,
    )  # fmt: skip
    assert done.stdout.decode("euc_kr") == "얼음은 물보다 가볍습니다.\n"
    latin = {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(
        [*arguments, "--temperature", "0"], input=b"Hello\n", capture_output=True, cwd=ROOT,
        env=environment(**latin), check=True,
    )  # fmt: skip
    assert done.stdout == b"Hello, nice to meet you.\n"
    # What the terminal cannot show is written as an escape and does not end the talk.
    process = start("doctor", variables=latin, cwd=model)
    out, err = process.communicate()
    assert process.returncode == 0 and b"Traceback" not in err


def test_damaged_and_foreign_files(model, tmp_path):
    checkpoint, gguf = model / "tune.safetensors", model / "model.gguf"
    made = {
        "empty": b"",
        "text": b"hello",
        "short.safetensors": checkpoint.read_bytes()[:-100],
        "short.gguf": gguf.read_bytes()[:-100],
        "head.gguf": gguf.read_bytes()[:4],
    }
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    rewrite(gguf, tmp_path / "other.gguf", architecture="llama")
    for name in (*made, "other.gguf", "none.gguf", "."):
        assert str(tmp_path / name) in refused("chat", tmp_path / name)
    assert "'llama'" in refused("chat", tmp_path / "other.gguf")
    assert "'llama'" in refused("verify", tmp_path / "other.gguf")
    assert "give a .gguf file" in refused("verify", checkpoint)
    assert "give another checkpoint" in refused("export", gguf, "-o", tmp_path / "x.gguf")
    assert not (tmp_path / "x.gguf").exists()


# ---- a terminal ----


def read_until(descriptor, wanted, seconds=30):
    data, deadline = b"", time.monotonic() + seconds
    while wanted not in data:
        ready, _, _ = select.select([descriptor], [], [], deadline - time.monotonic())
        assert ready, data
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # Linux says so when the other side is closed
            piece = b""
        assert piece, data
        data += piece
    return data


@contextlib.contextmanager
def at_a_terminal(*arguments, **options):
    """(process, descriptor) of the command at a terminal of its own."""
    import termios

    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    process = start(
        *arguments, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, **options
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@posix_only
@pytest.mark.parametrize("end", [b"\n", b"\x04"])
def test_talk_at_a_terminal(model, end):
    with at_a_terminal("chat", model / "model.gguf") as (process, terminal):
        read_until(terminal, b"User: ")
        os.write(terminal, b"Hello\n")
        shown = read_until(terminal, b"User: ")
        assert b"Assistant: Hello, nice to meet you.\r\n" in shown
        os.write(terminal, b"so " * 300 + b"\n")  # explained, and the talk goes on
        assert b"do not fit" in read_until(terminal, b"User: ")
        os.write(terminal, "물은?\n".encode())
        assert "Assistant: 얼음은 물보다 가볍습니다.".encode() in read_until(terminal, b"User: ")
        os.write(terminal, end)
        assert process.wait(30) == 0


@posix_only
def test_ctrl_c_at_a_terminal(model):
    with at_a_terminal("chat", model / "model.gguf") as (process, terminal):
        read_until(terminal, b"User: ")
        time.sleep(0.3)  # Python waits for the keyboard only after it has shown the prompt
        process.send_signal(signal.SIGINT)
        assert b"Traceback" not in read_until(terminal, b"llmcl: stopped.")
        assert process.wait(30) == 130


@posix_only
def test_progress_bar_at_a_terminal_only(texts, tmp_path):
    command = ["train", "--out", tmp_path, *texts, *SMALL]
    with at_a_terminal(*command) as (process, terminal):
        shown = read_until(terminal, b"Talk to it")
        assert process.wait(30) == 0
    assert b"pretrain: 100%" in shown and b"loss=" in shown
    with at_a_terminal(*command, "--quiet") as (process, terminal):
        assert b"%" not in read_until(terminal, b"Talk to it")
        assert process.wait(30) == 0
    _, err = run(*command)
    assert "%" not in err and len(err.splitlines()) == 5


# ---- streams that are closed ----


@posix_only
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_streams(model, texts, tmp_path, closed):
    shell = " ".join(f"{number}>&-" for number in closed)
    for command in (
        ["chat", model / "model.gguf"],
        ["train", "--out", tmp_path, *texts, *SMALL],
        ["doctor", "--json"],
    ):
        arguments = [sys.executable, "-m", "llmcl.cli", *map(str, command)]
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {shell}', "sh", *arguments], stdin=subprocess.DEVNULL,
            capture_output=True, cwd=ROOT, env=environment(),
        )  # fmt: skip
        assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr
    assert read_gguf(tmp_path / "model.gguf").config.d_model == 32
    load_checkpoint(tmp_path / "tune.safetensors")


@posix_only
@pytest.mark.parametrize("command", ["doctor", "--version", "train --help", "check", "chat"])
def test_reader_that_went_away(command, model):
    """As in `llmcl doctor | true`: whatever is written meets a closed pipe."""
    reading, writing = os.pipe()
    os.close(reading)
    arguments = command.split() + (["model.gguf"] if command == "chat" else [])
    env = environment()
    env.pop("PYTHONUNBUFFERED", None)  # a buffer is what most people have
    _, err = run(*arguments, input="Hello\n", cwd=model, stdout=writing, expect=141, env=env)
    assert err == ""
    os.close(writing)


@posix_only
def test_first_line_of_many_answers(model):
    """As in `llmcl chat FILE < QUESTIONS | head -n 1`."""
    process = start("chat", model / "model.gguf", stdin=subprocess.PIPE)
    process.stdin.write(b"Hello\n" * 3000)
    process.stdin.close()
    assert process.stdout.readline() == b"Hello, nice to meet you.\n"
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait(60) == 141
    process.stderr.close()


@posix_only
def test_progress_that_nobody_reads(texts, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    run("train", "--out", tmp_path, *texts, *SMALL, stdout=writing, stderr=writing, expect=141)
    os.close(writing)
    run("train", "--out", tmp_path, *texts, *SMALL, "--resume")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_on_a_full_disk(model):
    for command in (["doctor", "--json"], ["chat", model / "model.gguf"]):
        with open("/dev/full", "w") as full:
            _, err = run(*command, input="Hello\n", stdout=full, expect=2)
        assert err.count("\n") == 1 and "No space left on device" in err


# ---- doctor, check, export, verify ----


def test_doctor():
    report = json.loads(run("doctor", "--json", device="")[0])
    assert report["chosen"] is not None and report["devices"]
    assert report["devices"][0]["name"] in run("doctor", device="")[0]


def test_check_on_numpy():
    out, err = run("check", "--seed", "3")
    lines = out.splitlines()
    assert "NumPy" in lines[0] and lines[-1] == "every kernel agrees with NumPy" and err == ""
    assert len(lines) > 15


@pytest.mark.parametrize("dtype", ["F32", "F16", "Q8_0"])
def test_export(model, tmp_path, dtype, capsys):
    target = tmp_path / f"내 {dtype}.gguf"
    command = ["export", str(model / "tune.safetensors"), "-o", str(target), "--dtype", dtype]
    assert main(command) == 0
    assert f"{target}: {target.stat().st_size:,} bytes, {dtype}" in capsys.readouterr().out
    assert read_gguf(target).dtype == dtype
    if dtype == "Q8_0":
        assert target.read_bytes() == (model / "model.gguf").read_bytes()


def test_export_refuses(model, tmp_path, capsys):
    before, checkpoint = contents(model), str(model / "tune.safetensors")
    for target, more, words in (
        (checkpoint, [], "is the checkpoint itself; give another name"),
        (model, [], "cannot write"),
        (tmp_path / "none" / "x.gguf", [], "cannot write .*choose another folder"),
        (model / "model.gguf", ["--dtype", "Q4_0"], "dtype is 'Q4_0'; choose one of F32"),
    ):
        assert main(["export", checkpoint, "-o", str(target), *more]) == 2
        err = capsys.readouterr().err
        assert re.search(words, err) and err.count("\n") == 1
    assert contents(model) == before


def test_verify(model, texts):
    pytest.importorskip("xllamacpp")
    out, _ = run("verify", model / "model.gguf", *texts, cwd="/")
    assert "WRONG" not in out and out.count("right") == 10
    assert re.search(r"right  chat  +2 of 2  2 as in the data", out)


def test_verify_finds_a_silent_fault(model, texts, tmp_path):
    pytest.importorskip("xllamacpp")
    bad = tmp_path / "bad.gguf"
    exchanged = {"token_embd.weight": lambda a: a[[1, 0, *range(2, len(a))]]}
    rewrite(model / "model.gguf", bad, tensors=exchanged)
    out, _ = run("verify", bad, *texts, expect=1)
    assert "WRONG  answer kept in the file" in out


def test_no_terminal_and_another_folder(texts, tmp_path):
    """Nothing is read from the standard input or the folder that the command is started in."""
    (tmp_path / "numpy.py").write_text("raise SystemExit('the wrong file')", encoding="utf-8")
    code = "import sys; sys.path.pop(0); from llmcl.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "train", "--out", "o", *map(str, texts), *SMALL],
        cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
        start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "o" / "model.gguf").exists()
    assert len(read_sentences(data_dir() / "pretrain.txt")) == 25
