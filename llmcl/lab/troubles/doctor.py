"""What `llmcl doctor` notes about drivers, devices and the cache, and what went on with a note."""

from .entry import Trouble

TROUBLES = (
    Trouble(
        "The cache folder … cannot be used (…), so compiled kernels are not kept; set LLMCL_CACHE "
        "to a folder of your own.",
        "A note, not an error: the home folder is missing, read-only, or open to everybody. "
        "Kernels go to a temporary folder and are compiled anew each time, which costs some "
        "seconds.",
        "Set LLMCL_CACHE to a folder that belongs to you alone.",
        kind="printed",
    ),
    Trouble(
        "POCL_CACHE_DIR names …, which cannot be written, so it was not used; unset it or name "
        "another folder.",
        "PoCL would have had no device at all with this setting, so it was passed over.",
        "`unset POCL_CACHE_DIR`, or let it name a folder that you may write to.",
        kind="printed",
    ),
    Trouble(
        "… cannot tell about its devices (…).",
        "One driver failed when it was asked; the others are still used. The words in brackets "
        "are the driver's.",
        "Nothing, if another device works. Otherwise update or remove this driver.",
        kind="printed",
    ),
    Trouble(
        "… was passed over: ….",
        "The device is listed, but the small test kernel did not run on it, or gave a wrong sum. "
        "The next device in the ranking is taken.",
        "The second half says why; look that up here. Nothing need be done if the device that was "
        "taken suits you.",
        kind="printed",
        wraps=True,
    ),
    Trouble(
        "it cannot be opened (…)",
        "The device is listed, but no context could be made for it; another program may hold it "
        "alone, or its driver does not fit the system.",
        "Restart the machine after a driver's update; look at `llmcl doctor`.",
        kind="printed",
    ),
    Trouble(
        "a small sum came out as …, not …",
        "The device computes wrongly: 1,000 squares added up to another number than they should. "
        "A driver that is this wrong is not used.",
        "Update the driver, or choose another device with LLMCL_DEVICE. Please do not force it; "
        "no lesson could be trusted.",
        kind="printed",
    ),
    Trouble(
        "its test did not end within … seconds",
        "The test kernel was started and never came back. A driver that waits for a missing "
        "linker or a locked cache folder does this.",
        "Try `LLMCL_CACHE=off llmcl doctor`; if that works, delete the cache folder that `llmcl "
        "doctor` names.",
        kind="printed",
    ),
    Trouble(
        "its test ended with status …",
        "The device was tried in a process of its own, and this process failed. What follows is "
        "the first useful line of its output.",
        "Look up the rest of the line; without one, update the driver.",
        kind="printed",
        wraps=True,
    ),
    Trouble(
        "its driver ended the test process (…)",
        "The driver crashed (SIGILL: an instruction that this processor lacks; SIGSEGV, SIGBUS: "
        "memory that is not there). The device was tried apart so that your notebook did not "
        "crash with it.",
        "SIGILL with PoCL: its compiler does not know your processor; install a newer PoCL "
        "(`conda install -c conda-forge pocl`) or Intel's runtime. SIGBUS: delete the cache "
        "folder, a file in it was cut short.",
        kind="printed",
    ),
    Trouble(
        "PoCL needs a linker: …",
        "PoCL compiles each kernel to a small library, and the last step, linking, is done by a "
        "program `ld` that comes with C compilers. A bare container has none.",
        "`apt install gcc`, or without root `pip install ziglang`, then restart the kernel. "
        "`make` does the second by itself.",
        kind="printed",
        wraps=True,
    ),
    Trouble(
        "PoCL calls a linker for each kernel, and there is none: install a C compiler (`apt "
        "install gcc`), or without root `pip install ziglang` or Intel's runtime (`pip install "
        "intel-opencl-rt intel-cmplr-lib-rt`).",
        "The same fault as seen by `llmcl doctor`: every kernel of PoCL fails at its last step.",
        "One of the three in the message; `pip install ziglang` is the smallest, and needs no "
        "root.",
        kind="printed",
    ),
    Trouble(
        "The system sees an … GPU (…) but OpenCL does not: ….",
        "The graphics driver has several parts, and OpenCL is one that a container or a minimal "
        "installation leaves out. So the maker's tool shows the GPU and OpenCL shows none.",
        "What stands behind the colon, for your maker. Everything in this workbook also runs on "
        "the processor.",
        kind="printed",
    ),
    Trouble(
        "… may not be opened by you: …",
        "The GPU's device file belongs to a group that you are not in. A program then sees the "
        "driver and no device.",
        "`sudo usermod -aG video,render $USER`, then log out and in again; a new terminal is not "
        "enough.",
        kind="printed",
    ),
    Trouble(
        "There is no device to compute on: ….",
        "`llmcl doctor` found no driver with a device, the simulator aside.",
        "Install what the sentence names, then run `llmcl doctor` again.",
        kind="printed",
    ),
    Trouble(
        "Less than 1 GiB of memory is free; close other programs before training.",
        "Training itself needs little, but a browser, JupyterLab and a driver's compiler beside "
        'it can fill the rest. The system then ends a process, and a notebook\'s kernel "dies".',
        "Close programs, and shut down notebooks that you do not need (*Kernel → Shut Down All "
        "Kernels*).",
        kind="printed",
    ),
    Trouble(
        "Less than 256 MiB are free at …; compiled kernels need some.",
        "The disk of the cache folder is nearly full; a kernel whose file is cut short fails in "
        "strange ways.",
        "Make room there, or set LLMCL_CACHE to a folder on another disk.",
        kind="printed",
    ),
    Trouble(
        "intel-opencl-rt is installed but not seen: start Python anew and use llmcl before "
        "anything else asks OpenCL; OCL_ICD_DEBUG=7 shows more.",
        "The loader reads its list of drivers once in a process. Something asked OpenCL before "
        "llmcl could add Intel's runtime.",
        "Restart the kernel and import llmcl first.",
        kind="printed",
    ),
    Trouble(
        "intel-opencl-rt does not load without its libraries: run `pip install "
        "intel-cmplr-lib-rt`.",
        "Intel's runtime comes in two packages, and only one of them is installed.",
        "`pip install intel-cmplr-lib-rt`, then restart the kernel.",
        kind="printed",
    ),
    Trouble(
        "platform … (…): no device",
        "A line of `llmcl doctor`: the driver is registered and answers, and has nothing to "
        "compute on. Its GPU may be away, or its device file closed to you.",
        'Read "to do" at the end of the report. If another device works, nothing need be done.',
        kind="printed",
    ),
    Trouble(
        "[…] FAILS: …",
        "A line of `llmcl doctor`: this device is listed, and the small test kernel does not run "
        "on it.",
        "Look up what stands behind the colon.",
        kind="printed",
        wraps=True,
    ),
)
