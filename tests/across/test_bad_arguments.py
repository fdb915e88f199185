"""Arguments of wrong types and values are errors that name the value: those that an earlier cut had
removed.
"""

from importlib.util import find_spec
from typing import Any

import pytest

from qabench.benchmarks.expertqa.metrics import lines_with_claims
from qabench.benchmarks.fanoutqa.judge import judge_from
from qabench.data.trec import parse_run
from qabench.errors import InputError


@pytest.mark.parametrize("row", ["x", None, 2.5, [1], True])
def test_rows_that_are_no_dictionaries(row: Any) -> None:
    with pytest.raises(InputError, match=r"predictions\[0\] is .*; allowed: an object with answer"):
        lines_with_claims([row])


@pytest.mark.parametrize("options", [0, (), [], 1.5, [1], False])
def test_options_of_a_judge_that_are_no_dictionary(options: Any) -> None:
    with pytest.raises(InputError, match=r"judge is .*; allowed: a dict"):
        judge_from(options)


@pytest.mark.parametrize("data", [b"", b"\n \n"])
def test_an_empty_run(data: bytes) -> None:
    with pytest.raises(InputError, match=r"a\.run is empty; a TREC run has one line per query and document"):
        parse_run(data, "a.run", "docs")


def test_comments_and_further_fields_of_a_run() -> None:
    data = b"# made by a tool\nq1 Q0 a 1 0.5 tag\n#\nq1 Q0 b 2 0.75 tag and more\n#q Q0 c 1 1.0 tag\n"
    rows = parse_run(data, "a.run", "docs").rows
    assert [row.fields for row in rows] == [{"id": "q1", "docs": ["b", "a"]}, {"id": "#q", "docs": ["c"]}]


def test_ties_of_a_run_keep_their_ranks() -> None:
    data = b"q Q0 a 2 1.0 t\nq Q0 z 3 1.0 t\nq Q0 m 1 1.0 t\n"
    assert parse_run(data, "a.run", "docs").rows[0].fields["docs"] == ["m", "a", "z"]


@pytest.mark.skipif(find_spec("inspect_ai") is None, reason="needs the extra run")
@pytest.mark.parametrize("path", [None, 3, ["a.eval"], b"a.eval"])
def test_a_log_that_is_no_path(path: Any) -> None:
    from qabench.runs.inspect_logs import read_header
    from qabench.runs.log import read_run

    for read in (read_header, read_run):
        with pytest.raises(InputError, match="does not exist"):
            read(path)


@pytest.mark.parametrize("length", [0, -1])
def test_a_context_without_tokens(length: int) -> None:
    from qabench.benchmarks.fanoutqa.window import context_window

    with pytest.raises(InputError, match=f"context_length is {length}; it must be at least 1"):
        context_window("mockllm/model", length)  # type: ignore[arg-type]
