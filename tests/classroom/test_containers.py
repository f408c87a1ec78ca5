"""What the Dockerfile does, done without Docker: its files, its commands, its server."""

import json
import os
import re
import socket
import subprocess
import time
import urllib.request

import psutil
from container_files import copy_context, devcontainer, dockerfile


def test_its_commands_make_a_server_that_answers(tmp_path, run, outside):
    folder = tmp_path / "llmcl"
    copy_context(folder)
    steps = dockerfile()
    last = max(place for place, (word, _) in enumerate(steps) if word == "FROM")
    began = time.monotonic()
    commands = [rest for word, rest in steps[last:] if word == "RUN"]
    said = [run("sh", "-c", command, cwd=folder, LLMCL_CACHE="off") for command in commands]
    print(f"\nDockerfile's commands: {time.monotonic() - began:.0f} s")
    assert re.match(r"llmcl-class=ok .* lessons=yes llama.cpp=yes\n$", said[-1])
    size = sum(f.lstat().st_size for f in (folder / ".venv").rglob("*") if f.is_file())
    print(f"its environment: {size / 1e6:.0f} MB")

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [part.replace("0.0.0.0", "127.0.0.1") for part in json.loads(steps[-1][1])]
    command += [f"--port={port}", "--IdentityProvider.token=only-this-test"]
    command += ["--allow-root"] if os.getuid() == 0 else []
    server = subprocess.Popen(
        command, cwd=folder, env=outside, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        address = f"http://127.0.0.1:{port}/api/contents/notebooks/00_start_here.ipynb?content=0"
        asked = urllib.request.Request(address, headers={"Authorization": "token only-this-test"})
        assert fetch(asked, server)["name"] == "00_start_here.ipynb"
    finally:
        for each in [*psutil.Process(server.pid).children(recursive=True), server]:
            each.terminate()
        server.wait(60)


def fetch(asked, server):
    """The JSON of an answer, once the server is up."""
    for _ in range(240):
        assert server.poll() is None, "the server ended"
        try:
            with urllib.request.urlopen(asked, timeout=10) as answer:
                return json.load(answer)
        except OSError:
            time.sleep(0.5)
    raise AssertionError("the server does not answer")


def test_the_same_commands_stand_in_the_devcontainer():
    first, *_ = [rest for word, rest in dockerfile() if "pip install" in rest]
    plain = first.replace(" --no-cache-dir", "")
    assert devcontainer()["postCreateCommand"].startswith(plain + " && ")
