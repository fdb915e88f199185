"""Scoring a file of generated answers: read, join, score, and say how sure the figures are.

The scores are those of ``qabench.scoring``, the same that the ``evaluate`` metrics give.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from qabench.answers import UNANSWERED, loads, type_name
from qabench.errors import InputError
from qabench.generations import Generations, Joined, join
from qabench.loading_scripts import dataset_table, file_digest, open_path
from qabench.loading_scripts.fanoutqa.parse import read_rows
from qabench.scoring.accuracy import AccuracyScore, accuracy
from qabench.scoring.rouge import RougeScore, rouge
from qabench.signature import digest, signature
from qabench.stats import Interval, bootstrap_mean
from qabench.text import Normalizer

METRICS = ("acc", "rouge")
GROUPINGS = ("category", "type", "evidence")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Questions:
    """A config's questions with answers, in order, and the digest of the file they come from."""

    benchmark: str
    config: str
    rows: Sequence[Mapping[str, Any]]
    data_digest: str

    @cached_property
    def by_id(self) -> dict[str, Mapping[str, Any]]:
        """The rows by question id."""
        return {row["id"]: row for row in self.rows}

    def groups(self, question_id: str) -> dict[str, list[str]]:
        """The groups of each of ``GROUPINGS`` that a question is in."""
        return {grouping: _groups(self.by_id[question_id], grouping) for grouping in GROUPINGS}


def load_questions(name: str, config: str | None = None) -> Questions:
    """The questions of a config that answers can be scored on.

    Raises:
        InputError: an unknown benchmark or config, one without public answers, or a benchmark without scores yet.
        SourceError: the data cannot be had.
    """
    table = dataset_table(name)
    if table.name != "fanoutqa":
        raise InputError(f"qabench cannot score {table.title} yet; allowed: fanoutqa")
    chosen = table.config(config)
    public = [config.name for config in table.configs.values() if "test" not in config.splits]
    if chosen.name not in public:
        raise InputError(
            f"the answers of {table.title} {chosen.name} are not public; its authors score submissions for their "
            f"leaderboard. Configs with answers: {', '.join(public)}"
        )
    ((file,),) = chosen.splits.values()
    rows = list(read_rows(open_path(table.name, file), chosen.name))
    return Questions(table.name, chosen.name, rows, file_digest(table.name, file))


@dataclass(frozen=True)
class Evaluation:
    """The scores of one file of answers, and all that they depend on.

    ``acc`` and ``rouge`` are None where they were not asked for.
    """

    questions: Questions
    path: str
    joined: Joined
    acc: AccuracyScore | None
    rouge: RougeScore | None
    signatures: dict[str, str]
    unofficial: str | None

    def columns(self) -> dict[str, list[float]]:
        """Each figure's score a question, in the order of ``joined.ids``: acc.loose, acc.strict, rouge1.fscore, ..."""
        columns: dict[str, list[float]] = {}
        if self.acc:
            columns["acc.loose"] = [question.loose for question in self.acc.per_question]
            columns["acc.strict"] = [float(question.strict) for question in self.acc.per_question]
        if self.rouge:
            for kind in self.rouge.mean:
                columns[f"{kind}.fscore"] = [question[kind].fscore for question in self.rouge.per_question]
        return columns

    def scores(self) -> dict[str, Any]:
        """The official result's shape: {"acc": {"loose", "strict"}, "rouge": {"rouge1": {...}, ...}}."""
        scores: dict[str, Any] = {}
        if self.acc:
            scores["acc"] = {"loose": self.acc.loose, "strict": self.acc.strict}
        if self.rouge:
            scores["rouge"] = self.rouge.as_dict()
        return scores

    def intervals(self) -> dict[str, Interval]:
        """A 95 % bootstrap interval over questions for each figure of ``columns``."""
        return {name: bootstrap_mean(values) for name, values in self.columns().items()}

    def by(self, grouping: str) -> dict[str, dict[str, float]]:
        """Means by group: "category" (a question counts in each of its own), "type" (of answer), "evidence" (pages).

        Returns:
            {group: {"questions": n, "acc.loose": mean, ...}}, the largest group first.

        Raises:
            InputError: an unknown grouping.
        """
        groups: dict[str, list[int]] = {}
        for i, question_id in enumerate(self.joined.ids):
            for group in _groups(self.questions.by_id[question_id], grouping):
                groups.setdefault(group, []).append(i)
        columns = self.columns()
        ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
        return {
            group: {"questions": len(of)}
            | {name: sum(values[i] for i in of) / len(of) for name, values in columns.items()}
            for group, of in ordered
        }

    def per_question(self) -> Iterable[dict[str, Any]]:
        """A JSON object a question: id, answered, and its scores with what was missed."""
        for i, question_id in enumerate(self.joined.ids):
            row: dict[str, Any] = {"id": question_id, "answered": self.joined.predictions[i] is not UNANSWERED}
            if self.acc:
                row["acc"] = asdict(self.acc.per_question[i])
            if self.rouge:
                row["rouge"] = {kind: asdict(prf) for kind, prf in self.rouge.per_question[i].items()}
            yield row

    def as_dict(self, by: Sequence[str] = ()) -> dict[str, Any]:
        """The report as JSON data."""
        report: dict[str, Any] = {
            "benchmark": self.questions.benchmark,
            "config": self.questions.config,
            "file": self.path,
            "scores": self.scores(),
            "intervals": {name: asdict(interval) for name, interval in self.intervals().items()},
            "counts": self.joined.counts(),
            "problems": self.joined.problems(),
            "signatures": self.signatures,
        }
        if self.unofficial:
            report["unofficial"] = self.unofficial
        if by:
            report["by"] = {grouping: self.by(grouping) for grouping in by}
        return report


