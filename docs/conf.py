"""Sphinx's settings. The pages are laid out by docs/build.py, which `make site` calls."""

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
# The extension, the builder of the notebooks, and the package, without an installation.
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent / "notebooks"), str(DOCS.parent)]

project = "llmcl"
author = "the llmcl authors"
copyright = author
language = "en"

extensions = ["myst_nb", "mathml"]
nitpicky = True
# Lessons number the lines of a kernel; a lexer of C stumbles over that, and goes on.
suppress_warnings = ["misc.highlighting_failure"]

# A notebook is shown as it was stored; nothing is run, and no page asks another host for a script.
nb_execution_mode = "off"
nb_merge_streams = True
nb_ipywidgets_js: dict[str, dict] = {}
myst_enable_extensions = ["colon_fence", "dollarmath"]
# The same names of headings as in JupyterLab, so that the lessons' links lead here too.
myst_heading_anchors = 4
myst_heading_slug_func = "builder.glossary.anchor"

html_theme = "sphinx_book_theme"
html_title = "llmcl: a language model on OpenCL"
html_short_title = "llmcl"
html_static_path = [str(DOCS / "_static")]
html_favicon = str(DOCS / "_static" / "favicon.svg")
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_use_index = False
html_show_sourcelink = False
html_show_copyright = False
html_context = {"default_mode": "light"}
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_navbar_depth": 1,
    "show_toc_level": 1,
    "search_bar_text": "Search the workbook",
    # The side has a field for searching already.
    "navbar_persistent": [],
    "navigation_with_keys": False,
    "footer_content_items": [],
    "pygments_light_style": "a11y-high-contrast-light",
}
