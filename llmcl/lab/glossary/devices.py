"""OpenCL: who computes, in which groups, with which memory."""

from .entry import Term

# A term to four lines or so, so that the list can be read through.
# fmt: off
TERMS = (
    Term("OpenCL", "오픈CL(OpenCL)",
         "A standard for programs that run on graphics cards and processors of many makers. The "
         "kernels are written in a kind of C, and a host program in any language starts them.",
         "00"),
    Term("device", "장치(device)",
         "Whatever runs the kernels: a graphics card, a processor, or a simulator. It works on "
         "memory of its own, so numbers are copied to it and back.",
         "00"),
    Term("host", "호스트",
         "The program that finds the device, copies numbers and launches kernels. In these lessons "
         "it is written in Python.",
         "00"),
    Term("engine", "엔진",
         "The part of llmcl that computes: one engine does it with OpenCL, the other with NumPy. "
         "Both know the same operations by the same names.",
         "00"),
    Term("kernel", "커널(kernel)",
         "A short function in OpenCL C that runs once for each work-item, many at the same time. "
         "Jupyter and operating systems use the word for other things.",
         "00"),
    Term("work-item", "작업 항목(work-item)",
         "One run of a kernel, with a number of its own that says which element it works on. All "
         "work-items run the same text, in no fixed order. CUDA calls it a thread.",
         "00", also=("thread",)),
    Term("platform", "플랫폼(platform)",
         "One maker's OpenCL on this machine, a driver. It offers one device or more.",
         "01a"),
    Term("context", "컨텍스트(context)",
         "What holds together the devices, buffers and programs that belong to one job. Things of "
         "two contexts cannot be mixed. (A language model's context is another thing: the text it "
         "sees at once.)",
         "01a"),
    Term("queue", "명령 큐(command queue)",
         "The list of orders for one device: copy this, launch that. The host puts orders in and "
         "goes on; the device works them off.",
         "01a", also=("command queue",)),
    Term("program", "프로그램(program)",
         "The text of one or more kernels, compiled for a device by its driver while the host "
         "runs.",
         "01a"),
    Term("buffer", "버퍼(buffer)",
         "A piece of the device's memory. It has a length in bytes and knows neither a shape nor "
         "the type of its numbers.",
         "01a"),
    Term("launch", "커널 실행(launch)",
         "To start a kernel for a number of work-items. The order goes into the queue, so the host "
         "may be ahead of the device.",
         "01a"),
    Term("NDRange", "N차원 범위(NDRange)",
         "OpenCL's word for all work-items of one launch, numbered in one, two or three "
         "directions.",
         "01a"),
    Term("global size", "전역 크기(global size)",
         "How many work-items a launch has in each direction. It is often rounded up to whole "
         "groups, which is why a kernel needs a guard.",
         "01a"),
    Term("local size", "지역 크기(local size)",
         "How many work-items one work-group has in each direction.",
         "01a", also=("work-group size",)),
    Term("guard", "범위 검사(guard)",
         "The line at the start of a kernel that sends work-items home that have no element to "
         "work on. Without it they read and write past the end of a buffer.",
         "01a", formula="if (row >= rows) return;"),
    Term("pointer", "포인터(pointer)",
         "In C, the place in memory where numbers begin. It does not know how many there are: "
         "whoever uses it must.",
         "01a"),
    Term("flat index", "1차원 인덱스(flat index)",
         "The place of an element when all rows of a table lie one behind the other in memory.",
         "01a", formula="row * columns + column"),
    Term("Oclgrind", "Oclgrind 시뮬레이터",
         "A simulator of an OpenCL device that watches every access: past the end, memory that "
         "nobody wrote, races, barriers that not all reach. It is slow and strict.",
         "01a"),
    Term("work-group", "작업 그룹(work-group)",
         "Work-items that are started together, share local memory and can wait for each other at "
         "a barrier. Different groups cannot wait for each other. CUDA calls it a block.",
         "01b", also=("thread block",)),
    Term("local memory", "지역 메모리(local memory)",
         "A small, quick memory that the work-items of one group share, declared with `__local`. "
         "CUDA calls it shared memory, and means another thing by local memory.",
         "01b", also=("__local", "shared memory")),
    Term("barrier", "장벽(barrier)",
         "A line in a kernel that no work-item of a group passes before all of them have reached "
         "it. What they wrote before it, all can read after it.",
         "01b"),
    Term("race", "경쟁 상태(race condition)",
         "Two work-items use the same place in memory, at least one of them writes, and nothing "
         "says who is first. The result is luck.",
         "01b", also=("data race",)),
    Term("tree sum", "트리 합(리덕션)",
         "A sum in rounds: in each round pairs are added at the same time, so half as many numbers "
         "are left. 256 numbers need 8 rounds.",
         "01b", also=("reduction",)),
    Term("tile", "타일(tile)",
         "A small block of a matrix that a work-group copies into local memory once and then uses "
         "many times.",
         "01b"),
    Term("atomic", "원자적 연산(atomic)",
         "A read, a change and a write that nobody can come between, such as `atomic_inc`. So many "
         "work-items may count in the same place.",
         "02"),
    Term("scatter", "스캐터(scatter)",
         "Each work-item takes one input and adds it where it belongs. Two may meet in the same "
         "place, which is a race.",
         "08b"),
    Term("gather", "개더(gather)",
         "Each work-item owns one output and looks for all that belongs there. Nobody else writes "
         "to it, so there is no race.",
         "08b"),
    Term("bandwidth", "대역폭(bandwidth)",
         "How many bytes a second come from memory, or go there, at best. Between machines: how "
         "many a second go through the network.",
         "13"),
    Term("peak", "최대 연산 성능(peak)",
         "How many operations a second a device can do at best, when it never waits for memory.",
         "13"),
    Term("arithmetic intensity", "산술 강도(arithmetic intensity)",
         "How many operations a task does for each byte that it moves. Low means that it waits for "
         "memory, high that it computes.",
         "13", formula="operations / bytes"),
    Term("roofline", "루프라인 모델(roofline)",
         "A picture of the best speed that a device allows for each arithmetic intensity: first a "
         "slanted line (memory), then a flat one (the peak).",
         "13", formula="speed ≤ min(peak, intensity · bandwidth)"),
    Term("register", "레지스터(register)",
         "The place nearest to where a work-item computes; it holds the work-item's own "
         "variables. Quick, and few.",
         "13"),
    Term("register block", "레지스터 블록(register block)",
         "A small block of the result that one work-item keeps in registers, so that each number "
         "it loads serves several products.",
         "13", also=("register tile",)),
    Term("vector", "벡터(vector)",
         "Several numbers that one instruction handles at once, such as OpenCL's `float8`. In "
         "mathematics a vector is a list of numbers.",
         "13"),
    Term("fused attention", "융합 어텐션(fused attention)",
         "Attention in one kernel that never writes the table of scores to memory. "
         "FlashAttention is the best-known one.",
         "13"),
    Term("online softmax", "온라인 소프트맥스(online softmax)",
         "Softmax in one pass: it keeps the largest score so far, and when a larger one comes, it "
         "scales down what was summed before.",
         "13", formula="sum ← sum · exp(old max − new max) + exp(x − new max)"),
    Term("MPI", "메시지 전달 인터페이스(MPI)",
         "A standard for processes that send each other numbers, on one machine or on many. Its "
         "launcher, `mpiexec`, starts a program several times.",
         "14"),
    Term("all-reduce", "올리듀스(all-reduce)",
         "Every process gives a list of numbers, and every one gets the sum of all lists.",
         "14"),
    Term("ring", "링 올리듀스(ring all-reduce)",
         "A way to all-reduce: each process passes one piece at a time to the next, once round to "
         "add and once round to copy. However many there are, each sends less than two lists.",
         "14", formula="2 (n − 1) / n"),
    Term("latency", "지연 시간(latency)",
         "The time until a message arrives, however short it is.",
         "14"),
    Term("speed-up", "속도 향상(speedup)",
         "How many times as fast something is with n processes as with one.",
         "14", formula="t(1) / t(n)"),
)
