"""Kernels that do not compile, launches, and what the strict device finds."""

from .entry import Trouble

TROUBLES = (
    Trouble(
        "… does not compile. Line …: … …",
        "The compiler does not understand your OpenCL C at this line, or lost the thread in the "
        "line above it: a missing semicolon is noticed one line too late.",
        "Read the line with the `>`, then the one before it. Declare every name with its type "
        "(`int i = …;`), and end float constants in `f`.",
    ),
    Trouble(
        "… does not compile: …; if the text is right, the disk may be full or the driver broken, "
        "see `llmcl doctor`.",
        "The compiler refused the text without naming a line. A driver that cannot do its work "
        "(no linker, full disk) answers like this too.",
        "If the text was right before, run `llmcl doctor`; the fault is then the driver's and not "
        "yours.",
    ),
    Trouble(
        "… holds no __kernel function.",
        "Only functions that begin with `__kernel void` can be launched, and the text has none. A "
        "helper function alone is not enough.",
        "Begin the function with `__kernel void name(`.",
    ),
    Trouble(
        "….cl has no kernel …; it has ….",
        "The file was found, but none of its functions has this name. Upper and lower case count.",
        "Take a name from the list in the message.",
    ),
    Trouble(
        "there is no kernel file ….cl; there are: ….",
        'The folder kernels/ has no such file; the name is given without ".cl".',
        'Take a name from the list. If the list says "none", the installation is not whole: run '
        "`pip install -e .` in the checkout again.",
    ),
    Trouble(
        "there is no kernels/….cl; there are ….",
        "`lab.show_kernel` looks into the folder kernels/, and there is no such file.",
        'Write the file\'s name without ".cl", as in `lab.show_kernel("softmax", '
        '"softmax_forward")`.',
    ),
    Trouble(
        "… has no …; it has ….",
        "The file is there, but not the kernel that you want to see; a file holds several, each "
        "with its own name.",
        "The second argument is a kernel's name; take one from the list.",
    ),
    Trouble(
        "the kernel parameter '…' has a type that llmcl does not know; use ….",
        "llmcl reads your kernel's list of parameters to check what you hand over, and it knows "
        "float, int and uint. A `double` or `char` would need other arrays than the lessons have.",
        "Use `float` for numbers and `int` for ids and sizes.",
    ),
    Trouble(
        "… takes … arguments (…); … were given.",
        "A kernel is called with its global size, its local size, and then one value for every "
        "parameter, in the order of its text.",
        "Count against the names in the brackets. A number such as `n` is easily forgotten.",
    ),
    Trouble(
        "…: argument … must be …, and is …; ….",
        "A pointer of a kernel wants a tensor on the device with elements of one type; you gave "
        "something else at this place, often a NumPy array or another type of number.",
        "Move arrays with `engine.from_host(array)`. If the thing is right, the order of the "
        "arguments is not.",
    ),
    Trouble(
        "…: argument … must be … (…), and is … ….",
        "This parameter is a single number, and its type must fit: an `int` takes no 3.0, because "
        "the bits of the two differ.",
        "Write `int(n)` or `float(x)` around it.",
    ),
    Trouble(
        "…: argument … is …; … holds …numbers from … to ….",
        "The number does not fit into 32 bits. In C it would wrap around without a word and "
        "become another number.",
        "Look where it comes from: a product of sizes, or a seed that is too large.",
    ),
    Trouble(
        "…: … and … are the same buffer, but … is written and declared restrict; give the result "
        "a buffer of its own.",
        "`restrict` promises the compiler that nobody else touches this memory, and it uses the "
        "promise. Input and output in one buffer break it, and the result would be luck.",
        "Make a new tensor for the result: `engine.empty(shape, dtype)`.",
    ),
    Trouble(
        "…: the global size … and the local size … must be tuples of one to three whole numbers "
        "above zero, both of one length.",
        "The sizes of a launch are tuples, even with one dimension, and both have the same number "
        "of dimensions.",
        "Write `(n,)` with its comma, and `(16,)` for the group beside it.",
    ),
    Trouble(
        "…: a work-group of … was asked for; this kernel on … allows …. Choose a smaller local "
        "size.",
        "A group shares one compute unit's registers and local memory, so each device has a "
        "limit, and a kernel that needs much has a lower one.",
        "Halve the local size until it fits; with two dimensions the product counts.",
    ),
    Trouble(
        "…: … asks for … bytes of local memory; give a multiple of 4 bytes from 4 to … (this "
        "device has …, every OpenCL 1.2 device …).",
        "Local memory is small, and every device must have 32 KiB; some CPUs accept more without "
        "a word and then fail elsewhere. The size is in bytes: 16 floats are 64.",
        "Use smaller tiles, and give `4 * count` for floats.",
    ),
    Trouble(
        "… could not be launched with global size … and local size … on … (…); try a smaller local "
        "size, and see `llmcl check`.",
        "All that llmcl can check was right, and the driver still refused. Its own words stand in "
        "the brackets.",
        "Halve the local size. If that does not help, `llmcl check` tells whether the device "
        "works for our kernels.",
    ),
    Trouble(
        "… could not compile … (…); free some memory and disk space, and see `llmcl doctor`.",
        "The driver failed while it compiled, and not because of your text: no memory, a full "
        "disk, or a driver that is broken.",
        "`df -h` and `free -h` show what is full. Then restart the notebook's kernel. Another "
        "device (LLMCL_DEVICE) shows whether it is this driver.",
    ),
    Trouble(
        "an array of … cannot go to a device; use numbers.",
        "Kernels compute with float32 and int32. Texts, truth values and Python objects have no "
        "place there.",
        "Turn truth values into numbers (`mask.astype(np.float32)`), and texts into ids with a "
        "tokenizer.",
    ),
    Trouble(
        "an array of … cannot be computed with; use numbers.",
        "The NumPy engine takes the same kinds of arrays as a device: floating point or whole "
        "numbers.",
        "Turn it into numbers first, as in `np.asarray(x, np.float32)`. A list of lists of "
        "unequal length is such a case too.",
    ),
    Trouble(
        "a tensor of shape … has … elements; kernels count with 32-bit integers, so it must be "
        "from 1 to 2147483647.",
        "A kernel's index is an `int`, and 2,147,483,647 is the last number it holds. A size of 0 "
        "has nothing to launch for.",
        "Look for a size that is 0; otherwise work in smaller batches.",
    ),
    Trouble(
        "rows of shape … do not fit into … from row … on.",
        "You copy rows into a tensor whose width is another one, or which ends before the last of "
        "them.",
        "Compare the last dimensions first: they must be equal. Then row + number of rows must "
        "not pass the first dimension.",
    ),
    Trouble(
        "a tensor of shape … has … elements and cannot take the shape ….",
        "A new shape lays the same numbers into other rows, so the product of the sizes must stay.",
        "Multiply both out. One of them usually misses a factor such as the batch or the heads.",
    ),
    Trouble(
        "NumPy cannot run a kernel; unset LLMCL_DEVICE, and see `llmcl doctor` for a device.",
        "LLMCL_DEVICE=numpy is set, so there is no device that could compile OpenCL C.",
        "Start Jupyter without the variable, or in the first cell: `import os; "
        'os.environ.pop("LLMCL_DEVICE")`, before anything of llmcl computes.',
    ),
    Trouble(
        "NumPy launches no kernels; unset LLMCL_DEVICE, and see `llmcl doctor` for a device.",
        "You count launches, and with LLMCL_DEVICE=numpy there are none.",
        "Unset the variable and restart the kernel.",
    ),
    Trouble(
        "there is no kernel … in it; it has ….",
        "The exercise launches a kernel by its name, and your text gave it another one.",
        "Keep the first line of the kernel as it was: name and parameters.",
    ),
    Trouble(
        "it did not end in … seconds; is there a loop without an end?",
        "Your kernel ran in a process of its own and was stopped. A loop whose condition never "
        "becomes false is the usual reason; a barrier that only some work-items reach is another.",
        "Look at what changes the loop's variable. `i =+ 1` sets it to 1 for ever; `i += 1` "
        "counts.",
        kind="printed",
    ),
    Trouble(
        "the process that ran it ended early: …",
        "The kernel made its own process crash, which is why it ran in one. It wrote far outside "
        "of its arrays, or divided whole numbers by zero.",
        "Check every index against its array's size, and every `/` and `%` of whole numbers.",
        kind="printed",
        wraps=True,
    ),
    Trouble(
        "Oclgrind: ✗ invalid write, work-item …, line …: …",
        "A work-item wrote past the end of an array. On your device this may pass unseen for "
        "weeks and change another tensor.",
        "Most often the guard is missing: `if (row >= rows) return;`. There are more work-items "
        "than elements, because the global size is rounded up to whole groups.",
        kind="printed",
    ),
    Trouble(
        "Oclgrind: ✗ invalid read, work-item …, line …: …",
        "A work-item read past the end of an array; what lies there differs from run to run.",
        "Write the index down for the work-item in the message; it is the first that went wrong. "
        "A guard, or `<` in place of `<=`, mends most.",
        kind="printed",
    ),
    Trouble(
        "Oclgrind: ✗ data race, work-item …, line …: …",
        "Two work-items use one element, one of them writes it, and nothing says who is first. A "
        "CPU often hides it, a GPU does not.",
        "Put `barrier(CLK_LOCAL_MEM_FENCE)` between writing and reading, or let one work-item own "
        "the element.",
        kind="printed",
    ),
    Trouble(
        "Oclgrind: ✗ a number that nobody wrote, work-item …, line …: …",
        "Memory that was only made holds whatever lay there before. A sum that starts without `= "
        "0`, or local memory that only some work-items fill, is read like this.",
        "Give every variable its first value where it is declared; fill local memory before the "
        "barrier.",
        kind="printed",
    ),
    Trouble(
        "Oclgrind: ✗ a barrier that not all reach, group …, line …: …",
        "A barrier waits for every work-item of its group. One that has left with `return`, or "
        "went the other way at an `if`, never comes.",
        "Move the barrier out of the `if`, and replace an early `return` by an `if` around the "
        "work.",
        kind="printed",
    ),
    Trouble(
        "NumPy computes here, and no OpenCL device; so nothing was launched",
        "LLMCL_DEVICE=numpy is set, and this cell shows what a device does.",
        "Nothing; or unset the variable to see your device's answer.",
        kind="printed",
    ),
    Trouble(
        "Oclgrind has no wheel for this system; the shuffled Python run shows the same",
        "The strict simulator is packaged for Linux on x86-64 only.",
        "Nothing: `lab.run_items` finds the same faults in the kernel's Python twin.",
        kind="printed",
    ),
    Trouble(
        "RepeatedKernelRetrieval",
        "In code of your own, `program.name(...)` makes a new kernel object at every call, and "
        "pyopencl warns of the cost.",
        'Fetch it once, `kernel = cl.Kernel(program, "name")`, and call that. Kernels from '
        "`lab.build` are kept already.",
        kind="other",
    ),
    Trouble(
        "implicit declaration of function",
        "OpenCL C knows no function of this name: it is misspelled, or from C's library, which "
        "does not exist on a device (`printf` aside).",
        "`fmax` for two floats, `max` for two ints; `expf` is called `exp`. A helper of your own "
        "must stand above the kernel.",
        kind="other",
    ),
    Trouble(
        "use of undeclared identifier",
        "In C a name exists only after a line that gives its type. A name from the Python cell "
        "does not reach the kernel.",
        "Declare it, or add it to the kernel's parameters.",
        kind="other",
    ),
    Trouble(
        "OUT_OF_RESOURCES",
        "The GPU gave up: a kernel touched memory that is not its own, wanted too many registers, "
        "or ran so long that the system's watchdog stopped it.",
        "Run the kernel on the strict device (`lab.run_broken` does, or `LLMCL_DEVICE=oclgrind`): "
        "it names the work-item and the line.",
        kind="other",
    ),
)
