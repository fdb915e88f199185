"""FanOutQA's questions: the rows of a file, their groups and hops, and whether answers are public."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from qabench.answers import loads, text_of, type_name
from qabench.data.rows import Json, Row, read_json_list
from qabench.errors import DataError, InputError
from qabench.evaluation.scoring import Question, Questions
from qabench.loading_scripts import dataset_table, open_path
from qabench.loading_scripts.fanoutqa import parse


@lru_cache(maxsize=1)
def read_rows(path: Path, config: str, modified: int) -> list[Json]:
    """Return the rows of a file, which is parsed once for all systems that are scored on it.

    Raises DataError if the file is not in the format or has no questions, or an id is repeated.
    """
    rows = list(parse.read_rows(path, config))
    if not rows:
        raise DataError(f"{path} has no questions")
    for id, count in Counter(row["id"] for row in rows).items():
        if count > 1:
            raise DataError(f"{path}: the id {id!r} occurs more than once; ids must be unique")
    return rows


def source_rows(config: str | None, file: str | None) -> dict[str, str]:
    """Return each row of a file as Python prints it, by question id: keys in the order of the file.

    The authors' open-book runner ranks the fragments of a page by this text instead of by the
    question: the titles of the evidence are in it, and for development questions the decomposition
    with all answers.
    """
    table = dataset_table("fanoutqa")
    ((name,),) = table.config(config).splits.values()
    path = Path(file) if file else open_path(table.name, name)
    return {row.fields["id"]: str(row.fields) for row in read_json_list(path)}


def question(row: Row) -> Question:
    """Return a row as a question with its groups.

    They are its categories, its number of evidence pages, its answer's type and its hops. The
    answers to test questions are not public.
    """
    groups = {
        "category": list(row["categories"]),
        "evidence": [f"{len(row['necessary_evidence'])} pages"],
    }
    answer = None
    if "answer" in row:
        answer, n = loads(row["answer"]), hops(loads(row["decomposition"]))
        groups["type"] = [type_name(answer)]
        groups["hops"] = [f"{n} hop{'s' * (n != 1)}"]
    return Question(row["id"], row["question"], text_of(answer), groups, row)


def are_public(questions: Questions) -> bool:
    """Return whether the questions have answers."""
    return all("answer" in each.row for each in questions.rows)


def check_public(questions: Questions) -> None:
    """Raise InputError if the answers are not public."""
    if are_public(questions):
        return
    table = dataset_table("fanoutqa")
    public = [config.name for config in table.configs.values() if "test" not in config.splits]
    raise InputError(
        f"the answers of {table.title} {questions.config} are not public; its authors score submissions for their "
        f"leaderboard. Configs with answers: {', '.join(public)}"
    )


def hops(decomposition: Sequence[Row]) -> int:
    """Return the number of hops of a question: the longest chain of sub-questions that need the previous answer.

    A sub-question comes after those that it depends on, and counts as many hops as its own
    decomposition, or else one. 0 for a question without sub-questions.
    """
    if not decomposition:
        return 0
    by_id = {node["id"]: node for node in decomposition}
    ends: dict[str, int] = {}

    def end(node: Mapping[str, Any]) -> int:
        if node["id"] not in ends:
            ends[node["id"]] = 0  # a circle of dependencies ends here
            before = max((end(by_id[id]) for id in node["depends_on"] if id in by_id), default=0)
            ends[node["id"]] = before + max(hops(node["decomposition"]), 1)
        return ends[node["id"]]

    return max(map(end, decomposition))
