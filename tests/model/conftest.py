"""The engines of the model's tests, one for each module."""

import numpy as np
import pytest
from ops_helpers import HurriedProgram, use

from llmcl import reference, versions
from llmcl.device import choose
from llmcl.ops import Engine


@pytest.fixture(scope="module")
def opencl():
    """OpenCL on the default device (LLMCL_DEVICE names another)."""
    return Engine(choose())


@pytest.fixture(scope="module", params=["NumPy", "OpenCL"])
def engine(request):
    """Both engines in turn."""
    return reference.Engine() if request.param == "NumPy" else request.getfixturevalue("opencl")


@pytest.fixture(scope="module", params=["CPU", "GPU"])
def versioned(request):
    """OpenCL with the kernels that either kind of device gets."""
    engine = Engine(choose())
    engine.program = HurriedProgram(engine.device)
    use(engine, getattr(versions, request.param))
    return engine


@pytest.fixture
def rng():
    return np.random.default_rng(0)
