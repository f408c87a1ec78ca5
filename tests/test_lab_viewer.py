"""The viewer of work-items, grids of cells, heat maps, and texts as pieces."""

import re

import numpy as np
import pytest

from llmcl.errors import LlmclError
from llmcl.lab import display, viewer
from llmcl.lab.cells import (
    cells,
    explore_pieces,
    heat,
    pieces_html,
    readable,
    show_pieces,
    shown_token,
)
from llmcl.lab.items import atomic_inc, get_global_id, get_local_id, local, run_items
from llmcl.lab.pictures import COLORS, explore, figure, page_slider, png
from llmcl.lab.viewer import Touches, gaps, touch_counts, view_items

m, n, k = 4, 7, 5


def matmul_item(a, b, c, m, n, k):
    row, col = get_global_id(0), get_global_id(1)
    product(a, b, c, m, n, k, row, col)


def swapped_item(a, b, c, m, n, k):
    col, row = get_global_id(0), get_global_id(1)
    product(a, b, c, m, n, k, row, col)


def product(a, b, c, m, n, k, row, col):
    if row >= m or col >= n:
        return
    total = np.float32(0)
    for p in range(k):
        total += a[row * k + p] * b[p * n + col]
    c[row * n + col] = total


def zeros(*shape):
    return np.zeros(shape, np.float32)


def matmul_run(item, size, group=1):
    return run_items(item, size, zeros(m, k), zeros(k, n), zeros(m, n), m, n, k, group=group)


@pytest.fixture
def shown(monkeypatch):
    """What would be displayed: a list of (data, metadata)."""
    import IPython.display

    found = []

    def display(data, metadata=None, raw=False):
        found.append((data, metadata or {}))

    monkeypatch.setattr(IPython.display, "display", display)
    return found


def slider_and_view(data):
    """The live slider of a bundle, and the HTML below it."""
    from ipywidgets import widget

    number = data["application/vnd.jupyter.widget-view+json"]["model_id"]
    line, view = widget._instances[number].children
    return line.children[0], view


# ---- in numbers ----


def test_counts_of_reads_writes_and_elements():
    run = matmul_run(matmul_item, (m, n), group=(2, 2))
    assert touch_counts(run) == {
        "a": Touches(m * n * k, 0, m * k),
        "b": Touches(m * n * k, 0, k * n),
        "c": Touches(0, m * n, m * n),
    }

    def count(n, untouched):
        atomic_inc(n, 0)

    counts = touch_counts(run_items(count, 3, np.zeros(2, np.int32), zeros(2)))
    assert counts == {"n": Touches(3, 3, 1), "untouched": Touches(0, 0, 0)}


@pytest.mark.parametrize("seed", range(3))
def test_the_gap_between_neighbours_is_what_swapping_the_ids_changes(seed):
    naive, swapped = matmul_run(matmul_item, (m, n)), matmul_run(swapped_item, (n, m))
    assert [gaps(naive, "a"), gaps(naive, "b"), gaps(naive, "c", "write")] == [k, 0, n]
    assert [gaps(swapped, "a"), gaps(swapped, "b"), gaps(swapped, "c", "write")] == [0, 1, 1]
    assert gaps(naive, "c") is None


def test_a_gap_that_is_not_constant_is_none():
    def square(x):
        x[get_global_id(0) ** 2] = 1

    assert gaps(run_items(square, 4, zeros(16)), "x", "write") is None


def test_an_unknown_array_or_kind_is_named():
    run = matmul_run(matmul_item, (m, n))
    with pytest.raises(LlmclError, match="no array 'd'; it has a, b, c"):
        gaps(run, "d")
    with pytest.raises(LlmclError, match="'look' is no kind of access; take one of read, write"):
        gaps(run, "a", "look")
    with pytest.raises(LlmclError, match="no array 'd'"):
        view_items(run, ["a", "d"])
    with pytest.raises(LlmclError, match="by='group' is neither"):
        view_items(run, by="group")


# ---- one work-item ----


def text_of(shown):
    return shown[-1][0]["text/plain"]


