"""Logs of other tasks: comparison, scores and reports of what Inspect, lm-eval, lighteval and Every
Eval Ever wrote.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterable
from math import sqrt
from pathlib import Path
from statistics import stdev
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from qabench.benchmarks.expertqa import BENCHMARK as EXPERTQA
from qabench.benchmarks.felm import BENCHMARK as FELM
from qabench.cli import app
from qabench.errors import DataError, InputError
from qabench.evaluation.comparison import detectable_difference
from qabench.runs.file_kinds import lm_eval_rows
from qabench.runs.foreign import number_of
from qabench.runs.sources import read_evaluations
from qabench.stats import Interval
from qabench.stats.units import mean, table

N = 20
LM_TASK = """
task: sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n"]}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""
FILTERS = """
filter_list:
  - {name: strict, filter: [{function: take_first}]}
  - {name: loose, filter: [{function: regex, regex_pattern: "([0-9])"}, {function: take_first}]}
"""


def run(*arguments: object) -> str:
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False).output


def document(*arguments: object) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json", "--quiet"], catch_exceptions=False)
    return dict(json.loads(result.stdout))


def inspect_log(folder: Path, right: Any, ids: Iterable[int] = range(N), epochs: int = 1, target: str = "") -> Path:
    """Write a log of a task with a verdict, and a dictionary of a number and a verdict."""
    from inspect_ai import Task
    from inspect_ai import eval as inspect_eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import Score, match, mean, scorer

    @scorer(metrics={"half": [mean()], "partly": [mean()]})  # type: ignore[untyped-decorator]
    def parts() -> Any:
        async def score(state: Any, target: Any) -> Any:
            return Score(value={"half": 0.5, "partly": "P"}, metadata={"detail": "a text"})

        return score

    samples = [
        Sample(id=i, input=f"{i} mod 7?", target=target or str(i % 7), metadata={"kind": "odd" if i % 2 else "even"})
        for i in ids
    ]
    usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    outputs = []
    for number in range(epochs * len(samples)):
        text = samples[number % len(samples)].target if right(number) else "no"
        outputs.append(ModelOutput.from_content("mockllm/model", str(text)))
        outputs[-1].usage = usage
    model = get_model("mockllm/model", custom_outputs=outputs)
    task = Task(MemoryDataset(samples), scorer=[match(), parts()], name="mod")
    options = {"display": "none", "max_samples": 1, "epochs": epochs}
    (log,) = inspect_eval(task, model=model, log_dir=str(folder), **options)
    return Path(log.location)


def lm_eval_samples(folder: Path, right: Callable[[int], bool], filters: str = "") -> Path:
    """Write ``samples_*.jsonl`` and ``results_*.json`` by the harness."""
    pytest.importorskip("lm_eval.api.model", reason="needs the extra lm-eval")
    from lm_eval import simple_evaluate
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Scripted(LM):  # type: ignore[misc]
        def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
            return [each.doc["answer"] if right(each.doc["n"]) else f"{each.doc['answer']}!" for each in requests]

        loglikelihood = loglikelihood_rolling = None

    folder.mkdir()
    rows = [{"n": i, "question": f"{i} mod 7?", "answer": str(i % 7), "kind": f"k{i % 2}"} for i in range(N)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "task.yaml").write_text(LM_TASK.format(data=folder / "data.jsonl") + filters)
    tracker = EvaluationTracker(output_path=str(folder / "out"))
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    options = {"log_samples": True, "bootstrap_iters": 0, "evaluation_tracker": tracker}
    results = simple_evaluate(model=Scripted(), tasks=["sums"], task_manager=manager, **options)
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    tracker.save_results_samples(task_name="sums", samples=samples["sums"])
    (path,) = folder.rglob("samples_*.jsonl")
    return path


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("inspect")
    return [inspect_log(folder / "a", lambda i: i % 4 > 0), inspect_log(folder / "b", lambda i: i % 2 > 0)]


def test_logs_of_any_inspect_task_are_compared_by_every_score(logs: list[Path]) -> None:
    compared = document("compare", *logs)
    by_score = {comparison["metric"]: comparison for comparison in compared["comparisons"]}
    assert list(by_score) == ["match", "parts.half", "parts.partly"] and by_score["match"]["config"] == "mod"
    (pair,) = by_score["match"]["pairs"]
    assert (pair["difference"], pair["wins"], pair["ties"], pair["losses"]) == (0.25, 5, 15, 0)
    assert [system["mean"] for system in by_score["parts.partly"]["systems"]] == [0.5, 0.5]
    text = run("compare", *logs, "--scores", "match")
    assert "match" in text and "parts.half" not in text and "official" not in text
    with pytest.raises(InputError, match=r"no score 'f1'; allowed: scores match, parts.half, parts.partly$"):
        run("compare", *logs, "--scores", "f1")


