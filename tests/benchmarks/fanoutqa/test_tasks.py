"""FanOutQA's tasks: prompts, the result of each kind of reply, and retries."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmark_tasks import fanoutqa_closed_book, fanoutqa_evidence_provided, fanoutqa_open_book
from hypothesis import example, given
from hypothesis import strategies as st
from inspect_ai import eval as evaluate
from inspect_ai.model import ModelInfo, get_model, set_model_info
from scripted_model import SCRIPTS, call, run
from scripted_wiki import Fault, ScriptedWiki, isolate

from qabench.adapters.inspect_ai.language_model import ESTIMATE, InspectModel, estimated_tokens, token_counter
from qabench.benchmarks.conversation import TokenCounter
from qabench.benchmarks.fanoutqa.window import how_many_fit, prompt_tokens
from qabench.errors import InputError
from qabench.retrieval.wiki.mediawiki import MediaWiki
from qabench.runs.log import read_run

PLANETS = "463f5c17d453c3d3"  # needs the pages Giant planet, Jupiter, Saturn, Uranus and Neptune
ROUGE = [f"{kind}.{part}" for kind in ("rouge1", "rouge2", "rougeL") for part in ("precision", "recall", "fscore")]
ALL_ZERO = dict.fromkeys(("acc.loose", "acc.strict", *ROUGE), 0.0)


@pytest.fixture(autouse=True)
def _no_official_files(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Without the fixture ``mirror``, this project's prompts are used."""
    if "mirror" not in request.fixturenames:
        monkeypatch.delenv("QABENCH_MIRROR", raising=False)


def paragraphs(about: str, count: int) -> str:
    return "".join(
        f"<p>{about} has the fact number {i}, which is long enough to be a line of text.</p>" * 4 for i in range(count)
    )


@pytest.fixture
def wiki(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedWiki]:
    isolate(tmp_path, monkeypatch)
    with ScriptedWiki() as server:
        monkeypatch.setenv("QABENCH_WIKIPEDIA_API", server.api)
        server.pages = {
            "Jupiter": (38930, 1, paragraphs("Jupiter", 40) + "<p>Its mean density is 1.326 grams.</p>"),
            "Saturn": (44474, 2, paragraphs("Saturn", 40) + "<p>Saturn's rings are of ice.</p>"),
        }
        yield server


