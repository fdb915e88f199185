"""Scores of logs of other tasks equal those that the harness printed, or a note says why not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from qabench.data.rows import Json
from qabench.evaluation import Evaluation
from qabench.runs.aggregates import reported_by_inspect
from qabench.runs.comparing import compare
from qabench.runs.sources import read_evaluations

N, EPOCHS = 8, 3
REDUCERS = ["mean", "median", "mode", "max", "at_least_2", "pass_at_2", "pass_k_2"]
LETTERS = "CIPN"


def values_of_question(question: int, epoch: int) -> dict[str, Any]:
    """Return the values of all scorers of the matrix for an epoch of a question."""
    place = (question * 5 + epoch * 3) % 7
    return {
        "floats": place / 4,
        "letters": LETTERS[place % 4],
        "keys": {"half": place / 7, "letter": LETTERS[place % 3]},
        "items": [place, 1],
        "undefined": math.nan if place == 0 else place / 7,
    }


def matrix_log(folder: Path, reducers: list[str] | None, epochs: int = EPOCHS, case: str = "") -> Path:
    """Write a log of Inspect with a scorer for each type of value.

    ``case`` is "errors" for samples that fail, or "early stop" for questions with fewer epochs.
    """
    from inspect_ai import Epochs, Task, task_with
    from inspect_ai import eval as inspect_eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score, accuracy, mean, metric, scorer, stderr
    from inspect_ai.solver import solver
    from inspect_ai.util import EarlyStop

    @metric
    def first_items() -> Any:
        def compute(scores: Any) -> float:
            # A metric without annotations gets scores, not samples with scores.
            return float(sum(each.value[0] for each in scores if isinstance(each.value, list)))

        return compute

    metrics = {
        "floats": [mean(), stderr()],
        "letters": [accuracy(), stderr()],
        "keys": {"*": [accuracy()]},
        "items": [first_items()],
        "undefined": [mean()],
    }

    def scorer_of(name: str) -> Any:
        @scorer(metrics=metrics[name], name=name)
        def graded() -> Any:
            async def score(state: Any, target: Any) -> Any:
                return Score(value=values_of_question(int(state.sample_id), state.epoch)[name])

            return score

        return graded()

    @solver
    def failing() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            if case == "errors" and (state.sample_id, state.epoch) in ((1, 1), (2, 1), (2, 2), (2, 3)):
                raise ValueError("no")
            state.output = ModelOutput.from_content("mockllm/model", "an answer")
            return state

        return solve

    class Stopping:
        async def start_task(self, task: Any, samples: Any, epochs: int) -> str:
            return "stopping"

        async def schedule_sample(self, id: Any, epoch: int) -> Any:
            return EarlyStop(id=id, epoch=epoch, reason="enough") if int(id) % 3 == 1 and epoch == 3 else None

        async def complete_sample(self, id: Any, epoch: int, scores: Any) -> None:
            pass

        async def complete_task(self) -> dict[str, Any]:
            return {}

    dataset = MemoryDataset([Sample(id=i, input=f"question {i}") for i in range(N)])
    task = Task(dataset, solver=failing(), scorer=list(map(scorer_of, metrics)), name="matrix")
    task = task_with(task, epochs=Epochs(epochs, reducers))
    if case == "early stop":
        task = task_with(task, early_stopping=Stopping())
    (log,) = inspect_eval(task, model="mockllm/model", log_dir=str(folder), display="none", fail_on_error=False)
    return Path(log.location)


def read(path: Path) -> Evaluation:
    (evaluation,) = read_evaluations([path]).evaluations
    return evaluation


def header_scores(path: Path) -> dict[str, float]:
    from inspect_ai.log import read_eval_log

    log = read_eval_log(str(path), header_only=True)
    assert log.results is not None
    several = (log.eval.config.epochs or 1) > 1
    in_header = reported_by_inspect(log.results.model_dump(mode="json"), several)
    return {each.score: each.value for each in in_header.means}


@pytest.mark.parametrize("case", ["", "errors", "early stop"])
def test_every_score_equals_the_header(tmp_path: Path, case: str) -> None:
    path = matrix_log(tmp_path, REDUCERS, case=case)
    evaluation, header = read(path), header_scores(path)
    own = {name: score.value for name, score in evaluation.scores().items()}
    names = ("floats", "letters", "keys.half", "keys.letter", "undefined")
    assert len(header) == len(names) * len(REDUCERS)
    told = [note for note in evaluation.notes if " in the log (" in note]
    for name in names:
        # Questions with fewer than two epochs have no pass@2, which a note says.
        computed = [each for each in header if each.startswith(f"{name}.") and each in own]
        assert len(computed) >= len(REDUCERS) - 2
        for each in computed:
            assert own[each] == pytest.approx(header[each]), each
        for each in header.keys() - own.keys():
            assert any(note.startswith(f"{each} is ") for note in told)
        assert name not in own  # the mean of all epochs is not under the name of the reduced score
    assert "first_items" in str([note for note in evaluation.notes if note.startswith("metrics of the log that need")])


@pytest.mark.parametrize(("reducers", "epochs"), [(None, EPOCHS), (["mean"], EPOCHS), (["max"], 1)])
def test_equal_scores_need_no_word(tmp_path: Path, reducers: list[str] | None, epochs: int) -> None:
    path = matrix_log(tmp_path, reducers, epochs)
    evaluation = read(path)
    assert not [note for note in evaluation.notes if " in the log (" in note]
    own = {name: score.value for name, score in evaluation.scores().items()}
    for name, value in header_scores(path).items():
        assert own[name] == pytest.approx(value)


def write_lm_eval(folder: Path, rows: list[Json], results: Json | None, name: str = "") -> Path:
    """Write samples, one JSON object per line, and the file of results beside them."""
    date = "_2024-01-02T03-04-05.678901"
    if results is not None:
        (folder / f"results{date}.json").write_text(json.dumps(results))
    path = folder / (name or f"samples_sums{date}.jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def sample(number: int, **values: Any) -> Json:
    answer = str(number)
    of_every = {"doc_id": number, "doc": {"question": f"{number}?"}, "target": answer, "arguments": []}
    return {**of_every, "resps": [[answer]], "filtered_resps": [answer], **values}


def lm_eval_results_of(**scores: float) -> Json:
    filters = [{"name": "strict", "filter": []}, {"name": "loose", "filter": []}]
    values = {"alias": "sums"} | {name.replace("__", ","): value for name, value in scores.items()}
    return {"results": {"sums": values}, "configs": {"sums": {"filter_list": filters}}, "n-samples": {}}


@pytest.mark.parametrize("is_list", [False, True])
def test_old_samples_of_lm_eval_keep_their_filters_apart(tmp_path: Path, is_list: bool) -> None:
    rows = [sample(i, exact_match=float(i % 2)) for i in range(N)]
    rows += [sample(i, exact_match=float(i % 4 > 0)) for i in range(N)]
    path = write_lm_eval(tmp_path, rows, lm_eval_results_of(exact_match__strict=0.5, exact_match__loose=0.75))
    if is_list:
        path.write_text(json.dumps(rows, indent=2))
    evaluation = read(path)
    own = {name: score.value for name, score in evaluation.scores().items()}
    assert own == {"exact_match,strict": 0.5, "exact_match,loose": 0.75}
    assert not evaluation.notes and not evaluation.problems


def test_scores_of_lm_eval_that_differ_are_shown(tmp_path: Path) -> None:
    values = {"filter": "none", "metrics": ["acc", "bypass", "ppl"], "bypass": 999, "ppl": [-3.5, 2]}
    rows = [sample(i, acc=float(i % 2), **values) for i in range(N)]
    results = lm_eval_results_of(acc__none=0.25, acc_stderr__none=0.1, bypass__none=999, ppl__none=12.5)
    results["n-samples"] = {"sums": {"original": 20, "effective": 20}}
    evaluation = read(write_lm_eval(tmp_path, rows, results))
    assert list(evaluation.scores()) == ["acc"]
    assert evaluation.notes == [
        "acc is 0.2500 in the log (acc,none), 0.5000 here: the log's is over 20 samples, this one over 8",
        "ppl is 12.5000 in the log (ppl,none), not computed here: the samples have no value for it, "
        "because it is computed over the whole corpus",
    ]
    results["results"]["sums"]["acc,none"] = 0.5
    assert len(read(write_lm_eval(tmp_path, rows, results)).notes) == 1


def test_scores_of_lighteval_and_every_eval_ever_are_compared(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    doc = {"query": "?", "choices": ["1"], "gold_index": [0]}
    rows = [{"doc": doc | {"id": str(i)}, "metric": {"em": i % 2}, "model_response": {"text": ["1"]}} for i in range(N)]
    date = "2026-01-01T00-00-00"
    path = tmp_path / "details" / "m" / date / f"details_mod|0_{date}.parquet"
    path.parent.mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    results = tmp_path / "results" / "m" / f"results_{date}.json"
    results.parent.mkdir(parents=True)
    instances = [
        {
            "evaluation_id": "e", "model_id": "m", "evaluation_name": "mod", "evaluation_result_id": "em",
            "sample_id": str(i), "evaluation": {"score": i % 2},
        }
        for i in range(N)
    ]  # fmt: skip
    shared = tmp_path / "x_samples.jsonl"
    shared.write_text("".join(json.dumps(row) + "\n" for row in instances))
    for value in (0.5, 0.625):
        results.write_text(json.dumps({"results": {"mod|0": {"em": value, "em_stderr": 0.1}}}))
        result = {"evaluation_result_id": "em", "evaluation_name": "mod", "score_details": {"score": value}}
        document = {"model_info": {"id": "m"}, "evaluation_results": [result]}
        (tmp_path / "x.json").write_text(json.dumps(document))
        for file, metric in ((path, "em"), (shared, "x.json")):
            why = "the log's is not the mean of the values of its samples"
            expected = f"em is {value:.4f} in the log ({metric}), 0.5000 here: {why}"
            assert read(file).notes == ([] if value == 0.5 else [expected])


def test_means_of_logs_with_other_reducers_are_compared(tmp_path: Path) -> None:
    reduced, plain = matrix_log(tmp_path / "a", ["max"]), matrix_log(tmp_path / "b", None)
    comparison = compare(None, None, [reduced, plain], "floats")
    assert comparison.spec.name == "floats.mean"
    assert [(pair.wins, pair.losses) for pair in comparison.pairs] == [(0, 0)]
