"""FELM's evaluators: what each method asks, how replies are read, what it costs, and ``qabench evaluate-felm``."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_server import Fault, OpenAIServer, completion
from typer.testing import CliRunner, Result

from qabench.benchmarks.felm.claims import (
    FelmClaim,
    as_reply,
    numbered,
    read_claims,
    segment_verdicts,
    verdicts_of,
)
from qabench.benchmarks.felm.evaluators import evaluate_felm, felm_evaluator, plan_felm
from qabench.benchmarks.felm.prompts import (
    CLAIM_DOMAINS,
    DOMAINS,
    KINDS,
    OFFICIAL_CLAIM_FILES,
    OFFICIAL_FILES,
    felm_prompts,
)
from qabench.errors import InputError
from qabench.llm.cache import ReplyCache
from qabench.loading_scripts import open_path
from qabench.loading_scripts.felm.parse import read_rows
from qabench.scoring.felm import felm_scores
from qabench.scoring.felm_replies import parse_reply

METHODS = tuple(KINDS)


@pytest.fixture(autouse=True)
def _own_environment(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FANOUTQA_OPENAI_API_KEY", "FANOUTQA_OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """Finds an error in the second segment of everything."""
    pytest.importorskip("openai", reason="needs the extra judge")
    with OpenAIServer() as server:
        server.reply = lambda body: "Answer: 2"
        yield server


def row(domain: str = "wk", **fields: Any) -> dict[str, Any]:
    usual = {
        "index": "7",
        "domain": domain,
        "prompt": "How far is the {Moon}?",
        "segmented_response": ["1) It is near.", " - very near", "42"],
        "labels": [True, False, True],
        "ref": ["https://a.example/moon", "https://a.example/space"],
        "ref_contents": ["The Moon is far."],
    }
    return usual | fields


def rows_of_the_sample() -> list[dict[str, Any]]:
    return list(read_rows(open_path("felm", "./sample/all.jsonl"), "sample"))


def official_file(path: str) -> str:
    return f"<{path}>"


def evaluator(server: OpenAIServer, method: str, **options: Any) -> Any:
    return felm_evaluator(method, "m", server.base_url, **{"retries": 0, **options})


def asked(server: OpenAIServer, method: str, one: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The body of the only call that a response takes."""
    server.calls.clear()
    evaluate_felm([one], evaluator(server, method, **options))
    (call,) = server.calls
    return call.body


def test_segments_are_numbered_and_shown_from_their_first_letter_on() -> None:
    assert (
        numbered(["1) It is near.", " - very near", "42", "", "Été"]) == "1. It is near.\n2. very near\n3. \n4. \n5. té"
    )


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("method", ["raw", "cot", "link", "content"])
def test_the_official_messages(server: OpenAIServer, method: str, domain: str) -> None:
    body = asked(server, method, row(domain), prompt="official", official_text=official_file)
    plain = domain in ("math", "reasoning")
    folder = {"science": "sci", "writing_rec": "wk"}.get(domain, domain)
    if plain:
        name = f"segment/{folder}/{'cot' if method == 'cot' else 'raw'}.txt"
    else:
        ending = {"link": "ret_link", "content": "ret_content"}.get(method, method)
        name = f"segment/{folder}/prompt_{folder}_{ending}.txt"
    question = "Question: How far is the {Moon}?\nSegments: 1. It is near.\n2. very near\n3. \n"
    shown = {
        "link": "\nReference links: https://a.example/moon\nhttps://a.example/space\n",
        "content": "\nReference doc: The Moon is far.\n",
    }
    tail = "" if plain else shown.get(method, "")
    assert body["messages"] == [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": f"<{name}>\n\n{question}{tail}"},
    ]
    assert (body["temperature"], body["max_tokens"], body["model"]) == (0, 100, "m")


@pytest.mark.parametrize("method", ["link", "content"])
def test_upstream_never_shows_references(server: OpenAIServer, method: str) -> None:
    official = {"prompt": "official", "official_text": official_file, "official_quirks": True}
    for one in (row(), row(prompt="Another?", ref=[], ref_contents=[])):
        text = asked(server, method, one, **official)["messages"][1]["content"]
        assert text.startswith(f"<segment/wk/prompt_wk_ret_{method}.txt>") and text.endswith("3. \n")
    assert "<references>" not in asked(server, method, row(), official_quirks=True)["messages"][1]["content"]


