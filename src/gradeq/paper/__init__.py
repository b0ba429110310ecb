"""The paper's figures, its theory as experiments, and what lies beyond, each beside the authors' numbers.

from gradeq.paper import run_all
run_all(["compas-debias"], data=None, out="figures")
"""

from gradeq.paper.experiment import Experiment, ExperimentOutcome, Number, Result
from gradeq.paper.running import GALLERY, choose, experiments, listing, reproduce, run_all

__all__ = [
    "GALLERY", "Experiment", "Number", "ExperimentOutcome", "Result", "choose", "experiments", "listing", "reproduce",
    "run_all",
]  # fmt: skip
