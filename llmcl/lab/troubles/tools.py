"""The lab's own tools: work-items, pictures, sliders, and lesson 16."""

from .entry import Trouble

TROUBLES = (
    Trouble(
        "no work-item is running; call get_global_id inside of lab.run_items.",
        "Only while a work-item runs is there a number to give. You called the function on its "
        "own.",
        "`lab.run_items(item, size, …)` calls it once for every work-item.",
    ),
    Trouble(
        "local(…) is no memory; give a whole number above 0.",
        "Local memory is counted in floats, so the count is whole.",
        "`lab.local(16)`.",
    ),
    Trouble(
        "…[…]: a kernel sees one long line of numbers, so the place must be one whole number, "
        "such as row * n + col.",
        "In a kernel there are no rows: an array is a pointer to its first number. `x[row, col]` "
        "and slices are NumPy's.",
        "`x[row * n + col]`, with n the number of columns.",
    ),
    Trouble(
        "the size … and the group … must have the same length.",
        "With a size of two dimensions the group has two as well.",
        "`group=(4, 4)` for `size=(8, 8)`.",
    ),
    Trouble(
        "… takes …; … were given.",
        "`lab.run_items` hands your function its arguments, and their number must be the "
        "function's.",
        "Compare with the names in the message; arrays first, as in the kernel.",
    ),
    Trouble(
        "… is no number of work-items; give one to three whole numbers above 0.",
        "The size is a whole number or a tuple of up to three.",
        "`size=8` or `size=(8, 4)`.",
    ),
    Trouble(
        "… does not lie row after row; pass np.ascontiguousarray(…).",
        "A transposed or sliced array jumps about in memory; a kernel would read the wrong "
        "numbers. On a device `from_host` copies it into order.",
        "Do what the message says.",
    ),
    Trouble(
        "work-item … reads …[…], which nobody has written",
        "Local memory has no first value, and this element was read before anybody wrote it.",
        "Let every work-item write its own element, then a barrier (`yield`), then read.",
        kind="printed",
    ),
    Trouble(
        "work-item … reads …[…]; … has … elements",
        "The place lies outside of the array. A kernel does not stop there; it reads whatever "
        "lies behind.",
        "A guard, as in `if (i >= n) return;`, or a smaller end of the loop. A place of -1 is "
        "outside too.",
        kind="printed",
    ),
    Trouble(
        "work-item … writes …[…]; … has … elements",
        "The place lies outside of the array. On a device the write would change memory that "
        "belongs to something else.",
        "A guard, as in `if (i >= n) return;`, or a smaller end of the loop.",
        kind="printed",
    ),
    Trouble(
        "work-item … waits at a barrier that work-item … never reaches",
        "All work-items of a group must come to every barrier. One of them left or took another "
        "way; on a GPU the group would hang.",
        "Take the `yield` out of the `if`.",
        kind="printed",
    ),
    Trouble(
        "work-item … waits at the barrier in line …, and work-item … at another, in line …",
        "The two wait at different barriers, in two branches. They would wait for each other for "
        "ever.",
        "Use one barrier behind both branches.",
        kind="printed",
    ),
    Trouble(
        "work-items … and … both use …[…], one of them writes it, and no barrier stands between",
        "A race: which of the two is first is luck. Run by run the result may differ.",
        "A barrier between, if they are in one group; else let each work-item write an element of "
        "its own.",
        kind="printed",
    ),
    Trouble(
        "… is no kind of access; take one of ….",
        "An access is a read, a write or an atomic one.",
        '`lab.gaps(run, "x", "read")`.',
    ),
    Trouble(
        "the run has no array …; it has ….",
        "Arrays are called as the function's parameters are.",
        "Take a name from the list.",
    ),
    Trouble(
        "by=… is neither 'item' nor 'step'.",
        "The viewer walks through work-items, or through the moments of a run.",
        '`by="item"` or `by="step"`.',
    ),
    Trouble(
        "… has the shape …, which makes … x … cells; a picture has 1 to … a side, so run it with "
        "other sizes.",
        "Every element is a square with a number in it, and too many cannot be read.",
        "Run the item with sizes such as 5, 6, 7; odd ones show more.",
    ),
    Trouble(
        "the shape … is no matrix; pass (rows, cols).",
        "A picture of cells has two directions.",
        "`x.reshape(rows, cols)`, or one batch of it: `x[0]`.",
    ),
    Trouble(
        "… has more than … cells a side, which nobody can read; use smaller sizes.",
        "The picture would be grey.",
        "Show a corner: `x[:8, :8]`.",
    ),
    Trouble(
        "… has the shape …; the matrix has ….",
        "Each cell has one label and one color, so their table has the matrix's shape.",
        'Build it with `np.full(x.shape, "")` and fill it.',
    ),
    Trouble(
        "no color is called …; take one of ….",
        "The pictures use a few colors that also those can tell apart who see no red or green.",
        "Take one from the list, or a name of matplotlib's.",
    ),
    Trouble(
        "there is no cell … to highlight in ….",
        "The pair lies outside of the matrix; both count from 0.",
        "`highlight=[(row, col)]`.",
    ),
    Trouble(
        "… has … tokens; the matrix … needs ….",
        "Each row or column has one label.",
        "Check whether labels and matrix come from one text.",
    ),
    Trouble(
        "… captions for … steps; each step needs one.",
        "The line below the pieces changes with them.",
        "Make the two lists equally long.",
    ),
    Trouble(
        "a row of boxes needs at least one piece, and a caption that says what there is to see.",
        "An empty row shows nothing, and without words those who cannot see get nothing.",
        "Give both.",
    ),
    Trouble(
        "a picture needs a text for those who cannot see it; pass it as alt.",
        "The text is read aloud, and printed where pictures cannot be shown.",
        "One sentence on what there is to see, not on what it is.",
    ),
    Trouble(
        "a picture has at least 1 column; … is none.",
        "Columns are panels side by side.",
        "Leave it out for one.",
    ),
    Trouble(
        "a slider needs at least one value; the list is empty.",
        "There is nothing to move.",
        "Look at what made the list.",
    ),
    Trouble(
        "the slider has no … to start at; it goes from … to ….",
        "The start must be one of the values.",
        "Take one, or leave it out.",
    ),
    Trouble(
        "measuring every … steps is not possible; choose 1 or more.",
        "The live picture measures after so many steps.",
        "`every=25` is the default.",
    ),
    Trouble(
        "… turns measure nothing; take 1 or more.",
        "A median needs something to take the middle of.",
        "Three or more; odd numbers have a middle.",
    ),
    Trouble(
        "Stopped after step …. The model is as that step left it.",
        "No fault: somebody pressed Stop, and the last step was finished first.",
        "Go on with the cells below, or run the cell again; it trains on from here only if the "
        "lesson says so.",
        kind="printed",
    ),
    Trouble(
        "there is no group …; choose one of ….",
        "In lesson 16 each of the five faults belongs to a stretch of the road, and this is none "
        "of them.",
        "Take one from the list.",
    ),
    Trouble(
        "… holds the copy of number …; choose that number again, or delete the folder to begin "
        "anew.",
        "Your folder holds a copy with your changes in it, made for another number. It is not "
        "overwritten.",
        "Use the number in the message, or delete the folder if you do not need your work.",
    ),
    Trouble(
        "… holds the copy of number …, and not of …; give the number that it was made with.",
        "Points are counted for the faults of one number, and this folder was made for another.",
        "Give the first number in the message; it also stands in the folder's number.txt.",
    ),
    Trouble(
        "the copy cannot be imported: …: …; look at the file that you changed last.",
        "Your change left Python text that cannot be read: a bracket, or an indentation. The "
        "error's kind and words stand before the semicolon.",
        "Undo the last change; then make it again in smaller steps.",
    ),
    Trouble(
        "the fault … finds no place in ….",
        "The package was changed, so the text that a fault exchanges is not there any more. It "
        "concerns whoever changes llmcl itself.",
        "Use an unchanged checkout: `git status` shows what differs.",
    ),
    Trouble(
        "… holds no folder `sabotaged`; name the student's folder.",
        "For the teacher: the folder is not one that lesson 16 made.",
        "Name the folder that holds `sabotaged`, tests.py and findings.json.",
    ),
    Trouble(
        "exercise … earns no marks; its own cell says what is wrong.",
        "Graded: the exercise's cell was empty, wrong, deleted or not run.",
        "Read the line below the exercise's own cell. A cell that was deleted can be copied from "
        "a fresh notebook of the lesson.",
    ),
    Trouble(
        "the number is empty; give the learner's number, or another text.",
        "A sheet of `llmcl.lab.variants` is made from a number, and there was none.",
        "`python -m llmcl.lab.variants sheet 4711`, with the learner's own number.",
    ),
    Trouble(
        "lesson … has no question on the sheet; these have: ….",
        "A lesson behind `--lessons` has no question in `llmcl.lab.variants`.",
        "Choose among the lessons in the message, such as `--lessons 02 04a`.",
    ),
    Trouble(
        "the sheet has no line such as `Answer 1: 42`; hand in the sheet itself.",
        "The file is not a sheet of `llmcl.lab.variants`, or its answer lines were changed.",
        "Write each answer behind its own `Answer N:` in the sheet, and hand that in.",
    ),
    Trouble(
        "the sheet … cannot be read: …; name another file.",
        "The file that was handed in is not there, or is no text.",
        "Check the path. A sheet is a text in UTF-8, such as sheet.md.",
    ),
    Trouble(
        "tests.py has no test, or did not end: a test is a function test_…(m).",
        "Only functions whose names begin with test_ are tests, and each takes the package as m. "
        "A loop without an end is stopped after two minutes.",
        "Look at `test_example` in the file.",
        kind="printed",
    ),
    Trouble(
        "a block has no part …; its parts are ….",
        "Lesson 08c looks at the parts of a block by name.",
        "Take one from the list.",
    ),
    Trouble(
        "asked more than … times; does each question halve?",
        "Halving finds the place in a few questions; asking one after the other does not.",
        "Ask about the middle of what is left each time.",
    ),
    Trouble(
        "there is no area … of troubles; there are ….",
        "The tables of the notebook 91 are called by short names.",
        'Take one from the list: `lab.show_troubles("files")`.',
    ),
    Trouble(
        "interactive(children=",
        "A slider that is shown as text: the page does not know widgets.",
        "`pip install ipywidgets` in the Python of the page, restart JupyterLab, reload the page.",
        kind="other",
    ),
)
