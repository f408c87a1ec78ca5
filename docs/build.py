"""Builds the site: the lessons as they were stored, as pages that need no net.

    python docs/build.py             write build/site, and check every link in it

The notebooks, the pages of docs/ and the pictures of the front page are laid out in
build/site-source, and Sphinx makes pages of them. Nothing of a lesson is run. A warning is an
error.
"""

import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS), str(ROOT / "notebooks"), str(ROOT)]

from website.layout import lay_out  # noqa: E402 - the folders have to be on the path first
from website.links import wrong_links  # noqa: E402

SITE = ROOT / "build" / "site"


def main() -> int:
    """The exit status: 0, or 1 when something is wrong with a page or a link."""
    source = ROOT / "build" / "site-source"
    lay_out(source)
    shutil.rmtree(SITE, ignore_errors=True)
    options = ["-q", "-W", "--keep-going", "-E", "-j", "2", "-b", "html", "-c", str(DOCS)]
    doctrees = ROOT / "build" / "site-doctrees"
    if sphinx([*options, "-d", str(doctrees), str(source), str(SITE)]):
        return 1
    wrong = wrong_links(SITE)
    print(*wrong, sep="\n", file=sys.stderr)
    if not wrong:
        print("The site is in build/site; open build/site/index.html.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