def test_one_work_item_in_words(shown):
    run = matmul_run(matmul_item, (m + 1, n))
    view_items(run, start=(1, 2))
    assert text_of(shown) == (
        "Work-item (1, 2) reads 5 elements of a and 5 of b, and writes 1 element of c."
    )
    view_items(run, ["c"], start=(1, 2))
    assert text_of(shown) == "Work-item (1, 2) writes 1 element of c."
    view_items(run, start=(m, 0))
    assert text_of(shown) == f"Work-item ({m}, 0) touches nothing."
    view_items(run)
    assert text_of(shown).startswith("Work-item (0, 0) reads")


def test_a_picture_carries_its_words_and_is_the_same_each_time(shown):
    for seed in (0, 0):
        run = run_items(
            matmul_item, (m, n), zeros(m, k), zeros(k, n), zeros(m, n), m, n, k, seed=seed
        )
        view_items(run, start=(1, 2))
        view_items(run, by="step", start=3)
    data, metadata = shown[0]
    assert metadata["image/png"] == {"alt": data["text/plain"], "width": 640}
    assert data["image/png"] == shown[2][0]["image/png"]
    assert shown[1][0]["image/png"] == shown[3][0]["image/png"]
    assert data["image/png"].startswith(b"\x89PNG")
    assert int.from_bytes(data["image/png"][16:20], "big") == 640


def test_the_slider_goes_through_the_work_items_in_order(shown):
    view_items(matmul_run(matmul_item, (m, n)), start=(1, 0))
    slider, view = slider_and_view(shown[0][0])
    assert [label for label, _ in slider.options][:6] == [
        "(0, 0)", "(1, 0)", "(2, 0)", "(3, 0)", "(0, 1)", "(1, 1)"
    ]  # fmt: skip
    assert slider.label == "(1, 0)"
    assert "Work-item (1, 0) reads" in view.value
    slider.label = "(2, 0)"
    assert "Work-item (2, 0) reads" in view.value


def test_a_fault_is_told_beside_what_was_touched(shown):
    def shift(x, y):
        y[get_global_id(0)] = x[get_global_id(0) + 1]

    view_items(run_items(shift, 3, zeros(3), zeros(3)), start=2)
    assert text_of(shown) == (
        "Work-item 2 writes 1 element of y. Work-item 2 reads x[3]; x has 3 elements."
    )


def test_reads_writes_and_atomics_are_marked_by_letters(monkeypatch, shown):
    marks = []
    monkeypatch.setattr(viewer, "_label", lambda axes, panel, corner, *what: marks.append(what))

    def mixed(x, y, n):
        y[1] = x[2]
        y[1] += 1
        x[0] = 1
        atomic_inc(n, 0)

    view_items(run_items(mixed, 1, zeros(3), zeros(2), np.zeros(1, np.int32)))
    assert marks == [
        ("W", "orange", "5"), ("R", "blue", "1"), ("RW", "purple", "2"), ("A", "green", "6")
    ]  # fmt: skip
    assert text_of(shown) == (
        "Work-item 0 reads 1 element of x and 1 of y, and writes 1 element of x and 1 of y, and "
        "adds to 1 element of n."
    )


# ---- one step of neighbours ----


@pytest.mark.parametrize(
    ("item", "size", "words"),
    [
        (
            matmul_item,
            (m, n),
            "At step 3, neighbouring work-items read elements of a that lie 5 apart (each in a row "
            "of its own), and read the same element of b.",
        ),
        (
            swapped_item,
            (n, m),
            "At step 3, neighbouring work-items read the same element of a, and read elements of b "
            "that lie 1 apart (side by side).",
        ),
    ],
)
def test_one_step_in_words_tells_the_swapped_ids_apart(shown, item, size, words):
    view_items(matmul_run(item, size), by="step", start=3)
    assert text_of(shown) == words


def test_the_slider_goes_through_the_steps(shown):
    view_items(matmul_run(matmul_item, (m, n)), by="step")
    slider, view = slider_and_view(shown[0][0])
    assert [label for label, _ in slider.options] == [f"{i} of {k}" for i in range(1, k + 1)]
    assert "write elements of c that lie 7 apart" in view.value
    slider.label = "2 of 5"
    assert "of c" not in view.value


