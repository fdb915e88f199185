"""FanOutQA's questions for scoring, from a config or from a file in the official format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from qabench.answers import loads, text_of, type_name
from qabench.data.rows import Row, read_json_list
from qabench.errors import InputError
from qabench.evaluation.scoring import Question, Questions
from qabench.loading_scripts import (
    LEADERBOARD,
    custom_digest,
    dataset_table,
    file_digest,
    open_path,
)
from qabench.loading_scripts.fanoutqa.parse import parser


def read_questions(config: str | None = None, file: str | Path | None = None) -> Questions:
    """Return the questions of a config, or of a file in the format of ``fanout-final-dev.json``.

    Args:
        config: by default "dev". Not allowed with a file.
        file: a JSON list of questions, each with id, question, decomposition, answer and
            categories.

    Raises:
        InputError: an unknown config or one without questions, both arguments, or a file that is
            not in the format.
        SourceError: the data is not available.
    """
    if file is None:
        name, path = _of_config(config)
        table = dataset_table("fanoutqa")
        ((source,),) = table.config(name).splits.values()
        return _read(name, path, file_digest(table.name, source), path.stat().st_mtime_ns)
    if config is not None:
        raise InputError(
            f"the config ({config!r}) and a file of questions ({file}) cannot be used together"
        )
    path = Path(file)
    digest = custom_digest(path)
    questions = _questions(path, "dev")
    if not questions:
        raise InputError(f"{path} has no questions")
    ((id, count),) = Counter(each.id for each in questions).most_common(1)
    if count > 1:
        raise InputError(f"{path}: the id {id!r} occurs more than once; ids must be unique")
    return Questions(f"file:{path.name}", digest, questions)


def source_rows(config: str | None, file: str | None) -> dict[str, str]:
    """Return each row of a file as Python prints it, by question id: keys in the order of the file.

    The authors' open-book runner ranks the fragments of a page by this text instead of by the
    question: the titles of the evidence are in it, and for development questions the decomposition
    with all answers.
    """
    path = Path(file) if file else _of_config(config)[1]
    return {row.fields["id"]: str(row.fields) for row in read_json_list(path)}


def _of_config(config: str | None) -> tuple[str, Path]:
    """Return the name of a config and its file."""
    table = dataset_table("fanoutqa")
    chosen = table.config(config)
    if chosen.name == LEADERBOARD:
        names = ", ".join(name for name in table.configs if name != LEADERBOARD)
        raise InputError(f"FanOutQA has no questions in {chosen.name!r}; allowed: {names}")
    ((name,),) = chosen.splits.values()
    return chosen.name, open_path(table.name, name)


@lru_cache(maxsize=1)
def _read(config: str, path: Path, digest: str, modified: int) -> Questions:
    """Return the questions of a file, which is parsed once for all systems that are scored on it."""
    return Questions(config, digest, _questions(path, config))


def _questions(path: Path, config: str) -> list[Question]:
    parse = parser(config)
    return [question(parse(source), source.fields) for source in read_json_list(path)]


def question(row: Row, source: Row | None = None) -> Question:
    """Return a row as a question with its groups.

    They are its categories, its number of evidence pages, its answer's type and its hops. The
    answers to test questions are not public.

    Args:
        row: the row of the dataset.
        source: the row of the file, so that the row's JSON text is not parsed again.
    """
    if source is None:
        source = {name: loads(row[name]) for name in ("answer", "decomposition") if name in row}
    groups = {
        "category": list(row["categories"]),
        "evidence": [f"{len(row['necessary_evidence'])} pages"],
    }
    if "answer" in source:
        n = hops(source["decomposition"])
        groups["type"] = [type_name(source["answer"])]
        groups["hops"] = [f"{n} hop{'s' * (n != 1)}"]
    reference = text_of(source.get("answer"))
    return Question(row["id"], row["question"], reference, groups, row)


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
