"""The tasks for lm-evaluation-harness: scores equal ours to the last digit on the same replies."""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import stdev
from typing import Any

import answer_styles
import pytest
from metric_results import metric_result
from openai_server import OpenAIServer
from question_rows import question_rows
from typer.testing import CliRunner

from qabench.adapters.files import evaluate
from qabench.benchmarks.fanoutqa import BENCHMARK
from qabench.cli.new import new
from qabench.data.answers import loads
from qabench.data.predictions import Predictions, read_predictions
from qabench.errors import InputError
from qabench.evaluation.scoring import Item
from qabench.loading_scripts.load import load_dataset
from qabench.runs.file_kinds import sample_rows
from qabench.runs.lm_eval_samples import answer_in
from qabench.runs.predictions import evaluate_predictions

pytest.importorskip("lm_eval.api.model", reason="needs the extra lm-eval")

from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager
from lm_eval_runs import FOLDER, Scripted, manager, run

DOMAINS = ("wk", "science", "math", "reasoning", "writing_rec")
FELM = {f"qabench_felm_{method}" for method in ("raw", "cot")}
OF_DOMAINS = {method: {f"qabench_felm_{domain}_{method}" for domain in DOMAINS} for method in ("raw", "cot")}
SAMPLES = {"qabench_fanoutqa_closed_book_sample", "qabench_felm_sample_raw", "qabench_felm_sample_cot"}
FANOUTQA = "qabench_fanoutqa_closed_book"


def figures(results: dict[str, Any], task: str) -> dict[str, Any]:
    return {name.removesuffix(",none"): v for name, v in results["results"][task].items() if name.endswith(",none")}


def answering(answers: Predictions) -> Scripted:
    by_id = {row.id: row.fields["answer"] for row in answers.rows}
    return Scripted(lambda doc: by_id.get(doc["id"]))


@pytest.mark.quick
def test_samples_are_scored_as_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_eval.loggers import EvaluationTracker

    monkeypatch.setattr(Scripted, "chat_template", lambda self, name: "a template")

    task = "qabench_fanoutqa_closed_book_sample"
    tracker = EvaluationTracker(output_path=str(tmp_path))
    options: dict[str, Any] = {"limit": 3, "apply_chat_template": True, "evaluation_tracker": tracker}
    results = run(Scripted(lambda doc: "1998"), task, log_samples=True, **options)
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    tracker.save_results_samples(task_name=task, samples=samples[task])
    (path,) = tmp_path.rglob("samples_*.jsonl")
    evaluation = evaluate_predictions("fanoutqa", None, path, lemmatizer="simplemma")
    assert evaluation.config == "sample"  # the task's name says it
    # As the harness: over the questions that were asked. The scores over all are beside them.
    assert evaluation.scores()["acc.loose"].n == 3 and evaluation.counts()["missing"] == 0
    harness = results["results"][task]["acc.loose,none"]
    assert evaluation.scores()["acc.loose"].value == pytest.approx(harness)
    (note,) = [note for note in evaluation.notes if "the file has samples of" in note]
    assert note.startswith("the file has samples of 3 of 12 questions") and f"acc.loose {harness * 3 / 12:.4f}" in note
    sentences = "; ".join(evaluation.deviations(evaluation.scores()["acc.loose"]))
    assert "3 of 12 questions were asked" in sentences
    assert "lm-evaluation-harness ran with limit: 3" in sentences and "ran with chat template: " in sentences
    assert "few shot" not in sentences and sum(record.answer == "1998" for record in evaluation.records) == 3


def found_by(doc: dict[str, Any]) -> str | None:
    """An evaluator whose replies are by turns right, wrong, empty, unclear and missing."""
    wrong = [str(number) for number, label in enumerate(doc["labels"], 1) if not label]
    replies = (f"Thought: hm.\nAnswer: {', '.join(wrong) or 'ALL_CORRECT'}", "Answer: 1", "ALL_CORRECT", "Who knows?")
    return (*replies, None, "")[int(doc["index"]) % 6]


def felm_expected(rows: list[dict[str, Any]]) -> dict[str, Any]:
    result = metric_result("felm_factuality", [row["labels"] for row in rows], [found_by(row) for row in rows])
    names = ("f1", "precision", "recall", "balanced_accuracy", "unparsed", "unanswered")
    of_responses = {f"responses_{name}": result["responses"][name] for name in ("f1", "balanced_accuracy")}
    return {name: result[name] for name in names} | of_responses


def test_a_wrong_split_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new("rivers", tmp_path)
    monkeypatch.setenv("QABENCH_PATH", str(tmp_path))
    path = tmp_path / "rivers/rivers.yaml"
    path.write_text(path.read_text().replace("test_split: test", "test_split: tset"))
    tasks = TaskManager(include_path=str(tmp_path), include_defaults=False)
    with pytest.raises(InputError, match=r"rivers questions has no split 'tset'.*allowed: test"):
        simple_evaluate(model=Scripted(lambda doc: "x"), tasks=["rivers"], task_manager=tasks)


