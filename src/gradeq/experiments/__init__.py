"""The paper's figures, its theory as experiments, and what lies beyond, each beside the authors' numbers.

from gradeq.experiments import run_all
run_all(["compas-debias"], data=None, out="figures")
"""

from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.registry import choose, experiments, listing
from gradeq.experiments.running import GALLERY, Outcome, reproduce, run_all

__all__ = [
    "GALLERY",
    "Experiment",
    "Number",
    "Outcome",
    "Result",
    "choose",
    "experiments",
    "listing",
    "reproduce",
    "run_all",
]