def test_the_neighbours_are_those_of_the_first_group(shown, monkeypatch):
    marks = []
    monkeypatch.setattr(viewer, "_label", lambda axes, panel, corner, *what: marks.append(what[0]))

    def copy(x, y, scratch):
        i = get_local_id(0)
        scratch[i] = x[get_global_id(0)]
        yield
        y[get_global_id(0)] = scratch[0]

    run = run_items(copy, 12, zeros(12), zeros(12), local(4), group=4)
    view_items(run, by="step")
    assert marks == ["0", "1", "2", "3"] * 3
    marks.clear()
    view_items(run, ["scratch"], by="step", start=2)
    assert marks == ["0-3"]
    assert text_of(shown).endswith("read the same element of scratch.")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (lambda i: i * i, "write elements of x at uneven distances"),
        (lambda i: 2 * i, "write elements of x that lie 2 apart."),
        (lambda i: 15 - i, "write elements of x that lie -1 apart (side by side)"),
        (lambda i: 4 * i, "write elements of x that lie 4 apart (each in a row of its own)"),
    ],
)
def test_distances_in_words(shown, place, words):
    def write(x):
        x[place(get_global_id(0))] = 1

    view_items(run_items(write, 4, zeros(4, 4)), by="step")
    assert words in text_of(shown)


def test_a_single_work_item_and_an_idle_run(shown):
    def write(x):
        x[0] = 1

    view_items(run_items(write, 1, zeros(4)), by="step")
    assert "write x, but there is only one of them" in text_of(shown)
    view_items(run_items(lambda x: None, 2, zeros(4)), by="step")
    assert text_of(shown) == "At step 1, neighbouring work-items touch nothing."


# ---- sizes ----


def idle(x):
    return


@pytest.mark.parametrize("shape", [(41, 3), (3, 41), (1281,), (0,), (5, 9, 3), (3, 0)])
def test_what_cannot_be_drawn_names_smaller_sizes(shape):
    with pytest.raises(LlmclError, match=r"x has the shape .* run it with other sizes"):
        view_items(run_items(idle, 1, zeros(*shape)))


@pytest.mark.parametrize("shape", [(40, 40), (1280,), (1,), (3, 1), (2, 3, 4), (33,)])
def test_what_can_be_drawn_is_not_wider_than_a_page(shown, shape):
    view_items(run_items(idle, 1, zeros(*shape)))
    assert int.from_bytes(shown[0][0]["image/png"][16:20], "big") == 640


def test_a_start_that_does_not_exist_is_named():
    with pytest.raises(LlmclError, match=r"no \(9, 9\) to start at; it goes from \(0, 0\) to"):
        view_items(matmul_run(matmul_item, (m, n)), start=(9, 9))


# ---- pictures with a slider ----


def test_a_slider_takes_labels_and_values_that_cannot_be_keys(shown):
    drawn = []
    explore(
        lambda axes, value: drawn.append(value),
        [("two", [1, 2]), ("three", [1, 2, 3])],
        lambda value: f"{len(value)} numbers",
        start=[1, 2, 3],
    )
    assert drawn == [[1, 2, 3]]
    slider, view = slider_and_view(shown[0][0])
    assert slider.label == "three"
    slider.label = "two"
    slider.label = "three"
    assert drawn == [[1, 2, 3], [1, 2]]
    assert "3 numbers" in view.value


@pytest.mark.parametrize("start", [1, 2])
def test_a_slider_says_where_it_is_before_it_is_moved(start):
    line, _ = page_slider(str, [1, 2], start, "number").children
    assert line.children[1].value == line.children[0].label == str(start)


def test_plain_values_may_be_tuples_and_arrays(shown):
    matrix = np.eye(2)
    explore(lambda axes, value: None, [(1, 2), (3, 4)], str, start=(3, 4))
    assert text_of(shown) == "(3, 4)"
    explore(lambda axes, value: None, [np.ones(2), matrix], lambda v: f"{v.shape}", start=matrix)
    assert text_of(shown) == "(2, 2)"


def test_columns_and_size_of_a_picture(shown):
    explore(lambda axes, value: [a.plot([value]) for a in axes], [1], str, columns=3, height=2)
    data = shown[0][0]["image/png"]
    assert [int.from_bytes(data[at : at + 4], "big") for at in (16, 20)] == [640, 200]
    made, side_by_side = figure("Two.", columns=2)
    assert len(side_by_side) == 2
    assert made.alt == "Two."
    with pytest.raises(LlmclError, match="at least 1 column"):
        figure("None.", columns=0)


