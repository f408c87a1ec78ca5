"""Eight learners on one JupyterHub run lesson 00 at once, and all get what is stored."""

import asyncio
import secrets
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest
from classroom.hub_user import HubUser
from tornado.httpclient import AsyncHTTPClient

from lesson_outputs import differing
from notebook_builder import ROOT, build

LESSON = "00_start_here"
NAMES = [f"learner{i}" for i in range(1, 9)]


def free_ports(count):
    """Ports of the loopback that nobody uses now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture
def hub(tmp_path, outside, request):
    """(address, password, folder of homes, process) of a hub that runs while the test does."""
    failed = request.session.testsfailed
    assert build.main(["--class", str(tmp_path / "class"), LESSON]) == 0
    (tmp_path / "learners.txt").write_text("# a class\n" + "\n".join(NAMES), encoding="utf-8")
    (tmp_path / "homes").mkdir()
    public, inner, proxy = free_ports(3)
    password = secrets.token_hex(12)
    own = {
        "HUB_REAL_CONFIG": str(ROOT / "deploy" / "jupyterhub_config.py"),
        "HUB_URL": f"http://127.0.0.1:{public}",
        "HUB_PORT": str(inner),
        "HUB_PROXY_URL": f"http://127.0.0.1:{proxy}",
        "HUB_PASSWORD": password,
        "HUB_HOMES": str(tmp_path / "homes"),
        "LLMCL_LEARNERS": str(tmp_path / "learners.txt"),
        "LLMCL_LESSONS": str(tmp_path / "class" / "learner"),
    }
    config = ROOT / "tests" / "classroom" / "hub_config.py"
    with open(tmp_path / "hub.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", config],
            cwd=tmp_path,
            env=outside | own,
            stdout=log,
            stderr=log,
        )
    try:
        yield own["HUB_URL"], password, tmp_path / "homes", process
    finally:
        process.send_signal(signal.SIGTERM)  # the hub ends the servers and the proxy
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            for each in [*psutil.Process(process.pid).children(recursive=True), process]:
                each.kill()
        if request.session.testsfailed > failed:
            print((tmp_path / "hub.log").read_text(encoding="utf-8")[-6000:])


async def until_up(url, process):
    """Waits until the hub answers."""
    for _ in range(300):
        assert process.poll() is None, "the hub ended"
        try:
            answer = await AsyncHTTPClient().fetch(url + "/hub/api", raise_error=False)
            if answer.code == 200:
                return
        except OSError:
            pass
        await asyncio.sleep(0.5)
    raise AssertionError("the hub does not answer")


async def one_learner(url, name, password):
    """(name, seconds until the server was ready, seconds of the lesson, the outputs)."""
    user, began = HubUser(url, name), time.monotonic()
    assert await user.log_in(password) in (200, 201)
    await user.start_server()
    ready = time.monotonic()
    outputs = await user.run(f"llmcl/{LESSON}.ipynb")
    return name, ready - began, time.monotonic() - ready, outputs


async def the_class(url, password, process):
    """What one_learner gives for all, who begin together; first, who may not come in."""
    await until_up(url, process)
    assert await HubUser(url, NAMES[0]).log_in("guessed") == 403
    assert await HubUser(url, "stranger").log_in(password) == 403
    assert (await HubUser(url, NAMES[0]).ask("GET", "/hub/api/users"))[0] == 403
    results = await asyncio.gather(*(one_learner(url, name, password) for name in NAMES))
    family = psutil.Process(process.pid).children(recursive=True)
    memory = sum(each.memory_info().rss for each in family)
    other = HubUser(url, NAMES[0])
    await other.log_in(password)
    status, _ = await other.ask("GET", f"/user/{NAMES[1]}/api/contents")
    assert status in (403, 404)  # a learner's server is closed to another learner
    return results, memory


def test_eight_learners_run_lesson_00_at_once(hub):
    url, password, homes, process = hub
    results, memory = asyncio.run(the_class(url, password, process))
    stored = build.without_answers(LESSON)
    print(f"\n{'user':<10}{'ready s':>9}{'lesson s':>10}{'compared':>10}  equal")
    wrong = []
    for name, ready, lesson, outputs in results:
        count, lines = differing(stored, outputs)
        equal = "yes" if not lines else f"no, {len(lines)} differ"
        print(f"{name:<10}{ready:>9.0f}{lesson:>10.0f}{count:>10}  {equal}")
        wrong += [f"{name}: {line}" for line in lines]
        assert count > 30
    print(f"memory of all with their hub: {memory / 1e6:.0f} MB")
    assert not wrong, "\n".join(wrong)
    for name in NAMES:
        assert list((homes / name / ".cache" / "llmcl").glob("slot-0/pocl/*")), f"{name}: no cache"
        assert list((homes / name / "llmcl" / "build" / "lesson-00").iterdir()), name


def test_the_real_configuration_lets_nobody_in_by_itself(tmp_path, outside):
    code = (
        "import sys; from jupyterhub.app import JupyterHub; app = JupyterHub(); "
        "app.load_config_file(sys.argv[1]); c = app.config; "
        "print(c.JupyterHub.authenticator_class, c.JupyterHub.spawner_class, "
        "sorted(c.Authenticator.allowed_users), c.Authenticator.allow_all, "
        "c.JupyterHub.bind_url)"
    )
    config = ROOT / "deploy" / "jupyterhub_config.py"
    for text, allowed in ((None, []), ("# all\n\n  kim  # first\nlee\n", ["kim", "lee"])):
        names = tmp_path / "learners.txt"
        if text:
            names.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", code, str(config)],
            env=outside | {"LLMCL_LEARNERS": str(names)},
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        assert done.stdout.strip() == f"pam localprocess {allowed} False http://127.0.0.1:8000"
