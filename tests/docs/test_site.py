"""Site, README and cards: they build, their code and all doctests run, links exist, and questions
are answered.
"""

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import generate
import numbers_page
import pytest
import typer
from code_blocks import BLOCK, run_blocks, scripted_model

from qabench.benchmarks import benchmark, benchmark_names
from qabench.cli import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TEXTS = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", *generate.CARDS]

# Question -> the page that the start page must link to, and words that answer it there.
QUESTIONS = {
    "How do I install it?": ("getting-started.md", "pip install"),
    "How do I load FanOutQA's dev set?": ("benchmarks/fanoutqa.md", "`dev`"),
    "What is odd about the ExpertQA data?": ("benchmarks/expertqa.md", "Oddities"),
    "What is the positive class of FELM's F1?": ("benchmarks/felm.md", "positive class is the *error*"),
    "Why can some fastbook questions never score?": ("benchmarks/fastbook.md", "no context"),
    "What must a file of answers look like?": ("guides/score.md", '{"id", "answer"}'),
    "How do I get scores as a LaTeX table?": ("guides/score.md", "latex"),
    "What does judging cost?": ("guides/judge.md", "--judge-max-calls 0"),
    "Which key does the judge use?": ("guides/judge.md", "FANOUTQA_OPENAI_API_KEY"),
    "How do I run a model of the Hub?": ("guides/run.md", "hf-inference-providers"),
    "How do I continue a run that was killed?": ("guides/what-can-go-wrong.md", "--resume"),
    "How do I use it without internet?": ("guides/offline.md", "QABENCH_MIRROR"),
    "Which test says whether two systems differ?": ("guides/compare.md", "paired randomization"),
    "How do I evaluate my own retriever?": ("guides/retrieve.md", "your own retriever"),
    "How do I publish a result?": ("guides/publish.md", "--push"),
    "How does my result get on a leaderboard?": ("guides/publish.md", "`eval.yaml` on the Hub"),
    "How do I check the citations of my own answers?": ("guides/claims.md", "## Your own answers"),
    "How do I serve a model on several GPUs?": ("guides/several-machines.md", "tensor-parallel"),
    "How do I add a benchmark?": ("guides/add-a-benchmark.md", "qabench new"),
    "When is a score official?": ("reference/official.md", "signature"),
    "What does exit code 2 mean?": ("reference/exit-codes.md", "Wrong usage"),
    "Why do my numbers differ from the paper?": ("faq.md", "differs from the paper"),
}
FENCED = re.compile(r"^```(?:text|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(qabench [a-z][^`]*)`")
IMAGES = DOCS / "images"
FOLDERS = {"src/qabench": "qabench", "loading_scripts": "qabench.loading_scripts", "retrieval": "qabench.retrieval"}
README = ROOT / "README.md"