@pytest.mark.parametrize(
    ("method", "shown", "hidden"),
    [
        ("link", "<references>\nhttps://a.example/moon\nhttps://a.example/space\n</references>", "The Moon is far."),
        ("content", "<references>\nThe Moon is far.\n</references>", "https://a.example/moon"),
    ],
)
def test_our_prompts_show_the_references_that_there_are(
    server: OpenAIServer, method: str, shown: str, hidden: str
) -> None:
    text = asked(server, method, row())["messages"][1]["content"]
    assert shown in text and hidden not in text
    raw = asked(server, "raw", row(prompt="another"))["messages"]
    nothing = row(prompt="another", ref=[], ref_contents=[])
    # Nothing to show: the very request of raw, which is paid for.
    run = evaluate_felm([nothing], evaluator(server, method))
    assert (run.usage.calls, run.usage.cached) == (0, 1)
    assert "references" not in raw[1]["content"]


@pytest.mark.parametrize("domain", DOMAINS)
def test_our_prompts(server: OpenAIServer, domain: str) -> None:
    raw, cot = (asked(server, method, row(domain))["messages"] for method in ("raw", "cot"))
    for messages in (raw, cot):
        assert [message["role"] for message in messages] == ["system", "user"]
        text = messages[1]["content"]
        assert "<question>\nHow far is the {Moon}?\n</question>" in text
        assert "<segments>\n1. It is near.\n2. very near\n3. \n</segments>" in text
        assert '"Answer: ALL_CORRECT"' in text and '"Answer: 2, 5"' in text
        assert ("calculation" in text) == (domain == "math")
    assert "Thought: " in cot[1]["content"] and "Thought" not in raw[1]["content"]


