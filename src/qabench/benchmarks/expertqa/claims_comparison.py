"""Claims of the annotated answers, compared with the claims that the authors released."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from qabench.benchmarks.expertqa.items import Item
from qabench.benchmarks.expertqa.questions import Questions
from qabench.data.predictions import Prediction, Predictions
from qabench.errors import InputError
from qabench.io.tables import Table

FIELDS = {"answer": "answer_string", "attribution": "attribution", "system": "system"}
COLUMNS = ("answers", "same claims", "released claims", "claims", "in both", "share found", "same citations")


def annotated_answers(questions: Questions | None) -> Predictions:
    """The annotated answers of a config as a file of predictions would have them.

    Raises:
        InputError: the config has no annotated answers.
    """
    if questions is None or not questions.annotated:
        raise InputError("give a FILE with answers, or --config with annotated answers, such as random")
    rows = [
        Prediction(number, question.id, {name: answer[given] for name, given in FIELDS.items()})
        for number, question in enumerate(questions.rows, start=1)
        for answer in question.answers[:1]
    ]
    return Predictions(f"{questions.config}-{questions.split}", tuple(rows))


def compared(questions: Questions, items: Sequence[Item]) -> Table:
    """By system: answers with the same claims, up to white space, and the share of the released claims that is found.

    "same citations" is the share of these claims whose evidence begins with the same sources: the passages of systems
    that retrieve are not in the released attributions.

    Args:
        questions: with annotated answers.
        items: the same answers, split into claims.
    """
    found = {item["id"]: item["claims"] for item in items}
    counts: dict[str, Counter[str]] = {}
    for question in questions.rows:
        for answer in question.answers[:1]:
            if question.id in found:
                for name in (answer["system"], "all"):
                    counts.setdefault(name, Counter()).update(_counted(answer["claims"] or (), found[question.id]))
    rows: list[list[Any]] = [
        [name, *(count[column] for column in COLUMNS[:5]), *_shares(count)]
        for name, count in sorted(counts.items(), key=lambda entry: (entry[0] == "all", entry[0]))
    ]
    return Table(f"Released claims, {questions.config} {questions.split}", ["system", *COLUMNS], rows)


def _counted(released: Sequence[Mapping[str, Any]], ours: Sequence[Mapping[str, Any]]) -> Counter[str]:
    theirs = [" ".join(claim["claim_string"].split()) for claim in released]
    texts = [" ".join(claim["claim"].split()) for claim in ours]
    evidence = dict(zip(texts, (claim["evidence"] for claim in ours), strict=True))
    cited = sum(
        text in evidence and _sources(claim["evidence"]) == _sources(evidence[text])
        for text, claim in zip(theirs, released, strict=True)
    )
    both = (Counter(theirs) & Counter(texts)).total()
    numbers = (1, int(theirs == texts), len(theirs), len(texts), both)
    return Counter(dict(zip(COLUMNS, numbers, strict=False)) | {"cited": cited})


def _shares(count: Mapping[str, int]) -> list[str]:
    released, both = count["released claims"], count["in both"]
    return [f"{both / released:.4f}" if released else "", f"{count['cited'] / both:.4f}" if both else ""]


def _sources(evidence: Sequence[str] | None) -> list[str]:
    return [piece.partition("\n\n")[0] for piece in evidence or ()]
