"""Logs of our own tasks with fields of other types: one error that names the log and the field, and
no traceback.
"""

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes
from scripted_model import run

from qabench.benchmarks import benchmark
from qabench.errors import InputError
from qabench.loading_scripts.load import load_dataset
from qabench.runs import log
from qabench.runs.aggregates import Reported
from qabench.runs.any_log import read_any_log
from qabench.runs.archive import open_archive
from qabench.runs.log_fields import check
from qabench.runs.predictions import evaluate_predictions
from qabench.runs.trust import checked_log

SCORE = ("scores", "*", "metadata")
DETAIL = (*SCORE, "detail")
HUGE = 10**400


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    tasks: Mapping[str, Mapping[str, Any]] = {
        "fanoutqa_closed_book": {"prompt": "qabench", "lemmatizer": "simplemma"},
        "felm": {"prompt": "qabench"},
        "fastbook_rag": {},
    }
    paths = {}
    for task, arguments in tasks.items():
        folder = tmp_path_factory.mktemp(task)
        written = run(
            f"qabench/{task}", lambda _: "Answer: 1", folder, task_args={"config": "sample", **arguments}, limit=1
        )
        paths[task.partition("_")[0]] = Path(written.location)
    return paths


def put(content: Any, place: tuple[Any, ...], value: Any) -> None:
    """Replace the value at this place. ``*`` stands for the only key."""
    *parents, last = place
    for key in parents:
        content = content[next(iter(content)) if key == "*" else key]
    content[last] = value


def edited(path: Path, folder: Path, place: tuple[Any, ...], value: Any) -> Path:
    """Return a copy of a log with a change in its JSON, which Inspect's own classes might refuse to
    write.
    """
    part = "samples/" if place[0] in ("metadata", "scores") else "header.json"
    copy = folder / "edited.eval"
    with open_archive(path) as archive, zipfile.ZipFile(copy, "w") as changed:
        for name in archive.namelist():
            content = archive.read(name)
            if name.startswith(part):
                values = json.loads(content)
                put(values, place, value)
                content = json.dumps(values).encode()
            changed.writestr(name, content)
    return copy


RUN_FIELDS = [
    (("eval", "metadata", "benchmark"), "unknown"),
    (("eval", "metadata", "signatures"), 5),
    (("eval", "metadata", "signatures", "run"), 5),
    (("eval", "metadata", "available"), "x"),
    (("eval", "dataset", "sample_ids"), 5),
    (("eval", "model_args"), None),
    (("plan", "steps", 0, "solver"), 5),
    (("plan", "steps", 0, "params"), 5),
]
SAMPLE_FIELDS = [
    (("metadata", "replies"), 5),
    (("metadata", "replies"), {"all": "x"}),
    (("metadata", "problems"), [1]),
    (("metadata", "groups"), {"type": 5}),
    (("scores", "*", "answer"), 5),
    (SCORE, 5),
    ((*SCORE, "signatures"), [[1]]),
    ((*SCORE, "signatures", "acc"), None),
    ((*SCORE, "statuses"), {"acc": 1}),
    (DETAIL, 5),
    (("scores", "*", "value", "rouge1.fscore"), HUGE),
]
OF_BENCHMARKS = [
    ("felm", (*DETAIL, "replies"), 5),
    ("felm", (*DETAIL, "replies", 0), 5),
    ("felm", (*DETAIL, "segments"), [1]),
    ("felm", (*DETAIL, "segments", 0), {"type": "math"}),
    ("felm", ("eval", "task_args", "num_cons"), "x"),
    ("fastbook", (*DETAIL, "passages", 0), {}),
    ("fastbook", (*DETAIL, "components", 0, "rank"), "x"),
    ("fastbook", ("eval", "task_args", "k"), "x"),
    ("fanoutqa", (*DETAIL, "evidence_read"), 5),
    ("fanoutqa", ("eval", "task_args", "judge"), 5),
]


@pytest.mark.parametrize(
    ("name", "place", "value"), [*(("fanoutqa", *case) for case in [*RUN_FIELDS, *SAMPLE_FIELDS]), *OF_BENCHMARKS]
)
def test_a_field_of_another_type(
    honest: dict[str, Path], tmp_path: Path, name: str, place: tuple[Any, ...], value: Any
) -> None:
    copy = edited(honest[name], tmp_path, place, value)
    with pytest.raises(InputError, match=f"^{re.escape(str(copy))}"):
        log.read_run(copy)


AGGREGATE = ("results", "scores", 0)
METRIC = (*AGGREGATE, "metrics", "accuracy")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    samples = MemoryDataset([Sample(id="a", input="A question", target="an answer")])
    task = Task(samples, scorer=includes(), name="any", message_limit=1)
    return Path(run(task, lambda _: "an answer", tmp_path_factory.mktemp("any")).location)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("results",), 5),
        (("results", "scores"), 5),
        (AGGREGATE, 5),
        ((*AGGREGATE, "name"), None),
        ((*AGGREGATE, "reducer"), [1]),
        ((*AGGREGATE, "metrics"), 5),
        (METRIC, 5),
    ],
)
def test_an_aggregate_of_another_type(foreign: Path, tmp_path: Path, place: tuple[Any, ...], value: Any) -> None:
    with pytest.raises(InputError, match=r"edited\.eval is not a log of Inspect AI, or is damaged") as raised:
        read_any_log(edited(foreign, tmp_path, place, value))
    assert "\n" not in str(raised.value) and "https://" not in str(raised.value)


