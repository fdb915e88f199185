from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabench.answers import UNANSWERED
from qabench.errors import InputError
from qabench.generations import Generation, Generations, join, read_generations

IDS = [f"q{i}" for i in range(6)]


def write(path: Path, *lines: str | bytes) -> Path:
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    return path


def test_a_messy_file_loses_nothing_but_its_bad_lines(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        b'\xef\xbb\xbf{"id": "q0", "answer": "with a BOM"}\r',
        "",
        '{"id": "q1", "answer": "line\u2028separator"}',
        '{"id": "q2", "answer": ',
        b'{"id": "q3", "answer": "\xff"}',
        '["q3", "x"]',
        '{"id": 3, "answer": "x"}',
        '{"id": "q4"}',
        "[" * 100_000,
        '{"id": "q5", "answer": null, "model": "extra keys are fine"}',
    )
    read = read_generations(path)
    assert [(g.line, g.id, g.answer) for g in read.answers] == [
        (1, "q0", "with a BOM"),
        (3, "q1", "line\u2028separator"),
        (10, "q5", None),
    ]
    assert [b.line for b in read.bad_lines] == [4, 5, 6, 7, 8, 9]
    reasons = " | ".join(b.reason for b in read.bad_lines)
    for reason in (
        "not JSON",
        "not UTF-8 at byte",
        "a JSON list",
        "id is not a string: 3",
        "without 'answer'",
        "nested deeper than",
    ):
        assert reason in reasons


def test_a_file_that_is_not_there_or_holds_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*nowhere\.jsonl: No such file"):
        read_generations(tmp_path / "nowhere.jsonl")
    with pytest.raises(InputError, match=r"holds no answers \(it is empty\)"):
        read_generations(write(tmp_path / "a.jsonl", ""))
    with pytest.raises(InputError, match=r"holds no answers; line 1: not JSON .* A line must be a JSON object"):
        read_generations(write(tmp_path / "a.jsonl", "id,answer", "1,2"))


def generations(*pairs: tuple[str, object]) -> Generations:
    return Generations("a.jsonl", tuple(Generation(n, i, answer) for n, (i, answer) in enumerate(pairs, 1)))


def test_join_counts_and_names_everything() -> None:
    given_answers = generations(("q1", "a"), ("old", "b"), ("q1", "c"), ("q2", None), ("q3", " "), ("q4", 7))
    joined = join(IDS, given_answers)
    assert joined.ids == tuple(IDS)
    assert joined.predictions == (UNANSWERED, "c", None, " ", 7, UNANSWERED)
    assert joined.counts() == {
        "scored": 6, "missing": 2, "unknown": 1, "repeated": 1, "null": 1, "empty": 1, "not_text": 1, "bad_lines": 0,
    }  # fmt: skip
    said = "\n".join(joined.problems())
    assert "questions without an answer: 2 (q0, q5)" in said
    assert "answers to unknown questions: 1 (old (line 2))" in said
    assert "answers replaced by a later line: 1 (q1 (line 1))" in said


def test_only_score_answered_keeps_the_order_of_the_answers() -> None:
    joined = join(IDS, generations(("q3", "a"), ("q0", "b")), only_score_answered=True)
    assert joined.ids == ("q3", "q0")
    assert joined.predictions == ("a", "b")
    with pytest.raises(InputError, match=r"old \(line 2\).*--ignore-unknown"):
        join(IDS, generations(("q3", "a"), ("old", "b")), only_score_answered=True)
    assert join(IDS, generations(("q3", "a"), ("old", "b")), only_score_answered=True, ignore_unknown=True).ids == (
        "q3",
    )


def test_a_file_of_another_benchmark_is_refused() -> None:
    with pytest.raises(InputError, match=r"none of the 1 answers of a\.jsonl belongs .* 'x', line 1"):
        join(IDS, generations(("x", "a")))


@given(st.lists(st.tuples(st.sampled_from([*IDS, "x", "y"]), st.none() | st.text() | st.integers()), min_size=1))
def test_join_keeps_every_question_once_and_the_last_answer(pairs: list[tuple[str, object]]) -> None:
    if all(i not in IDS for i, _ in pairs):
        return
    joined = join(IDS, generations(*pairs))
    last = dict(pairs)
    assert dict(zip(joined.ids, joined.predictions, strict=True)) == {i: last.get(i, UNANSWERED) for i in IDS}
    kept = sum(p is not UNANSWERED for p in joined.predictions)
    assert kept + len(joined.repeated) + len(joined.unknown) == len(pairs)
    assert kept + len(joined.missing) == len(IDS)


@given(
    st.lists(st.text() | st.binary().map(lambda b: b.decode("latin-1")) | st.just(json.dumps({"id": "q", "answer": 1})))
)
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("any") / "a.jsonl"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    try:
        read = read_generations(path)
    except InputError as error:
        assert str(path) in str(error)
    else:
        assert read.answers
