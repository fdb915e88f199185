"""ExpertQA's task: the three methods, claims and evidence, and scores equal to those of the
metrics.
"""

import json
from pathlib import Path
from typing import Any

import datasets
import pytest
from benchmark_tasks import expertqa
from inspect_ai.log import EvalLog
from inspect_ai.solver import generate
from scripted_model import in_order, run

from qabench.benchmarks.expertqa.passages import load_passages
from qabench.benchmarks.expertqa.prompts import split_answer
from qabench.errors import InputError
from qabench.loading_scripts.expertqa.parse import question_id
from qabench.runs.log import read_run

ANSWER = """Light takes eight minutes [1]. It is fast [2][1]! Who would have thought so?
Nobody wrote this down.

**References:**
[1] https://example.org/light
    and more of it
- [2] A book [3] of light"""
URL = "http://www.example.org/astronomy/speed-of-light/"  # which an annotated claim names
PASSAGES = [
    {"id": "sun", "url": URL, "text": "Light takes eight minutes from the Sun to the Earth."},
    {"id": "bread", "title": "Bread", "text": "Bread dough rises because yeast makes gas of sugar."},
    {"id": "tower", "title": "Towers", "text": "Iron towers are painted against rust."},
]


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in PASSAGES))
    return str(path)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hf"))


def done(folder: Path, script: Any, **arguments: Any) -> EvalLog:
    return run(
        expertqa(**{"config": "sample", "prompt": "qabench", **arguments}),
        lambda messages: script(messages[-1].text),
        folder,
    )


def figures_of(log: EvalLog) -> dict[str, float]:
    assert log.results
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}


def score_of(sample: Any) -> Any:
    return (sample.scores or {})["expertqa"]


def test_an_answer_from_memory_cites_its_own_sources(tmp_path: Path) -> None:
    log = done(tmp_path, lambda prompt: ANSWER)
    (sample, *_) = in_order(log)
    assert sample.metadata["question"] in sample.messages[0].text
    detail = score_of(sample).metadata["detail"]
    first, second = "[1] https://example.org/light\nand more of it", "[2] A book [3] of light"
    assert detail == {
        "claims": [
            {"text": "Light takes eight minutes [1].", "evidence": [first], "label": None},
            {"text": "It is fast [2][1]!", "evidence": [second, first], "label": None},
            {"text": "Nobody wrote this down.", "evidence": [], "label": None},
        ],
        "passages": [],
        "attribution": [first, second],  # what a second splitting of the answer needs
    }
    assert score_of(sample).answer == ANSWER.partition("\n\n**")[0].replace("Who would have thought so?", "")
    assert figures_of(log)["evidence"] == 2 / 3 and score_of(sample).as_dict()["claims"] == 3
    assert not [name for name in figures_of(log) if name.startswith("autoais")]
    assert "evidence" not in read_run(log.location).signatures


def test_an_answer_from_passages_cites_them_by_number(corpus: str, tmp_path: Path) -> None:
    log = done(tmp_path, lambda prompt: "It takes minutes [1]. Or not [2].", method="retrieve-read", corpus=corpus, k=1)
    (sample, *_) = in_order(log)  # how long light takes from the Sun to the Earth
    prompt, detail = sample.messages[0].text, score_of(sample).metadata["detail"]
    assert detail["passages"][0]["id"] == "sun"
    assert f"[1] {URL}\n\nLight takes eight" in prompt and len(detail["passages"]) == 1
    assert detail["claims"][0]["evidence"] == [f"[1] {PASSAGES[0]['url']}\n\n{PASSAGES[0]['text']}"]
    assert "corpus:corpus.jsonl@" in score_of(sample).metadata["signatures"]["autoais"]
    assert not read_run(log.location).recorded
    problems = {record.problem for record in read_run(log.location).records}
    assert problems >= {"no passage was found for the question"}  # without a word of the corpus


