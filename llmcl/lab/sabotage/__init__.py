"""The sabotaged model of lesson 16: a copy of the package with faults in it, one from each group.

The number that a student gives decides which faults. `python -m llmcl.lab.sabotage` is the
teacher's side: the key to a number, and the points of a folder.
"""

from .copies import example, load, prepare
from .faults import Fault, faults_of
from .grade import Mark, marks, table, try_tests
from .notes import note_finding, read_findings

__all__ = [
    "Fault", "Mark", "example", "faults_of", "load", "marks", "note_finding", "prepare",
    "read_findings", "table", "try_tests",
]  # fmt: skip
