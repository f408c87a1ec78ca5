"""The server of `make lab`, started as the Makefile starts it, with settings of nobody's own."""

import http.client
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 120  # seconds until the server answers


def lab_command(*more: str) -> tuple[list[str], int]:
    """The words of the command line of `make lab`, for a free port, and the port."""
    pytest.importorskip("jupyterlab")
    if os.name != "posix" or not shutil.which("make"):
        pytest.skip("needs make")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    args = " ".join([f"--no-browser --port {port} --ServerApp.port_retries=0", *more])
    # Under `make test` the inner make would say where it is.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    printed = subprocess.run(
        ["make", "-n", "lab", f"ARGS={args}"],
        cwd=ROOT, env=env, capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    # Before it stands what sets up the environment, if that is not done yet.
    line = printed.stdout.replace("\\\n", "")
    words = shlex.split(line[line.rindex(" -m jupyterlab") :])
    assert words[:2] == ["-m", "jupyterlab"] and str(port) in words
    return [sys.executable, *words], port


@contextmanager
def lab_server(words: list[str], cwd: Path, place: Path, **settings: str) -> Iterator[str]:
    """Runs the server in the folder cwd, and gives its token.

    place: an empty folder for its settings, its files and its log. settings: more of the
    environment.
    """
    names = "JUPYTER_CONFIG_DIR JUPYTER_DATA_DIR JUPYTER_RUNTIME_DIR IPYTHONDIR".split()
    env = os.environ | {name: str(place / name) for name in names} | {"JUPYTER_NO_CONFIG": "1"}
    env.pop("JUPYTER_TOKEN", None)
    with open(place / "log", "wb") as log:
        process = subprocess.Popen(words, cwd=cwd, env=env | settings, stdout=log, stderr=log)
        try:
            yield _waited_for(place, process)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _waited_for(place: Path, process) -> str:
    """The token, from the file that the server writes when it is ready."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        for path in place.glob("JUPYTER_RUNTIME_DIR/jpserver-*.json"):
            text = path.read_text(encoding="utf-8")
            if text.endswith("}"):
                return json.loads(text)["token"]
        time.sleep(0.1)
    pytest.fail((place / "log").read_text(encoding="utf-8", errors="replace")[-2000:])


def asked(port: int, method: str, path: str, token: str | None = None) -> tuple[int, str, bytes]:
    """(status, place that it sends to, body) of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        headers = {"Authorization": f"token {token}"} if token else {}
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.headers.get("Location", ""), response.read()
    finally:
        connection.close()