def test_no_values_and_a_wrong_start_are_named():
    with pytest.raises(LlmclError, match="at least one value"):
        explore(lambda axes, value: None, [], str)
    with pytest.raises(LlmclError, match="no 3 to start at; it goes from 1 to 2"):
        explore(lambda axes, value: None, [1, 2], str, start=3)


# ---- cells ----


def words_in(axes):
    return [text.get_text() for text in axes.texts]


def test_cells_show_numbers_or_labels():
    made, (left, right) = figure("Two matrices.", columns=2)
    cells(left, [[1, 2, 3], [4, 5, 6]], title="a $1 (2 x 3)")
    cells(right, [0.5, -0.001], labels=["half", "none"], highlight=[(0, 1)])
    assert words_in(left) == list("123456")
    assert words_in(right) == ["half", "none"]
    assert left.get_title() == "a $1 (2 x 3)"
    assert [t.get_text() for t in left.get_xticklabels()] == ["0", "1", "2"]
    assert left.get_ylim() == (1.5, -0.5)  # row 0 on top
    assert max(patch.get_linewidth() for patch in right.patches) == 3
    assert png(made) == png(made)


def test_fractions_have_two_places_and_no_minus_before_zero():
    _, axes = figure("Fractions.")
    cells(axes, [[0.125, -0.001]])
    assert words_in(axes) == ["0.12", "0.00"]


@pytest.mark.parametrize("name", [*COLORS.values(), "white", "black"])
def test_letters_are_readable_on_every_color(name):
    from matplotlib.colors import to_rgb

    def light(color):
        parts = np.array(to_rgb(color))
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    high, low = sorted((light(name), light(readable(name))), reverse=True)
    assert (high + 0.05) / (low + 0.05) >= 4.5  # what WCAG asks of text


def test_colors_are_named_for_each_cell():
    _, axes = figure("Colors.")
    cells(axes, [[1, 2]], colors=[["blue", ""]])
    shades = axes.images[0].get_array()
    assert np.allclose(shades[0, 0], [0, 0x72 / 255, 0xB2 / 255])
    assert np.allclose(shades[0, 1], 1)
    assert [t.get_color() for t in axes.texts] == ["white", "black"]


@pytest.mark.parametrize(
    ("values", "more", "words"),
    [
        (np.zeros((41, 2)), {}, "more than 40 cells a side"),
        (np.zeros((2, 2, 2)), {}, r"shape \(2, 2, 2\) is no matrix"),
        (np.zeros((0, 2)), {}, "is no matrix"),
        (np.zeros((2, 2)), {"labels": [["a", "b"]]}, r"labels has the shape \(1, 2\)"),
        (np.zeros((2, 2)), {"colors": [["red"], ["red"]]}, r"colors has the shape \(2, 1\)"),
        (np.zeros((1, 2)), {"colors": ["blau", ""]}, "no color is called 'blau'"),
        (np.zeros((1, 2)), {"highlight": [(1, 0)]}, r"no cell \(1, 0\)"),
    ],
)
def test_what_does_not_fit_is_named(values, more, words):
    _, axes = figure("Wrong.")
    with pytest.raises(LlmclError, match=words):
        cells(axes, values, **more)


# ---- heat ----


