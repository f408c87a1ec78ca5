"""The engines of the operations' tests, one for each module: compiling takes most of the time."""

import pytest
from ops_helpers import GuardedEngine

from llmcl import reference
from llmcl.device import choose
from llmcl.versions import versions_for


@pytest.fixture(scope="module")
def engine():
    """OpenCL on the default device (LLMCL_DEVICE names another), with guard zones."""
    return GuardedEngine(choose())


@pytest.fixture(scope="module", params=["NumPy", "OpenCL"])
def any_engine(request):
    """Both engines in turn: what is true of an operation is true on either."""
    return reference.Engine() if request.param == "NumPy" else request.getfixturevalue("engine")


@pytest.fixture(autouse=True)
def own_versions(request):
    """Every test begins with the versions and the group size that the device has by itself."""
    if {"engine", "any_engine"} & set(request.fixturenames):
        opencl = request.getfixturevalue("engine")
        opencl.use(versions_for(opencl.device.info))
        opencl.local_size = opencl.device.local_size
        opencl.program.most = None