def evaluate(
    generations: Generations,
    questions: Questions,
    *,
    metrics: Sequence[str] = METRICS,
    normalizer: Normalizer | None = None,
    only_score_answered: bool = False,
    ignore_unknown: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """Scores answers against the questions of a config.

    Args:
        generations: a file's answers; see ``qabench.generations.read_generations``.
        questions: see ``load_questions``.
        metrics: of "acc" and "rouge".
        normalizer: for "acc"; by default the "auto" lemmatizer without a cache.
        only_score_answered: average over the given answers only, as the official scorer's option of that name.
        ignore_unknown: with it, pass over answers to unknown questions instead of refusing the file.
        progress: is told of the characters normalised so far and in all.

    Raises:
        InputError: an unknown metric, or a file that does not fit (see ``qabench.generations.join``).
        MissingExtra: the lemmatizer asked for is not installed.
    """
    if unknown := set(metrics) - set(METRICS):
        raise InputError(f"unknown metrics {', '.join(sorted(unknown))}; allowed: {', '.join(METRICS)}")
    ids = [row["id"] for row in questions.rows]
    joined = join(ids, generations, only_score_answered=only_score_answered, ignore_unknown=ignore_unknown)
    references = [loads(questions.by_id[i]["answer"]) for i in joined.ids]
    common = {
        "benchmark": questions.benchmark,
        "config": questions.config,
        "data": questions.data_digest,
        "references": digest(references),
        "only_score_answered": only_score_answered,
    }
    signatures: dict[str, str] = {}
    acc = rouges = unofficial = None
    if "acc" in metrics:
        normalizer = normalizer or Normalizer()
        acc = accuracy(references, joined.predictions, lambda texts: normalizer.batch(texts, progress))
        signatures["acc"] = signature("fanout_acc", **common, **normalizer.signature())
        unofficial = None if normalizer.lemmatizer.official else normalizer.lemmatizer.name
    if "rouge" in metrics:
        rouges = rouge(references, joined.predictions)
        signatures["rouge"] = signature("fanout_rouge", **common, rouge=rouges.backend, stemmer="porter")
    return Evaluation(questions, generations.path, joined, acc, rouges, signatures, unofficial)


def per_question_lines(evaluation: Evaluation) -> str:
    """The per-question scores as JSONL."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in evaluation.per_question())


def _groups(row: Mapping[str, Any], grouping: str) -> list[str]:
    if grouping == "category":
        return list(row["categories"])
    if grouping == "type":
        return [type_name(loads(row["answer"]))]
    if grouping == "evidence":
        return [f"{len(row['necessary_evidence'])} pages"]
    raise InputError(f"unknown grouping {grouping!r}; allowed: {', '.join(GROUPINGS)}")
