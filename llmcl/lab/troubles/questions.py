"""Troubles that show no message, as somebody would ask for them."""

from .entry import Trouble

TROUBLES = (
    Trouble(
        "The kernel died, or restarts by itself. What happened?",
        "A kernel dies when the system ends the Python behind the page. Either memory ran out, or "
        "code outside of Python crashed: a kernel that wrote past the end of its arrays, a driver, "
        "or llama.cpp in the same process.",
        "*Kernel → Restart Kernel*, then run all cells above. If it was your own kernel, try it "
        "with `lab.kernel_exercise` or LLMCL_DEVICE=oclgrind, which name the line. For memory: "
        "halve the batch, close other notebooks.",
        kind="question",
    ),
    Trouble(
        "Nothing happens when I press Run. Why?",
        "`[*]` at the left means that the cell waits for its turn: an earlier one still runs. No "
        "mark at all means that the cell is text, or that the page lost its Python.",
        "*Kernel → Interrupt*, then look which cell had `[*]` first. If the circle at the top "
        "right is a lightning bolt, *Kernel → Restart*.",
        kind="question",
    ),
    Trouble(
        "JupyterLab does not start, or its page stays empty. Why?",
        "The terminal in which you started it says why, in its last lines: a port in use, a "
        "missing package, no browser. In a container or on another computer, the page is there "
        "and your browser cannot reach it.",
        "Open the whole address that the terminal prints, with its token. In a container, `make "
        'lab ARGS="--ip 0.0.0.0 --no-browser"` with port 8888 open to you.',
        kind="question",
    ),
    Trouble(
        "A slider or a button does not show, or shows as plain text. Why?",
        "Widgets need the package ipywidgets in the Python that serves the page, and a page that "
        "was loaded after it was installed. On GitHub and in a viewer there is no Python, so a "
        "picture stands in its place.",
        "`pip install ipywidgets`, restart JupyterLab, reload the page. Every lesson works "
        'without: write the answer into the call, as in `lab.quiz("00.q1", "B")`.',
        kind="question",
    ),
    Trouble(
        "No OpenCL platform is found, though I have a graphics card. Why?",
        "The card is one thing, its driver's OpenCL part another. Containers, WSL and small Linux "
        "installations often lack the second.",
        "`llmcl doctor` tells what the system sees and what OpenCL sees. On Linux `pip install "
        "pocl-binary-distribution` gives you the processor at once.",
        kind="question",
    ),
    Trouble(
        "PoCL is listed, but every kernel fails. Why?",
        "Most often there is no linker on the machine: PoCL's last step calls one. The first "
        "kernel's log names `ld`.",
        "`apt install gcc`, or `pip install ziglang`; then restart the kernel.",
        kind="question",
    ),
    Trouble(
        "`make` is not there. What now?",
        "Windows and bare containers have no make.",
        "`python3 -m venv .venv`, `.venv/bin/pip install -e '.[dev]'`, `.venv/bin/jupyter lab "
        "notebooks`. That is all that `make lab` does, but for a check of your Python.",
        kind="question",
    ),
    Trouble(
        "Which Python runs my notebook, and is it the wrong one?",
        "One machine often has several, and each has its own packages. JupyterLab may start "
        "another one than your terminal.",
        "In a cell: `import sys; print(sys.executable)`. It should end in `.venv/bin/python`. "
        "*Kernel → Change Kernel* chooses another.",
        kind="question",
    ),
    Trouble(
        "My numbers differ from those on the page. Is something broken?",
        "Probably not. Another device adds in another order, and float32 rounds each sum; after "
        "hundreds of steps of training the digits differ. The lessons compare words and bounds, "
        "not digits.",
        "If the checks (✓) pass, all is well. `llmcl check` compares every kernel with NumPy.",
        kind="question",
    ),
    Trouble(
        "Two runs on one machine give different numbers. Why?",
        "Somewhere the order is luck: two work-items add to one place, or a seed is missing. Our "
        "own kernels give the same bits every time on one device.",
        "Look for a race with `lab.run_items` in the kernel that you wrote; give every random "
        "generator a seed.",
        kind="question",
    ),
    Trouble(
        "A cell takes very long the first time and is quick afterwards. Why?",
        "Kernels are compiled for your device when they are first needed, and then kept.",
        "Nothing. If it is slow every time, the cache cannot be written: `llmcl doctor` says so "
        'under "notes".',
        kind="question",
    ),
    Trouble(
        "Training is slow. How can I make it faster?",
        "Time grows with width, layers and batch, and with the square of the context. On a CPU "
        "other programs take their share.",
        "Close them; halve the batch; look with `llmcl doctor` which device is used. The strict "
        "simulator is never meant for training.",
        kind="question",
    ),
    Trouble(
        "My GPU is not found, or not used. Why?",
        "The best device that *works* is taken. A GPU that fails its test is passed over, and one "
        "without an OpenCL driver is not seen.",
        "`llmcl doctor`; its notes say why. `LLMCL_DEVICE=nvidia` (or amd, intel) asks for it by "
        "name, and gives the reason if it cannot be had.",
        kind="question",
    ),
    Trouble(
        "The loss does not fall. What should I look at?",
        "The learning rate is too small or too large, targets are not shifted by one, or a "
        "gradient is wrong or never cleared.",
        "The first loss must be near the logarithm of the vocabulary's size. Then compare "
        "gradients as in lesson 08c; then try a rate three times larger and three times smaller.",
        kind="question",
    ),
    Trouble(
        "The loss falls to almost nothing at once, and the text repeats one token. Why?",
        "The targets are the inputs themselves: the model learns to copy. Or the mask lets it see "
        "the next token.",
        "Print a row: the target at a place must be the input at the next one. Then run the leak "
        "test of lesson 04a.",
        kind="question",
    ),
    Trouble(
        "The model answers nonsense. Where do I start?",
        "Either it never learned, or it is asked otherwise than it was trained, or file and model "
        "differ.",
        "In this order: is the last loss below 0.5? Does `llmcl chat` answer well? If yes, the "
        "file's reader or its prompt is at fault: `llmcl verify model.gguf`, and the form `User: "
        "…`, new line, `Assistant:`.",
        kind="question",
    ),
    Trouble(
        "The answer is right, and then the model does not stop talking. Why?",
        "The end token was not learned, or the program does not know it as a stop.",
        "In training, each answer's last target must be the end token (`tune_rows` does this). In "
        'Ollama: `PARAMETER stop "<|endoftext|>"` and `PARAMETER stop "User:"`.',
        kind="question",
    ),
    Trouble(
        "It answers in the notebook, and badly in another program. Why?",
        "The program writes the prompt in another form: a template of its own, a system message, "
        "a space behind `Assistant:`, a temperature above 0.",
        "Use the template in the file (in Ollama our Modelfile), temperature 0, no system message.",
        kind="question",
    ),
    Trouble(
        "After tuning it has forgotten the sentences. Is that a fault?",
        "No. What is not repeated is overwritten by what is new.",
        "Mix the old rows into the new ones, as lesson 10 does and `llmcl train` too.",
        kind="question",
    ),
    Trouble(
        "It can only say what I taught it. Is that a fault?",
        "No. A few thousand words are enough to learn by heart and far too few to generalize.",
        "Lesson 15 trains on a megabyte of your own text, and holds some of it back to see the "
        "difference.",
        kind="question",
    ),
    Trouble(
        "Letters come out as � or boxes. Why?",
        "A character of several bytes (Korean, an emoji) was cut between two tokens, or is still "
        "being generated. Boxes mean that a font lacks the sign.",
        "Decode all ids together, or use `StreamDecoder`, which waits for the whole character.",
        kind="question",
    ),
    Trouble(
        "Ollama or LM Studio refuses the file. What can I do?",
        "Their llama.cpp may be older, the file may be cut, or a key or tensor may be missing. "
        "They often show only the last line of the reason.",
        "`llmcl verify model.gguf` asks a current llama.cpp and gives its words; paste them into "
        "`lab.trouble`. Then update the program.",
        kind="question",
    ),
    Trouble(
        "LM Studio does not show my model. Why?",
        "It lists only files that lie two folders deep in its models folder: publisher, then "
        "model.",
        "Make `models/me/my-model/model.gguf`; lesson 12b shows it step by step.",
        kind="question",
    ),
    Trouble(
        "The program ends after some turns of a chat. Why?",
        "The conversation has become longer than the model's context, and there is no row for the "
        "next place.",
        "Limit the window to the model's own: `-c 256`, `PARAMETER num_ctx 256`; begin a new chat.",
        kind="question",
    ),
    Trouble(
        "A file of mine is not found, though I see it. Why?",
        "A relative path starts where the program runs. For a notebook that is its own folder, "
        "notebooks/, and in VS Code it may be the project's.",
        "`import os; print(os.getcwd())`, or give the whole path, from the root or the drive on.",
        kind="question",
    ),
    Trouble(
        "My work in a notebook is gone after an update. Can I get it back?",
        "The builder never writes over a notebook that you changed; it stops and says so. An "
        "update by git may have left yours under another name, or asks you first.",
        "Keep your work as a copy under another name: *File → Save Notebook As*. What lessons "
        "store lies in build/lesson-NN and is never touched by an update.",
        kind="question",
    ),
    Trouble(
        "Many of us share one computer or one home folder. What should we set?",
        "Each running process takes a cache folder of its own, so you do not disturb each other, "
        "but a network home may be slow or full.",
        "`LLMCL_CACHE=off` uses a temporary folder of the machine; LLMCL_LAB gives each a place "
        "for the lesson's files.",
        kind="question",
    ),
    Trouble(
        'A page in the web offers a "fix" to download for my error. Should I?',
        'No. Replies that offer an archive with a password, a "compiler" or a single DLL are a '
        "known trap below reports of loading errors.",
        "Search in this notebook, then in the project's own issues. Nothing here ever needs a "
        "download beside pip, conda, your system's packages and the maker's driver page.",
        kind="question",
    ),
)