def test_epochs_have_the_pass_scores_of_inspects_own_reducers(tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log
    from inspect_ai.scorer import pass_at, pass_k

    path = inspect_log(tmp_path / "epochs", lambda number: number % 3 > 0, epochs=3)
    by_id: dict[str, list[Any]] = {}
    for sample in read_eval_log(str(path)).samples or ():
        by_id.setdefault(str(sample.id), []).append((sample.scores or {})["match"])
    (scored,) = document("score", path, "--by", "kind")["evaluations"]
    for name, reducer in (("match.pass@2", pass_at(2)), ("match.pass^2", pass_k(2)), ("match.pass^3", pass_k(3))):
        values = [reducer(scores).value for scores in by_id.values()]
        assert scored["scores"][name] == pytest.approx(sum(values) / N) and scored["n"][name] == N
    assert scored["by"]["kind"]["odd"]["n"]["match.pass@2"] == N / 2
    assert "parts.half.pass@2" not in scored["scores"]  # not a 0/1 score


def test_a_folder_with_logs_of_qabench_and_of_other_tasks(logs: list[Path], tmp_path: Path) -> None:
    from inspect_ai import eval as inspect_eval

    (tmp_path / "seed-0").mkdir()
    shutil.copy(logs[0], tmp_path / "seed-0")
    (tmp_path / "answers.jsonl").write_text('{"id": "1", "answer": "x"}\n')
    # beside the logs of a suite
    (tmp_path / "logs.json").write_text('{"a.eval": {"version": 2, "eval": {}}}')
    pyarrow.parquet.write_table(pyarrow.table({"text": ["passage"]}), tmp_path / "passages.parquet")
    inspect_eval("qabench/felm", "mockllm/model", task_args={"config": "sample"}, log_dir=str(tmp_path), display="none")
    read = read_evaluations([tmp_path])
    assert {each.benchmark for each in read.evaluations} == {"", "felm"}
    assert read.notes[0] == f"{tmp_path}: left out, not a log: 2 (answers.jsonl, passages.parquet)"
    felm = read_evaluations([tmp_path], FELM)
    assert [each.benchmark for each in felm.evaluations] == ["felm"]
    assert felm.notes[0].startswith(f"{tmp_path}: left out, not a log of felm: 3 (")
    assert logs[0].name in felm.notes[0]
    with pytest.raises(InputError, match="has no log of expertqa"):
        read_evaluations([tmp_path], EXPERTQA)


def test_unmatched_and_contradicting_questions(logs: list[Path], tmp_path: Path) -> None:
    part = inspect_log(tmp_path / "part", lambda i: True, ids=range(15))
    compared = document("compare", logs[0], part, "--scores", "match")
    assert compared["comparisons"][0]["pairs"][0]["n"] == 15
    assert compared["notes"] == ["questions that only some of the systems have: 5"]
    with pytest.raises(InputError, match=r"different questions, targets or documents for the id 0: .*'0'.* and .*'x'"):
        run("compare", logs[0], inspect_log(tmp_path / "target", lambda i: True, target="x"))
    with pytest.raises(InputError, match="have no question in common"):
        run("compare", logs[0], inspect_log(tmp_path / "ids", lambda i: True, ids=range(90, 95)))


def test_scores_groups_and_report_of_any_log(logs: list[Path], tmp_path: Path) -> None:
    text = run("score", logs[0], "--by", "kind")
    assert "mod" in text and "By kind" in text and "0.7500" in text and "official" not in text
    run("report", *logs, "-o", tmp_path)
    assert json.loads((tmp_path / "report.json").read_text())["sections"][0]["config"] == "mod"
    page = (tmp_path / "index.html").read_text()
    assert "Differences from the official" not in page and "authors" not in page.partition("<script")[0]


def test_samples_of_lm_eval(tmp_path: Path) -> None:
    first = lm_eval_samples(tmp_path / "a", lambda i: i % 2 > 0, FILTERS)
    second = lm_eval_samples(tmp_path / "b", lambda i: i % 4 > 0, FILTERS)
    compared = document("compare", first, second)
    pairs = {comparison["metric"]: comparison["pairs"][0] for comparison in compared["comparisons"]}
    assert list(pairs) == ["exact_match,strict", "exact_match,loose"] and compared["notes"] == []
    assert [(pair["wins"], pair["losses"], pair["n"]) for pair in pairs.values()] == [(5, 0, N), (0, 0, N)]
    other = tmp_path / "other" / second.name  # the same questions and targets, but other documents
    other.parent.mkdir()
    other.write_text(re.sub(r'"doc_hash": "(.)', r'"doc_hash": "x\1', second.read_text()))
    with pytest.raises(InputError, match="different questions, targets or documents for the id 0"):
        run("compare", first, other)
    (evaluation,) = read_evaluations([first]).evaluations
    assert "kind" in evaluation.groupings() and evaluation.config == "sums"


def test_repeated_ids_are_counted_and_named(tmp_path: Path) -> None:
    samples = lm_eval_samples(tmp_path / "a", lambda i: True)
    lines = samples.read_text().splitlines(keepends=True)
    samples.write_text("".join([*lines, lines[3]]))
    assert "repeated ids, of which the last one counts: 1 (3)" in run("score", samples)


def test_details_of_lighteval(tmp_path: Path) -> None:
    paths = []
    for model, right in (("m1", 4), ("m2", 2)):
        rows = [
            {
                "doc": {
                    "id": str(i), "query": f"{i} mod 7?", "choices": [str(i % 7)], "gold_index": [0],
                    "specific": {"kind": f"k{i % 2}"},
                },
                "metric": {"em": float(i % right > 0), "f1": 0.5},
                "model_response": {"text": ["an answer"], "text_post_processed": None},
            }
            for i in range(N)
        ]  # fmt: skip
        path = tmp_path / "details" / model / "2026-01-01T00-00-00" / "details_mod|0_2026-01-01T00-00-00.parquet"
        path.parent.mkdir(parents=True)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        paths.append(path)
    compared = document("compare", *paths, "--scores", "em")
    assert compared["comparisons"][0]["config"] == "mod|0" and compared["comparisons"][0]["pairs"][0]["wins"] == 5
    assert [each["system"] for each in compared["comparisons"][0]["systems"]] == ["m1", "m2"]


def test_instances_of_every_eval_ever(tmp_path: Path) -> None:
    paths = []
    for model, right in (("org/m1", 4), ("org/m2", 2)):
        rows = [
            {
                "evaluation_id": "e", "model_id": model, "evaluation_name": "mod", "evaluation_result_id": name,
                "sample_id": str(i), "input": {"raw": f"{i} mod 7?", "reference": [str(i % 7)]},
                "output": {"raw": ["an answer"]}, "evaluation": {"score": float(i % right > 0)},
            }
            for i in range(N)
            for name in ("em", "f1")
        ]  # fmt: skip
        path = tmp_path / f"{model[4:]}_samples.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        paths.append(path)
    compared = document("compare", *paths)
    assert [each["metric"] for each in compared["comparisons"]] == ["em", "f1"]
    assert compared["comparisons"][0]["pairs"][0]["first"] == "org/m1"


def test_the_smallest_detectable_difference() -> None:
    first, second = [1.0] * 9 + [0.0] * 11, [0.0] * 6 + [1.0] * 6 + [0.0] * 8
    differences = [a - b for a, b in zip(first, second, strict=True)]
    error = stdev(differences) / sqrt(len(differences))
    difference = Interval(sum(differences) / len(differences), error, None, None)
    found = detectable_difference(table(first), table(second), mean, difference)
    # A test of 0/1 scores has steps of one question.
    assert found == pytest.approx((1.959964 + 0.841621) * error + 1 / len(first))
    assert detectable_difference(table(first), table(first), mean, difference) is None


@pytest.mark.parametrize(
    ("value", "number"), [("C", 1), ("I", 0), ("P", 0.5), ("N", 0), (True, 1), ("2.5", 2.5), ("x", None), ("nan", None)]
)
def test_values_of_logs(value: Any, number: float | None) -> None:
    assert number_of(value) == number


@pytest.mark.quick
def test_logs_are_compared_by_group(tmp_path: Path) -> None:
    """The fields of lm-evaluation-harness's documents are groupings; the second log lacks the
    field.
    """
    files = []
    for name in ("first", "second"):
        rows = []
        for i in range(N):
            doc = {"question": f"{i}?", "answer": str(i)}
            if name == "first":
                doc["kind"] = "odd" if i % 2 else "even"
            right = i % 2 if name == "first" else i % 4 < 2
            row = {"doc_id": i, "doc": doc, "target": str(i), "filter": "none", "metrics": ["exact_match"]}
            rows.append({**row, "arguments": {}, "resps": [[""]], "filtered_resps": [""], "exact_match": float(right)})
        folder = tmp_path / name
        folder.mkdir()
        files.append(folder / "samples_sums_2026-01-01T00-00-00.000000.jsonl")
        files[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole, *groups = document("compare", *files, "--by", "kind")["comparisons"]
    assert whole["group"] is None and [each["group"] for each in groups] == ["even", "odd"]
    for each, own in zip(groups, ({0.0, 0.5}, {1.0, 0.5}), strict=True):
        (pair,) = each["pairs"]
        assert pair["n"] == N // 2 and {system["mean"] for system in each["systems"]} == own
    with pytest.raises(InputError, match="the questions have no grouping 'type'; allowed: kind"):
        run("compare", *files, "--by", "type")


def test_samples_of_the_harness_are_known_and_read_once(tmp_path: Path) -> None:
    sample = {"doc_id": 0, "doc": {"id": "a"}, "filtered_resps": ["x"]}
    path = tmp_path / "samples.jsonl"
    for text in (f"{json.dumps(sample)}\n{json.dumps(sample | {'doc_id': 1})}\n", json.dumps([sample, sample])):
        path.write_text(text)
        rows = lm_eval_rows(path)
        assert rows and len(rows) == 2
        assert rows[0].fields == sample
    path.write_text(json.dumps(sample) + "\n{broken\n")
    with pytest.raises(DataError, match=r"samples.jsonl, line 2: not JSON"):
        lm_eval_rows(path)
    for text in ("", "{broken filtered_resps\n", '{"id": "a", "answer": "\\"filtered_resps\\""}\n', "[1]"):
        path.write_text(text)
        assert lm_eval_rows(path) is None
