"""``qabench wiki``: output and exit codes."""

import re
from pathlib import Path
from typing import Any

import pytest
from scripted_wiki import ScriptedWiki
from typer.testing import CliRunner, Result

from qabench.benchmarks import benchmark
from qabench.cli.wiki import wiki_app
from qabench.errors import InputError
from qabench.retrieval.wiki.page import PageMissing


@pytest.fixture(autouse=True)
def pages(server: ScriptedWiki, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages of the sample's questions."""
    for row in sample_pages():
        number = row["pageid"] or 900_000 + len(server.pages)
        server.pages.setdefault(row["title"], (number, row["revid"] or number + 5_000_000, f"<p>{row['title']}.</p>"))
    monkeypatch.setenv("QABENCH_WIKIPEDIA_API", server.api)


def sample_pages() -> list[dict[str, Any]]:
    return list(benchmark("fanoutqa").evidence_pages("sample") or ())


def run(*arguments: str) -> Result:
    return CliRunner().invoke(wiki_app, arguments)


def test_prefetch_twice(server: ScriptedWiki, tmp_path: Path) -> None:
    result = run("prefetch", "fanoutqa", "--config", "sample")
    assert result.exit_code == 0, result.output
    place = re.escape(str(tmp_path / "cache/wikicache/other-wikis"))
    match = re.fullmatch(rf"(\d+) of (\d+) pages are in {place}/\S+: (\d+) fetched now\n", result.stdout)
    assert match and len(set(match.groups())) == 1
    asked = len(server.requests)
    result = run("prefetch", "qabench/fanoutqa", "--config", "sample")
    assert (result.exit_code, len(server.requests)) == (0, asked)
    assert f"{match[1]} of {match[1]} pages are in" in result.stdout and "0 fetched now" in result.stdout


def test_prefetch_lists_what_is_missing(server: ScriptedWiki, tmp_path: Path) -> None:
    title = next(row["title"] for row in sample_pages() if row["pageid"] is None)
    del server.pages[title]
    result = run("prefetch", "fanoutqa", "--config", "sample")
    assert result.exit_code == 1 and "missing on the dataset's date, or failed:" in result.stdout
    assert f"{title!r} (page id unknown): the wiki had no such page" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["prefetch", "felm"], "the questions of felm have no Wikipedia pages; allowed: fanoutqa"),
     (["prefetch", "nothing"], "unknown benchmark 'nothing'"),
     (["prefetch", "fanoutqa", "--config", "train"], "fanoutqa has no config 'train'"),
     (["search", " "], "the query must not be empty")],
)  # fmt: skip
def test_wrong_usage_is_an_input_error(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, InputError) and message in str(result.exception) and result.output == ""


def test_search_and_page(server: ScriptedWiki) -> None:
    server.pages = {"Jupiter": (38930, 1, "<p>A gas giant.</p>"), "Jupiter trojan": (5, 2, "<p>Rocks.</p>")}
    assert run("search", "jupiter").stdout.splitlines() == ["Jupiter\t38930", "Jupiter trojan\t5"]
    assert run("search", "jupiter", "-k", "1").stdout == "Jupiter\t38930\n"
    assert run("page", "Jupiter").stdout.strip() == "A gas giant."
    assert isinstance(run("page", "Dodo").exception, PageMissing)


def test_a_search_without_results_says_so(server: ScriptedWiki) -> None:
    result = run("search", "zebra crossing")
    assert result.exit_code == 0 and not result.stdout
    assert "warning: no page was found for 'zebra crossing'" in result.stderr
