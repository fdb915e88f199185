"""Official prompts: every message equals, byte for byte, the one that the authors' scripts send.

See also test_passages.py for passages of the web.
"""

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from expertqa_scripts import annotated_rows, executed, script

from qabench.benchmarks.expertqa.answers import Options, answering
from qabench.errors import InputError
from qabench.retrieval.documents import Document

Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows(mirror: Path) -> list[Row]:
    return annotated_rows(mirror)


def passages_of(row: Row) -> list[str]:
    (answer,) = row["answers"].values()
    return [text for claim in answer["claims"] for text in claim["evidence"] or []][:5]


def corpus_reader(mirror: Path) -> Callable[[str, list[str]], list[tuple[str, str]]]:
    """The messages that sphere_and_read.py sends, from a question and passages."""
    path = "modeling/response_collection/sphere_and_read.py"
    template = next(
        node.value
        for node in ast.walk(ast.parse(script(mirror, path).read_text(encoding="utf-8")))
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "prompt_template"
    )
    with mock.patch.dict("os.environ", {"OPENAI_API_KEY": "x"}):
        space = executed(mirror, path)

    def messages(question: str, passages: list[str]) -> list[tuple[str, str]]:
        complete = mock.Mock(return_value={"choices": [{"message": {"content": "answer"}}]})
        space["chat_completion_with_backoff"] = complete
        space["retrieval_gpt_generate"](question, passages, ast.literal_eval(template))
        body = complete.call_args.kwargs
        assert body["max_tokens"] == 2048 and set(body) == {"model", "messages", "max_tokens"}
        return [(message["role"], message["content"]) for message in body["messages"]]

    return messages


def test_closed(mirror: Path, rows: list[Row], compared: Callable[[str], None]) -> None:
    text = script(mirror, "prompts/qa_prompt.txt").read_text(encoding="utf-8")
    how = answering()
    assert how.protocol == "official" and how.prompt.label.startswith("official-")
    for row in rows:
        field = row["metadata"]["field"]
        wanted = text.replace("[FIELD]", field).replace("[QUESTION]", row["question"])
        assert how.messages(row | {"field": field}) == (("user", wanted),)
    compared(f"{len(rows)} messages, closed")


def test_read_corpus(mirror: Path, rows: list[Row], tmp_path: Path, compared: Callable[[str], None]) -> None:
    theirs = corpus_reader(mirror)
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(json.dumps({"id": "1", "text": "x " * 900}) + "\n")
    how = answering("retrieve-read", options=Options(corpus=str(corpus)))
    assert how.evidence is not None and how.evidence.signature()["passages"] == 1  # not split
    for row in rows:
        read = [Document(str(i), text) for i, text in enumerate(passages_of(row))]
        messages = how.messages(row | {"field": row["metadata"]["field"]}, read)
        assert list(messages) == theirs(row["question"], passages_of(row))
    compared(f"{len(rows)} messages, retrieve-read over a corpus")


def test_choice_of_prompts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path))
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("QABENCH_OFFLINE", "1")
    how = answering()
    assert how.prompt.name == how.protocol == "qabench"
    assert answering(protocol="official").protocol == "official"
    with pytest.raises(Exception, match=r"qa_prompt\.txt"):
        answering(prompt="official")
    for wrong in ({"prompt": "own"}, {"protocol": "own"}, {"method": "web"}):
        with pytest.raises(InputError, match="allowed: "):
            answering(**wrong)


def test_lfqa_questions_have_the_field_of_their_question(mirror: Path) -> None:
    from qabench.benchmarks.expertqa.questions import load_questions

    annotated, lfqa = load_questions("random").rows, load_questions("lfqa_random").rows
    assert all(one.row["field"] for one in lfqa)
    # The field of a few annotated rows differs from that in the file of questions.
    assert sum(a.row["field"] == b.row["field"] for a, b in zip(annotated, lfqa, strict=True)) > 190
