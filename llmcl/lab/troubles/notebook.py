"""Exercises, marks, JupyterLab and the installation."""

from .entry import Trouble

TROUBLES = (
    Trouble(
        "○ …: not … yet; the lesson goes on with the reference",
        "No fault: you have not written (or mended) this exercise yet. The cells below use ours "
        "meanwhile, so that *Run All* goes through.",
        "Write into the cell above the line and run that cell again.",
        kind="printed",
    ),
    Trouble(
        "○ question …: choose one of …",
        "No fault: the question waits for you.",
        'Press a button below it, or write the letter into the call: `lab.quiz("00.q1", "B")`.',
        kind="printed",
    ),
    Trouble(
        "○ guess …: none yet; write one into this cell, and run it again",
        "No fault: you are asked to guess before the next cell shows the number.",
        '`lab.predict("00.3", guess=3.5)`; a wrong guess teaches most.',
        kind="printed",
    ),
    Trouble(
        "○ guess …: there was none, so there is nothing to compare",
        "The cell with the guess has none in it, or was not run in this session.",
        "Go back to it, write a number, run it, and run this cell again.",
        kind="printed",
    ),
    Trouble(
        "✗ guess …: …",
        '"too low" or "too high": the guess is more than a fifth away. That is no fault of '
        "anything.",
        "Ask what you had expected, and read on; the reason follows.",
        kind="printed",
    ),
    Trouble(
        "✗ …: raises …: …",
        "Your function stopped with an error of Python's before it gave a result. Its kind and "
        "words stand behind the name.",
        "Call the function yourself in a new cell with a small array; Python then shows the line.",
        kind="printed",
        wraps=True,
    ),
    Trouble(
        "✗ …: at … you have …, expected …",
        "Your function (or kernel) ran, and this is the first number that differs, with its place.",
        "Compute this one number by hand. If a question follows in the line, it names the usual "
        "reason.",
        kind="printed",
    ),
    Trouble(
        "✗ …: you have …, expected …",
        "The result is not the one that is wanted.",
        "Compare the two in the line: type first, then value.",
        kind="printed",
    ),
    Trouble(
        "✗ …: returns nothing; is a `return` missing?",
        "A function without `return` gives None, even if it computed everything.",
        "Add `return result` as its last line, at the indentation of the body.",
        kind="printed",
    ),
    Trouble(
        "✗ …: returns the shape …, expected …",
        "The numbers may be right; they lie in another number of rows or columns.",
        "`keepdims=True` keeps a summed axis; `.T` exchanges two; `[0]` takes a batch dimension "
        "off.",
        kind="printed",
    ),
    Trouble(
        "✗ …: the result has the shape …, expected …",
        "A kernel's output has another size than the reference's.",
        "Look at the size of the tensor that the result is written to.",
        kind="printed",
    ),
    Trouble(
        "✗ …: changes what it was given; work on a copy",
        "`x -= 1` and `x[0] = 1` change the caller's array too, and the caller did not ask for "
        "that.",
        "`x = x - 1`, or begin with `x = x.copy()`.",
        kind="printed",
    ),
    Trouble(
        "✗ …: … is not it",
        "The letters, or the secret answer, are not right; what would be is not told, so that you "
        "can go on trying.",
        "Open the hint below the exercise.",
        kind="printed",
    ),
    Trouble(
        "✗ …: …; rounding does not explain it.",
        "A check compared a result with NumPy in float64, and the difference is larger than "
        "float32's rounding can make it. So something is computed otherwise, not only less "
        "exactly.",
        "The message gives the place. Compute this element by hand; for a kernel of ours, run "
        "`llmcl check`.",
    ),
    Trouble(
        "at … you have …, expected …: error … above its bound …",
        "The bound follows from the numbers of the sum: as many additions, as large terms. A "
        "result beyond it is wrong, however near it looks.",
        "If all elements differ, look for a wrong formula; if only the last ones do, for a wrong "
        "end of a loop.",
        kind="printed",
    ),
    Trouble(
        "the shape is …, expected …",
        "The two cannot be compared number by number.",
        "Print both shapes; often a batch dimension is missing.",
        kind="printed",
    ),
    Trouble(
        "exercise … is …: …",
        "LLMCL_GRADE=1 is set, so a missing or wrong exercise stops the notebook, as a grader "
        "wants it.",
        "To learn rather than to grade, unset LLMCL_GRADE and restart the kernel.",
        wraps=True,
    ),
    Trouble(
        "exercise … was not run; put its cell back from the lesson, and run all.",
        "Graded again: the cell of this exercise was deleted, or not run.",
        "Copy the cell from a fresh notebook of the lesson.",
    ),
    Trouble(
        "question … has no answer …; it has ….",
        "The question has other letters.",
        'Take one of them, in quotes: `lab.quiz("00.q1", "B")`.',
    ),
    Trouble(
        "guess … is a number, such as guess=3.5; … is none.",
        "The guess is compared with a number.",
        "Without quotes, with a point: `guess=3.5`.",
    ),
    Trouble(
        "there is no lesson …; a lesson's number looks like '04a'.",
        'The number is a text with two digits and perhaps a letter; 4 or "4a" is none.',
        '`lab.start("04a")`.',
    ),
    Trouble(
        "there is no … here; this lesson has ….",
        "A lesson's exercises and questions have numbers such as 04a.2 and 04a.q3, and this is "
        "none of them.",
        "Put the number back as it stands in the lesson.",
    ),
    Trouble(
        "lesson … trains no model; there are ….",
        "Only two lessons end with a model that others load.",
        '`lab.checkpoint("09", engine)` after pretraining, "10" after tuning.',
    ),
    Trouble(
        "Your own model cannot be used: …",
        "Lesson 09 or 10 stored a model of yours, and it cannot be read; the shipped one takes "
        "its place. The reason follows.",
        "Run that lesson again, or delete its folder build/lesson-09.",
        kind="printed",
        wraps=True,
    ),
    Trouble(
        "The model is the shipped one; your own takes its place when you run lesson …",
        "No fault: a later lesson needs a trained model, and you have not trained yours yet.",
        "Nothing.",
        kind="printed",
    ),
    Trouble(
        "the lesson cannot write to …; set LLMCL_LAB to a folder that you may write to.",
        "A lesson stores its files in build/ of the checkout, else in the folder for temporary "
        "files; neither lets you write.",
        "`export LLMCL_LAB=$HOME/llmcl-lab` before you start Jupyter.",
    ),
    Trouble(
        "… is …, and … is wanted here; look at the number in the lesson's text.",
        "The number is there, and belongs to something else: `lab.quiz` takes a question (00.q1), "
        "`lab.exercise` a function to write (00.1), `lab.kernel_exercise` a kernel, and "
        "`lab.run_broken` a kernel that a lesson broke on purpose (01a.no_guard).",
        "Copy the number from the lesson.",
    ),
    Trouble(
        "… stands … times in …, not once.",
        "For whoever writes exercises: a mistake is made by exchanging a text, and the text must "
        "be there once only.",
        "Give a longer piece of the kernel.",
    ),
    Trouble(
        "NotImplementedError",
        "An exercise's cell was called outside of its decorator, or the line `@lab.exercise(…)` "
        "above it is gone.",
        "Put the line back, directly above `def`.",
        kind="other",
    ),
    Trouble(
        "NameError: name … is not defined",
        "The cell that makes this name was not run in this session. After a restart all names are "
        "gone, while the old outputs still stand on the page.",
        "*Run → Run All Above Selected Cell*, then this cell again.",
        kind="other",
    ),
    Trouble(
        "ModuleNotFoundError: No module named 'llmcl'",
        "The notebook runs in another Python than the one in which llmcl is installed.",
        "`make lab` starts the right one. Otherwise choose it at the top right of the page, or "
        "`pip install -e '.[dev]'` with it.",
        kind="other",
    ),
    Trouble(
        "ModuleNotFoundError: No module named …",
        "A package is missing in the Python that runs this notebook; the name may differ from the "
        "package's.",
        "In a cell: `%pip install NAME`, with the percent sign, so that it goes into this Python. "
        "Then restart the kernel.",
        kind="other",
    ),
    Trouble(
        "'lab' has no attribute …",
        "The lesson is newer than the package that is loaded.",
        "Restart the kernel; if it stays, update the checkout and run `make lab` again.",
        kind="other",
    ),
    Trouble(
        "KeyboardInterrupt",
        "You pressed Stop, or a grader's time ran out (30 seconds a cell is a usual limit).",
        "Nothing is broken. Run the cell again, or give the grader a longer limit.",
        kind="other",
    ),
    Trouble(
        "Error displaying widget: model not found",
        "The page shows a slider that was stored, but no Python runs behind it.",
        "Run the cell. In JupyterLab, reload the page after installing ipywidgets.",
        kind="other",
    ),
    Trouble(
        "make: command not found",
        "make is a small program that Linux and macOS bring, Windows and bare containers do not.",
        'The four lines under "Without make" in the README do the same. On Windows, '
        "`.venv\\Scripts\\python` stands for `.venv/bin/python`.",
        kind="other",
    ),
    Trouble(
        "command not found",
        "The terminal knows no program of this name: it is not installed, or lies in a folder "
        "that the terminal does not search.",
        "Ours lie in the environment: `.venv/bin/llmcl`, `.venv/bin/jupyter lab`. After an "
        "installation (`ollama`, `lms`), open a new terminal.",
        kind="other",
    ),
    Trouble(
        "is not recognized as …",
        "Windows' words for a program or command that it does not find.",
        "`.venv\\Scripts\\llmcl`, `.venv\\Scripts\\jupyter lab`. After an installation, open a new "
        "terminal.",
        kind="other",
    ),
    Trouble(
        "running scripts is disabled on this system",
        "PowerShell runs no script files until you allow it, and Activate.ps1 is one.",
        "You need not activate: `.venv\\Scripts\\python -m jupyter lab notebooks`.",
        kind="other",
    ),
    Trouble(
        "llmcl needs Python 3.11 or newer with its venv module",
        "The Python that make found is too old, or was installed without `venv` (Debian and "
        "Ubuntu pack it apart).",
        "`apt install python3-venv`, or name a newer one: `make PYTHON=/path/to/python3.12 lab`.",
        kind="other",
    ),
    Trouble(
        "externally-managed-environment",
        "The system's own Python refuses packages from pip, so that it stays whole.",
        "Use an environment: `python3 -m venv .venv`, then `.venv/bin/pip install …`. `make` does "
        "so.",
        kind="other",
    ),
    Trouble(
        "no matches found: .[dev]",
        "The shell zsh reads square brackets itself.",
        "Put quotes around: `pip install -e '.[dev]'`.",
        kind="other",
    ),
    Trouble(
        "Running as root is not recommended",
        "Jupyter does not start for the user root unless it is told to, and in a container you "
        "often are root.",
        "`make lab` tells it. By hand: `jupyter lab --allow-root`.",
        kind="other",
    ),
    Trouble(
        "Address already in use",
        "Another JupyterLab runs at this port already.",
        'Use that one, or `make lab ARGS="--port 9000"`.',
        kind="other",
    ),
    Trouble(
        "No space left on device",
        "The disk is full. The environment needs about 1 GB.",
        "`df -h` shows which; `pip cache purge` frees some.",
        kind="other",
    ),
)