def test_closed_book_asks_only_the_question(tmp_path: Path) -> None:
    asked: list[Any] = []

    def script(messages: Any) -> str:
        asked.append(messages)
        return "Jupiter - 1.326\nSaturn: 0.687"

    log = run(fanoutqa_closed_book("sample", ids=PLANETS), script, tmp_path)
    (sample,) = log.samples or []
    ((message,),) = asked
    assert sample.metadata["question"] in message.text and "11-20-2023" in message.text
    assert (log.plan.config.temperature, log.plan.config.max_tokens) == (0, 520)
    about = log.eval.metadata or {}
    assert about["available"] == 12 and "|prompt:qabench-" in about["signatures"]["run"]
    score = (sample.scores or {})["fanoutqa"]
    assert score.value["acc.loose"] == 4 / 8
    assert score.metadata and score.metadata["detail"] == {
        "found": ["Jupiter", "Saturn", "1326", "0687"],
        "missing": ["Uranus", "Neptune", "127", "1638"],
    }
    for part in ("lemmatizer:simplemma", "protocol:qabench", "temperature:0", "max_tokens:520"):
        assert part in score.metadata["signatures"]["acc"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"config": "nope"}, "no config 'nope'; allowed: dev"),
        ({"scores": "acc,bleu"}, "no score 'bleu' .*; allowed: scores acc.loose"),
        ({"scores": ""}, "no scores are selected; allowed: scores acc.loose"),
        ({"search": "smoke"}, "search is 'smoke'"),
        ({"protocol": "x"}, "protocol is 'x'"),
    ],
)
def test_wrong_arguments_list_the_allowed(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        fanoutqa_open_book(**({"config": "sample", "context_length": 4000} | arguments))


def test_test_questions_are_not_scored(mirror: Path, tmp_path: Path) -> None:
    log = run(fanoutqa_closed_book("test"), lambda m: "an answer", tmp_path, limit=2)
    assert [(sample.scores, sample.output.completion) for sample in log.samples or []] == [({}, "an answer")] * 2
    assert "not public" in (read_run(log.location).unscored or "")


def test_evidence_fills_the_window_exactly(wiki: ScriptedWiki, tmp_path: Path) -> None:
    task = fanoutqa_evidence_provided("sample", ids=PLANETS, context_length=2000)
    (sample,) = run(task, lambda m: "x", tmp_path).samples or []
    about = sample.metadata["evidence"]
    # A token is a word: 2000 minus 520 for the answer and 64 for the chat template.
    assert about["budget"] == 2000 - 520 - 64
    shown = len(sample.messages[0].text.split())
    assert about["tokens"] == shown == sample.model_usage["scripted/model"].input_tokens <= about["budget"]
    more = run(fanoutqa_evidence_provided("sample", ids=PLANETS, context_length=100_000), lambda m: "x", tmp_path)
    every = (more.samples or [])[0].messages[0].text.split("\n\n[")[1:]
    assert len(every) >= about["of"] > about["fragments"] > 0
    assert sum(about["left_out"].values()) == about["of"] - about["fragments"]
    longest = max(len(part.split()) for part in every)
    assert about["tokens"] + longest + 1 > about["budget"]
    # If everything fits, the prompt begins with the same fragments.
    assert (more.samples or [])[0].messages[0].text[:3000] == sample.messages[0].text[:3000]


def test_missing_pages_are_problems_and_others_are_used(wiki: ScriptedWiki, tmp_path: Path) -> None:
    task = fanoutqa_evidence_provided("sample", ids=PLANETS, context_length=4000)
    (sample,) = run(task, lambda m: "x", tmp_path).samples or []
    missing = sample.metadata["evidence"]["missing"]
    assert [name in reason for name, reason in zip(("Giant planet", "Uranus", "Neptune"), missing, strict=True)]
    assert sample.metadata["problems"] == missing and "1.326" in sample.messages[0].text
    wiki.pages = {}
    task = fanoutqa_evidence_provided("sample", ids="905a528376ad2927", context_length=4000)
    (bare,) = run(task, lambda m: "x", tmp_path).samples or []
    assert bare.metadata["evidence"]["of"] == 0 < len(bare.metadata["problems"])
    assert bare.error is None and bare.metadata["question"] in bare.messages[0].text


def test_an_unreachable_wiki(wiki: ScriptedWiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_OFFLINE", "1")
    task = fanoutqa_evidence_provided("sample", ids=PLANETS, context_length=4000)
    (sample,) = run(task, lambda m: "x", tmp_path).samples or []
    assert sample.error and "qabench wiki prefetch" in sample.error.message
    assert (sample.scores or {})["fanoutqa"].value == ALL_ZERO
    # With the pages in the cache, there are no requests.
    cache = MediaWiki().cache
    rows = sample.metadata["row"]["necessary_evidence"]
    for number, row in enumerate(rows, start=10**6):
        pageid = row["pageid"] or number
        cache.write(pageid, f"All of {row['title']}.")
        cache.remember_title(row["title"], pageid)
    (offline,) = run(task, lambda m: "x", tmp_path).samples or []
    assert offline.error is None and offline.metadata["evidence"]["fragments"] == len(rows)
    assert not wiki.requests


def test_an_unknown_window_is_an_error_before_the_run(tmp_path: Path) -> None:
    SCRIPTS["unknown"] = lambda m: "x"
    with pytest.raises(InputError, match=r"context window of scripted/unknown is not known: .* -T context_length=8192"):
        evaluate(
            fanoutqa_evidence_provided, model=get_model("scripted/unknown"), task_args={"config": "sample"},
            log_dir=str(tmp_path), display="none",
        )  # fmt: skip
    (sample, *_) = run(fanoutqa_open_book("sample"), lambda m: "x", tmp_path).samples or []
    assert sample.error and "context_length=8192" in sample.error.message
    with pytest.raises(InputError, match="context_length is -1"):
        prompt_tokens(InspectModel(get_model("scripted/unknown")), -1)
    with pytest.raises(InputError, match="window of 500 tokens is too short"):
        prompt_tokens(InspectModel(get_model("scripted/unknown")), 500)
    set_model_info("scripted/registered", ModelInfo(context_length=9000))
    assert prompt_tokens(InspectModel(get_model("scripted/registered")), None) == 9000 - 520 - 64


@example(["full", "?"], 13, 1)
@given(st.lists(st.text(max_size=30), max_size=40), st.integers(0, 400), st.integers(1, 7))
def test_how_many_fit_is_the_maximum(texts: list[str], budget: int, characters_a_token: int) -> None:
    counted: list[int] = []

    async def count(text: str) -> int:
        counted.append(len(text))
        return -(-len(text) // characters_a_token)

    def render(n: int) -> str:
        return "question" + "".join(f"{text}!" for text in texts[:n])

    def tokens(n: int) -> int:
        return -(-len(render(n)) // characters_a_token)

    fits, used = asyncio.run(how_many_fit(texts, budget, TokenCounter("", count), render))
    assert used == tokens(fits)
    assert fits == 0 or used <= budget
    assert fits == len(texts) or tokens(fits + 1) > budget
    assert len(counted) <= 2 * len(texts) + 1


@given(st.text())
def test_the_estimate_counts_every_word(text: str) -> None:
    assert estimated_tokens(text) >= sum(1 for word in text.split() if word.isascii() and word.isprintable())
    assert estimated_tokens(text + " and more") > estimated_tokens(text)


def test_tokens_are_counted_by_the_available_tokenizer(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra run")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    model = get_model("mockllm/model")
    for counted_by in (str(tmp_path), str(tmp_path / "tokenizer.json")):
        counter = asyncio.run(token_counter(model, counted_by))
        assert (counter.name, asyncio.run(counter.count("a b, a"))) == (f"the tokenizer {counted_by}", 4)
    assert asyncio.run(token_counter(get_model(f"mockllm/{tmp_path}"))).name == f"the tokenizer {tmp_path}"
    (tmp_path / "tokenizer.json").write_text("{}")
    assert asyncio.run(token_counter(get_model(f"mockllm/{tmp_path}", memoize=False))).name == ESTIMATE
    for name in (str(tmp_path), str(tmp_path / "absent")):
        message = f"the tokenizer '{name}' cannot be read .*use a folder with tokenizer.json"
        with pytest.raises(InputError, match=message):
            asyncio.run(token_counter(model, name))
    assert estimated_tokens("strawberry 12") == 4


def test_a_model_without_tools_searches_in_plain_text(wiki: ScriptedWiki, tmp_path: Path) -> None:
    refused = []
    replies = iter(["<search>Jupiter</search>\nThe result is: 7", "<search>Saturn</search>", "Jupiter - 1.326"])

    def script(messages: Any, tools: Any) -> Any:
        if tools:
            refused.append(tools)
            return RuntimeError("this model does not support tools")
        return next(replies)

    (sample,) = run(fanoutqa_open_book("sample", ids=PLANETS, context_length=8000), script, tmp_path).samples or []
    assert len(refused) == 1 and "<search>" in sample.messages[0].text
    replies_seen = [message.text for message in sample.messages[1::2]]
    assert replies_seen == ["<search>Jupiter</search>", "<search>Saturn</search>", "Jupiter - 1.326"]
    assert "1.326" in sample.messages[2].text
    assert (sample.scores or {})["fanoutqa"].answer == "Jupiter - 1.326"
    task = fanoutqa_open_book("sample", ids=PLANETS, context_length=4000, search="tools")
    (sample,) = run(task, lambda m: RuntimeError("no tools here"), tmp_path).samples or []
    assert sample.error and "no tools here" in sample.error.message


def test_a_long_result_of_a_search_is_whole(wiki: ScriptedWiki, tmp_path: Path) -> None:
    wiki.pages["Jupiter"] = (38930, 1, paragraphs("Jupiter", 400))
    replies = iter([call("search", query="Jupiter"), "done"])
    (sample,) = run(fanoutqa_open_book("sample", ids=PLANETS, context_length=64_000), replies, tmp_path).samples or []
    shown = sample.messages[2].text
    # Inspect cuts results of tools after 16 KiB
    assert len(shown) > 100_000 and "truncated" not in shown


def test_an_incomplete_conversation_has_no_answer(wiki: ScriptedWiki, tmp_path: Path) -> None:
    replies = iter([call("search", query="Jupiter"), RuntimeError("gone")])
    (sample,) = run(fanoutqa_open_book("sample", ids=PLANETS, context_length=4000), replies, tmp_path).samples or []
    assert sample.error and (sample.scores or {})["fanoutqa"].answer is None


def test_pages_younger_than_the_epoch_are_empty(wiki: ScriptedWiki, tmp_path: Path) -> None:
    wiki.faults += 2 * [Fault(body=b'{"query": {"pages": [{"title": "Jupiter", "pageid": 9, "revisions": []}]}}')]
    replies = iter([call("search", query="Jupiter"), "done"])
    wiki.pages = {}
    (sample,) = run(fanoutqa_open_book("sample", ids=PLANETS, context_length=4000), replies, tmp_path).samples or []
    assert sample.error is None
    assert [(entry["title"], entry["fragments"]) for entry in sample.metadata["searches"]] == [("Jupiter", 0)]
