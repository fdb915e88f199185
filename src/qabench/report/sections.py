"""The sections of a report: the runs over the same questions stand together, each under a short name of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from qabench.errors import InputError
from qabench.evaluation import Evaluation, Record

LONGEST_LABEL = 80
TITLES = {"fanoutqa": "FanOutQA", "expertqa": "ExpertQA", "felm": "FELM", "fastbook": "fastbook"}


@dataclass(frozen=True, slots=True)
class Section:
    """The runs over the questions of one config.

    Attributes:
        key: names the section in links, such as "fanoutqa-dev".
        runs: by label, in the order given; a label is short and no other run of the section has it.
    """

    key: str
    benchmark: str
    config: str
    runs: Mapping[str, Evaluation]

    @property
    def title(self) -> str:
        """The benchmark's name for people."""
        return TITLES.get(self.benchmark, self.benchmark)

    def records(self, run: Evaluation) -> dict[str, list[Record]]:
        """A run's records by question id, by epoch within a question."""
        by_id: dict[str, list[Record]] = {}
        for record in run.records:
            by_id.setdefault(record.id, []).append(record)
        return by_id


def sections_of(runs: Sequence[Evaluation]) -> list[Section]:
    """The runs by benchmark and config, in the order in which these first appear.

    Raises:
        InputError: no runs, or a run without records.
    """
    if not runs:
        raise InputError("nothing to report: give the log of one run or more")
    together: dict[tuple[str, str], list[Evaluation]] = {}
    for run in runs:
        if not run.records:
            raise InputError(f"{run.path} has no records yet (status: {run.status}); there is nothing to report")
        together.setdefault((run.benchmark, run.config), []).append(run)
    keys = distinct([re.sub(r"[^a-z0-9]+", "-", f"{b}-{c}".lower()) for b, c in together])
    return [
        Section(key, benchmark, config, dict(zip(_labels(of), of, strict=True)))
        for key, ((benchmark, config), of) in zip(keys, together.items(), strict=True)
    ]


def _labels(runs: Sequence[Evaluation]) -> list[str]:
    """The models' names without their providers; the setting, the date, the file where these tell runs apart."""
    parts: list[Callable[[Evaluation], str]] = [
        lambda run: run.model.rpartition("/")[2] or run.model,
        lambda run: run.setting,
        lambda run: run.created[:16].replace("T", " "),
        lambda run: re.split(r"[/\\]", run.path)[-1],
    ]
    labels = [parts[0](run) or "no name" for run in runs]
    for part in parts[1:]:
        # A setting that differs is worth saying even where the models tell the runs apart already.
        if len(set(labels)) < len(runs) or (part is parts[1] and len({part(run) for run in runs}) > 1):
            labels = [f"{label} · {part(run)}" for label, run in zip(labels, runs, strict=True)]
    return distinct([label[:LONGEST_LABEL] for label in labels])


def distinct(names: Sequence[str]) -> list[str]:
    """The names, each on one line, those that are taken already with a number behind them."""
    given: dict[str, None] = {}
    for raw in names:
        # Charts sort by expressions that hold the names, in which nothing may end a line.
        name = re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", raw).strip()
        number, free = 1, name
        while free in given:
            number += 1
            free = f"{name} ({number})"
        given[free] = None
    return list(given)
