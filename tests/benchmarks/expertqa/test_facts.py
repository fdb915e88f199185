"""ExpertQA's claims and fact scores: splitting answers, requests, reading of replies, and the
agreement.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from expertqa_scripts import annotated_rows, executed, module, punctuation_splitter
from metric_results import metric_result
from openai_server import Fault, OpenAIServer, completion

import qabench
from qabench.benchmarks.expertqa.entities import load_entities
from qabench.benchmarks.expertqa.fact_requests import FactScorer
from qabench.benchmarks.expertqa.facts import score_facts
from qabench.benchmarks.expertqa.factscore import first_sentence, post_processed, states_facts
from qabench.benchmarks.expertqa.prompts import atomic_prompt, official_list, verdict_prompt
from qabench.llm.caller import caller_for


@pytest.fixture(autouse=True)
def _own_environment(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FANOUTQA_OPENAI_API_KEY", "FANOUTQA_OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("qabench.benchmarks.expertqa.facts.punkt", punctuation_splitter)


@pytest.fixture
def server(mirror: Path, spacy_model: str, server: OpenAIServer) -> OpenAIServer:
    """Splits each sentence into two facts; facts with "moon" are false."""
    pytest.importorskip("spacy", reason="needs the extra spacy")
    server.reply = reply
    return server


def reply(body: dict[str, Any]) -> str:
    text = body["messages"][-1]["content"]
    if body["max_tokens"] == 512:
        return f"Here they are:\n- {sentence_in(text)}\n- The moon is cheese.\n- The moon is cheese."
    return "False." if "moon" in statement_in(text) else "True"


def sentence_in(text: str) -> str:
    """The sentence to break down, after the demonstrations."""
    return text.rpartition("facts: ")[2]


def statement_in(text: str) -> str:
    return text.rpartition("Input: ")[2].partition(" True or False?")[0]


def item(*claims: dict[str, Any], id: str = "a") -> dict[str, Any]:
    return {"id": id, "field": "Astronomy", "claims": list(claims)}


def claim(text: str = "Mars is red [1].", **fields: Any) -> dict[str, Any]:
    usual = {"claim": text, "evidence": ["[1] Mars is a red planet."], "correctness": "Probably correct"}
    return usual | fields


def dataset_rows(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return items as rows of the dataset."""
    claims = [[{**claim, "claim_string": claim["claim"]} for claim in item["claims"]] for item in items]
    return [{"answers": [{"system": "gpt4", "answer_string": "An answer.", "claims": own}]} for own in claims]


