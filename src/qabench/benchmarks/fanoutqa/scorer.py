"""FanOutQA's scorer: answers against references, and the pages that were read against the necessary ones.

Source: Zhu et al., FanOutQA, ACL 2024 (https://arxiv.org/abs/2402.14116).
``fanoutqa.eval.scorer.Scorer.score``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from qabench.answers import NOT_STRING, UNANSWERED, is_text, loads, text_of
from qabench.benchmarks.fanoutqa.accuracy import accuracy
from qabench.benchmarks.fanoutqa.normalizer import NormalizedTextCache, Normalizer, shared_normalizer
from qabench.data.predictions import some
from qabench.data.rows import Json, Row, grouped
from qabench.errors import InputError
from qabench.evaluation import ANSWERED, EMPTY, MISSING
from qabench.evaluation.score_spec import mean_in_order
from qabench.evaluation.scoring import Item, Outcome, Progress, Scorer
from qabench.evaluation.signature import digest, signature
from qabench.text import Lemmatizer

if TYPE_CHECKING:
    from qabench.benchmarks.fanoutqa.judge import Judge, Judged

NULL, BLANK = "null answers", "empty answers"
NO_VERDICT, FAILED = "no readable verdict of the judge", "the call of the judge failed"
Bleurt = Callable[[list[str], list[str]], Sequence[float]]
"""References and candidates, two lists of strings, to one score for each pair."""


@dataclass
class FanOutQAScorer(Scorer):
    """Scores answers, as the official scorer does, and the pages that were read.

    A prediction has ``answer``, ``pages`` or both. The pages are titles, URLs, page ids, or objects
    with "title", "url" and "pageid". Without an answer the question is unanswered: it scores 0 in
    accuracy, ROUGE and judge, and is the empty string for BLEURT. The answer None is the string
    "None" for accuracy and the empty string for ROUGE, as upstream.

    Attributes:
        normalizer: for accuracy, which is not computed without one.
        rouge: whether ROUGE is computed.
        bleurt: the BLEURT function.
        judge: the judge.
        evidence: whether the pages are scored, if any item has some.
        evidence_k: only the first k pages of each question count.
        only_score_answered: whether unanswered questions are left out, for signatures.
        judged: the judge's scores and costs in the last call of ``score``.
    """

    normalizer: Normalizer | None = None
    rouge: bool = False
    bleurt: Bleurt | None = None
    judge: Judge | None = None
    evidence: bool = False
    evidence_k: int | None = None
    only_score_answered: bool = False
    judged: Judged | None = None

    def __post_init__(self) -> None:
        if self.judge:
            self.concurrency = self.judge.caller.concurrency
        self.fields = self._fields()
        groups = dict.fromkeys(self.fields, ("answer",))
        self.reads = groups | ({"evidence": ("pages",)} if self.evidence else {})
        self.needs = {"evidence": 'it needs the field "pages", or a TREC run'}

    def score(self, items: Sequence[Item], progress: Progress | None = None) -> list[Outcome]:
        """Return the scores of each item.

        ``gpt`` is missing if the judge's call failed, ``gpt_readable`` if its reply has no readable
        verdict. ``progress`` is called for accuracy, and then for the judge.

        Raises:
            InputError: as ``accuracy`` and the judge, or a BLEURT function returns another number
                of scores.
        """
        unusable = [_unusable_pages(item.fields) if self.evidence else None for item in items]
        usable = [
            Item(item.row, None) if reason else item
            for item, reason in zip(items, unusable, strict=True)
        ]
        references = [_reference(item) for item in items]
        answers = list(map(_answer, usable))
        columns: list[dict[str, float]] = [{} for _ in items]
        details: list[Json] = [{} for _ in items]
        if self.normalizer:
            normalize = partial(self.normalizer.batch, progress=progress)
            accuracies = accuracy(references, answers, normalize)
            for row, detail, question in zip(columns, details, accuracies, strict=True):
                row |= {"acc.loose": float(question.loose), "acc.strict": float(question.strict)}
                detail |= {"found": list(question.matches), "missing": list(question.missing)}
        if self.rouge:
            from qabench.text.rouge import rouge

            for row, measures in zip(columns, rouge(references, answers), strict=True):
                row |= {column: float(value) for column, value in measures.items()}
        if self.bleurt:
            # An unanswered question is the empty string, as upstream.
            values = list(self.bleurt(list(map(text_of, references)), list(map(text_of, answers))))
            if len(values) != len(items):
                raise InputError(
                    f"the BLEURT function returned {len(values)} scores for {len(items)} questions"
                )
            for row, value in zip(columns, values, strict=True):
                row["bleurt"] = float(value)
        judged = None
        if self.judge:
            from qabench.benchmarks.fanoutqa.judge import judge_answers

            questions = [item.row.get("question", "") for item in items]
            judged = judge_answers(questions, references, answers, self.judge, progress)
            self.judged, self.notes = judged, judged.notes()
            _add_judgments(judged, columns, details)
        if self._with_evidence(items):
            from qabench.benchmarks.fanoutqa.evidence_pages import evidence_scores

            necessary = [item.row["necessary_evidence"] for item in items]
            pages = [(item.fields or {}).get("pages") for item in usable]
            for i, score in enumerate(evidence_scores(necessary, pages, self.evidence_k)):
                missing = [necessary[i][position]["title"] for position in score.missing]
                columns[i]["evidence.recall"] = score.recall
                if score.precision is not None:
                    columns[i]["evidence.precision"] = score.precision
                details[i] |= {"evidence_read": list(pages[i] or []), "evidence_missing": missing}
        self.problems = _problems(items, answers, columns, details, judged)
        if self.rouge:
            self.problems += self._wordless(items, references, answers)
        return [
            _outcome(*parts, judged=judged)
            for parts in zip(usable, columns, details, unusable, strict=True)
        ]

    def signatures(self, items: Sequence[Item], about: Mapping[str, object]) -> dict[str, str]:
        """Return one signature per group of scores: the data, how a model was asked, and the scorer."""
        # The model separates the data and the prompt from the options of the generation.
        fields = dict(takewhile(lambda field: field[0] != "model", about.items()))
        generation = {name: value for name, value in about.items() if name not in fields}
        model = str(generation.pop("model", ""))
        if items and "references" not in fields and all("answer" in item.row for item in items):
            fields["references"] = digest(map(_reference, items))
        fields["only_score_answered"] = self.only_score_answered
        # The limit of tokens of Claude has its own name, because it is the only one that the
        # authors send.
        if "claude" in model.lower() and "max_tokens" in generation:
            generation["claude_max_tokens"] = generation.pop("max_tokens")
        shared = fields | generation
        signed = dict(self.fields)
        if self._with_evidence(items):
            signed["evidence"] = {"k": self.evidence_k}
        return {group: signature(f"fanout_{group}", **shared, **own) for group, own in signed.items()}

    @staticmethod
    def _wordless(items: Sequence[Item], references: Sequence[Any], answers: Sequence[Any]) -> list[str]:
        from qabench.text.rouge import wordless_problems

        ids = [str(item.row.get("id")) for item in items]
        answered = [None if answer is UNANSWERED else answer for answer in answers]
        return wordless_problems(ids, answered, references)

    def _with_evidence(self, items: Sequence[Item]) -> bool:
        return self.evidence and any("pages" in (item.fields or {}) for item in items)

    def _fields(self) -> dict[str, Mapping[str, object]]:
        """Return the fields of the signatures that the scorer knows, by group of scores."""
        groups: dict[str, Mapping[str, object]] = {}
        if self.normalizer:
            groups["acc"] = self.normalizer.signature()
        if self.rouge:
            from qabench.text.rouge import backend_version

            groups["rouge"] = {"rouge": backend_version(), "stemmer": "porter"}
        if self.bleurt:
            from qabench.models.bleurt import signed_name

            groups["bleurt"] = {"bleurt": signed_name(self.bleurt)}
        if self.judge:
            groups["judge"] = self.judge.signature()
        return groups


def scorer_of(
    groups: Sequence[str],
    lemmatizer: str | Lemmatizer = "auto",
    only_score_answered: bool = False,
    bleurt_model: str | None = None,
    judge_model: str | None = None,
    judge_base_url: str | None = None,
    judge_prompt: str = "auto",
    judge_max_calls: int | None = None,
    judge: str | Mapping[str, Any] | None = None,
    evidence_k: int | None = None,
    threads: bool = False,
) -> FanOutQAScorer:
    """Return the scorer of groups of scores.

    For the options see ``FanOutQABenchmark.options``, ``qabench.text.resolve_lemmatizer``,
    ``qabench.models.bleurt.load_bleurt`` and ``judge_from``. With ``threads``, answers are scored
    in several threads, one at a time.
    """
    scorers: dict[str, Any] = {}
    if "bleurt" in groups:
        from qabench.models.bleurt import load_bleurt

        scorers["bleurt"] = load_bleurt(model=bleurt_model)
    if "judge" in groups:
        from qabench.benchmarks.fanoutqa.judge import judge_from
        from qabench.llm.endpoint import key_for_typed

        scorers["judge"] = judge_from(
            judge,
            model=judge_model,
            base_url=judge_base_url,
            api_key=key_for_typed(judge_base_url),
            prompt=judge_prompt,
            max_calls=judge_max_calls,
        )
    if "acc" in groups:
        scorers["normalizer"] = (
            shared_normalizer(lemmatizer)
            if threads
            else Normalizer(lemmatizer, NormalizedTextCache.default())
        )
    return FanOutQAScorer(
        rouge="rouge" in groups,
        evidence="evidence" in groups,
        evidence_k=evidence_k,
        only_score_answered=only_score_answered,
        **scorers,
    )


def official_shape(rows: Sequence[Mapping[str, float]]) -> Json:
    """Return the mean scores of questions in the shape of the official result.

    Returns:
        {"acc": {"loose", "strict"}, "rouge": {"rouge1": {"precision", "recall", "fscore"},
        "rouge2": ..., "rougeL": ...}, "bleurt": float, "gpt": float}, without groups that have no
        scores.
    """
    means = {
        name: mean_in_order([row[name] for row in rows if name in row])
        for name in dict.fromkeys(name for row in rows for name in row)
    }
    shape: Json = {}
    if "acc.loose" in means:
        shape["acc"] = {"loose": means["acc.loose"], "strict": means["acc.strict"]}
    if "rouge1.fscore" in means:
        from qabench.text.rouge import by_type

        shape["rouge"] = by_type(means)
    return shape | {name: means[name] for name in ("bleurt", "gpt") if name in means}


def _reference(item: Item) -> Any:
    """Return the reference answer, or "" for a test question, whose answer is not public."""
    return loads(item.row["answer"]) if "answer" in item.row else ""


def _answer(item: Item) -> Any:
    return (item.fields or {}).get("answer", UNANSWERED)


def _unusable_pages(fields: Mapping[str, Any] | None) -> str | None:
    """Return why the pages of a prediction cannot be read, or None if they can."""
    from qabench.benchmarks.fanoutqa.evidence_pages import pages_read

    try:
        pages_read((fields or {}).get("pages"))
    except InputError as error:
        return str(error)
    return None


def _add_judgments(judged: Judged, columns: Sequence[dict[str, float]], details: Sequence[Json]) -> None:
    if judged.absent:
        return
    for row, detail, judgment in zip(columns, details, judged.per_question, strict=True):
        if judgment.score is not None:
            row["gpt"] = float(judgment.score)
        if judgment.readable is not None:
            row["gpt_readable"] = float(judgment.readable)
        detail |= {
            "verdict": judgment.verdict,
            "judge": judgment.reply,
            "judge_problem": judgment.reason,
        }


def _problems(
    items: Sequence[Item],
    answers: Sequence[Any],
    columns: Sequence[Mapping[str, float]],
    details: Sequence[Row],
    judged: Judged | None,
) -> list[str]:
    """Count answers that the leaderboard would not accept, and describe missing scores of the judge."""
    ids = [str(item.row.get("id")) for item in items]
    ids_by_problem = grouped(zip(map(_answer_problem, answers), ids, strict=True))
    sentences = [
        f"{kind}: {len(ids_by_problem[kind])} ({some(ids_by_problem[kind])})"
        for kind in (NULL, BLANK, NOT_STRING)
        if kind in ids_by_problem
    ]
    if judged and judged.absent:
        return [*sentences, f"gpt is absent: {judged.absent}"]
    failures = grouped(
        (f"{NO_VERDICT if 'gpt' in row else FAILED}: {reason}", id)
        for id, row, detail in zip(ids, columns, details, strict=True)
        if (reason := detail.get("judge_problem"))
    )
    counted = failures.items()
    return sentences + [f"{len(ids)} x {problem} ({some(ids)})" for problem, ids in counted]


def _answer_problem(answer: Any) -> str:
    if answer is UNANSWERED:
        return ""
    if answer is None:
        return NULL
    if not is_text(answer):
        return NOT_STRING
    return "" if answer.strip() else BLANK


def _outcome(
    item: Item,
    scores: Mapping[str, float],
    detail: Mapping[str, Any],
    unusable: str | None,
    judged: Judged | None,
) -> Outcome:
    fields = item.fields or {}
    answer = fields.get("answer")
    text, status, problem = None, MISSING, unusable
    if answer is not None:
        text = text_of(answer)
        status = ANSWERED if text.strip() else EMPTY
    elif "answer" in fields:
        problem = "the answer is null"
    elif item.fields and "evidence.recall" in scores:
        status = ANSWERED if fields.get("pages") else EMPTY
    explanation = detail.get("judge_problem") or detail.get("judge")
    return Outcome(
        scores=scores,
        detail=detail,
        problem=problem,
        status=status,
        answer=text,
        usable=unusable is None,
        explanation=judged.absent or explanation if judged else None,
        usage=judged.usage.as_dict() if judged else None,
    )
