"""Notes which kernels a test run launches on which device, and how its tests end.

A pytest plugin that devices.py loads; strict.py's child processes import it as well. Everything is
appended to files in the folder LLMCL_TEST_NOTES as it comes, so a run that is broken off has its
notes. Without the variable nothing is noted.
"""

import functools
import os
from pathlib import Path

from llmcl.program import Kernel

FOLDER = "LLMCL_TEST_NOTES"
LAUNCHED, OUTCOMES = "launched-", "outcomes"
_folder = os.environ.get(FOLDER)
_known: set[str] = set()


def device_key(info) -> str:
    """What stands before the kernel's name in a note."""
    return "\t".join((info.platform, info.platform_version, info.name))


def _note(kernel: Kernel) -> None:
    line = f"{device_key(kernel.device.info)}\t{kernel.name}\n"
    if line not in _known:
        _known.add(line)
        with open(Path(_folder, f"{LAUNCHED}{os.getpid()}"), "a", encoding="utf-8") as notes:
            notes.write(line)


def _noting(launch):
    @functools.wraps(launch)
    def noted(kernel, *args):
        launch(kernel, *args)
        _note(kernel)  # only a launch that was accepted

    return noted


if _folder:
    Kernel.__call__ = _noting(Kernel.__call__)


class Outcomes:
    """One line for each test: passed, failed or skipped, and its name."""

    def pytest_runtest_logreport(self, report):
        passed_setup = report.when != "call" and report.passed
        if not passed_setup:
            with open(Path(_folder, OUTCOMES), "a", encoding="utf-8") as notes:
                notes.write(f"{report.outcome} {report.nodeid}\n")


def pytest_configure(config):
    """Notes outcomes in the process that hears of all tests, not in pytest-xdist's workers."""
    if _folder and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcomes())
