"""For the hand: the default training by one process and by two ranks, compared, and what it costs.

    python tests/two_ranks.py [DEVICE]       DEVICE: words of a name in `llmcl doctor`, or numpy

On a machine with two GPUs each rank takes its own. Exit status 1 if the curves differ.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from llmcl import scaling
from llmcl.settings import STAGES

# The last loss after all steps of a stage; rounding grows on the way, and the losses are near 0.
FIRST, LATER = 1e-4, 2e-2


def train(ranks: int, out: Path) -> dict:
    """The metrics of a run by that many processes."""
    done = scaling.start(ranks, "-m", "llmcl.cli", "train", "--out", str(out), seconds=400)
    if done.returncode:
        sys.exit(f"{ranks} ranks ended with {done.returncode}:\n{done.stderr}")
    return json.loads((out / "metrics.json").read_text(encoding="utf-8"))


def main() -> int:
    """Prints a line a stage, and the table of times; 1 when a loss is not that of one process."""
    if len(sys.argv) > 1:
        os.environ["LLMCL_DEVICE"] = " ".join(sys.argv[1:])
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        one, two = (train(n, Path(folder, str(n))) for n in (1, 2))
    print(f"one process: {one['device']}\ntwo ranks:   {two['device']}")
    for stage in STAGES:
        a, b = (np.array(metrics["curves"][stage])[:, 1] for metrics in (one, two))
        apart = np.abs(a - b)
        wrong += bool(apart[0] > FIRST * a[0] or apart.max() > LATER)
        seconds = (metrics["curves"][stage][-1][4] for metrics in (one, two))
        speeds = " and ".join(f"{speed:,.0f}" for speed in seconds)
        print(
            f"{stage}: losses at most {apart.max():.1e} apart (the first {apart[0]:.1e}), "
            f"at the end {a[-1]:.4f} and {b[-1]:.4f}; {speeds} tokens a second"
        )
    print(scaling.report(4))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
