"""Wide tables in terminals: no number or word is cut, and every part names its rows."""

import io

import pytest
from rich.console import Console

from qabench.io.tables import Table


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_wide_table_is_split_between_words(width: int) -> None:
    """No cell, number or word of a header is cut or broken, and each part names its rows."""
    columns = ["pair", "at 5%", "difference", "95% interval", "standard error", "corrected p", "detectable", "losses"]
    names = ["a system with a long name - another system", "first - second"]
    cells = ["no significant difference", "+0.0223", "-0.0059 to +0.0506", "0.0194", "< 0.0001", "0.0401", 1234]
    out = io.StringIO()
    Console(file=out, width=width).print(Table("Pairs", columns, [[name, *cells] for name in names]), soft_wrap=True)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    words = out.getvalue().split()
    for word in " ".join(columns).split():
        assert word in words
    for number in ("+0.0223", "-0.0059 to +0.0506", "< 0.0001", "1,234"):
        assert out.getvalue().count(number) == len(names)
    assert sum(line.startswith("first") for line in lines) == sum(line.startswith("pair") for line in lines) > 0


@pytest.mark.parametrize("width", [60, 80])
def test_long_names_leave_room_for_numbers_and_headers(width: int) -> None:
    name = "felm-an-organization__Some-Model-70B-Instruct-v2-temperature-0.7-topp-0.9-run-A"
    row = ["0.7982", "0.7678 to 0.8262", "4,426 segments", f"{name} is better"]
    columns = ["95% interval", "segments", "standard error", "at 5%"]
    pairs = Table("Pairs", ["system", *columns], [[name, *row], ["b", *row]])
    groups = Table("By domain", ["domain", name], [["reasoning", "0.6908 (0.5894 to 0.7803)"]])
    ranks = Table("Ranks", ["rank", "system", *columns], [[1, name, *row]])
    for table in (pairs, groups, ranks):
        out = io.StringIO()
        Console(file=out, width=width).print(table, soft_wrap=True)
        text = out.getvalue()
        assert max(map(len, text.splitlines())) <= width
        words = " ".join(table.columns).replace(name, "").split()
        assert set(words) <= set(text.split())
        for cell in table.rows[0]:
            if name not in str(cell):
                assert str(cell) in text
        # Lines of a name end after a hyphen or an underscore.
        assert "temperature-0.7-" in text and "organization__" in text


def test_a_wide_table_may_have_an_empty_column_without_a_name() -> None:
    table = Table("wide", ["name", "", "text"], [["a", "", "word " * 20], ["b", "", "x"]])
    output = io.StringIO()
    Console(file=output, width=40).print(table)
    assert output.getvalue().count("word") == 20


def test_one_column_with_repeated_values() -> None:
    table = Table("t", ["name"], [["word " * 12], ["word " * 12], ["other"]])
    output = io.StringIO()
    Console(file=output, width=20).print(table)
    assert output.getvalue().count("word") == 24 and "other" in output.getvalue()
    assert table.formatted("latex").count("word") == 24


def test_ranks_do_not_name_rows() -> None:
    out = io.StringIO()
    rows = [[1, "system-a", "0.5000", "https://one.example"], [1, "system-b", "0.5000", "https://two.example"]]
    Console(file=out, width=30).print(Table("t", ["rank", "system", "value", "source"], rows), soft_wrap=True)
    assert out.getvalue().count("system-a") == 2, "both parts name the system beside its rank"
