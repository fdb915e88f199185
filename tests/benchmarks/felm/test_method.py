"""FELM's prompts: the authors' files, ours, a user's; and claims."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabench.benchmarks.felm.method import CLAIMS, EXTRACTION, FelmMethod, claims_in, prompt_file, without_verdict
from qabench.benchmarks.felm.scores import Reading, as_reply, read_claims, read_reply
from qabench.benchmarks.felm.scores import response_score as score_of
from qabench.errors import InputError, SourceUnavailable
from qabench.llm.exchange import Answered

LINKS = "https://a.example/moon\nhttps://a.example/space"
LIST = """Answer:
Segment 1:
Claim 1. The Moon exists.
Claim 2. The Moon is near.

**Segment 3**
- Claim 1: It is 42.
Segment 9:
Claim 1. Nobody said that."""
READ = [
    {"segment": segment, "text": text}
    for segment, text in ((1, "The Moon exists."), (1, "The Moon is near."), (3, "It is 42."))
]


def row(domain: str = "wk", **fields: Any) -> dict[str, Any]:
    usual = {
        "index": "7", "domain": domain, "prompt": "How far is the {Moon}?",
        "segmented_response": ["1) It is near.", " - very near", "42"], "labels": [True, False, True],
        "ref": LINKS.split("\n"), "ref_contents": ["The Moon is far."],
    }  # fmt: skip
    return usual | fields


def user_message(method: FelmMethod, one: dict[str, Any], claims: Any = None) -> str:
    system, user = method.messages(one, claims)
    assert system[0] == "system" and user[0] == "user"
    return user[1]


def ours(method: str = "raw", **options: Any) -> FelmMethod:
    return FelmMethod(method, prompt="qabench", **options)


def test_missing_files_are_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QABENCH_MIRROR", raising=False)
    with pytest.raises(SourceUnavailable, match=r"eval/prompt/segment/math/raw\.txt"):
        FelmMethod("raw", prompt="official")


def test_a_users_template(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('system = "s"\nuser = "{question}|{segments}|{references}"\n')
    method = FelmMethod("link", prompt=path)
    wanted = f"How far is the {{Moon}}?|1. It is near.\n2. very near\n3. |{LINKS}"
    assert method.messages(row("science")) == (("system", "s"), ("user", wanted))
    assert user_message(method, row("math", ref=[])).endswith("|(none)")
    assert method.prompts.label.startswith("file:mine.toml-")
    with pytest.raises(InputError, match=r"unknown \{references\}"):
        FelmMethod("raw", prompt=path)
    with pytest.raises(InputError, match="allowed: official, qabench, auto, or a file"):
        FelmMethod("raw", prompt="own")


def test_claims_are_read() -> None:
    assert claims_in(row(), Answered(LIST)) == (READ, None)
    assert read_claims("Claim 1. Alone.", 1) == [{"segment": 1, "text": "Alone."}]
    for reply, reason in (
        (Answered("I see none."), "its claims: none in the reply 'I see none.'"),
        (Answered(LIST, cut_off=True), "its claims: the reply was cut off"),
        (Answered(reason="HTTP 400"), "its claims: HTTP 400"),
    ):
        assert claims_in(row(), reply) == ([], reason)


@pytest.mark.parametrize("method", ["raw", "cot", "link", "content"])
def test_messages_about_claims(method: str, mirror: Path) -> None:
    asking = FelmMethod(method, claims=True, prompt="official")
    folder = mirror / "hkust-nlp/felm/eval/prompt"
    segments = "1. It is near.\n2. very near\n3. \n"
    question = "\n\nQuestion: How far is the {Moon}?\n"
    extraction = (folder / prompt_file("wk", EXTRACTION, CLAIMS)).read_text(encoding="utf-8")
    assert asking.extraction_messages(row())[1][1] == f"{extraction}{question}Segments: {segments}"
    text = (folder / prompt_file("wk", method, CLAIMS)).read_text(encoding="utf-8")
    claims = "1. The Moon exists.\n2. The Moon is near.\n3. It is 42.\n"
    assert user_message(asking, row(), READ).startswith(f"{text}{question}Claims: {claims}")
    assert [asking.by_claims(row(domain)) for domain in ("wk", "science", "writing_rec", "math", "reasoning")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_verdicts_on_claims_become_verdicts_on_segments() -> None:
    score = score_of(row()["labels"], "Answer: 2", claims=READ)
    assert score.verdicts == score.readable == (False, True, True)
    score = score_of(row()["labels"], "Answer: 0", claims=READ)  # the last claim, officially
    assert (score.verdicts, score.readable) == ((True, True, False), None)
    assert without_verdict([Answered(reason="refused"), Answered("Answer: 3")], len(READ), "answer") == ["refused"]


@given(st.lists(st.booleans(), min_size=1, max_size=9))
def test_one_claim_per_segment_changes_nothing(verdicts: list[bool]) -> None:
    claims = [{"segment": i + 1, "text": "c"} for i in range(len(verdicts))]
    reply, n = as_reply(tuple(verdicts)), len(verdicts)
    reading = read_reply(reply, n, claims=claims)
    assert reading == read_reply(reply, n) == Reading(tuple(verdicts), tuple(verdicts))


@pytest.mark.parametrize(
    "text", ["\n" * 10**5, "Segment 1:\n" + "claim " * 10**4, "claim 1" + " " * 10**5, "1" * 10**5]
)
def test_long_replies_are_read_in_linear_time(text: str) -> None:
    # With quadratic time, each would take minutes.
    for prefix in ("", "Answer: ", "!" * 10**5, "Segment " * 10**4, "Claim 1" * 10**4):
        read_claims(prefix + text, 3)
        for reply_format in ("answer", "vicuna"):
            assert len(read_reply(prefix + text, 3, reply_format).official) == 3
