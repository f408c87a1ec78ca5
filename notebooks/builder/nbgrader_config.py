"""nbgrader's settings for the course in this folder: our stubs, and time for a lesson's cells.

`python notebooks/build.py --class --nbgrader NAME` copies it beside the lessons. nbgrader's own
stub is one line of Python, which in a kernel's text is no error that a learner can read; and an
exercise that gives a wrong line to mend would lose that line.
"""

from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import ClearSolutions


class PutStubs(ClearSolutions):
    """Puts the cell that a learner gets, which the builder has left in the cell's metadata."""

    def _replace_solution_region(self, cell, language):
        stub = cell.metadata.pop("llmcl_stub", None)
        if stub is None:
            return super()._replace_solution_region(cell, language)
        cell.source = stub
        return True


c = get_config()  # noqa: F821  (nbgrader gives it to this file)
c.CourseDirectory.course_id = "llmcl"
usual = GenerateAssignment.class_traits()["preprocessors"].default()
c.GenerateAssignment.preprocessors = [PutStubs if p is ClearSolutions else p for p in usual]
c.ExecutePreprocessor.timeout = 120  # seconds a cell may take
