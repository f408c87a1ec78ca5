"""JupyterHub for a class on one machine: each learner has an account, a server and a cache.

Learners log in with their accounts of this machine (PAM), and only those who are named in
deploy/learners.txt, one account a line. Without that file nobody gets in. The hub listens on this
machine alone: put a web server with HTTPS before it, and let that one answer the class.

LLMCL_LEARNERS names another list, LLMCL_LESSONS another folder of lessons. docs/teaching/class.md
tells the way from an empty machine.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEARNERS = Path(os.environ.get("LLMCL_LEARNERS", HERE / "learners.txt"))
LESSONS = Path(os.environ.get("LLMCL_LESSONS", HERE.parent / "build" / "class" / "learner"))


def names(path):
    """The accounts in a file, one a line; # begins a remark. Without a file there are none."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return {line for line in lines if line}


c = get_config()  # noqa: F821  (JupyterHub gives it to this file)

c.JupyterHub.bind_url = "http://127.0.0.1:8000"
c.JupyterHub.authenticator_class = "pam"
c.Authenticator.allowed_users = names(LEARNERS)
c.Authenticator.allow_all = False
c.JupyterHub.cleanup_servers = True
# The proxy of the extra `hub`, which is Python; npm's package of the same name serves as well.
c.ConfigurableHTTPProxy.command = [str(Path(sys.executable).with_name("configurable-http-proxy"))]

# The learner's own process copies the lessons into the learner's home, and becomes the server.
c.JupyterHub.spawner_class = "localprocess"
c.Spawner.cmd = [sys.executable, str(HERE / "hub_user.py")]
c.Spawner.default_url = "/lab/tree/llmcl/00_start_here.ipynb"
# Each learner's LLMCL_CACHE is left to itself: it lies in the home. A device that has as many
# threads as the machine has cores would let thirty learners wait for each other.
c.Spawner.environment = {
    "LLMCL_LESSONS": str(LESSONS),
    "POCL_MAX_PTHREAD_COUNT": "2",
    "OMP_NUM_THREADS": "2",
    "OPENBLAS_NUM_THREADS": "2",
}
# A class begins at one moment, on a machine that is busy with it.
c.JupyterHub.concurrent_spawn_limit = 40
c.Spawner.start_timeout = 300
c.Spawner.http_timeout = 300
# A notebook that nobody looks at gives its memory back after an hour, a server after two.
c.Spawner.args = [
    "--MappingKernelManager.cull_idle_timeout=3600",
    "--MappingKernelManager.cull_interval=300",
    "--ServerApp.shutdown_no_activity_timeout=7200",
]