def test_post_hoc_evidence_replaces_the_models(corpus: str, tmp_path: Path) -> None:
    reply = "The yeast makes gas [1]. Iron rusts [2]. The yeast eats sugar. Zzz qqq.\n[1] https://made.up"
    log = done(tmp_path, lambda prompt: reply, method="post-hoc", corpus=corpus)
    detail = score_of(in_order(log)[0]).metadata["detail"]
    bread, tower = (f"{row['title']}\n\n{row['text']}" for row in PASSAGES[1:])
    assert [(claim["text"], claim["evidence"]) for claim in detail["claims"]] == [
        ("The yeast makes gas [1].", [f"[1] {bread}"]),
        ("Iron rusts [2].", [f"[2] {tower}"]),
        ("The yeast eats sugar[3].", [f"[3] {bread}"]),
        ("Zzz qqq.", []),
    ]
    assert [passage["id"] for passage in detail["passages"]] == ["bread", "tower"]
    assert "made.up" not in json.dumps(detail)


def test_answers_of_a_custom_solver_are_scored(tmp_path: Path) -> None:
    task = expertqa("sample", prompt="qabench")
    log = run(task, lambda messages: ANSWER, tmp_path / "agent", solver=[generate()])
    agent, closed = read_run(log.location), read_run(done(tmp_path, lambda prompt: ANSWER).location)
    assert agent.setting == "agent" and not agent.recorded
    for ours, theirs in zip(agent.records, closed.records, strict=True):
        assert (ours.answer, ours.scores) == (theirs.answer, theirs.scores)
        assert ours.detail["claims"] == theirs.detail["claims"] and ours.status == "answered"
    assert "method:closed" not in agent.signatures["autoais"] and "sentences:" in agent.signatures["autoais"]


def test_ids_and_groups(tmp_path: Path) -> None:
    samples = list(expertqa("sample").dataset)
    assert [one.id for one in samples] == [question_id(one.metadata["question"]) for one in samples]
    assert set(samples[0].metadata["groups"]) == {"field", "question type", "system"}
    assert [one.id for one in expertqa("sample", ids=[str(samples[3].id)]).dataset] == [samples[3].id]
    assert [one.metadata["groups"]["field"] for one in expertqa("sample", fields="Law").dataset] == [["Law"]]
    with pytest.raises(InputError, match=r"no question is in 'Magic'; allowed: Advice .*, Architecture, Chemistry"):
        expertqa("sample", fields="Magic")
    with pytest.raises(InputError, match="k is 0; it must be at least 1"):
        expertqa("sample", "retrieve-read", k=0)


def test_corpora_are_loaded(corpus: str, tmp_path: Path) -> None:
    passages = load_passages(corpus)
    (best,) = passages.find("yeast and sugar", "", 1).passages
    assert (best.id, best.source, best.text) == ("bread", "Bread", PASSAGES[1]["text"])
    assert passages.find("zzz", "", 3).passages == []
    assert [passage.id for passage in passages.find("light yeast eats", "", 2).passages] == ["bread", "sun"]
    file = tmp_path / "texts.jsonl"
    file.write_text(json.dumps({"id": "long", "text": "water " * 180 + "sugar"}) + "\n")
    assert [passage.id for passage in load_passages(str(file)).find("sugar", "", 1).passages] == ["long#1"]
    (whole,) = load_passages(str(file), whole=True).find("sugar", "", 1).passages
    assert whole.id == "long" and len(whole.text) > 1000
    file = tmp_path / "more.jsonl"
    for content, message in (
        (None, "cannot read .*more.jsonl: .*No such file"),
        ('{"body": "no text"}\n', "has no column 'text'; its columns are body"),
        ('{"text": "no end', "more.jsonl, line 1: not JSON"),
    ):
        if content is not None:
            file.write_text(content)
        with pytest.raises(InputError, match=message):
            load_passages(str(file))


@pytest.mark.parametrize(
    ("reply", "answer", "sources"),
    [
        ("So [1].\n\n[1] a\n[2] b", "So [1].", ["[1] a", "[2] b"]),
        ("So.\n## Sources\n1. x\n[1] a", "So.\n## Sources\n1. x", ["[1] a"]),
        ("[1] says so.", "[1] says so.", []),
        ("The sources:", "The sources:", []),
    ],
)
def test_an_answer_and_its_sources_are_separated(reply: str, answer: str, sources: list[str]) -> None:
    assert split_answer(reply) == (answer, sources)
