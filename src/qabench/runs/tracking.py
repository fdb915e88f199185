"""Scores in an experiment tracker: trackio, Weights & Biases or MLflow, through their own packages."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

from qabench.errors import InputError, MissingExtra
from qabench.evaluation import Evaluation
from qabench.evaluation.signature import version

TRACKERS = ("trackio", "wandb", "mlflow")
PROJECT = "qabench"


def check_tracker(target: str) -> tuple[Any, str]:
    """Return the package and the project that TRACKER[:PROJECT] names.

    Raises:
        InputError: another tracker, or an empty project.
        MissingExtra: its package is not installed.
    """
    name, colon, project = target.partition(":")
    if name not in TRACKERS or (colon and not project):
        raise InputError(f"--track is {target!r}; allowed: {', '.join(TRACKERS)}, each also with :PROJECT")
    try:
        return importlib.import_module(name), project or PROJECT
    except ImportError:
        raise MissingExtra(f"--track {name} needs its package: pip install {name}") from None


def send(evaluations: Sequence[Evaluation], target: str) -> None:
    """Send one run per evaluation to a tracker: scores with intervals and n, counts, parameters and signatures.

    Args:
        evaluations: the systems.
        target: see ``check_tracker``.
    """
    package, project = check_tracker(target)
    with redirect_stdout(sys.stderr):  # trackers print messages
        for evaluation in evaluations:
            _send(package, project, evaluation, is_mlflow=target.startswith("mlflow"))


def _send(package: Any, project: str, evaluation: Evaluation, is_mlflow: bool) -> None:
    names = ("benchmark", "config", "setting", "model", "created", "status")
    parameters = {name: str(getattr(evaluation, name)) for name in names}
    parameters |= {"path": os.path.abspath(evaluation.path), "qabench": version()}
    parameters |= {f"argument {name}": str(value) for name, value in evaluation.arguments.items()}
    parameters |= {f"signature {family}": line for family, line in evaluation.signatures.items()}
    values: dict[str, float] = {f"count/{status}": count for status, count in evaluation.counts().items()}
    for name, score in evaluation.scores().items():
        key = name.replace("@", "_at_")  # MLflow does not allow @
        interval = score.interval
        values |= {
            key: interval.mean,
            f"{key}/low": interval.low,
            f"{key}/high": interval.high,
            f"{key}/n": score.n,
        }
        parameters[f"deviations {key}"] = "; ".join(evaluation.deviations(score)) or "none"
    run_name = f"{evaluation.model} {evaluation.benchmark} {evaluation.config} {evaluation.setting}"
    if is_mlflow:
        package.set_experiment(project)
        with package.start_run(run_name=run_name):
            package.set_tags(parameters)
            package.log_metrics(values)
    else:
        package.init(project=project, name=run_name, config=parameters)
        package.log(values)
        package.finish()
