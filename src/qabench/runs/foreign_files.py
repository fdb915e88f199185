"""Samples of lm-evaluation-harness, details of lighteval, and instance-level files of Every Eval Ever."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from qabench.data.rows import Json, Row, read_json, read_json_lines
from qabench.errors import DataError, InputError, unreadable
from qabench.evaluation import ANSWERED, EMPTY, FAILED, Message, Record
from qabench.evaluation.matching import DOC_HASH
from qabench.runs.foreign import Log, groups_of, numbers_of

DATE = r"_\d{4}-\d{2}-\d{2}T[\d:.+-]+"
# The first of these fields of a document is shown as the question.
QUESTIONS = ("question", "query", "problem", "prompt", "input", "text", "goal", "ctx", "sentence")


def first_row(path: Path) -> Row:
    """Return the first row of a file of JSON Lines, or {} if it has none."""
    try:
        return next((row.fields for row in read_json_lines(path)), {})
    except (DataError, OSError):
        return {}


def is_lm_eval(row: Row) -> bool:
    """Tell whether a row is a sample of lm-evaluation-harness."""
    return {"doc_id", "doc", "filtered_resps"} <= row.keys()


def is_shared(row: Row) -> bool:
    """Tell whether a row is of an instance-level file of Every Eval Ever."""
    return {"evaluation_id", "sample_id", "evaluation"} <= row.keys()


def read_lm_eval(path: Path) -> Log:
    """Return a file ``samples_TASK_DATE.jsonl``. Scores of several filters are named SCORE,FILTER, as in the harness.

    The model and the direction of scores are in the file ``results_DATE.json`` next to it, if there
    is one.
    """
    rows = _rows(path)
    task = re.sub(DATE + "$", "", path.stem.removeprefix("samples_"))
    results = lm_eval_results(path)
    several = len({row.get("filter") for row in rows}) > 1
    by_id: dict[str, list[list[Row]]] = {}
    for row in rows:
        # A second row of the same filter is a repetition of the question.
        lists = by_id.setdefault(str(row["doc_id"]), [])
        free = [
            each
            for each in lists
            if row.get("filter") not in {other.get("filter") for other in each}
        ]
        if free:
            free[0].append(row)
        else:
            lists.append([row])
    directions = results.get("higher_is_better", {}).get(task, {})
    lower = {name for name, higher in directions.items() if higher is False}
    names = {f"{name},{row.get('filter')}" for name in lower for row in rows} if several else lower
    return Log(
        path=str(path),
        task=task,
        model=str(results.get("model_name") or path.parent.name or path.stem),
        created=_date(path),
        records=[
            _lm_eval_record(id, each, several) for id, lists in by_id.items() for each in lists
        ],
        lower=frozenset(names),
    )


def lm_eval_results(path: Path) -> Json:
    """Return the harness's file of results next to a file of samples, by its date, or {} without one."""
    date = re.search(DATE + "$", path.stem)
    file = path.with_name(f"results{date[0] if date else ''}.json")
    if not file.is_file():
        return {}
    content = read_json(file)
    return content if isinstance(content, dict) else {}


def harness_facts(path: Path) -> dict[str, str]:
    """Return what changes the prompts or the questions of a file of samples, by its results, or {} for the defaults."""
    results = lm_eval_results(path)
    if not results:
        return {
            "harness_options": "not recorded, because the file has no results_*.json next to it"
        }
    config = _object(results.get("config"))
    facts = {
        "limit": config.get("limit"),
        "few_shot": max(_object(results.get("n-shot")).values(), default=0),
        "chat_template": results.get("chat_template_sha"),
        "system_instruction": results.get("system_instruction_sha"),
    }
    return {name: str(value)[:12] for name, value in facts.items() if value}


def _lm_eval_record(id: str, rows: Sequence[Row], several: bool) -> Record:
    row, doc = rows[0], _object(rows[0]["doc"])
    scores: dict[str, float] = {}
    for each in rows:
        values = {name: each.get(name) for name in each.get("metrics", ())}
        numbers = numbers_of(values)
        scores |= {
            f"{name},{each.get('filter')}" if several else name: number
            for name, number in numbers.items()
        }
    question = next((doc[name] for name in QUESTIONS if isinstance(doc.get(name), str)), None)
    answers = [_first_text(each.get("filtered_resps")) for each in rows]
    return _record(
        id=id,
        question=question if question is not None else json.dumps(doc, ensure_ascii=False),
        reference=str(row.get("target", "")),
        answer=answers[0],
        scores=scores,
        groups={name: value for name, value in doc.items() if name not in QUESTIONS},
        detail={DOC_HASH: row[DOC_HASH]} if DOC_HASH in row else {},
    )


def lighteval_rows(path: Path) -> list[Row]:
    """Return the rows of lighteval's details."""
    import pyarrow.parquet

    try:
        rows: list[Row] = pyarrow.parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:  # pyarrow's own errors are subclasses
        raise InputError(f"cannot read {path}: {error}") from None
    if rows and not {"doc", "metric", "model_response"} <= rows[0].keys():
        raise InputError(
            f"{path} has the columns {', '.join(rows[0])}; lighteval's details have doc, metric, ..."
        )
    return rows


def _lighteval_reply(row: Row) -> str | None:
    response = row["model_response"]
    return _first_text(response.get("text_post_processed") or response.get("text"))


def lighteval_answers(path: Path) -> list[dict[str, str | None]]:
    """Return the answers in lighteval's details of a task of this package, as predictions."""
    rows = lighteval_rows(path)
    ids = [_object(row["doc"].get("specific")).get("id") for row in rows]
    if not rows or None in ids:
        raise InputError(
            f"{path} has no details of a task of qabench: of `lighteval ... --custom-tasks "
            '"$(qabench path lighteval)" --save-details`'
        )
    return [
        {"id": str(id), "answer": _lighteval_reply(row)} for id, row in zip(ids, rows, strict=True)
    ]