def test_the_harness_lists_our_tasks_and_tags() -> None:
    tasks = manager()
    assert set(tasks.all_subtasks) == FELM | OF_DOMAINS["raw"] | OF_DOMAINS["cot"] | SAMPLES | {FANOUTQA}
    tags = {tag: tasks.task_index[tag].tags for tag in tasks.all_tags}
    assert tags == {
        "qabench": FELM | {FANOUTQA}, "qabench_felm": FELM, "qabench_felm_domains_raw": OF_DOMAINS["raw"],
        "qabench_felm_domains_cot": OF_DOMAINS["cot"], "qabench_sample": SAMPLES,
    }  # fmt: skip


def test_fanoutqa_on_real_questions(mirror: Path, spacy_model: str) -> None:
    n = 20
    rows = question_rows("dev")[:n]
    questions = [{"question": row["question"], "answer": loads(row["answer"])} for row in rows]
    texts = answer_styles.answers(questions, answer_styles.dropped)
    answers = read_predictions([{"id": row["id"], "answer": text} for row, text in zip(rows, texts, strict=True)][1:])
    results = run(answering(answers), FANOUTQA, limit=n)
    got = figures(results, FANOUTQA)
    expected = evaluate(BENCHMARK, "dev", answers, lemmatizer="auto", only_score_answered=True)
    score = BENCHMARK.report().official_shape(expected)
    share = len(expected.records) / n  # the harness counts unanswered questions as 0
    assert 0 < score["acc"]["loose"] < 1
    assert {name: value for name, value in got.items() if "_stderr" not in name} == pytest.approx(
        {
            "acc.loose": score["acc"]["loose"] * share,
            "acc.strict": score["acc"]["strict"] * share,
            **{f"{kind}.fscore": prf["fscore"] * share for kind, prf in score["rouge"].items()},
            "unanswered": n - len(expected.records),
            "unparsed": sum(not record.answer.strip() for record in expected.records),
        },
        rel=1e-12,
    )
    loose = [record.scores["acc.loose"] for record in expected.records] + [0.0] * (n - len(expected.records))
    assert got["acc.loose_stderr"] == pytest.approx(stdev(loose) / n**0.5)
    metadata = results["configs"][FANOUTQA]["metadata"]
    signatures = metadata["signatures"]
    assert f"|data:{BENCHMARK.load('dev').data}|" in signatures["acc"] and "|rouge:" in signatures["rouge"]
    assert "|lemmatizer:" in signatures["acc"] and "|prompt:official-" in signatures["acc"]
    assert not any(said.startswith("prompt") for said in metadata["deviations"]["acc"])


@pytest.mark.quick
def test_prompts_of_fanoutqa() -> None:
    model = Scripted(lambda doc: "")
    task = "qabench_fanoutqa_closed_book_sample"
    results = run(model, task, limit=3, num_fewshot=2)
    questions = load_dataset("fanoutqa", "sample", split="validation[:3]")["question"]
    for (context, options), question in zip(model.asked, questions, strict=True):
        assert context.endswith(question) and "11-20-2023" in context  # always zero-shot
        assert options == {"until": ["<|endoftext|>"], "do_sample": False, "temperature": 0.0, "max_gen_toks": 520}
    assert figures(results, task)["unparsed"] == 3


@pytest.mark.quick
def test_a_missing_reply_is_not_the_answer_none() -> None:
    scorer = BENCHMARK.scorer(["acc"], lemmatizer="simplemma")
    row = {"answer": '"none"'}
    outcomes = scorer.score([Item(row, {"answer": "None"}), Item(row, None)])
    assert [outcome.scores["acc.loose"] for outcome in outcomes] == [1, 0]


@pytest.mark.parametrize("method", ["raw", "cot"])
def test_felm_scores_are_those_of_felm_scores(method: str) -> None:
    task = f"qabench_felm_sample_{method}"
    expected = felm_expected(list(load_dataset("felm", "sample", split="test")))
    assert expected["f1"] and expected["unparsed"] and expected["unanswered"]
    results = run(Scripted(found_by), task)
    got = figures(results, task)
    assert {name: value for name, value in got.items() if "_stderr" not in name} == expected
    assert {value for name, value in got.items() if "_stderr" in name} == {"N/A"}
    signed = results["configs"][task]["metadata"]["signatures"]["felm"]
    metadata = results["configs"][task]["metadata"]
    kinds = [said.partition(":")[0] for said in metadata["deviations"]["felm"]]
    assert kinds == ["config", "data", "prompt"] and "|asked:13-" in signed
    part = run(Scripted(found_by), task, limit=3)["configs"][task]["metadata"]
    assert "3 of 13 questions were asked" in part["deviations"]["felm"] and "|asked:3-" in part["signatures"]["felm"]
    assert f"|method:{method}|" in signed and "|prompt:qabench-" in signed and "|unparsed:all_correct|" in signed


