"""Real llama.cpp, asked through the HTTP server that the package xllamacpp brings.

It runs in a process of its own, because llama.cpp ends the process it is in when it meets some
faults, and because its log, where the warnings are, can be read there whole.
"""

import importlib.util
import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path

from .errors import GgufError

# "0.00.008.103 W llama_context: ...": seconds, level (debug, info, warning, error), text.
LOG_LINE = re.compile(r"[\d.]+ ([DIWE]) +(.*)")


def ask_llama(
    path: str | os.PathLike,
    requests: Sequence[tuple[str, dict]],
    seconds: float = 300.0,
    threads: int = 1,
) -> tuple[list[dict], list[str]]:
    """llama.cpp's answers to (address, body) requests for a GGUF file, and the lines of its log.

    The addresses are those of llama.cpp's server, such as "/tokenize". Raises GgufError if
    xllamacpp is missing, or llama.cpp refuses the file or a request, ends, or takes too long.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise GgufError("xllamacpp is not installed; pip install 'llmcl[verify]' brings llama.cpp.")
    # The child finds llmcl where we did, and nothing in the folder it happens to be started in.
    paths = [str(Path(__file__).resolve().parent.parent), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONSAFEPATH": "1",
        "GGML_NO_BACKTRACE": "1",  # or it starts a debugger, where there is one
    }
    code = "import sys; from llmcl.llama_cpp import serve; serve(sys.argv[1], int(sys.argv[2]))"
    command = [sys.executable, "-c", code, os.path.abspath(path), str(threads)]
    text = json.dumps(list(requests)).encode()
    try:
        child = subprocess.run(command, input=text, capture_output=True, env=env, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise GgufError(f"llama.cpp did not answer for {path} in {seconds:.0f} s.") from None
    log = child.stderr.decode("utf-8", "replace").splitlines()
    if child.returncode:
        # Signals are negative; Windows has large numbers for them.
        how = "refuses" if child.returncode == 1 else "ends its process over"
        raise GgufError(f"llama.cpp {how} {path}: {_reason(log)}.")
    lines = child.stdout.decode("utf-8", "replace").split("\n")
    pairs = zip(lines, requests, strict=False)  # the last line is empty
    return [_body(line, path, address) for line, (address, _) in pairs], log


def serve(path: str, threads: int = 1) -> None:
    """Answers the JSON list of requests on standard input, a line each; for the child process."""
    # Whatever llama.cpp prints belongs to the log; only the answers go to standard output.
    output = os.dup(1)
    os.dup2(2, 1)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.api_keys = [secrets.token_hex(16)]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)
    host, port = server.listening_address.removeprefix("http://").rsplit(":", 1)
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + params.api_keys[0]}

    def ask(method: str, address: str, body: dict) -> bytes:
        connection = HTTPConnection(host, int(port), timeout=600)
        connection.request(method, address, json.dumps(body), headers)
        response = connection.getresponse()
        # JSON has line breaks only between its parts, where a space does as well.
        line = b"%d %s\n" % (response.status, response.read().replace(b"\n", b" "))
        connection.close()
        return line

    # A server that is stopped before its main loop runs waits forever; this answer comes from it.
    ask("GET", "/slots", {})
    with open(output, "wb") as file:
        for address, body in json.loads(sys.stdin.buffer.read()):
            file.write(ask("POST", address, body))


def warnings(log: list[str]) -> list[str] | None:
    """The log's warnings and errors; None if llama.cpp's way of marking them is not found."""
    lines = [match.groups() for match in map(LOG_LINE.match, log) if match]
    return [text for level, text in lines if level in "WE"] if lines else None


def _body(line: str, path: str | os.PathLike, address: str) -> dict:
    status, _, text = line.partition(" ")
    body = json.loads(text)
    if status != "200":
        message = body.get("error", {}).get("message", status)
        raise GgufError(f"llama.cpp refuses {address} for {path}: {message}.")
    return body


def _reason(log: list[str]) -> str:
    """The line that says why llama.cpp gave up: the first error, or else its last word.

    An assertion is no line of the log's form. It may be lost when the process ends on the spot;
    what the log told before that is no reason.
    """
    words = [line for line in log if line.strip() and not LOG_LINE.match(line)]
    lines = (warnings(log) or [])[:1] or words[-1:] or ["it gave no reason"]
    # An assertion begins with the path of the source file on the machine that built it.
    return re.sub(r"^\S*/(?=\S+:\d+: )", "", lines[0]).strip().rstrip(".")
