"""Display of evaluations, comparisons, benchmarks, indexes and hits; tables, also with hostile
text.
"""

import csv
import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

import qabench
from qabench.benchmarks import benchmark
from qabench.errors import InputError
from qabench.evaluation import Evaluation, Record
from qabench.evaluation.comparison import Comparison, compare
from qabench.io.tables import Displayed, Table
from qabench.retrieval import BM25Index
from qabench.retrieval.bm25.hits import Hits

SHOWN = "<script>"


def evaluation(model: str, *values: float) -> Evaluation:
    records = [
        Record(str(i), 1, "q", "", [], "a", "answered", scores={"acc.loose": v}, groups={"category": ("x",)})
        for i, v in enumerate(values)
    ]
    about = ("log", "task", "fanoutqa", "sample", "closed-book", model, "2026-01-01", "success", len(records))
    return Evaluation(*about, records, score_specs=benchmark("fanoutqa").scores)


@pytest.fixture(scope="module")
def one() -> Evaluation:
    return evaluation("m", 0, 0.5, 1)


def everywhere(shown: Displayed, *words: str) -> None:
    """Assert that the words are in the text, in rich's output and in the HTML."""
    out = io.StringIO()
    Console(file=out, width=160).print(shown)
    for form in (repr(shown), out.getvalue(), shown._repr_html_()):
        for word in words:
            assert word in form


@pytest.fixture(scope="module")
def compared(one: Evaluation) -> Comparison:
    systems = {"m": one, SHOWN: evaluation(SHOWN, 0, 0, 0)}
    return compare(systems, benchmark("fanoutqa").score_spec("acc.loose"), resamples=100)


def test_an_evaluation(one: Evaluation) -> None:
    everywhere(one, "m on fanoutqa sample (closed-book)", "acc.loose", "0.5000", "3 questions", "signature is missing")
    text = one.to_markdown()
    assert "| system | Loose accuracy |" in text and "| m | 0.5000 [0.0387, 0.9613] |" in text
    assert "n = 3 questions. Not official: Loose accuracy." in text
    assert "not official (all scores): the signature is missing" in text
    assert SHOWN not in replace(one, model=SHOWN)._repr_html_()
    table = one.to_pandas()
    assert list(table["acc.loose"]) == [0, 0.5, 1] and list(table["category"]) == ["x"] * 3
    assert "no scores: none of the 3 questions was answered" in repr(replace(one, records=[]))


def test_a_score_by_its_name(one: Evaluation) -> None:
    score = one["acc.loose"]
    assert (score.value, float(score), f"{score:.2f}", score.n) == (0.5, 0.5, "0.50", 3)
    assert str(score) == "acc.loose 0.5000 (95% interval 0.0387 to 0.9613, 3 questions)"
    assert repr(score) == f"Score({score})"
    assert (score.low, score.high) == (score.interval.low, score.interval.high)
    assert "acc.loose" in one and list(one) == list(one.scores())
    with pytest.raises(InputError, match=r"no score 'acc': the scores are acc\.loose"):
        one["acc"]


def test_compare_takes_evaluations_by_label(one: Evaluation, compared: Comparison) -> None:
    systems = {"m": one, "n": replace(evaluation("n", 0, 0, 0), path="other")}
    comparison = qabench.compare("fanoutqa", "sample", systems, "acc.loose", resamples=100)
    assert list(comparison.systems) == list(comparison.evaluations) == ["m", "n"]
    for label, given in systems.items():
        assert comparison.evaluations[label].records == given.records
        assert list(comparison.evaluations[label].scores()) == ["acc.loose"]
    assert comparison.pairs[0].difference == compared.pairs[0].difference
    assert list(comparison.to_pandas()["difference"]) == [0.5]
    with pytest.raises(InputError, match="the file was given twice: log"):
        qabench.compare("fanoutqa", "sample", [one, one])
    with pytest.raises(InputError, match="log is the log of a run of fanoutqa, not of felm"):
        qabench.compare("felm", None, systems)

    everywhere(compared, "Loose accuracy", "+0.5000", "no significant difference", "paired randomization test")
    assert SHOWN in repr(compared) and SHOWN not in compared._repr_html_()