def test_a_users_template(server: OpenAIServer, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('system = "s"\nuser = "{question}|{segments}|{references}"\n')
    body = asked(server, "link", row("science"), prompt=path)
    assert [message["content"] for message in body["messages"]] == [
        "s",
        "How far is the {Moon}?|1. It is near.\n2. very near\n3. |https://a.example/moon\nhttps://a.example/space",
    ]
    assert asked(server, "link", row("math", ref=[]), prompt=path)["messages"][1]["content"].endswith("|(none)")
    with pytest.raises(InputError, match=r"unknown \{references\}"):
        felm_prompts("raw", prompt=path)
    assert felm_prompts("link", prompt=path).label.startswith("file:mine.toml-")


def test_the_digest_says_which_prompts() -> None:
    kinds = {(method, claims): felm_prompts(method, claims).label for method in METHODS for claims in (False, True)}
    assert len(set(kinds.values())) == len(kinds) - 2  # cot and cot-cons have the same
    assert kinds["raw", False] == felm_prompts("raw").label != felm_prompts("raw", False, "official", str).label
    assert felm_prompts("link").label != felm_prompts("link", shows_references=False).label


def test_all_official_files_are_used_and_fit(mirror: Path) -> None:
    used: set[str] = set()

    def read(path: str) -> str:
        used.add(path)
        return open_path("felm", f"eval/prompt/{path}").read_text(encoding="utf-8")

    labels = {felm_prompts(method, True, "official", read).label for method in METHODS}
    assert len(labels) == 4
    tables = (*OFFICIAL_FILES.values(), *OFFICIAL_CLAIM_FILES.values())
    assert used == {path for table in tables for path in table.values()}
    assert len(used) == len(list((mirror / "hkust-nlp/felm/eval/prompt").rglob("*.txt")))


def test_self_consistency(server: OpenAIServer) -> None:
    replies = iter(["Answer: 2", "no idea", "Answer: 1, 2", "Answer: 1"])
    server.reply = lambda body: next(replies)
    run = evaluate_felm([row()], evaluator(server, "cot-cons", num_cons=4, concurrency=1))
    assert [call.body["temperature"] for call in server.calls] == [0.9] * 4
    assert len({json.dumps(call.body) for call in server.calls}) == 1
    assert run.responses[0].replies == ("Answer: 2", "no idea", "Answer: 1, 2", "Answer: 1")
    assert run.per_response()[0]["verdicts"] == [False, False, True]
    # As upstream, the one without verdict says all true: segment 1 is a tie, which the earliest decides.
    assert run.official.per_question[0].verdicts == (True, False, True)
    assert run.as_dict()["counts"]["with_fewer_samples"] == 1
    assert "samples:4" in run.as_dict()["signature"] and "temperature:0.9" in run.as_dict()["signature"]
    again = evaluate_felm([row()], evaluator(server, "cot-cons", num_cons=4))
    assert (again.usage.calls, again.usage.cached, again.responses) == (0, 4, run.responses)


@pytest.mark.parametrize(
    ("reply", "verdicts", "reason"),
    [
        ("Answer: 1,3", [False, True, False], None),
        ("Thought: 3 is wrong.\nAnswer: 2", [True, False, True], None),
        ("Answer: ALL_CORRECT", [True, True, True], None),
        ("Answer: 4", None, "no verdict"),
        ("2", None, "no verdict"),
        ("", None, "empty"),
    ],
)
def test_replies(server: OpenAIServer, reply: str, verdicts: list[bool] | None, reason: str | None) -> None:
    server.reply = lambda body: reply
    run = evaluate_felm([row()], evaluator(server, "raw"))
    assert run.per_response()[0]["verdicts"] == verdicts
    result = run.as_dict()
    assert result["counts"]["unscored"] == len(result["unscored"]) == (verdicts is None)
    if reason:
        assert reason in result["unscored"][0]["reason"] and result["f1"] is None
        assert result["official"] is None


def test_vicuna_and_the_last_segment_of_upstream(server: OpenAIServer) -> None:
    server.reply = lambda body: "Segments 1 and 3"
    run = evaluate_felm([row()], evaluator(server, "raw", reply_format="vicuna"))
    assert run.per_response()[0]["verdicts"] == [False, True, False]
    server.reply = lambda body: "Answer: 0"
    zero = [row(prompt="zero")]
    assert evaluate_felm(zero, evaluator(server, "raw")).per_response()[0]["verdicts"] is None
    quirks = evaluate_felm(zero, evaluator(server, "raw", official_quirks=True))
    assert quirks.per_response()[0]["verdicts"] == [True, True, False]
    assert verdicts_of("Answer: ALL_CORRECT 0", 2, "answer", True) == (True, True)
    assert verdicts_of("Answer: 1, 00", 2, "answer", True) == (False, False)
    assert verdicts_of("Answer: 10", 2, "answer", True) is None


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_verdicts_survive_as_replies(verdicts: list[bool]) -> None:
    assert parse_reply(as_reply(tuple(verdicts)), len(verdicts)) == tuple(verdicts)
    assert parse_reply(as_reply(None), len(verdicts)) is None
    claims = [FelmClaim(i + 1, "c") for i in range(len(verdicts))]
    assert segment_verdicts(tuple(verdicts), claims, len(verdicts)) == tuple(verdicts)


CLAIMS = """Answer:
Segment 1:
Claim 1. The Moon exists.
Claim 2. The Moon is near.

**Segment 3**
- Claim 1: It is 42.
Segment 9:
Claim 1. Nobody said that."""
READ = (FelmClaim(1, "The Moon exists."), FelmClaim(1, "The Moon is near."), FelmClaim(3, "It is 42."))


def test_claims_are_read() -> None:
    assert read_claims(CLAIMS, 3) == READ
    assert read_claims("Claim 1. Alone.", 1) == (FelmClaim(1, "Alone."),)
    assert read_claims("Claim 1. Whose?", 2) == read_claims("nothing", 1) == ()


@pytest.mark.parametrize("method", ["raw", "cot", "link", "content"])
def test_by_claims(server: OpenAIServer, method: str) -> None:
    server.reply = lambda body: CLAIMS if "<claim/wk/claim_extract" in str(body) else "Answer: 2"
    claim_wise = evaluator(server, method, claims=True, prompt="official", official_text=official_file)
    run = evaluate_felm([row(), row("math")], claim_wise)
    extraction, *verdicts = server.calls
    segments = "1. It is near.\n2. very near\n3. \n"
    assert extraction.asked == (
        f"<claim/wk/claim_extract_wk.txt>\n\nQuestion: How far is the {{Moon}}?\nSegments: {segments}"
    )
    assert (extraction.body["temperature"], extraction.body["max_tokens"]) == (0, 2000)
    name = OFFICIAL_CLAIM_FILES["wk"][method]
    (by_claims,) = (call for call in verdicts if call.asked.startswith("<claim/"))
    assert by_claims.asked.startswith(
        f"<{name}>\n\nQuestion: How far is the {{Moon}}?\n"
        "Claims: 1. The Moon exists.\n2. The Moon is near.\n3. It is 42.\n"
    )
    assert ("https://a.example/moon" in by_claims.asked) == (method == "link")
    assert ("The Moon is far." in by_claims.asked) == (method == "content")
    # Claim 2 is of the first segment.
    assert [one["verdicts"] for one in run.per_response()] == [[False, True, True], [True, False, True]]
    assert run.per_response()[0]["claims"][2] == {"segment": 3, "text": "It is 42."}
    assert run.as_dict()["counts"]["by_claims"] == 1


def test_claims_that_cannot_be_had(server: OpenAIServer) -> None:
    replies = {"none": "I see none.", "cut": completion(CLAIMS, finish_reason="length"), "fails": None}

    def fault(number: int, body: dict[str, Any]) -> Fault | None:
        text = body["messages"][1]["content"]
        if "<question>\ncut" in text:
            return Fault(body=replies["cut"])
        return Fault(status=400, body={"error": {"message": "no"}}) if "<question>\nfails" in text else None

    server.fault = fault
    server.reply = lambda body: "I see none."
    run = evaluate_felm([row(prompt=name) for name in replies], evaluator(server, "raw", claims=True))
    assert len(server.calls) == 3  # and none for verdicts
    reasons = [one["reason"] for one in run.as_dict()["unscored"]]
    for reason, part in zip(reasons, ("none in the reply", "cut off", "HTTP 400"), strict=True):
        assert reason.startswith("its claims: ") and part in reason


def test_failures_are_counted_and_the_scores_those_of_the_rest(server: OpenAIServer) -> None:
    rows = rows_of_the_sample()

    def fault(number: int, body: dict[str, Any]) -> Fault | None:
        text = body["messages"][1]["content"]
        if rows[0]["prompt"] in text:
            return Fault(status=400, body={"error": {"message": "too long"}})
        return Fault(body=completion(None, refusal="I won't")) if rows[2]["prompt"] in text else None

    server.fault = fault
    run = evaluate_felm(rows, evaluator(server, "raw"))
    result = run.as_dict(config="sample")
    assert [one["index"] for one in result["unscored"][:2]] == [rows[0]["index"], rows[2]["index"]]
    assert "too long" in result["unscored"][0]["reason"] and "I won't" in result["unscored"][1]["reason"]
    # "Answer: 2" says nothing of a response with one segment.
    single = {i for i, one in enumerate(rows) if len(one["labels"]) == 1}
    left_out = single | {0, 2}
    assert result["counts"] | {"by_claims": 0} == {
        "responses": len(rows),
        "scored": len(rows) - len(left_out),
        "unscored": len(left_out),
        "with_fewer_samples": 0,
        "by_claims": 0,
    }
    kept = [one for i, one in enumerate(rows) if i not in left_out]
    expected = felm_scores(
        [one["labels"] for one in kept],
        [[i != 1 for i in range(len(one["labels"]))] for one in kept],
        domains=[one["domain"] for one in kept],
    ).as_dict()
    assert {name: result[name] for name in ("f1", "recall", "tn", "fn", "responses")} == {
        name: expected[name] for name in ("f1", "recall", "tn", "fn", "responses")
    }
    assert set(expected) <= set(result)
    assert result["official"]["tp"] + result["official"]["fn"] == sum(sum(one["labels"]) for one in rows)
    for part in ("evaluator:m", "method:raw", "prompt:own-", "config:sample", "max_tokens:100", "unparsed:exclude"):
        assert part in result["signature"]


def test_a_killed_run_goes_on_and_pays_nothing_twice(server: OpenAIServer, cache: Path) -> None:
    server.delay = 0.05
    server.reply = lambda body: CLAIMS if "List the factual claims" in str(body) else "Answer: 1"
    code = (
        "import sys; sys.path.insert(0, 'tests');"
        "from test_felm_evaluators import *;"
        f"evaluate_felm(rows_of_the_sample(), felm_evaluator('cot-cons', 'm', {server.base_url!r}, claims=True,"
        " num_cons=3, concurrency=2), ReplyCache(lease=1.0))"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[3]) as process:
        while sum(server.paid.values()) < 4 and process.poll() is None:
            time.sleep(0.01)
        process.kill()
    server.delay = 0
    whole = evaluator(server, "cot-cons", claims=True, num_cons=3)
    run = evaluate_felm(rows_of_the_sample(), whole, ReplyCache(lease=1.0))
    assert run.usage.cached > 0
    paid_twice = sum(server.paid.values()) - run.usage.calls - run.usage.cached
    assert 0 <= paid_twice <= 2  # at most those in flight
    assert evaluate_felm(rows_of_the_sample(), whole).usage.calls == 0


def test_the_plan(server: OpenAIServer) -> None:
    rows = rows_of_the_sample()
    raw = evaluator(server, "raw", prices=None)
    assert (plan_felm(rows, raw).calls, plan_felm(rows, raw).cached) == (len(rows), 0)
    by_claims = evaluator(server, "cot-cons", claims=True, num_cons=2)
    n_claims = sum(one["domain"] in CLAIM_DOMAINS for one in rows)
    assert plan_felm(rows, by_claims).calls == n_claims + 2 * len(rows)
    assert not server.calls
    evaluate_felm(rows, raw)
    assert (plan_felm(rows, raw).calls, plan_felm(rows, raw).cached) == (0, len(rows))
    server.reply = lambda body: "Segment 1:\nClaim 1. It is."
    evaluate_felm(rows, by_claims)
    assert plan_felm(rows, by_claims).calls == 0


def test_limits_and_options(server: OpenAIServer) -> None:
    run = evaluate_felm(rows_of_the_sample(), evaluator(server, "raw", max_calls=3))
    assert len(server.calls) == 3 and "max_calls" in run.as_dict()["unscored"][-1]["reason"]
    parameters = {"max_tokens": None, "max_completion_tokens": 50}
    assert evaluator(server, "raw", parameters=parameters).parameters == {"temperature": 0, "max_completion_tokens": 50}
    for options, message in (
        ({"num_cons": 0}, "num_cons is 0"),
        ({"reply_format": "xml"}, "unknown reply_format"),
        ({"prompt": "nope.txt"}, "prompt is 'nope.txt'"),
        ({"prompt": "official"}, "needs official_text"),
        ({"speed": 1}, "unknown limits speed; allowed: concurrency"),
        ({"parameters": {"n": 2}}, "must not hold n"),
        ({"parameters": {"x": object()}}, "must be JSON"),
        ({"concurrency": 0}, "concurrency is 0"),
    ):
        with pytest.raises(InputError, match=message):
            evaluator(server, "raw", **options)
    with pytest.raises(InputError, match="unknown method 'best'"):
        evaluator(server, "best")
    with pytest.raises(InputError, match="name the model"):
        felm_evaluator("raw", "")
    for rows, message in (
        ([], "no responses"),
        ([{"index": "1"}], r"rows\[0\] has no domain"),
        ([row("cooking")], "unknown domain"),
        ([row(labels=[True])], "do not fit"),
    ):
        with pytest.raises(InputError, match=message):
            evaluate_felm(rows, evaluator(server, "raw"))


def command(server: OpenAIServer, *arguments: object) -> Result:
    import typer

    from qabench.cli.evaluators import evaluate_felm as evaluate_command

    app = typer.Typer()
    app.command("evaluate-felm")(evaluate_command)
    app.callback()(lambda: None)
    common = ["--model", "m", "--base-url", server.base_url]
    return CliRunner().invoke(app, ["evaluate-felm", "sample", *common, *map(str, arguments)])


def test_the_command(server: OpenAIServer, tmp_path: Path) -> None:
    planned = json.loads(command(server, "--dry-run", "--price-in", 1, "--price-out", 2, "--json").stdout)
    n = len(rows_of_the_sample())
    assert (planned["calls"], planned["cached"], server.calls) == (n, 0, [])
    assert planned["cost"] > 0 and planned["completion_tokens"] == 100 * n
    assert "calls" in command(server, "--dry-run").stdout
    server.reply = lambda body: "Answer: 1"
    done = command(server, "--output", tmp_path / "out.jsonl", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["config"], report["counts"]["scored"], report["unscored"]) == ("sample", n, [])
    assert set(report["by_domain"]) == set(DOMAINS)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["index"] for line in lines] == [one["index"] for one in rows_of_the_sample()]
    assert all(line["replies"] == ["Answer: 1"] and line["verdicts"][0] is False for line in lines)
    shown = command(server, "--limit", 3)
    assert "math" in shown.stdout and "limit:3" in shown.stdout and len(server.calls) == n
    server.reply = lambda body: "who knows"
    failed = command(server, "--method", "cot")
    assert failed.exit_code == 1 and f"unscored, {n} x: no verdict" in failed.stdout
    assert isinstance(command(server, "--price-in", 1).exception, InputError)
