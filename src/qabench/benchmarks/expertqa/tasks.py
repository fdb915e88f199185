"""ExpertQA as an Inspect AI task: answers with citations, their claims and attribution."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig

from qabench.benchmarks.expertqa.answers import K, answer_with_citations, asked_by
from qabench.benchmarks.expertqa.passages import CHUNK_SIZE, OVERLAP, load_passages
from qabench.benchmarks.expertqa.scorer import expertqa_scorer, plain
from qabench.errors import InputError
from qabench.loading_scripts import Config, dataset_table, file_digest, open_path
from qabench.loading_scripts.expertqa.parse import parse_annotated, parse_collected, parse_lfqa, parse_question
from qabench.neural.nli import MODEL
from qabench.rows import Row, read_json_lines
from qabench.tasks.common import chosen, sample, task_metadata

ANSWER_TOKENS = 1000
PARSERS: Mapping[str, Callable[[Row], dict[str, Any]]] = {
    "questions": parse_question,
    "lfqa_random": parse_lfqa,
    "lfqa_domain": parse_lfqa,
}


@task
def expertqa(
    config: str = "questions",
    method: str = "closed",
    split: str | None = None,
    corpus: str | None = None,
    index: str | None = None,
    k: int = K,
    chunk_size: int = CHUNK_SIZE,
    overlap: int = OVERLAP,
    attributor: str = "none",
    nli_model: str = MODEL,
    fields: Sequence[str] | str | None = None,
    ids: Sequence[str] | str | None = None,
) -> Task:
    """ExpertQA: answer an expert's question with citations; claims, their evidence and attribution are scored.

    The dataset has no ids but in its lfqa configs: a question's id is the first 12 hex digits of the SHA-256 of its
    text, the same in every config; in the lfqa configs it is ``example_id``.

    Args:
        config: of the dataset; "questions" has all of them and no answers. ROUGE is scored where the experts' revised
            answers are there: main, random, domain, lfqa_random, lfqa_domain, sample and others.
        method: "closed", "retrieve-read" or "post-hoc"; corpus, index, k, chunk_size, overlap: see
            ``answer_with_citations``.
        split: of a config that has several: train, validation or test (the default).
        attributor: who labels the claims: "none", "model" or "nli"; see ``qabench.benchmarks.expertqa.labels``.
        fields, ids: only questions of these fields, only these questions.

    Raises:
        InputError: an option, a field or an id that there is not, or a corpus that cannot be used.
        SourceError: the data cannot be had.
    """
    table = dataset_table("expertqa").config(config)
    file = _file(table, split)
    samples = chosen(_samples(table.name, file), ids, fields)
    data = file_digest("expertqa", file)
    signed: dict[str, Any] = {"config": table.name, "data": data, "method": method, "prompt": asked_by(method)}
    answering: dict[str, Any] = {"corpus": corpus, "index": index, "k": k, "chunk_size": chunk_size, "overlap": overlap}
    solver = answer_with_citations(method, **answering)
    if corpus is not None and method != "closed":
        passages = load_passages(corpus, index, chunk_size, overlap)
        signed |= {"corpus": passages.name, "passages": len(passages.index)}
    return Task(
        dataset=MemoryDataset(samples, name=f"qabench/expertqa/{table.name}"),
        solver=solver,
        scorer=expertqa_scorer(attributor, nli_model, signed),
        config=GenerateConfig(temperature=0, max_tokens=ANSWER_TOKENS),
        metadata=task_metadata("expertqa", table.name, method, data),
        fail_on_error=False,
        score_on_error=True,
    )


def question_id(question: str) -> str:
    """The id of a question of a config that has none."""
    return hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _file(table: Config, split: str | None) -> str:
    name = split or ("test" if "test" in table.splits else next(iter(table.splits)))
    if name not in table.splits:
        raise InputError(f"expertqa {table.name} has no split {split!r}; allowed: {', '.join(table.splits)}")
    (file,) = table.splits[name]
    return file


def _samples(config: str, file: str) -> Iterator[Sample]:
    parse = PARSERS.get(config, parse_collected if config.startswith("answers_") else parse_annotated)
    for row in map(parse, read_json_lines(open_path("expertqa", file))):
        about = row.get("metadata")
        groups = {"field": [about["field"]], "question type": about["question_type"]} if about else {}
        id = str(row["example_id"]) if "example_id" in row else question_id(row["question"])
        expected = _expected(row)
        yield sample(id, row["question"], row["question"], expected or "", groups, expected=expected)


def _expected(row: Mapping[str, Any]) -> str | None:
    """The reference answer: of an lfqa config its own, else the experts' revised one in the same form."""
    if "answer" in row:
        return str(row["answer"])
    revised = (answer["revised_answer_string"] for answer in row.get("answers", ()))
    return next((plain(text) for text in revised if text), None)
