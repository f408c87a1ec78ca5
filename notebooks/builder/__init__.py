"""What notebooks/build.py is made of: sources, runs, stored files, classes, translations."""

import sys

from builder.places import ROOT

sys.path.insert(0, str(ROOT))  # this checkout's llmcl, wherever the builder is called from
