"""Which pages the built site has; tests/site looks at them."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"
sys.path[:0] = [str(ROOT / "docs")]


def pages() -> list[str]:
    """The pages that somebody wrote, from the site's root on."""
    made = {"search.html"}
    found = {
        path.relative_to(SITE).as_posix()
        for path in SITE.rglob("*.html")
        if not path.relative_to(SITE).parts[0].startswith("_")
    }
    return sorted(found - made)
