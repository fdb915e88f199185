"""FanOutQA's scorer, which compares answers with references, and pages read with necessary pages.

Source: Zhu et al., FanOutQA, ACL 2024 (https://arxiv.org/abs/2402.14116), and
``fanoutqa.eval.scorer.Scorer.score``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.fanoutqa.accuracy import (
    Normalize,
    accuracy,
    is_undefined,
    reference_of,
)
from qabench.benchmarks.fanoutqa.normalizer import (
    NormalizedTextCache,
    Normalizer,
    shared_normalizer,
)
from qabench.data.answers import NOT_STRING, UNANSWERED, is_text, text_of
from qabench.data.rows import Json, Row, grouped
from qabench.errors import InputError, some
from qabench.evaluation import ANSWERED, EMPTY, MISSING
from qabench.evaluation.score_spec import mean_in_order
from qabench.evaluation.scoring import Item, Outcome, Progress, Scorer
from qabench.evaluation.signature import digest, signature
from qabench.text import Lemmatizer

if TYPE_CHECKING:
    from qabench.benchmarks.fanoutqa.judge import Judge, Judged

NULL, BLANK = "null answers", "empty answers"
NO_VERDICT, FAILED = "no readable verdict by the judge", "the call to the judge failed"
Bleurt = Callable[[list[str], list[str]], Sequence[float]]
"""A function from two lists of strings, references and candidates, to one score per pair."""


@dataclass
class FanOutQAScorer(Scorer):
    """Scores answers, as the official scorer does, and the pages that were read.

    A prediction has ``answer``, ``pages`` or both. The pages are titles, URLs, page ids, or objects
    with "title", "url" and "pageid". Without an answer the question is unanswered: it scores 0 in
    accuracy, ROUGE and judge, and is the empty string for BLEURT. The answer None is the string
    "None" for accuracy and the empty string for ROUGE, as upstream.

    Attributes:
        normalizer: the normalizer for accuracy, or None if accuracy is not computed.
        rouge: whether ROUGE is computed.
        bleurt: the BLEURT function, or None if BLEURT is not computed.
        judge: the judge, or None if nothing is judged.
        evidence: whether pages are scored if any item has pages.
        evidence_k: how many pages of each question count, from the first. None for all.
        only_score_answered: whether the caller left out unanswered questions, for signatures.
        leave_out_undefined: whether a question whose accuracy is undefined is left out. Otherwise
            it is an error.
        judged: the judge's scores and costs in the last call of ``score``.
    """

    normalizer: Normalizer | None = None
    rouge: bool = False
    bleurt: Bleurt | None = None
    judge: Judge | None = None
    evidence: bool = False
    evidence_k: int | None = None
    only_score_answered: bool = False
    leave_out_undefined: bool = True
    judged: Judged | None = None

    def __post_init__(self) -> None:
        if self.judge:
            self.concurrency = self.judge.caller.concurrency
        self.fields = self._fields()
        reads = dict.fromkeys(self.fields, ("answer",))
        if self.evidence:
            reads["evidence"] = ("pages",)
        self.reads = reads
        self.empty_lists = ("pages",)
        self.needs = {"evidence": 'it needs the field "pages", or a TREC run'}

    def score(self, items: Sequence[Item], progress: Progress | None = None) -> list[Outcome]:
        """Return the scores of each item.

        ``gpt`` is missing if the judge's call failed, ``gpt_readable`` if its reply has no readable
        verdict. ``progress`` is called for accuracy, and then for the judge.

        Raises:
            InputError: see ``accuracy`` and ``judge_answers``, or the BLEURT function returns the
                wrong number of scores.
        """
        usable = list(items)
        unusable: list[str | None] = [None] * len(items)
        if self.evidence:
            for i, item in enumerate(items):
                unusable[i] = _unusable_pages(item.fields)
                if unusable[i]:
                    # An unusable prediction counts as missing: one bad line must not stop the
                    # others.
                    usable[i] = Item(item.row, None)
        references = [_reference(item) for item in items]
        answers = [_answer(item) for item in usable]
        columns: list[dict[str, float]] = [{} for _ in items]
        details: list[Json] = [{} for _ in items]
        results: list[Json] = [{} for _ in items]
        # Each group of scores adds columns, details for reports, or results.
        if self.normalizer:
            normalize = partial(self.normalizer.batch, progress=progress)
            self._add_accuracy(references, answers, normalize, columns, details)
        if self.rouge:
            from qabench.text.rouge import rouge

            for row, measures in zip(columns, rouge(references, answers), strict=True):
                for column, value in measures.items():
                    row[column] = float(value)
        if self.bleurt:
            from qabench.models.bleurt import bleurt

            for row, value in zip(columns, bleurt(references, answers, self.bleurt), strict=True):
                row["bleurt"] = float(value)
        judged = None
        if self.judge:
            from qabench.benchmarks.fanoutqa.judge import judge_answers

            questions = _questions(items, answers)
            judged = judge_answers(questions, references, answers, self.judge, progress)
            self.judged, self.notes = judged, judged.notes()
            # ``per_question`` is empty if calls are needed and cannot be made.
            for result, judgment in zip(results, judged.per_question, strict=False):
                result["judgment"] = judgment
            _add_judgments(judged, columns, details)
        if self._with_evidence(items):
            self._add_evidence(usable, columns, details, results)
        self.problems = _problems(items, answers, columns, details, judged)
        if self.normalizer:
            self.problems += _without_accuracy(items, columns)
        if self.rouge:
            self.problems += self._wordless(items, references, answers)
        outcomes = []
        for item, scores, detail, result, reason in zip(
            usable, columns, details, results, unusable, strict=True
        ):
            outcomes.append(_outcome(item, scores, detail, result, reason, judged))
        return outcomes

    def _add_accuracy(
        self,
        references: Sequence[Any],
        answers: Sequence[Any],
        normalize: Normalize,
        columns: Sequence[dict[str, float]],
        details: Sequence[Json],
    ) -> None:
        """Add accuracy, where it is defined, and the strings that were found and missing."""
        with_accuracy = self._with_accuracy(references)
        # A run scores each question alone, so nothing is left if its accuracy is undefined.
        if references and not with_accuracy:
            return
        scored_references = [references[i] for i in with_accuracy]
        scored_answers = [answers[i] for i in with_accuracy]
        accuracies = accuracy(scored_references, scored_answers, normalize)
        for i, question in zip(with_accuracy, accuracies, strict=True):
            columns[i]["acc.loose"] = float(question.loose)
            columns[i]["acc.strict"] = float(question.strict)
            details[i]["found"] = list(question.matches)
            details[i]["missing"] = list(question.missing)

    def _add_evidence(
        self,
        items: Sequence[Item],
        columns: Sequence[dict[str, float]],
        details: Sequence[Json],
        results: Sequence[Json],
    ) -> None:
        """Add recall and precision of the pages that were read, and the pages that are missing."""
        from qabench.benchmarks.fanoutqa.evidence_pages import evidence_scores, title_of

        necessary = []
        pages = []
        for item in items:
            necessary.append(item.row["necessary_evidence"])
            pages.append((item.fields or {}).get("pages"))
        for i, score in enumerate(evidence_scores(necessary, pages, self.evidence_k)):
            missing = [necessary[i][position] for position in score.missing]
            results[i]["missing_pages"] = missing
            columns[i]["evidence.recall"] = score.recall
            # Precision is undefined if no page was read.
            if score.precision is not None:
                columns[i]["evidence.precision"] = score.precision
            details[i]["evidence_read"] = list(pages[i] or [])
            details[i]["evidence_missing"] = list(map(title_of, missing))

    def signatures(self, items: Sequence[Item], about: Mapping[str, object]) -> dict[str, str]:
        """Return one signature per group: the data, how a model was asked, and the scorer."""
        # In ``about``, data and prompt come before the model, and generation options after it.
        fields: dict[str, object] = {}
        generation: dict[str, object] = {}
        part = fields
        for name, value in about.items():
            if name == "model":
                part = generation
            part[name] = value
        model = str(generation.pop("model", ""))
        # In a run, which scores each question alone, ``about`` has the digest of all references.
        if items and "references" not in fields and all("answer" in item.row for item in items):
            fields["references"] = digest(map(_reference, items))

        fields["only_score_answered"] = self.only_score_answered
        # The authors limit tokens for Claude only, so this limit is a separate field with another
        # official value.
        if "claude" in model.lower() and "max_tokens" in generation:
            generation["claude_max_tokens"] = generation.pop("max_tokens")
        shared = fields | generation
        signed = dict(self.fields)
        if self._with_evidence(items):
            signed["evidence"] = {"k": self.evidence_k}
        signatures = {}
        for group, own in signed.items():
            signatures[group] = signature(f"fanout_{group}", **shared, **own)
        return signatures

    def metric_fields(self, group: str, items: Sequence[Item]) -> Mapping[str, object]:
        """Return the signature fields of a group. The judge also depends on the questions."""
        if group == "evidence":
            return {"k": self.evidence_k}
        if group == "judge":
            questions = [item.row.get("question", "") for item in items]
            return {"questions": digest(questions), **self.fields[group]}
        return self.fields[group]

    @staticmethod
    def _wordless(
        items: Sequence[Item], references: Sequence[Any], answers: Sequence[Any]
    ) -> list[str]:
        from qabench.text.rouge import wordless_problems

        ids = [str(item.row.get("id")) for item in items]
        answered = [None if answer is UNANSWERED else answer for answer in answers]
        # ROUGE's tokenizer reads only a-z and 0-9, so a text in another script scores 0.
        return wordless_problems(ids, answered, references)

    def _with_accuracy(self, references: Sequence[Any]) -> list[int]:
        """Return the positions of the references for which accuracy is computed."""
        if not self.leave_out_undefined:
            return list(range(len(references)))
        return [i for i, reference in enumerate(references) if not is_undefined(reference)]

    def _with_evidence(self, items: Sequence[Item]) -> bool:
        pages = [(item.fields or {}).get("pages") for item in items]
        return self.evidence and any(page is not None for page in pages)

    def _fields(self) -> dict[str, Mapping[str, object]]:
        """Return the signature fields that describe the scorer, by group of scores."""
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
    judge_api_key: str | None = None,
    judge_prompt: str = "auto",
    judge_max_calls: int | None = None,
    judge: str | Mapping[str, Any] | None = None,
    evidence_k: int | None = None,
    threads: bool = False,
    bleurt: Bleurt | None = None,
    send_environment_key: bool = True,
    leave_out_undefined: bool = True,
) -> FanOutQAScorer:
    """Return the scorer for groups of scores.

    For the options, see ``FanOutQABenchmark.options``, ``qabench.text.resolve_lemmatizer``,
    ``qabench.models.bleurt.load_bleurt`` and ``judge_from``. With ``threads``, the scorer is called
    from several threads, with one answer at a time. ``bleurt`` is a function to use instead of a
    model. With ``send_environment_key``, the server ``judge_base_url`` gets the environment's key,
    because the user typed its address in the command. See ``key_for_typed``.
    """
    scorers: dict[str, Any] = {}
    if "bleurt" in groups:
        from qabench.models.bleurt import load_bleurt

        scorers["bleurt"] = bleurt or load_bleurt(model=bleurt_model)
    if "judge" in groups:
        from qabench.benchmarks.fanoutqa.judge import judge_from
        from qabench.llm.endpoint import key_for_typed

        if judge_api_key is None and send_environment_key:
            judge_api_key = key_for_typed(judge_base_url)
        scorers["judge"] = judge_from(
            judge,
            model=judge_model,
            base_url=judge_base_url,
            api_key=judge_api_key,
            prompt=judge_prompt,
            max_calls=judge_max_calls,
        )
    if "acc" in groups and threads:
        scorers["normalizer"] = shared_normalizer(lemmatizer)
    elif "acc" in groups:
        scorers["normalizer"] = Normalizer(lemmatizer, NormalizedTextCache.default())
    return FanOutQAScorer(
        rouge="rouge" in groups,
        evidence="evidence" in groups,
        evidence_k=evidence_k,
        only_score_answered=only_score_answered,
        leave_out_undefined=leave_out_undefined,
        **scorers,
    )


def official_shape(rows: Sequence[Mapping[str, float]]) -> Json:
    """Return the mean scores of questions in the shape of the official result.

    Returns:
        {"acc": {"loose", "strict"}, "rouge": {"rouge1": {"precision", "recall", "fscore"},
        "rouge2": ..., "rougeL": ...}, "bleurt": float, "gpt": float}. Groups without scores are
        absent.
    """
    columns: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    means = {name: mean_in_order(values) for name, values in columns.items()}
    shape: Json = {}
    if "acc.loose" in means:
        shape["acc"] = {"loose": means["acc.loose"], "strict": means["acc.strict"]}
    if "rouge1.fscore" in means:
        from qabench.text.rouge import by_type

        shape["rouge"] = by_type(means)
    for name in ("bleurt", "gpt"):
        if name in means:
            shape[name] = means[name]
    return shape


def _reference(item: Item) -> Any:
    """Return the reference answer, or "" for a test question, whose answer is not public."""
    return reference_of(item.row) if "answer" in item.row else ""


def _questions(items: Sequence[Item], answers: Sequence[Any]) -> list[str]:
    """Return the texts of the questions for the judge.

    Raises:
        InputError: an answer is to be judged, but the text of its question is missing.
    """
    from qabench.benchmarks.fanoutqa.judge import is_judged

    for item, answer in zip(items, answers, strict=True):
        if is_judged(answer) and "question" not in item.row:
            raise InputError(
                "the judge needs the questions: pass the text of each question as questions=[...]"
            )
    return [item.row.get("question", "") for item in items]


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


def _add_judgments(
    judged: Judged, columns: Sequence[dict[str, float]], details: Sequence[Json]
) -> None:
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
    """Return sentences about answers that the leaderboard would reject, and missing judge scores."""
    ids = [str(item.row.get("id")) for item in items]
    ids_by_problem = grouped(zip(map(_answer_problem, answers), ids, strict=True))
    sentences = []
    for problem in (NULL, BLANK, NOT_STRING):
        if problem in ids_by_problem:
            affected = ids_by_problem[problem]
            sentences.append(f"{problem}: {len(affected)} ({some(affected)})")
    if judged and judged.absent:
        return [*sentences, f"gpt is absent: {judged.absent}"]
    ids_by_failure: dict[str, list[str]] = {}
    for id, row, detail in zip(ids, columns, details, strict=True):
        reason = detail.get("judge_problem")
        if reason:
            kind = NO_VERDICT if "gpt" in row else FAILED
            ids_by_failure.setdefault(f"{kind}: {reason}", []).append(id)
    for failure, affected in ids_by_failure.items():
        sentences.append(f"{len(affected)} x {failure} ({some(affected)})")
    return sentences


def _without_accuracy(items: Sequence[Item], columns: Sequence[Mapping[str, float]]) -> list[str]:
    """Return a sentence about questions without accuracy, if there are any."""
    ids = []
    for item, scores in zip(items, columns, strict=True):
        if "acc.loose" not in scores:
            ids.append(str(item.row.get("id")))
    if not ids:
        return []
    return [
        "no accuracy is defined for questions whose answer is or contains an empty list or object: "
        f"{len(ids)} ({some(ids)})"
    ]


def _answer_problem(answer: Any) -> str:
    if answer is UNANSWERED:
        return ""
    if answer is None:
        return NULL
    if not is_text(answer):
        return NOT_STRING
    if not answer.strip():
        return BLANK
    return ""


def _outcome(
    item: Item,
    scores: Mapping[str, float],
    detail: Mapping[str, Any],
    result: Json,
    unusable: str | None,
    judged: Judged | None,
) -> Outcome:
    fields = item.fields or {}
    answer = fields.get("answer")
    text, status, problem = None, MISSING, unusable
    if answer is not None:
        text = text_of(answer)
        status = ANSWERED if text.strip() else EMPTY
    elif "evidence.recall" in scores and fields.get("pages") is not None:
        # A list of pages counts as an answer. After a search that found nothing it is empty, and the
        # recall is 0.
        status = ANSWERED
    elif "answer" in fields:
        problem = "the answer is null"
    elif item.fields and "evidence.recall" in scores:
        status = EMPTY
    explanation = usage = None
    if judged:
        explanation = judged.absent or detail.get("judge_problem") or detail.get("judge")
        usage = judged.usage.as_dict()
    return Outcome(
        scores=scores,
        detail=detail,
        problem=problem,
        status=status,
        answer=text,
        usable=unusable is None,
        explanation=explanation,
        usage=usage,
        result=result,
    )
