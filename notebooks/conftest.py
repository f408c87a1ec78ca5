"""nbval compares everything but standard error.

A new release of a library may warn where the old one did not; no cell's result depends on it.
That a stored notebook has nothing on standard error is checked in tests/test_notebooks.py.
"""


def pytest_collectstart(collector):
    """Adds standard error to what a notebook's comparison leaves out."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("stderr",)
