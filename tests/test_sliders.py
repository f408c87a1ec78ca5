"""A slider draws its picture when the reader moves it: what it draws with must not have changed."""

import ast

import nbformat
import pytest

from notebook_builder import FOLDER

NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def pictures_of(source):
    """The names outside of it that a cell's own functions use, if the cell has a slider."""
    tree = ast.parse(source)
    calls = [node.func.attr for node in ast.walk(tree)
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]  # fmt: skip
    functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Lambda))]
    if not {"explore"} & set(calls):
        return set()
    return set().union(*(outer_names(function) for function in functions))


def outer_names(function):
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    own = {arg.arg for n in ast.walk(function) if isinstance(n, ast.arguments) for arg in n.args}
    own |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return {name.id for name in names} - own


def assigned(source):
    """The names that a cell gives a value, outside of functions."""
    tree = ast.parse(source)
    inner = {id(node) for function in ast.walk(tree)
             if isinstance(function, (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.GeneratorExp,
                                      ast.DictComp, ast.SetComp))
             for node in ast.walk(function) if node is not function}  # fmt: skip
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in inner
             and isinstance(n.ctx, ast.Store)}  # fmt: skip
    return names | {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


@pytest.mark.parametrize("name", NAMES)
def test_a_slider_still_draws_the_same_when_the_lesson_is_over(name):
    """A picture is drawn when the reader moves the slider, from what the names mean by then."""
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    for place, source in enumerate(sources):
        for later in sources[place + 1 :]:
            changed = pictures_of(source) & assigned(later)
            assert not changed, f"{changed} of the slider in\n{source}\nchanged in\n{later}"


def test_the_rule_can_fail():
    slider = "def draw(axes, v):\n    axes.plot(q[v])\nlab.explore(draw, [1], str)"
    assert pictures_of(slider) >= {"q", "axes"} - {"axes"}
    assert pictures_of("def f(v):\n    return q") == set()
    assert "q" in assigned("q = 1") and "q" in assigned("for q in x:\n    pass")
    assert "q" not in assigned("[q for q in x]") and "q" not in assigned("def f(q):\n    q = 1")
