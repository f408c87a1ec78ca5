"""Drivers, devices and memory: what stops the program."""

from .entry import Trouble

TROUBLES = (
    Trouble(
        "No OpenCL driver was found; …, or go on without OpenCL with LLMCL_DEVICE=numpy.",
        "OpenCL itself is only a meeting point. Without a driver there is nothing behind it that "
        "could compute.",
        "On Linux type `pip install pocl-binary-distribution` and restart the notebook's kernel; "
        "elsewhere install the driver of the graphics card. `LLMCL_DEVICE=numpy` lets every NumPy "
        "part run meanwhile.",
    ),
    Trouble(
        "No OpenCL device works here. … …, or go on without OpenCL with LLMCL_DEVICE=numpy.",
        "Devices are listed, but the small test kernel failed on every one. The sentences in the "
        "middle say why, device by device.",
        "Look each of them up here (`lab.trouble`), then type `llmcl doctor`, which tries every "
        "device again and ends in a list of what to do.",
        wraps=True,
    ),
    Trouble(
        "The only OpenCL device is the simulator …, which is slow and has to be asked for "
        "(LLMCL_DEVICE=oclgrind); …, or go on without OpenCL with LLMCL_DEVICE=numpy.",
        "Oclgrind came with the package, but no real driver did, for example because the PoCL "
        "wheel could not be installed. The simulator is far slower, so it is never taken by "
        "itself.",
        "Install a driver: `pip install pocl-binary-distribution` on Linux, the graphics driver "
        "elsewhere.",
    ),
    Trouble(
        "OpenCL is here (…), but it offers no device…; …, or go on without OpenCL with "
        "LLMCL_DEVICE=numpy.",
        "The driver answers and says that it has nothing to compute on. Usual reasons: its device "
        "file may not be opened by you, or its cache folder cannot be written.",
        'Type `llmcl doctor` and read "notes" and "to do". On Linux, `sudo usermod -aG '
        "video,render $USER` and a new login give you the right to the device file.",
    ),
    Trouble(
        "pyopencl is not installed; run `pip install pyopencl`, or go on without OpenCL with "
        "LLMCL_DEVICE=numpy.",
        "The Python that runs this notebook has no pyopencl. Often it is installed, but in "
        "another Python.",
        "In a cell, run `import sys; print(sys.executable)`, and install into exactly that one: "
        "`THAT_PATH -m pip install pyopencl`. `make lab` sets this up by itself.",
    ),
    Trouble(
        "pyopencl does not fit the installed NumPy; run `pip install --upgrade pyopencl numpy`, "
        "or go on without OpenCL with LLMCL_DEVICE=numpy (…).",
        "pyopencl holds compiled code that was made for another major version of NumPy.",
        "`pip install --upgrade pyopencl numpy`, then restart the notebook's kernel: Python keeps "
        "the old modules until then.",
    ),
    Trouble(
        "pyopencl is installed but cannot be loaded; run `pip install --force-reinstall pyopencl` "
        "and remove any stray OpenCL library, or go on without OpenCL with LLMCL_DEVICE=numpy (…).",
        "The system's loader found a library that does not fit, for example an old OpenCL.dll in "
        "a program's folder on Windows, or two OpenCL loaders in one environment. The words in "
        "brackets are the system's own.",
        "`pip install --force-reinstall pyopencl`. If that does not help, make a fresh "
        "environment (`python3 -m venv .venv`); never download a single DLL from a site that "
        "offers it.",
    ),
    Trouble(
        "OpenCL cannot list its platforms (…); go on without OpenCL with LLMCL_DEVICE=numpy.",
        "The loader itself failed before any driver was asked. A broken entry among the "
        "registered drivers does that.",
        "`llmcl doctor` shows the vendor folders and the files in them; take away the entry of a "
        "driver that you removed long ago.",
    ),
    Trouble(
        "This process was forked from one that uses OpenCL, whose drivers do not survive that; "
        "start it with multiprocessing.get_context('spawn').",
        "A forked process is a copy of its parent, but the driver's threads are not copied. What "
        "they were to do then never happens, and the copy would hang.",
        'Use `multiprocessing.get_context("spawn")`, or start a process of its own with '
        "`subprocess`.",
    ),
    Trouble(
        "'numpy' is no OpenCL device; llmcl.engine.get_engine('numpy') gives the NumPy engine.",
        "`llmcl.device.choose` gives OpenCL devices only, and NumPy is none.",
        "Ask `get_engine()`; it takes NumPy where LLMCL_DEVICE=numpy is set, and a device "
        "otherwise.",
    ),
    Trouble(
        "local_size is …, but … allows 1 to ….",
        "Each device has a largest work-group, and you asked for a larger one, or for none.",
        "Leave `local_size` out, or choose a number in the range; `llmcl doctor` tells it for "
        'each device ("groups up to").',
    ),
    Trouble(
        "No device is called …; give a number or a part of a name from this list: …; or 'numpy' "
        "for the NumPy engine.",
        "LLMCL_DEVICE or `--device` names a device that is not in the list. Numbers count from 0, "
        "and a driver's update may change a name.",
        "Copy a word from the list in the message, such as `LLMCL_DEVICE=pocl`; or unset the "
        "variable, and the best device is taken.",
    ),
    Trouble(
        "… has no room for … MiB more (it has … MiB in all); use a smaller batch, context or "
        "model.",
        "The device's own memory is full. Attention needs room for context × context numbers for "
        "each head and row of the batch, so a long context costs most.",
        "Halve the batch, then the context. On a GPU, other programs and other notebooks hold "
        "memory too: shut them down (*Kernel → Shut Down All Kernels*).",
    ),
    Trouble(
        "… ran out of memory or registers at … (…); use a smaller batch, context or model.",
        "Some drivers notice only at a launch or a copy that there is no room. What was computed "
        "in this step is lost; the weights are those of the step before.",
        "Halve the batch and go on: nothing has to be restarted. Other programs on the same "
        "device hold memory too.",
    ),
    Trouble(
        "… failed at … (…), perhaps because an earlier kernel wrote outside its buffers; restart "
        "the program, and see `llmcl check`.",
        "A device works on while the program goes on, so it tells of a fault at a later call. On "
        "a GPU, a write outside of a buffer ends the whole connection.",
        "Restart the notebook's kernel. Then run your kernel with LLMCL_DEVICE=oclgrind, which "
        "names the line; if `llmcl check` fails too, the driver is broken.",
    ),
    Trouble(
        "… has no room for … MiB of parameters; use a smaller model.",
        "Weights and their gradients each want one whole piece of memory, and some drivers give "
        "at most a quarter of their memory in one piece.",
        "Use fewer layers or a smaller width; halving `d_model` makes the matrices four times "
        "smaller.",
    ),
    Trouble(
        "No folder can be written for compiled kernels (…); free some disk space, or set "
        "LLMCL_CACHE or TMPDIR to a folder that can be written.",
        "Drivers compile kernels into files. Neither your cache folder nor the folder for "
        "temporary files takes any.",
        "Free some disk space (`df -h` shows what is full), or `export "
        "LLMCL_CACHE=/a/folder/of/yours` before you start Jupyter.",
    ),
    Trouble(
        "The cache folder … cannot be written (…); free some disk space, or set LLMCL_CACHE to "
        "another folder.",
        "The folder for compiled kernels is there, but nothing can be added to it: the disk or "
        "your quota is full, or its rights were changed.",
        "Make room, or set LLMCL_CACHE to another folder. The cache may be deleted at any time; "
        "it is filled again.",
    ),
    Trouble(
        "PLATFORM_NOT_FOUND_KHR",
        'OpenCL\'s own code (-1001) for "no driver is registered". You see it when a program '
        "calls pyopencl directly; llmcl says it in a sentence.",
        "`pip install pocl-binary-distribution` on Linux, or the driver of your graphics card. "
        "Then `llmcl doctor`.",
        kind="other",
    ),
    Trouble(
        "Choose platform",
        "pyopencl's own helper `create_some_context()` asks which driver to take, and in a "
        "notebook nobody sees the question. llmcl never asks.",
        "Use `get_engine()` instead, or set `PYOPENCL_CTX=0`.",
        kind="other",
    ),
    Trouble(
        "unknown target CPU",
        "The compiler inside PoCL is older than your processor and does not know its name.",
        "`conda install -c conda-forge pocl` brings a newer one; or `pip install intel-opencl-rt "
        "intel-cmplr-lib-rt`.",
        kind="other",
    ),
    Trouble(
        "INVALID_WORK_GROUP_SIZE",
        "With pyopencl alone, the global size must be a multiple of the local one, and a group "
        "must not be larger than the device allows for this kernel.",
        "Round the global size up to whole groups, with a guard in the kernel; or halve the "
        "local size. `lab.build` rounds up by itself.",
        kind="other",
    ),
    Trouble(
        "INVALID_KERNEL_ARGS",
        "A kernel was launched before each of its parameters had a value.",
        "Count them in the kernel's text, and hand over one value for each, in this order.",
        kind="other",
    ),
    Trouble(
        "INVALID_ARG_SIZE",
        "A number has another size than the parameter it is meant for: a float64 has 8 bytes, "
        "and `int` and `float` in a kernel have 4.",
        "`np.int32(n)` and `np.float32(x)` around the numbers.",
        kind="other",
    ),
    Trouble(
        "MEM_OBJECT_ALLOCATION_FAILURE",
        "The device's memory is full. Many drivers notice this only when a kernel is launched.",
        "Halve the batch, then the context; shut down other notebooks (*Kernel → Shut Down All "
        "Kernels*).",
        kind="other",
    ),
    Trouble(
        "BUILD_PROGRAM_FAILURE",
        "A kernel does not compile. The compiler's own lines follow below `Build on`.",
        "Read the first line with `error:` in it; the number before it is the line of your "
        "kernel. Paste that line into `lab.trouble`.",
        kind="other",
    ),
    Trouble(
        "libOpenCL.so.1: cannot open shared object file",
        "The small library that looks for drivers, OpenCL's loader, is missing. The wheels of "
        "pyopencl bring one; a pyopencl that was compiled on this machine does not.",
        "`pip install --force-reinstall --only-binary :all: pyopencl`; or on Debian and Ubuntu "
        "`apt install ocl-icd-libopencl1`.",
        kind="other",
    ),
    Trouble(
        "DLL load failed while importing _cl",
        "pyopencl is there, and Windows finds no library that it needs: usually OpenCL.dll, "
        "which comes with the driver of a graphics card.",
        "Install that driver from its maker, then `pip install --force-reinstall pyopencl`. "
        "Never download a single DLL. Meanwhile `LLMCL_DEVICE=numpy` works.",
        kind="other",
    ),
    Trouble(
        "A module that was compiled using NumPy 1.x cannot be run in NumPy",
        "A package with compiled code, often pyopencl, was made for an older NumPy.",
        "`pip install --upgrade pyopencl numpy`, then restart the notebook's kernel.",
        kind="other",
    ),
    Trouble(
        "Could not find a version that satisfies the requirement …",
        "pip found no wheel for your system and your Python, misread a name, or has no network. "
        "Some packages exist for Linux on x86-64 only.",
        "`python -m pip install --upgrade pip`, and look at `python --version`: 3.11 or newer is "
        "needed. Without a driver's wheel, `LLMCL_DEVICE=numpy` leads on.",
        kind="other",
    ),
    Trouble(
        "PermissionError",
        "The system does not let you read or write at the path that the message ends with. On "
        "Windows, another program may hold the file open.",
        "Close that program, or choose a folder of your own; for compiled kernels set "
        "LLMCL_CACHE, for a lesson's files LLMCL_LAB.",
        kind="other",
    ),
    Trouble(
        "Segmentation fault",
        "Code outside of Python touched memory that is not its own, and the system ended the "
        "process. A kernel of yours can do that, or a driver.",
        "Run your kernel in `lab.kernel_exercise` or with LLMCL_DEVICE=oclgrind, which name the "
        "line. If it was none of yours, `llmcl doctor` tries each device in a process of its own.",
        kind="other",
    ),
    Trouble(
        "Unable to allocate … for an array with shape …",
        "NumPy asked the system for more memory than there is. Often a product of two large "
        "arrays was stretched to one huge table.",
        "Print the shapes; work in smaller pieces, and shut down notebooks that you do not need.",
        kind="other",
    ),
)