def test_heat_has_tokens_at_its_edges():
    made, axes = figure("Shares.")
    heat(axes, [[1.0, 0.0], [0.25, 0.75]], ["The", " sun"], [b"\xea\xb0\x80", " $x$"])
    assert [t.get_text() for t in axes.get_xticklabels()] == ["The", "␣sun"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["<EA B0 80>", "␣$x$"]
    assert words_in(axes) == ["1.00", "0", "0.25", "0.75"]
    shades = axes.images[0].get_array()
    assert shades[0, 0, 0] < shades[1, 1, 0] < shades[1, 0, 0] < shades[0, 1, 0]
    assert png(made) == png(made)


def test_heat_without_room_has_no_numbers():
    _, axes = figure("Many shares.")
    heat(axes, np.full((20, 20), 0.05), ["a"] * 20, ["b"] * 20)
    assert words_in(axes) == []
    _, side_by_side = figure("Heads.", columns=4, height=1.5)
    heat(side_by_side[0], np.full((9, 9), 0.05), ["a"] * 9, ["b"] * 9)
    assert words_in(side_by_side[0]) == []


def test_heat_of_nothing_and_of_negatives_is_drawn():
    _, (left, right) = figure("Two.", columns=2)
    heat(left, np.zeros((2, 2)), "ab", "ab")
    heat(right, [[-1.0, 0.0]], "ab", "a")
    assert np.allclose(right.images[0].get_array()[0, 1], 1, atol=0.05)


def test_labels_that_do_not_fit_are_named():
    _, axes = figure("Wrong.")
    with pytest.raises(LlmclError, match=r"xlabels has 3 tokens; the matrix \(1, 2\) needs 2"):
        heat(axes, [[1.0, 0.0]], ["a", "b", "c"], ["a"])


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (" a b", "␣a␣b"),
        ("é", "<C3 A9>"),
        (b"a\x0a\xff", "a<0A FF>"),
        ("", ""),
        ("a가b", "a<EA B0 80>b"),
    ],
)
def test_a_token_in_plain_letters(token, text):
    assert shown_token(token) == text


# ---- pieces of text ----


def test_pieces_are_boxes_with_their_bytes(shown):
    show_pieces(["The", " <b>", "가", b"\xea\xb0"], "Four pieces.")
    data = shown[0][0]
    assert data["text/plain"] == "The|␣<b>|가|�\n54 68 65|20 3C 62 3E|EA B0 80|EA B0\nFour pieces."
    assert "␣&lt;b&gt;</td>" in data["text/html"]
    assert "EA B0 80</td>" in data["text/html"]
    assert "<em>Four pieces.</em>" in data["text/html"]
    assert data["text/html"] == pieces_html([b"The", b" <b>", "가".encode(), b"\xea\xb0"],
                                            "Four pieces.")  # fmt: skip


def test_long_texts_go_on_in_the_next_line(shown):
    show_pieces(list("x" * 50) + ["y" * 100], "Long.")
    bars = [line.count("|") for line in text_of(shown).splitlines()]
    assert bars == [23, 23, 23, 23, 1, 1, 0, 0, 0]


def test_the_merge_slider_fuses_and_marks_what_is_new(shown):
    steps = [["a", "b", "a", "b"], ["ab", "ab"], ["abab"]]
    explore_pieces(steps, ["Bytes.", "One merge.", "Two merges."], "merge", start=1)
    data = shown[0][0]
    assert data["text/plain"] == "ab|ab\n61 62|61 62\nOne merge."
    assert data["text/html"].count("3px solid") == 2
    slider, view = slider_and_view(data)
    assert data["text/html"] in view.value
    slider.index = 0
    assert view.value.count("3px solid") == 0
    slider.index = 2
    assert re.findall(r">(\w+)</td>", view.value) == ["abab"]
    assert "Two merges." in view.value


def test_steps_may_have_labels(shown):
    explore_pieces([("bytes", ["a", "b"]), ("done", ["ab"])], ["Bytes.", "Done."])
    slider, _ = slider_and_view(shown[0][0])
    assert [label for label, _ in slider.options] == ["bytes", "done"]


def test_pieces_and_captions_must_be_there(shown):
    with pytest.raises(LlmclError, match="at least one piece"):
        show_pieces([], "None.")
    with pytest.raises(LlmclError, match="a caption"):
        show_pieces(["a"], " ")
    with pytest.raises(LlmclError, match="1 captions for 2 steps"):
        explore_pieces([["a"], ["b"]], ["One."])
    with pytest.raises(LlmclError, match="no 5 to start at"):
        explore_pieces([["a"], ["b"]], ["One.", "Two."], start=5)


def test_without_ipython_the_text_is_printed(monkeypatch, capsys):
    import sys

    monkeypatch.setitem(sys.modules, "IPython.display", None)
    show_pieces(["a"], "One.")
    display.bundle("words")
    assert capsys.readouterr().out == "a\n61\nOne.\nwords\n"