@pytest.mark.slow
@pytest.mark.parametrize("page", generate.PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_code_runs_and_prints_what_the_page_shows(page: Path) -> None:
    assert generate.current(page) == page.read_text(encoding="utf-8"), "run docs/generate.py"


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_two_clicks_away(question: str) -> None:
    page, words = QUESTIONS[question]
    start = (DOCS / "index.md").read_text(encoding="utf-8")
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([^)#]+)\)", start)) | set(re.findall(r": (\S+\.md)", navigation))
    assert page in linked and words in (DOCS / page).read_text(encoding="utf-8")


def test_the_faq_quotes_messages_of_the_code() -> None:
    """Between the dots of a quoted heading are words of one message; that of datasets is its own."""
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("official.json")]
    code = "".join(path.read_text(encoding="utf-8") for path in files).replace('"\n', "")
    code = re.sub(r'\s*f?"', "", code)
    headings = re.findall(r'^## "(.+?)"', (DOCS / "faq.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(headings) >= 4
    for words in headings:
        if words != "Dataset scripts are no longer supported":
            assert "".join(words.rsplit("...", 1)[-1].strip().split()) in "".join(code.split()), words


def test_every_field_of_a_signature_is_documented() -> None:
    page = (DOCS / "reference" / "signatures.md").read_text(encoding="utf-8")
    declared = [benchmark(name).declarations().values() for name in benchmark_names()]
    fields = {field for scores in declared for score in scores for field in score}
    assert {field for field in fields if f"`{field}`" not in page} == set()


# A word that has another term, and the term. Task configurations are lm-evaluation-harness's.
OTHER_TERMS = {
    r"\bconfigurations?\b(?! of a task)|\bsubsets? of the dataset": "config",
    r"\bfragments?\b|\bsnippets?\b": "passage",
    r"\bupstream's\b|\bas upstream\b|\boriginal scores?\b": "official",
}


def wrong_terms(text: str) -> list[str]:
    """The words of a text that should be another term, each with the term."""
    found = []
    for pattern, term in OTHER_TERMS.items():
        found += [f"{word}: write {term}" for word in re.findall(pattern, text, re.IGNORECASE)]
    return found


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_have_one_term_each(page: Path) -> None:
    assert wrong_terms(page.read_text(encoding="utf-8")) == []


def test_help_texts_have_one_term_each() -> None:
    waiting = [typer.main.get_command(app)]
    while waiting:
        command = waiting.pop()
        texts = [command.help or "", *(getattr(option, "help", None) or "" for option in command.params)]
        assert wrong_terms("\n".join(texts)) == [], command.name
        if hasattr(command, "list_commands"):
            context = click.Context(command)
            waiting += [command.get_command(context, name) for name in command.list_commands(context)]


@pytest.mark.parametrize("name", benchmark_names())
def test_a_benchmark_is_in_the_site_and_in_the_readme(name: str) -> None:
    page, title = f"benchmarks/{name}.md", benchmark(name).title
    assert (DOCS / page).is_file(), f"write docs/{page}"
    places = {ROOT / "mkdocs.yml": f": {page}", DOCS / "index.md": f"]({page})", ROOT / "README.md": f"**{title}"}
    for path, words in places.items():
        assert words in path.read_text(encoding="utf-8"), f"add {words} to {path.relative_to(ROOT)}"


def test_the_reference_documents_every_public_name() -> None:
    """The quick part of the strict build: the members that the page lists by name."""
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    listed = page.partition("::: qabench.text\n")[2].partition(":::")[0]
    for name in importlib.import_module("qabench.text").__all__:
        assert re.search(rf"\b{name}\b", listed), name


def test_an_undocumented_name_is_found() -> None:
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    import hooks

    assert {"qabench.evaluate_predictions", "qabench.stats.score_interval"} <= set(hooks.undocumented(set()))
    assert "qabench.BM25Index" not in hooks.undocumented({"qabench.retrieval.BM25Index", "qabench.no.such.module"})


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for command in INLINE.findall(FENCED.sub("", text)):  # those in blocks: test_commands.py
        assert unknown_words(command.partition("#")[0]) == [], command


def unknown_words(command: str) -> list[str]:
    """The commands and options in a line that qabench does not have."""
    words = command.replace("\\", " ").split()[1:]
    entry, context = typer.main.get_command(app), None
    while words and hasattr(entry, "list_commands"):
        context = click.Context(entry, info_name="qabench", parent=context)
        name = words.pop(0).strip(".,:;)\"'")
        if name.isupper() or name.startswith("-"):  # a placeholder such as COMMAND
            return []
        if name not in entry.list_commands(context):
            return [name]
        entry = entry.get_command(context, name)
    options = {option for parameter in entry.params for option in [*parameter.opts, *parameter.secondary_opts]}
    typed = [word.partition("=")[0].rstrip(".,:;)\"'") for word in words if word.startswith("--")]
    return [option for option in typed if option not in options | {"--help"}]


@pytest.mark.slow
def test_the_site_builds_strictly(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    # As after a plain installation: an editable one hides packages from the reference's reader.
    package = tmp_path / "packages" / "qabench"
    package.mkdir(parents=True)
    for source in [*(ROOT / "src/qabench").iterdir(), ROOT / "loading_scripts", ROOT / "metrics", ROOT / "retrieval"]:
        (package / source.name).symlink_to(source)
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(ROOT / "mkdocs.yml"), "-d", str(site)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "qabench score" in (site / "reference/commands/index.html").read_text(encoding="utf-8")


def test_lines_in_columns_are_marked() -> None:
    """The style sheet wraps all other lines of code and outputs."""
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    hooks = importlib.import_module("hooks")
    lines = ["score  value  n", "-----  -----  --", "a sentence. Another one", "a|long:signature", "| cell |"]
    block = "<pre><span></span><code>{}</code></pre>"
    marked = hooks.on_page_content(block.format("\n".join(lines)))
    assert [line.startswith('<span class="columns">') for line in marked[24:].split("\n")] == [
        True, True, False, False, True,
    ]  # fmt: skip
    unmarked = block.format("\n".join(lines))
    assert re.sub("<[^>]+>", "", marked) == re.sub("<[^>]+>", "", unmarked)
    inline = "<p><code>code  within</code> a paragraph</p>"
    assert hooks.on_page_content(inline + block.format("x")) == inline + block.format("x")
    wide = block.format(f"a  {'b' * 200}")
    assert '<code class="wide">' in hooks.on_page_content(wide) and "wide" not in marked


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_lines_in_columns_fit_a_laptop(page: Path) -> None:
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    hooks = importlib.import_module("hooks")
    assert hooks.MAX_LINE == generate.MAX_LINE
    for block in re.findall(r"^ *```\w*\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            in_columns = hooks.COLUMNS.search(line) and not hooks.COMMENTED.search(line)
            assert not in_columns or len(line) <= hooks.MAX_LINE, line


@pytest.mark.slow
def test_the_pictures_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import screenshots

    monkeypatch.setattr("sys.argv", ["screenshots.py", str(tmp_path)])
    screenshots.main()
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in IMAGES.iterdir()}
    assert all(path.stat().st_size > 20_000 for path in tmp_path.iterdir())


def test_every_picture_is_shown() -> None:
    pages = [*DOCS.rglob("*.md"), ROOT / "README.md"]
    shown = {name for page in pages for name in re.findall(r"images/([\w-]+\.png)", page.read_text(encoding="utf-8"))}
    assert shown == {path.name for path in IMAGES.iterdir()}


def modules() -> list[str]:
    """The modules with doctests; those of metrics are in ``tests/metrics``."""
    return [
        ".".join([package, *path.relative_to(ROOT / folder).with_suffix("").parts])
        for folder, package in FOLDERS.items()
        for path in sorted((ROOT / folder).rglob("*.py"))
        if ">>>" in path.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("name", modules())
def test_doctests(name: str) -> None:
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted and not done.failed


@pytest.mark.slow
def test_readme(tmp_path: Path) -> None:
    with scripted_model() as url:
        out = "".join(run_blocks(README.read_text(encoding="utf-8"), tmp_path, MODEL_URL=url))
    for printed in ("acc.loose", "fanout_acc|", "lemmatizer"):
        assert printed in out
    assert (tmp_path / "report" / "index.html").is_file()


def test_readme_begins_with_the_set_up_commands_and_is_short() -> None:
    blocks = [code for _, code in BLOCK.findall(README.read_text(encoding="utf-8"))]
    assert blocks[0] == "pip install . && qabench quickstart\n" and blocks[1] == 'pip install ".[test]" && pytest\n'
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


def test_speeds_are_those_of_the_results() -> None:
    results = (ROOT / "performance/RESULTS.md").read_text(encoding="utf-8").splitlines()
    _, _, speed = README.read_text(encoding="utf-8").partition("## Speed")
    rows = [[one.strip() for one in line.strip("|").split("|")] for line in speed.splitlines() if line.startswith("|")]
    compared = [row for row in rows if len(row) == 5 and row[3].endswith("x")]
    assert len(compared) > 2
    for what, official, ours, ratio, _ in compared:
        quoted = (f"| {ours} (", f"| {official} ", f"| {ratio} |")
        assert any(all(part in line for part in quoted) for line in results), what
    searches = [line for line in speed.splitlines() if line.startswith("| one query")]
    assert len(searches) > 4 and set(searches) <= set(results)


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *generate.CARDS], ids=lambda path: str(path.relative_to(ROOT)))
def test_links_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_tables_are_current(mirror: Path) -> None:
    text = numbers_page.PAGE.read_text(encoding="utf-8")
    assert numbers_page.written(text) == text, "python docs/numbers_page.py writes the tables"


@pytest.mark.parametrize("name", ["fanoutqa", "expertqa", "felm", "fastbook"])
def test_every_benchmark_has_a_table(name: str) -> None:
    text = numbers_page.PAGE.read_text(encoding="utf-8")
    tables = {part[1]: part[3] for part in numbers_page.PART.finditer(text)}
    assert "| what | published | here |" in tables[name]
