"""Formulas as MathML, made when the page is built: browsers draw it without a script."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

LOG = logging.getLogger(__name__)


def mathml(node: nodes.Element, display: str) -> str:
    """The formula of a node as MathML; warns of a command that the converter does not know."""
    text = node.astext()
    made = convert(text, display=display)
    if "\\" in made:
        LOG.warning("the formula %r has a command that cannot be drawn", text, location=node)
    return made


def visit_math(writer, node: nodes.math) -> None:
    """Writes a formula in a line of text."""
    writer.body.append(mathml(node, "inline"))
    raise nodes.SkipNode


def visit_math_block(writer, node: nodes.math_block) -> None:
    """Writes a formula on a line of its own, which scrolls where the page is too narrow."""
    writer.body.append(f'<div class="formula" tabindex="0">{mathml(node, "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict:
    """Registers the renderer as `mathml`."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