def scored(server: OpenAIServer, *items: dict[str, Any], **options: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    scorer = FactScorer(caller_for("m", server.base_url, retries=0, **options), "m")
    return score_facts(items, scorer, lambda *counts: None)


def test_requests(server: OpenAIServer) -> None:
    evidence = "Passage ID 1: a\nPassage ID 3: c\nPassage ID 4: d"
    known = claim(atomic_claims=["Mars is red."], atomic_evidences=[evidence])
    (done,), _ = scored(server, item(known))
    (call,) = server.calls
    assert [message["role"] for message in call.body["messages"]] == ["user"]
    assert (call.body["temperature"], call.body["max_tokens"], call.body["model"]) == (0.7, 2048, "m")
    assert "Passage ID 1: a\nPassage ID 3: c." in call.asked and "Passage ID 4" not in call.asked
    assert statement_in(call.asked) == "Mars is red." and "about Astronomy" in call.asked
    decision = {"atom": "Mars is red.", "is_supported": True, "readable": True, "reply": "True", "evidence": evidence}
    results = {"fact_score": 1.0, "fact_score_readable": 1.0, "decisions": [decision]}
    assert done["claims"] == [known | results]
    server.calls.clear()
    (new,), unscored = scored(server, item(claim("Mars is red [1].")))
    asked = [call.asked for call in server.calls]
    assert sentence_in(asked[0]) == "Mars is red ." and server.calls[0].body["max_tokens"] == 512
    assert sorted(map(statement_in, asked[1:])) == ["Mars is red .", "The moon is cheese."]
    assert all("[1] Mars is a red planet." in text for text in asked[1:])
    (new_claim,) = new["claims"]
    assert (new_claim["fact_score"], new_claim["atomic_claims"]) == (0.5, ["Mars is red .", "The moon is cheese."])
    assert new_claim["atomic_evidences"] == ["[1] Mars is a red planet."] * 2
    assert (unscored, len(server.calls)) == ([], 3)


def test_claims_without_score(server: OpenAIServer) -> None:
    def fault(number: int, body: dict[str, Any]) -> Fault | None:
        text = body["messages"][-1]["content"]
        faults = {
            "refused": Fault(body=completion(None, refusal="no")),
            "failed": Fault(status=400, body={"error": {"message": "bad"}}),
            "cut": Fault(body=completion("- One", finish_reason="length")),
            "prose": Fault(body=completion("It is one fact.")),
            "mute": Fault(body=completion("")) if body["max_tokens"] == 2048 else None,
        }
        last = statement_in(text) if body["max_tokens"] == 2048 else sentence_in(text)
        return next((faults[name] for name in faults if last.startswith(name)), None)

    server.fault = fault
    texts = ("refused", "failed", "cut", "prose", "mute")
    answer_item = item(
        *map(claim, texts), claim("Sure"), claim("[1]"), claim("ok", evidence=[]), claim(atomic_claims=[])
    )
    before = json.dumps(answer_item)
    (done,), unscored = scored(server, answer_item)
    assert json.dumps(answer_item) == before
    assert [(id, number) for id, number, _ in unscored] == [("a", number) for number in range(1, 6)]
    parts = ("refused", "bad", "cut off", "none in the reply", "empty")
    for (*_, reason), part in zip(unscored, parts, strict=True):
        assert part in reason
    claims = done["claims"]
    # A claim without evidence is judged, as upstream.
    assert [number for number, one in enumerate(claims) if one["fact_score"] is not None] == [7]
    assert claims[0]["atomic_claims"] is None and claims[5]["atomic_claims"] == claims[6]["atomic_claims"] == []


def test_scores_agree_with_the_experts_and_are_paid_for_once(server: OpenAIServer) -> None:
    items = [
        item(claim("moon", correctness="Definitely incorrect"), claim()),
        item(claim("moon base"), claim("Hello"), id="b"),
    ]
    done, _ = scored(server, *items)
    # "moon" has two false facts, "Mars is red" one of two; the greeting is void.
    assert [claim["fact_score"] for item in done for claim in item["claims"]] == [0.0, 0.5, 0.0, 0.5]
    rows = dataset_rows(done)
    result = metric_result("expertqa_factscore_agreement", rows, rows)
    assert result["accuracy"] == 2 / 3 and result["correct"]["support"] == 2
    metric = qabench.load_metric("expertqa_factscore_agreement")
    assert metric.compute(predictions=rows, references=dataset_rows(items))["accuracy"] == pytest.approx(2 / 3)
    calls = len(server.calls)
    again, _ = scored(server, *items)
    assert (len(server.calls), again) == (calls, done) and max(server.paid.values()) == 1
    _, unscored = scored(server, item(claim("new")) | {"system": "mine", "sample": 2}, max_calls=0)
    assert unscored[0][:2] == ("a, mine, 2", 1) and "max_calls" in unscored[0][2]


FACT_SCORE = "modeling/fact_score"


def oracle(mirror: Path, name: str) -> dict[str, Any]:
    """A script of the fact scorer."""
    names = ("argparse", "nltk", "nltk.tokenize")
    modules = {name: module(name, sent_tokenize=punctuation_splitter) for name in names}
    return executed(mirror, f"{FACT_SCORE}/{name}", modules)


def real_claims(mirror: Path) -> list[tuple[str, str, str]]:
    """(claim without marks, evidence, field) for the annotated answers."""
    return [
        (
            re.sub(r"\[\d+\]", "", claim["claim_string"]).strip(),
            "\n\n".join(claim["evidence"] or []),
            row["metadata"]["field"],
        )
        for row in annotated_rows(mirror)
        for answer in row["answers"].values()
        for claim in answer["claims"]
    ]


def test_verdict_prompts_are_the_script_s(mirror: Path, compared: Callable[[str], None]) -> None:
    space = oracle(mirror, "factscore.py")
    sent: list[str] = []

    def generate(prompt: str) -> tuple[str, None]:
        sent.append(prompt.strip())
        return "True", None

    claims = real_claims(mirror)
    for text, evidence, field in claims:
        space["get_score"](field, text, evidence, SimpleNamespace(generate=generate))
        assert verdict_prompt(text, evidence, field) == sent[-1]
    empty = sum(not evidence for _, evidence, _ in claims)
    compared(f"{len(claims)} prompts for verdicts, {empty} without evidence")


def test_atomic_prompts_are_the_script_s(mirror: Path, compared: Callable[[str], None]) -> None:
    space = oracle(mirror, "break_down_to_atomic_claims.py")
    sent: list[str] = []
    reply = "- One fact.\n- Another - fact\n"

    def generate(prompt: str) -> tuple[str, None]:
        sent.append(prompt.strip())
        return reply, None

    generator = object.__new__(space["AtomicFactGenerator"])
    path = mirror / "chaitanyamalaviya/ExpertQA" / FACT_SCORE / "demos/demons.json"
    generator.is_bio, generator.demons = True, json.loads(path.read_text(encoding="utf-8"))
    generator.bm25 = space["BM25Okapi"]([text.split(" ") for text in generator.demons])
    generator.openai_lm = SimpleNamespace(generate=generate)
    sentences = [text for text, *_ in real_claims(mirror) if text][::5]
    for sentence in sentences:
        facts = generator.get_init_atomic_facts_from_sentence([sentence])[sentence]
        assert atomic_prompt(sentence) == sent[-1] and official_list(reply) == facts
    compared(f"{len(sentences)} prompts for atomic facts")


def test_atomic_claims_are_the_script_s(mirror: Path, spacy_model: str, compared: Callable[[str], None]) -> None:
    """Sentences, post-processing and selection of all claims, with made-up replies."""
    spacy = pytest.importorskip("spacy", reason="needs the extra spacy")
    space = oracle(mirror, "break_down_to_atomic_claims.py")
    # The script's sets have an order that changes from run to run.
    space["extract_numeric_values"] = lambda text: dict.fromkeys(re.findall(r"\b\d+\b", text))
    generator = object.__new__(space["AtomicFactGenerator"])
    generator.is_bio, generator.nlp = True, spacy.load(spacy_model)
    _, entities = load_entities()
    plain = list(dict.fromkeys(text for text, *_ in real_claims(mirror) if text))
    dated = [text for text in plain if re.search(r"\d", text)]
    counts = [0, 0]
    for number, text in enumerate([*dated[::8], *plain[::40]]):
        replies = made_up(text, number)
        generator.get_init_atomic_facts_from_sentence = lambda sentences, cost_estimate=None, facts=replies: {
            sentence: list(facts) for sentence in sentences
        }
        (_, theirs), *_ = generator.run(text)[0]
        sentence = first_sentence(text, punctuation_splitter)
        ours = post_processed(sentence, replies, entities) if states_facts(sentence) else []
        assert ours == theirs
        counts[0], counts[1] = counts[0] + 1, counts[1] + (ours != replies)
    assert counts[1] > 5
    compared(f"atomic claims of {counts[0]} claims, {counts[1]} of them changed by post-processing")


def made_up(text: str, number: int) -> list[str]:
    """Facts as a model could write them: some with other numbers, shortened ones, and repetitions."""
    words = text.split()
    half = len(words) // 2
    found = [" ".join(words[:half]) + ".", " ".join(words[half:]) + ".", text]
    return [*found, text.replace("1", "7"), "It is known.", "It is known. By many.", found[0]][: 3 + number % 5]


def test_official_calls(server: OpenAIServer) -> None:
    server.reply = lambda body: "- Mars is red.\n- Mars is cold" if body["max_tokens"] == 512 else "True"
    (done,), _ = scored(server, item(claim("Mars is red and cold [1]. It is far.", evidence=[])))
    bodies = [call.body for call in server.calls]
    assert [body["temperature"] for body in bodies] == [0.7] * 3
    assert [body["max_tokens"] for body in bodies] == [512, 2048, 2048]
    assert any("context.\n\n.\n\nInput: Mars is red. True" in body["messages"][0]["content"] for body in bodies)
    (found,) = done["claims"]
    assert found["atomic_claims"] == ["Mars is red.", "Mars is cold."] and found["fact_score"] == 1.0
    # the first sentence
    assert "facts: Mars is red and cold .\n" in bodies[0]["messages"][0]["content"] + "\n"
    label = FactScorer(caller_for("m"), "m").label([])
    assert re.fullmatch(r"m/official-\w+/m:official-\w+:punkt:[a-z_]+-[\d.]+", label)
