"""Scores as entries of ``.eval_results/*.yaml``, by which the Hub shows them on a model's page.

The format is the Hub's (https://huggingface.co/docs/hub/eval-results), the classes are huggingface_hub's. An entry
holds one number, so each figure is a task of its own: config, setting and figure make its task id. What the number
depends on stands in the entry's notes: how many questions, the interval, the signature, and why it is unofficial if it
is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from qabench.errors import InputError
from qabench.signature import version

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

FOLDER = ".eval_results"
SOURCE = "https://github.com/qabench/qabench"


@dataclass(frozen=True, slots=True)
class Figure:
    """One score.

    Attributes:
        name: such as "acc.loose". value: in the figure's own unit, of most a fraction between 0 and 1.
        low, high: the bounds of its 95 % interval. n: how many items it is of.
        signature: everything that it depends on, in one line.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    signature: str | None = None


@dataclass(frozen=True)
class Evaluation:
    """What holds for all figures of an evaluation.

    Attributes:
        benchmark, config: such as "fanoutqa" and "dev". setting: such as "closed-book".
        date: of the evaluation, an ISO date or date and time.
        unofficial: why no figure is official, such as a run that was stopped; see also ``unofficial``.
        remarks: what else the notes must say, such as how many questions have no answer.
        dataset: the Hub's id of the dataset; by default qabench/BENCHMARK.
        revision: the commit or tag of that dataset; None where unknown.
        source_url, source_name: where the evaluation is found, such as a repository with its logs.
    """

    benchmark: str
    config: str
    setting: str
    date: str
    unofficial: str | None = None
    remarks: Sequence[str] = ()
    dataset: str | None = None
    revision: str | None = None
    source_url: str = SOURCE
    source_name: str = field(default_factory=lambda: f"qabench {version()}")


def entries(
    figures: Iterable[Figure], evaluation: Evaluation, *, allow_unofficial: bool = False
) -> list[EvalResultEntry]:
    """An entry for each figure, in their order.

    Args:
        figures: at least one.
        evaluation: what holds for all of them.
        allow_unofficial: take unofficial figures too; their notes begin with UNOFFICIAL and the reason.

    Raises:
        InputError: no figures, a value that is no finite number, an unofficial one that is not allowed, a date that
            is none, a dataset that is no Hub id.
    """
    from huggingface_hub import EvalResultEntry

    given = list(figures)
    if not given:
        raise InputError("there are no figures to make entries of")
    dataset = evaluation.dataset or f"qabench/{evaluation.benchmark}"
    _check(given, evaluation, dataset)
    reasons = {figure.name: reason for figure in given if (reason := unofficial(figure, evaluation))}
    if reasons and not allow_unofficial:
        name, reason = next(iter(reasons.items()))
        raise InputError(
            f"{len(reasons)} of {len(given)} figures are unofficial; {name}: {reason}. They would stand beside "
            "official ones. Score again as the benchmark asks, choose other figures (--figure), or allow it "
            "(--allow-unofficial: the notes will say so)"
        )
    return [
        EvalResultEntry(
            dataset_id=dataset,
            task_id=task_id(evaluation.config, evaluation.setting, figure.name),
            value=figure.value,
            dataset_revision=evaluation.revision,
            date=evaluation.date,
            source_url=evaluation.source_url,
            source_name=evaluation.source_name,
            notes=_notes(figure, evaluation, reasons.get(figure.name)),
        )
        for figure in given
    ]


def task_id(config: str, setting: str, figure: str) -> str:
    """The task that a figure is the one number of: ("dev", "closed-book", "acc.loose") -> dev_closed_book_acc_loose."""
    return re.sub(r"\W+", "_", "_".join(filter(None, [config, setting, figure])), flags=re.ASCII)


def path(benchmark: str, config: str, setting: str) -> str:
    """The file of a model's repository that holds the entries of a benchmark's config and setting."""
    return f"{FOLDER}/{task_id(benchmark, config, setting)}.yaml"


def unofficial(figure: Figure, evaluation: Evaluation) -> str | None:
    """Why a figure is not what the benchmark's authors would report; None where nothing says so."""
    if evaluation.unofficial:
        return evaluation.unofficial
    if evaluation.config.startswith("sample"):
        return "the sample is for trying things out"
    fields = dict(part.partition(":")[::2] for part in (figure.signature or "").split("|"))
    for name, value in fields.items():
        if value.startswith("UNOFFICIAL"):
            return f"{name} {value.removeprefix('UNOFFICIAL').strip()}"
    if fields.get("only_score_answered") == "yes":
        return "only the answered questions are scored"
    return f"only the first {fields['limit']} items are scored" if "limit" in fields else None


def to_yaml(new: Sequence[EvalResultEntry], old: str = "") -> str:
    """The text of a file: the entries of ``old`` with those of the same dataset and task replaced, then the others.

    Args:
        new: of ``entries``.
        old: the text of the file as it is; other people's entries in it stay as they are.

    Raises:
        InputError: ``old`` is no list of entries.
    """
    import yaml
    from huggingface_hub import eval_result_entries_to_yaml

    added = {_key(row): row for row in eval_result_entries_to_yaml(list(new))}
    kept = [added.pop(_key(row), row) for row in _rows(old)]
    # On one line each, the notes: a signature is to be found by searching for it.
    return str(yaml.safe_dump([*kept, *added.values()], sort_keys=False, allow_unicode=True, width=float("inf")))


def _rows(text: str) -> list[dict[str, Any]]:
    import yaml
    from huggingface_hub import parse_eval_result_entries

    try:
        rows = yaml.safe_load(text) or []
        parse_eval_result_entries(rows)
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"the file of results that is there is no list of entries ({type(error).__name__}: {error}); "
            "mend or remove it"
        ) from None
    return list(rows)


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["dataset"]["id"], row["dataset"]["task_id"]


def _notes(figure: Figure, evaluation: Evaluation, reason: str | None) -> str:
    parts = [f"UNOFFICIAL: {reason}"] if reason else []
    parts.append(", ".join(filter(None, [figure.name, evaluation.setting])))
    if figure.n is not None:
        parts.append(f"n {figure.n}")
    if figure.low is not None and figure.high is not None:
        parts.append(f"95 % interval {figure.low:.4f} to {figure.high:.4f}")
    parts += evaluation.remarks
    if figure.signature:
        parts.append(f"signature {figure.signature}")
    return "; ".join(parts)


def _check(figures: Sequence[Figure], evaluation: Evaluation, dataset: str) -> None:
    for figure in figures:
        if not isinstance(figure.value, int | float) or not abs(figure.value) < float("inf"):
            raise InputError(f"the figure {figure.name} is {figure.value!r}; an entry needs a finite number")
    try:
        (datetime if "T" in evaluation.date else date).fromisoformat(evaluation.date)
    except ValueError:
        raise InputError(f"the date is {evaluation.date!r}; allowed: an ISO date or time such as 2026-01-31") from None
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", dataset):
        raise InputError(
            f"the dataset is {dataset!r}; allowed: a name on the Hub such as qabench/{evaluation.benchmark}"
        )
