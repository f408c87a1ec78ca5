"""The server that `make lab` starts: on this machine's own address only, and closed without token.

What is started is the command that the Makefile prints, with another port and no browser.
"""

import re
import socket
import sys
from pathlib import Path

import pytest

from lab_server import ROOT, asked, lab_command, lab_server


@pytest.fixture(scope="module")
def command():
    """The words of the command line of `make lab`, for a free port."""
    return lab_command()


@pytest.fixture(scope="module")
def server(command, tmp_path_factory):
    """(port, token) of the running server; it is ended afterwards."""
    words, port = command
    with lab_server(words, ROOT, tmp_path_factory.mktemp("jupyter")) as token:
        yield port, token


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
    status, to, _ = asked(server[0], method, path, token)
    assert status in (401, 403) or (status == 302 and to.startswith("/login")), (status, to)
    assert (ROOT / "README.md").is_file() and not (ROOT / "new.txt").exists()


def test_with_the_token_it_answers(server):
    port, token = server
    assert re.fullmatch(r"[0-9a-f]{32,}", token)
    assert asked(port, "GET", "/api/contents?content=0", token)[0] == 200
    assert asked(port, "GET", "/files/README.md", token)[0] == 200
    status, to, _ = asked(port, "GET", "/lab")
    assert status == 302 and to.startswith("/login")


def test_the_command_loosens_nothing(command):
    words = " ".join(command[0])
    for option in ("token", "password", "ip=", "allow_origin", "allow_remote", "disable_check"):
        assert option not in words
