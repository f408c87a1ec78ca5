"""Whether a device works: a small kernel is built, run, timed, and its result compared.

A driver that is listed may still fail at its first build, and one that is older than its
processor may end the whole process. So a device that has never worked in this cache is tried in
a child process first; after that the trial takes place in this one, with a warm cache.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .cache import LENT, Cache

TIMEOUT = 180.0  # seconds; the first build of a slow machine takes a few

# Sums of squares by group: a guard, local memory, a barrier and a loop, as the real kernels have.
SOURCE = """
__kernel void trial(__global const float *restrict x,     // (n)
                    __global float *restrict sums,        // (groups)
                    __local float *part, const int n)
{
    const int i = get_global_id(0);
    const int lane = get_local_id(0);
    part[lane] = i < n ? x[i] * x[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) {
        float sum = 0.0f;
        for (int k = 0; k < (int)get_local_size(0); ++k) sum += part[k];
        sums[get_group_id(0)] = sum;
    }
}
"""


@dataclass(frozen=True)
class Trial:
    """The result of a trial: whether the device works, how long it took, what went wrong."""

    ok: bool
    seconds: float  # build, run and read back together
    note: str = ""


def run_trial(context, queue, key: str = "") -> Trial:
    """The Trial of the device behind `queue`, in this process. Raises nothing.

    A program of its own is built for each `key`, so that no cache answers for another machine.
    """
    import pyopencl as cl

    text = f"{SOURCE}__constant int for_{zlib.crc32(key.encode()):08x} = 0;\n"

    start = time.perf_counter()
    n = 1000  # no multiple of a group
    x = (np.arange(n) % 7).astype(np.float32)  # small whole numbers: float32 adds them exactly
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some compilers praise themselves at each build
            program = cl.Program(context, text).build()
        kernel = cl.Kernel(program, "trial")
        device = queue.device
        limit = kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, device)
        size = max(1, min(16, limit))
        groups = -(-n // size)
        flags = cl.mem_flags
        source = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=x)
        target = cl.Buffer(context, flags.WRITE_ONLY, 4 * groups)
        local: Any = cl.LocalMemory(4 * size)  # PyOpenCL's stubs do not know it as an argument
        kernel(queue, (groups * size,), (size,), source, target, local, np.int32(n))
        sums = np.empty(groups, np.float32)
        cl.enqueue_copy(queue, sums, target)
        queue.finish()
    except Exception as error:  # drivers raise what they like; all of it means "does not work"
        return Trial(False, time.perf_counter() - start, first_useful_line(str(error)))
    seconds = time.perf_counter() - start
    right = np.add.reduceat(x.astype(np.float64) ** 2, np.arange(0, n, size))
    wrong = np.flatnonzero(sums != right)
    if len(wrong):
        at = wrong[0]
        return Trial(False, seconds, f"a small sum came out as {sums[at]:g}, not {right[at]:g}")
    return Trial(True, seconds)


def try_apart(identity: list, key: str, cache: Cache) -> Trial | None:
    """The Trial of a device in a child process, or None where there can be no such child.

    `identity` tells the child which device (see `llmcl.device.DeviceInfo.identity`). The child
    works in this process's cache folder, which is idle meanwhile, so its builds are not lost.
    """
    if not sys.executable:
        return None
    root = str(Path(__file__).resolve().parent.parent)
    code = f"import sys; sys.path.insert(0, {root!r}); from llmcl.trial import _child; _child()"
    environment = {**os.environ, LENT: str(cache.folder), "PYTHONIOENCODING": "utf-8"}
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps([identity, key]),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Trial(False, TIMEOUT, f"its test did not end within {TIMEOUT:.0f} seconds")
    except OSError:
        return None
    seconds = time.perf_counter() - start
    if done.returncode == 0:
        result = json.loads(done.stdout.splitlines()[-1])
        return None if result is None else Trial(**result)
    end = f"its test ended with status {done.returncode}"
    if done.returncode < 0:
        end = f"its driver ended the test process ({signal.Signals(-done.returncode).name})"
    line = first_useful_line(done.stderr)
    return Trial(False, seconds, f"{end}: {line}" if line else end)


def _child() -> None:
    from . import device

    identity, key = json.load(sys.stdin)
    trial = None
    for info in device.list_devices():
        if info.identity() == identity:
            context, queue = device.open_device(info)
            trial = run_trial(context, queue, key)
            break
    print(json.dumps(None if trial is None else asdict(trial)))


def first_useful_line(log: str) -> str:
    """The first line of a build log that says what is wrong, without folders, in 200 characters."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    telling = [
        line
        for line in lines
        if re.search(r"\berror\b|unknown|not support", line, re.I)
        and not re.match(r"\d+ (error|warning)s? generated", line)
    ]
    telling = [line for line in telling if not line.startswith("clBuildProgram failed")] or telling
    line = (telling or lines or [""])[0]
    return re.sub(r"\S*[/\\](?=[^/\\\s]+:\d)", "", line)[:200].rstrip(" .!")