def test_a_benchmark_an_index_and_hits() -> None:
    felm = benchmark("felm")
    everywhere(felm, felm.title, felm.scores[0].name, felm.settings[0].name)
    index = BM25Index.from_dataset([{"text": "a b", "kind": 1}, {"text": "b c", "kind": 2}], filters="kind")
    everywhere(index, "documents", "bm25+", "kind", "delta", "tokenizer")
    hits = index.search("c", k=2)
    everywhere(hits, "2 hits", "rank", f"{hits.scores[0]:.4f}")
    assert list(hits.to_pandas()["score"]) == hits.scores
    assert list(felm.to_pandas()["score"]) == [metric.name for metric in felm.scores]
    assert "and 90 more" in repr(Hits(list(range(100)), [0.0] * 100))


def test_a_table_in_every_format() -> None:
    table = Table("T", ["a", "b"], [["x|y", 1], ["<b>", None]], ["note"])
    assert table.formatted("csv") == "a,b\nx|y,1\n<b>,\n"
    assert "x\\|y" in table.formatted("markdown") and "**T**" in table.formatted("markdown")
    assert table.formatted("latex").startswith("% T\n\\begin{tabular}")
    assert "&lt;b&gt;" in table.html() and "<b>T</b>" in table.html()
    assert table.text().splitlines() == ["T", "a      b", "---  ---", "x|y    1", "<b>", "  note"]


HOSTILE = [
    "=cmd|' /C calc'!A0", "-2+3+cmd()", "\t=1+1", "<script>alert(1)</script>", "a | b",
    "[x](javascript:alert(1)) `code` **bold** _it_ ~~no~~", "m\n\\input{/etc/passwd}", "m\r\n# title\n\n<b>",
    "50% & $x$ #1 {y} ^ ~", "\x1b[31mred\x1b[0m\x07 \u202etxt \ud800 \u2028",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_text(text: str) -> None:
    """No control characters, formulas of spreadsheets, commands of LaTeX, tags or other rows."""
    hostile = Table(text, ["system", text], [[text, 0.5], ["b", None]], [text])
    written = {format: hostile.formatted(format) for format in ("csv", "markdown", "latex")}
    assert not set("".join(written.values())) & set("\x1b\x07\r\u202e\ud800\u2028")
    for row in csv.reader(io.StringIO(written["csv"])):
        assert not [cell for cell in row if cell.lstrip()[:1] in ("=", "+", "-", "@") and cell]
    lines = written["markdown"].splitlines()
    assert [line[:1] for line in lines[:6]] == ["*", "", "|", "|", "|", "|"]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines[2:6]} == {3}
    unescaped = re.compile(r"(?<!\\)(?:\\\\)*[`\[\]_~]|<|(?<!\\)\*(?!\*)(?<!\*\*)")
    assert not [line for line in lines[2:] if unescaped.search(line)]
    lines = written["latex"].splitlines()
    code = [line for line in lines if not line.startswith("%")]
    assert not any(re.search(r"\\input|(?<!\\)[$#&%](?! )", line) for line in code), code
    assert lines[0].startswith("% ") and lines[-1].startswith("% ")
    tags = set(re.findall(r"<(\w+)", hostile.html()))
    assert tags == {"p", "b", "table", "thead", "tr", "th", "tbody", "td", "ul", "li"}
    assert len(hostile.text().split("\n")) == 6


def test_numbers_and_intervals_of_csv_are_unchanged() -> None:
    cells = [-0.5, "-0.0512", "-0.0512 to 0.0211", "+0.02", "-1,234", "-5e-3"]
    (row,) = list(csv.reader(io.StringIO(Table("t", list("abcdef"), [cells]).formatted("csv"))))[1:]
    assert row == list(map(str, cells))
