"""The server that `make lab` starts: on this machine's own address only, and closed without token.

What is started is the command that the Makefile prints, with another port and no browser.
"""

import http.client
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 60  # seconds until the server answers


@pytest.fixture(scope="module")
def command():
    """The words of the command line of `make lab`, for a free port."""
    pytest.importorskip("jupyterlab")
    if os.name != "posix" or not shutil.which("make"):
        pytest.skip("needs make")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    make = ["make", "-n", "lab", f"ARGS=--no-browser --port {port} --ServerApp.port_retries=0"]
    # Under `make test` the inner make would say where it is.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    printed = subprocess.run(
        make, cwd=ROOT, env=env, capture_output=True, encoding="utf-8", check=True
    )
    # Before it stands what sets up the environment, if that is not done yet.
    line = printed.stdout.replace("\\\n", "")
    words = shlex.split(line[line.rindex(" -m jupyterlab") :])
    assert words[:2] == ["-m", "jupyterlab"] and str(port) in words
    return [sys.executable, *words], port


@pytest.fixture(scope="module")
def server(command, tmp_path_factory):
    """(port, token) of the running server; it is ended afterwards."""
    words, port = command
    place = tmp_path_factory.mktemp("jupyter")
    # Nobody's own settings, so that what is seen is what we start.
    names = "JUPYTER_CONFIG_DIR JUPYTER_DATA_DIR JUPYTER_RUNTIME_DIR IPYTHONDIR".split()
    env = os.environ | {name: str(place / name) for name in names} | {"JUPYTER_NO_CONFIG": "1"}
    env.pop("JUPYTER_TOKEN", None)
    with open(place / "log", "wb") as log:
        process = subprocess.Popen(words, cwd=ROOT, env=env, stdout=log, stderr=log)
        try:
            yield port, waited_for(place, process)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def waited_for(place: Path, process) -> str:
    """The token, from the file that the server writes when it is ready."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        for path in place.glob("JUPYTER_RUNTIME_DIR/jpserver-*.json"):
            text = path.read_text(encoding="utf-8")
            if text.endswith("}"):
                return json.loads(text)["token"]
        time.sleep(0.1)
    pytest.fail((place / "log").read_text(encoding="utf-8", errors="replace")[-2000:])


def asked(port, method, path, token=None):
    """(status, place that it sends to) of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        headers = {"Authorization": f"token {token}"} if token else {}
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        response.read()
        return response.status, response.headers.get("Location", "")
    finally:
        connection.close()


def listening(port) -> set[str]:
    """The addresses on which something listens at a port, as Linux writes them."""
    found = set()
    for name in ("tcp", "tcp6"):
        path = Path("/proc/net") / name
        for line in path.read_text(encoding="ascii").splitlines()[1:] if path.exists() else []:
            _, local, _, state = line.split()[:4]
            address, _, number = local.partition(":")
            if state == "0A" and int(number, 16) == port:
                found.add(address)
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/net")
def test_it_listens_on_this_machine_only(server):
    port, _ = server
    four, six = "0100007F", "00000000000000000000000001000000"  # 127.0.0.1 and ::1
    assert listening(port) and listening(port) <= {four, six}
    assert listening(port) & {four}


def test_other_addresses_of_the_machine_are_refused(server):
    port, _ = server
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; it only chooses an address
        except OSError:
            pytest.skip("this machine has no other address")
        address = probe.getsockname()[0]
    if address.startswith("127."):
        pytest.skip("this machine has no other address")
    with pytest.raises(OSError), socket.create_connection((address, port), timeout=5):
        pass


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/contents"),
        ("GET", "/api/kernels"),
        ("POST", "/api/kernels"),
        ("PUT", "/api/contents/new.txt"),
        ("DELETE", "/api/contents/README.md"),
        ("GET", "/files/README.md"),
        ("POST", "/api/shutdown"),
    ],
)
@pytest.mark.parametrize("token", [None, "wrong"])
def test_without_the_token_nothing_is_given(server, method, path, token):
    status, to = asked(server[0], method, path, token)
    assert status in (401, 403) or (status == 302 and to.startswith("/login")), (status, to)
    assert (ROOT / "README.md").is_file() and not (ROOT / "new.txt").exists()


def test_with_the_token_it_answers(server):
    port, token = server
    assert re.fullmatch(r"[0-9a-f]{32,}", token)
    assert asked(port, "GET", "/api/contents?content=0", token)[0] == 200
    assert asked(port, "GET", "/files/README.md", token)[0] == 200
    status, to = asked(port, "GET", "/lab")
    assert status == 302 and to.startswith("/login")


def test_the_command_loosens_nothing(command):
    words = " ".join(command[0])
    for option in ("token", "password", "ip=", "allow_origin", "allow_remote", "disable_check"):
        assert option not in words
