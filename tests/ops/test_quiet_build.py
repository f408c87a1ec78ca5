"""No kernel makes a CPU's compiler talk: PoCL writes a line to standard error for every warning."""

import re
import uuid
import warnings

import pyopencl as cl
import pytest

from llmcl.resources import kernels_dir

# NVIDIA's compiler says this of every kernel that it builds.
REMARK = re.compile(r".*is a kernel, so overriding noinline attribute.*")
FILES = sorted(p.stem for p in kernels_dir().glob("*.cl") if not p.stem.endswith("_gpu"))


@pytest.mark.parametrize("file", FILES)
def test_a_kernel_file_compiles_without_a_word(engine, file, capfd):
    text = (kernels_dir() / f"{file}.cl").read_text(encoding="utf-8")
    device = engine.device.info.handle
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        program = cl.Program(engine.device.context, f"// {uuid.uuid4()}: not from a cache\n{text}")
        built = program.build(["-cl-std=CL1.2"], devices=[device], cache_dir=False)
    log = built.get_build_info(device, cl.program_build_info.LOG)
    assert "warning" not in REMARK.sub("", log).lower()  # Intel's tells of its progress
    assert "warning" not in capfd.readouterr().err
