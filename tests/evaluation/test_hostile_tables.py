"""Tables with hostile text: in every format, it is shown and neither run nor interpreted."""

from __future__ import annotations

import csv
import io
import re

import pytest

from qabench.io.tables import Table

HOSTILE = [
    "=cmd|' /C calc'!A0",
    "-2+3+cmd()",
    "\t=1+1",
    "<script>alert(1)</script>",
    "a | b",
    "[x](javascript:alert(1)) `code` **bold** _it_ ~~no~~",
    "m\n\\input{/etc/passwd}",
    "m\r\n# title\n\n<b>",
    "50% & $x$ #1 {y} ^ ~",
    "\x1b[31mred\x1b[0m\x07 \u202etxt \ud800 \u2028",
]


def table(text: str) -> Table:
    return Table(text, ["system", text], [[text, 0.5], ["b", None]], [text])


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("format", ["csv", "markdown", "latex"])
def test_no_control_characters(text: str, format: str) -> None:
    written = table(text).formatted(format)
    assert not set(written) & set("\x1b\x07\r\u202e\ud800\u2028")


@pytest.mark.parametrize("text", HOSTILE)
def test_csv_has_no_formulas(text: str) -> None:
    for row in csv.reader(io.StringIO(table(text).formatted("csv"))):
        assert not [cell for cell in row if cell.lstrip()[:1] in ("=", "+", "-", "@") and cell]


def test_numbers_and_intervals_of_csv_are_unchanged() -> None:
    cells = [-0.5, "-0.0512", "-0.0512 to 0.0211", "+0.02", "-1,234", "-5e-3"]
    (row,) = list(csv.reader(io.StringIO(Table("t", list("abcdef"), [cells]).formatted("csv"))))[1:]
    assert row == list(map(str, cells))


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_has_the_lines_and_cells_of_the_table(text: str) -> None:
    lines = table(text).formatted("markdown").splitlines()
    assert [line[:1] for line in lines[:6]] == ["*", "", "|", "|", "|", "|"]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines[2:6]} == {3}
    unescaped = re.compile(r"(?<!\\)(?:\\\\)*[`\[\]_~]|<|(?<!\\)\*(?!\*)(?<!\*\*)")
    assert not [line for line in lines[2:] if unescaped.search(line)]


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_runs_no_command(text: str) -> None:
    lines = table(text).formatted("latex").splitlines()
    code = [line for line in lines if not line.startswith("%")]
    assert not any(re.search(r"\\input|(?<!\\)[$#&%](?! )", line) for line in code), code
    assert lines[0].startswith("% ") and lines[-1].startswith("% ")


@pytest.mark.parametrize("text", HOSTILE)
def test_html_has_only_the_tags_of_a_table(text: str) -> None:
    tags = set(re.findall(r"<(\w+)", table(text).html()))
    assert tags == {"p", "b", "table", "thead", "tr", "th", "tbody", "td", "ul", "li"}


@pytest.mark.parametrize("text", HOSTILE)
def test_text_keeps_its_rows(text: str) -> None:
    assert len(table(text).text().split("\n")) == 6
