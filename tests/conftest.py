"""What every test shares: how Hypothesis looks for examples, and who runs what."""

import pytest
from hypothesis import Phase, settings

# The same examples at every run; `pytest --hypothesis-profile=deep` looks for new ones.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=30)
# For a simulator, which is a thousand times slower than a device.
settings.register_profile("few", deadline=None, derandomize=True, max_examples=1)
# For tests/mutants.py, which asks only whether there is an example that fails.
settings.register_profile(
    "unshrunk", settings.get_profile("repeatable"), phases=(Phase.explicit, Phase.generate)
)
settings.register_profile("deep", deadline=None, max_examples=500)
settings.load_profile("repeatable")


@pytest.hookimpl(optionalhook=True)  # pytest-xdist may be missing
def pytest_xdist_make_scheduler(config, log):
    """With --dist loadfile, one worker has a file, but test_solutions.py is handed out by lesson.

    Each of those runs a whole notebook; on one worker they would be the end of the run.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class LoadFileOrLesson(LoadFileScheduling):
        def _split_scope(self, nodeid):
            alone = nodeid.split("::")[0].endswith("test_solutions.py")
            return nodeid if alone else super()._split_scope(nodeid)

    return LoadFileOrLesson(config, log)