def lighteval_facts(path: Path) -> dict[str, str]:
    """Return what changes the prompts or the questions of details, by lighteval's results."""
    folder = next((parent for parent in path.parents if parent.name == "details"), None)
    date = path.parent.name
    model = path.parent.parent.relative_to(folder) if folder else Path()
    results = path if folder is None else folder.parent / "results" / model / f"results_{date}.json"
    docs = [row["doc"] for row in lighteval_rows(path)]
    facts: dict[str, Any] = {
        "few_shot": max((len(doc.get("fewshot_samples") or ()) for doc in docs), default=0),
        "system_message": "in the user message" if any(map(_instruction, docs)) else None,
    }
    if folder is None or not results.is_file():
        facts["harness_options"] = "not recorded, because lighteval's results are not next to it"
    else:
        general = _object(_object(read_json(results)).get("config_general"))
        model_config = _object(general.get("model_config"))
        generation = _object(model_config.get("generation_parameters"))
        temperature = generation.get("temperature")
        facts |= {
            "limit": general.get("max_samples"),
            "chat_template": model_config.get("override_chat_template"),
            "system_instruction": model_config.get("system_prompt"),
            "temperature": None if temperature == 0 else temperature or "not sent",
        }
    return {name: str(value) for name, value in facts.items() if value}


def _instruction(doc: Row) -> str | None:
    text: str | None = doc.get("instruction")
    return text


def read_lighteval(path: Path) -> Log:
    """Return lighteval's details (``details_TASK_DATE.parquet``): columns doc, metric and model_response."""
    rows = lighteval_rows(path)
    records = []
    for number, row in enumerate(rows):
        doc = row["doc"]
        gold = doc.get("gold_index")
        choices = doc.get("choices") or []
        indices = gold if isinstance(gold, list) else [gold]
        targets = [str(choices[i]) for i in indices if isinstance(i, int) and 0 <= i < len(choices)]
        records.append(
            _record(
                id=str(doc.get("id") or number),
                question=doc.get("original_query") or doc.get("query") or "",
                reference="\n".join(targets),
                answer=_lighteval_reply(row),
                scores=numbers_of(row["metric"]),
                groups=doc.get("specific") or {},
            )
        )
    task = re.sub(DATE + "$", "", path.stem.removeprefix("details_"))
    return Log(str(path), task, path.parent.parent.name or path.stem, _date(path), records)


def read_shared(path: Path) -> list[Log]:
    """Return the logs of an instance-level file of Every Eval Ever, one per evaluation and model."""
    grouped: dict[tuple[str, str], dict[tuple[str, int], list[Row]]] = {}
    for row in _rows(path):
        task = str(row.get("evaluation_name", ""))
        epoch = _epoch(row)
        by_sample = grouped.setdefault((task, str(row.get("model_id", ""))), {})
        by_sample.setdefault((str(row["sample_id"]), epoch), []).append(row)
    return [
        Log(
            path=str(path),
            task=task or path.stem,
            model=model or path.stem,
            created=_date(path),
            records=[
                record
                for (id, epoch), rows in samples.items()
                for record in _shared(id, epoch, rows)
            ],
        )
        for (task, model), samples in grouped.items()
    ]


def _shared(id: str, epoch: int, rows: Sequence[Row]) -> Iterator[Record]:
    """Yield a record with the score of each result.

    A second one if a result repeats the sample.
    """
    scores: list[dict[str, float]] = [{}]
    for row in rows:
        name = str(row.get("evaluation_result_id") or row.get("evaluation_name") or "score")
        value = numbers_of({name: _object(row["evaluation"]).get("score")})
        if name in scores[-1]:
            scores.append({})
        scores[-1] |= value
    row = rows[0]
    content, output = _object(row.get("input")), _object(row.get("output"))
    attributed = [
        _object(each).get("extracted_value") for each in row.get("answer_attribution") or ()
    ]
    for values in scores:
        yield _record(
            id=id,
            epoch=epoch,
            question=str(content.get("raw", "")),
            reference="\n".join(map(str, content.get("reference") or ())),
            answer=_first_text(attributed or output.get("raw")),
            scores=values,
            groups={
                name: text for name, text in _object(row.get("metadata")).items() if name != "epoch"
            },
            problem=row.get("error"),
        )


def _epoch(row: Row) -> int:
    text = str(_object(row.get("metadata")).get("epoch", "1"))
    return int(text) if text.isdigit() else 1


def _record(
    *,
    id: str,
    question: str,
    reference: str,
    answer: str | None,
    scores: Mapping[str, float],
    groups: Row,
    epoch: int = 1,
    problem: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> Record:
    status = ANSWERED if answer else EMPTY
    if problem and not answer:
        status = FAILED
    # The scores of log-likelihoods have no answer.
    status = ANSWERED if scores and status == EMPTY else status
    return Record(
        id=id,
        epoch=epoch,
        question=question,
        reference=reference,
        messages=[Message("assistant", answer)] if answer else [],
        answer=answer,
        status=status,
        problem=problem,
        scores=scores,
        groups=groups_of(groups),
        detail=detail or {},
    )


def _rows(path: Path) -> list[Row]:
    try:
        return [row.fields for row in read_json_lines(path)]
    except OSError as error:
        raise unreadable(path, error) from None


def _object(value: Any) -> Row:
    return value if isinstance(value, Mapping) else {}


def _first_text(value: Any) -> str | None:
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return value if isinstance(value, str) else None


def _date(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
