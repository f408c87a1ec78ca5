"""No kernel makes a CPU's compiler talk: PoCL writes a line to standard error for every warning."""

import re
import uuid
import warnings

import pyopencl as cl
import pytest

from llmcl.resources import kernels_dir

# NVIDIA's compiler says the first of every kernel that it builds; Intel's says the second where our
# vec_type_hint keeps it from packing work-items, which is what the hint is for.
REMARK = re.compile(r".*(so overriding noinline attribute|due to unsupported vec type hint).*")
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