def test_a_field_of_another_type_is_named_in_one_line(foreign: Path, tmp_path: Path) -> None:
    said = r"\(ValidationError: eval\.model: Input should be a valid string, got 5\); copy it again"
    with pytest.raises(InputError, match=said):
        read_any_log(edited(foreign, tmp_path, ("eval", "model"), 5))


def test_an_aggregate_that_is_too_large_for_a_float(foreign: Path, tmp_path: Path) -> None:
    (evaluation,) = read_any_log(edited(foreign, tmp_path, (*METRIC, "value"), HUGE))
    assert any("undefined in the log (accuracy)" in note for note in evaluation.notes)


def test_a_limit_before_the_first_reply_is_the_reason(foreign: Path) -> None:
    (evaluation,) = read_any_log(foreign)
    (record,) = evaluation.records
    assert str(record.problem).startswith("the model returned no output before the limit of message: 1")


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("felm", (*DETAIL, "segments"), None),
        ("felm", (*DETAIL, "segments", 0), {"label": False}),
        ("fastbook", (*DETAIL, "components"), [{}]),
        ("fastbook", (*DETAIL, "k"), None),
        ("fastbook", (*DETAIL, "k"), HUGE),
        ("fastbook", (*DETAIL, "k"), -1),
    ],
)
def test_sections_of_reports_bear_what_is_absent(
    honest: dict[str, Path], tmp_path: Path, name: str, place: tuple[Any, ...], value: Any
) -> None:
    evaluation = log.read_run(edited(honest[name], tmp_path, place, value))
    benchmark(name).report().sections({"first": evaluation})


@pytest.mark.parametrize("place", [(*SCORE, "signatures", "acc"), (*SCORE, "signatures")])
def test_a_resumed_log_with_a_field_of_another_type(
    honest: dict[str, Path], tmp_path: Path, place: tuple[Any, ...]
) -> None:
    with pytest.raises(InputError, match=r"edited\.eval was edited"):
        checked_log(edited(honest["fanoutqa"], tmp_path, place, 5), "scripted/model")


def test_fields_that_are_absent_or_null(honest: dict[str, Path], tmp_path: Path) -> None:
    for name in ("groups", "problems", "replies"):
        assert log.read_run(edited(honest["fanoutqa"], tmp_path, ("metadata", name), None)).answered


def test_a_mistake_in_the_code_of_scoring_stays_a_mistake(
    honest: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(log, "scored_record", broken)
    with pytest.raises(TypeError, match="a bug"):
        log.read_run(honest["fanoutqa"])


def test_the_error_names_the_part_and_its_value() -> None:
    kind = {"passages": ([{"text": str}], None)}
    check("a.eval", "detail", {"passages": [{"text": "a", "id": 1}], "other": 5}, kind)
    check("a.eval", "detail", {}, kind)
    with pytest.raises(InputError, match=r"a\.eval was edited, or is damaged: detail\.passages\[1\]\.text is 5, which"):
        check("a.eval", "detail", {"passages": [{"text": "a"}, {"text": 5}]}, kind)


@pytest.mark.parametrize("line", ["x", "a|b:1|b:2", 5])
def test_a_signature_in_results_of_another_harness(tmp_path: Path, line: object) -> None:
    rows = load_dataset("fanoutqa", "sample", split="validation")
    samples = tmp_path / "samples_any_2026-01-01T00-00-00.000000.jsonl"
    with samples.open("w", encoding="utf-8") as file:
        for number, id in enumerate(rows["id"]):
            sample = {"doc_id": number, "doc": {"id": id}, "target": "", "filtered_resps": ["an answer"]}
            print(json.dumps(sample | {"metrics": ["acc"], "acc": 0}), file=file)
    results = {"results": {"any": {}}, "configs": {"any": {"metadata": {"signatures": {"acc": line}}}}}
    (tmp_path / "results_2026-01-01T00-00-00.000000.json").write_text(json.dumps(results), encoding="utf-8")
    with pytest.raises(InputError, match=f"^{re.escape(str(samples))}: metadata.signatures of the task"):
        evaluate_predictions("fanoutqa", "sample", str(samples), lemmatizer="simplemma")


def test_a_mean_of_another_harness_that_no_float_can_hold() -> None:
    assert Reported("acc", "acc", -HUGE).value == float("inf")
    assert Reported("acc", "acc", 1).value == 1


def test_claims_in_a_log_have_texts_and_evidence() -> None:
    kinds = benchmark("expertqa").logs().kinds["detail"]
    check("a.eval", "detail", {"claims": [{"text": "a", "evidence": []}]}, kinds)
    for claim in ({"text": "a"}, {"text": "a", "evidence": [1]}, {"evidence": []}, 5):
        with pytest.raises(InputError, match=r"detail\.claims\[0\]"):
            check("a.eval", "detail", {"claims": [claim]}, kinds)
