"""Simple debiasing of a reward model on HelpSteer2 (fig:simple-debiasing-helpsteer)."""

from __future__ import annotations

from gradeq.datasets import helpsteer
from gradeq.experiments.averages import plotted_mean
from gradeq.experiments.descent import debias_reals
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.series_panels import curves, three_panels
from gradeq.experiments.source import Source

# Their learning rate L steps along 2 (theta - (y - f)), so it is the paper's eta = 2 L.
THEIRS = (0.0, 0.001, 0.01, 0.05)
# For each L: theta, bias, squared error, and the two values that end the published curves.
AUTHORS = {
    0.0: (0.0, -0.44976590, 1.53857207, 0.89841956, 1.53825104),
    0.001: (0.4242973, -0.20438218, 1.38142277, 0.40846914, 1.38140023),
    0.01: (0.6029618, -0.02904444, 1.35481789, 0.05813952, 1.35481727),
    0.05: (0.8248969, -0.00794699, 1.41662227, 0.01642428, 1.41654932),
}


def run(source: Source) -> Result:
    """A reward model predicts how helpful people find an answer; theta learns from each rating."""
    data = source.load(helpsteer.load)
    runs = [debias_reals(data.reward, data.helpfulness, 2 * rate or None) for rate in THEIRS]
    labels = ["base model", *(f"η = {2 * rate:g} (their {rate:g})" for rate in THEIRS[1:])]
    numbers = []
    for rate, done in zip(THEIRS, runs, strict=True):
        theta, bias, error, norm, loss = AUTHORS[rate]
        at = f"η = {2 * rate:g}"
        numbers += [
            Number(f"θ, {at}", float(done.theta[0]), theta, theta),
            Number(f"bias, {at}", float(done.errors.mean()), bias, bias),
            Number(f"average loss, {at}", float(done.losses.mean()), error, error / 2),
            Number(
                f"end of their bias curve, {at}", 2 * abs(plotted_mean(done.errors)), norm, norm
            ),
            Number(f"end of their loss curve, {at}", 2 * plotted_mean(done.losses), loss, loss),
        ]
    sheet = three_panels(
        curves(labels, runs), data.helpfulness, "helpfulness, 0 to 4", "prompts",
        "half the squared error",
    )  # fmt: skip
    found = (
        f"The bias of {runs[0].errors.mean():+.3f} shrinks to {runs[2].errors.mean():+.3f} at η = 0.02, and the loss "
        f"with it, from {runs[0].losses.mean():.3f} to {runs[2].losses.mean():.3f}; at η = 0.1 the bias is "
        f"{runs[3].errors.mean():+.3f} and the loss {runs[3].losses.mean():.3f}: a larger step "
        "buys bias with accuracy."
    )
    return Result(found, tuple(numbers), {"": sheet}, "HelpSteer2 validation, 1,038 prompts")


EXPERIMENT = Experiment(
    name="helpsteer-debias",
    title="Simple debiasing of a reward model",
    figure="Figure 10",
    chapter="paper",
    needs=("helpsteer",),
    shows="Mean prediction, bias and loss of a reward model on HelpSteer2 under four learning rates: the bias falls "
    "faster with a larger rate, and the loss is lowest in between.",
    corrected="The authors' code has no 1/2 in its squared error: its learning rate is half the paper's η, its "
    "plotted bias twice the bias, its loss twice the paper's. Its averages count a dummy zero and leave the last "
    "step out.",
    run=run,
)