def test_a_chat_model_on_a_server() -> None:
    for package in ("requests", "tenacity"):
        pytest.importorskip(package, reason="needs the extra lm-eval")
    task = "qabench_felm_sample_cot"
    with OpenAIServer() as server:
        server.reply = lambda body: "Thought: the second is wrong.\nAnswer: 2"
        where = {"model": "m", "base_url": f"{server.base_url}/chat/completions"}
        results = run("local-chat-completions", task, model_args=where, apply_chat_template=True)
    rows = list(load_dataset("felm", "sample", split="test"))
    expected = metric_result("felm_factuality", [row["labels"] for row in rows], ["Answer: 2"] * len(rows))
    got = figures(results, task)
    assert (got["f1"], got["unparsed"]) == (expected["f1"], expected["unparsed"]) and got["f1"]
    asked = server.calls[0].body
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]
    assert asked["stop"], "some servers fail on an empty list"
    assert (asked["temperature"], asked["max_tokens"]) == (0, 100)


@pytest.mark.quick
def test_undefined_scores_are_null() -> None:
    # "lol", the dummy's reply, finds no errors, so precision and F1 are undefined.
    got = figures(run("dummy", "qabench_felm_sample_raw"), "qabench_felm_sample_raw")
    assert got["f1"] is got["precision"] is None and (got["recall"], got["unparsed"]) == (0, 13)


@pytest.mark.slow
def test_the_command_line_and_its_samples(tmp_path: Path) -> None:
    harness = [sys.executable, "-m", "lm_eval"]
    include = ["--include_path", str(FOLDER)]
    command = [*harness, "run", "--model", "dummy", *include, "--tasks", "qabench_sample", "--limit", "4"]
    output = ["--log_samples", "--output_path", str(tmp_path)]
    environment = os.environ | {"PYTHONWARNINGS": "default"}
    done = subprocess.run([*command, *output], capture_output=True, text=True, check=True, env=environment)
    assert "acc.loose" in done.stdout
    (results,) = (json.loads(path.read_text()) for path in tmp_path.rglob("results_*.json"))
    said = results["configs"][f"{FANOUTQA}_sample"]["metadata"]["deviations"]
    assert "config: sample instead of the benchmark's questions" in said["acc"]
    (samples,) = tmp_path.rglob(f"samples_{FANOUTQA}_sample_*.jsonl")
    ids = load_dataset("fanoutqa", "sample", split="validation[:4]")["id"]
    assert list(map(answer_in, sample_rows(samples))) == [{"id": id, "answer": "lol"} for id in ids]
    (others,) = tmp_path.rglob("samples_qabench_felm_sample_raw_*.jsonl")
    ids = load_dataset("felm", "sample", split="test[:4]")["index"]
    assert [answer_in(row)["id"] for row in sample_rows(others)] == list(ids)


def test_other_files_are_not_samples(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text('{"doc": {"id": "a"}, "filtered_resps": ["x", "y"]}\n')
    with pytest.raises(InputError, match="line 1 is not a sample of a qabench task"):
        list(map(answer_in, sample_rows(path)))


def test_the_folder_by_its_name_and_without_the_harness() -> None:
    from qabench.cli import app

    done = CliRunner().invoke(app, ["path", "lm-eval"])
    assert Path(done.output.strip()).samefile(FOLDER)
    unknown = CliRunner().invoke(app, ["path", "nope"])
    assert isinstance(unknown.exception, InputError) and "allowed: lm-eval" in str(unknown.exception)
    code = "import sys, qabench.runs.foreign, qabench.cli; assert not {'lm_eval', 'datasets'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_generation_parameters_are_signed(mirror: Path) -> None:
    task = "qabench_felm_math_raw"
    model = Scripted(found_by)
    results = run(model, task, limit=1)
    asked = "1 of 194 questions were asked"
    assert results["configs"][task]["metadata"]["deviations"] == {"felm": [asked]}
    official = (mirror / "hkust-nlp/felm/eval/prompt/segment/math/raw.txt").read_text(encoding="utf-8")
    assert official.strip() in model.asked[0][0]
    results = run("dummy", task, limit=1, gen_kwargs={"max_gen_toks": 1000})
    metadata = results["configs"][task]["metadata"]
    assert sorted(metadata["deviations"]["felm"]) == [asked, "max tokens: 1000 instead of 100"]
    assert "|max_tokens:1000|" in metadata["signatures"]["felm"]
