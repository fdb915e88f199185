"""Commands in the ``text`` blocks of README and guides: they parse, and those that need nothing
external run.
"""

import json
import re
import shlex
from pathlib import Path

import generate
import pytest
import typer
from code_blocks import scripted_model
from datasets import Dataset
from typer.testing import CliRunner

import qabench
from qabench.benchmarks import benchmark_names
from qabench.cli import app

ROOT = Path(__file__).parents[2]
TEXTS = [*sorted((ROOT / "docs").rglob("*.md")), *ROOT.glob("*.md"), *ROOT.glob("recipes/*/README.md"), *generate.CARDS]
BLOCK = re.compile(r"^```(text|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UsageError = typer.BadParameter.__mro__[1]  # of click, or of Typer's own copy
EXTERNAL = {  # parts of commands that need what no test machine has, or that another test runs
    "models": ("attribute", "bleurt", "labels.jsonl", "vicuna", "--method dense"),
    "search services": ("search=", "--search google", "report logs", "lucene:", "opensearch:"),
    "the Hub": ("publish", "--push", "-base-url huggingface", "hf-inference-providers"),
    "Wikipedia": (".zim", "wiki "),
    "the network": ("fetch", ".hf.jobs"),
    "a folder of BEIR": ("nfcorpus/",),
    "a cluster": ("--ray",),
    "a log": ("RUN.eval", "my_task.eval", "logs/*.eval", "first.eval", "samples_", "details_", "compare fanoutqa logs"),
    "QABENCH_PATH": ("strategyqa",),
    "all data of ExpertQA": ("claims ", "facts "),
    "minutes": ("env", "reproduce", "lfqa"),
}


def commands_of(page: Path, kinds: tuple[str, ...] = ("text", "bash")) -> list[list[str]]:
    """The words of each command of qabench in a page's blocks."""
    blocks = [code for kind, code in BLOCK.findall(page.read_text(encoding="utf-8")) if kind in kinds]
    lines = [line for code in blocks for line in code.replace("\\\n", " ").splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("qabench ")]


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_parse(page: Path) -> None:
    for words in commands_of(page):
        try:
            parse(words)
        except UsageError as error:
            pytest.fail(f"qabench {shlex.join(words)}: {error.format_message()}")


def parse(words: list[str]) -> None:
    """Parse a command as the shell's user would have it parsed, without running it."""
    command, context = typer.main.get_command(app), None
    while hasattr(command, "get_command"):
        context = typer.Context(command, info_name="qabench", parent=context)
        _, command, words = command.resolve_command(context, words)
    command.make_context(command.name, list(words), parent=context)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in TEXTS if commands_of(page, ("text",))], ids=lambda page: str(page.relative_to(ROOT))
)
def test_commands_run(page: Path, mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with scripted_model() as url:
        for name in ("OPENAI_API_KEY", "FANOUTQA_OPENAI_API_KEY", "HF_TOKEN"):
            monkeypatch.setenv(name, "hf_key")
        monkeypatch.setenv("FANOUTQA_OPENAI_API_BASE", url)
        monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
        for words in commands_of(page, ("text",)):
            line = shlex.join(words)
            if not any(part in f"{line} " for parts in EXTERNAL.values() for part in parts):
                write_inputs(words)
                done = CliRunner().invoke(app, with_model(words, url))
                assert done.exit_code == 0, f"qabench {line}: {done.output} {done.exception}"


def with_model(words: list[str], url: str) -> list[str]:
    """The command with the address of the scripted model, for few questions."""
    words = [re.sub(r"http://(localhost|SERVER):8000/v1", url, word) for word in words]
    if words[0] == "run":
        words += ["--limit", "2"]
        words += [] if "--base-url" in words else ["--base-url", url]
    return words


def write_inputs(words: list[str]) -> None:
    """Write the files that a command reads and that do not exist yet: answers of the benchmark that
    it names.
    """
    name = None
    for part in [part for word in words for part in word.split(",")]:
        name = part if part in benchmark_names() else name
        path = Path(part.rpartition("=")[2])  # NAME=FILE
        if path.suffix in (".jsonl", ".csv") and not path.exists() and f"--output {path}" not in shlex.join(words):
            rows = [{"docno": f"d{i}", "text": f"text {i}"} for i in range(3)]
            if path.stem == "chunks":
                rows = qabench.load_dataset("fastbook", "chunks", split="corpus")
            elif path.stem == "scores":
                systems = [(i, model) for i in range(8) for model in ("a", "b")]
                rows = [
                    {"question_id": i, "model": model, "passage": i // 2, "correct": int(i % 3 == 0 or model == "a")}
                    for i, model in systems
                ]
            elif path.stem == "queries":
                rows = [{"id": "1", "query": "text"}]
            elif name:
                questions = next(iter(qabench.load_dataset(name).values()))
                ids = [row.get("id", row.get("index")) for row in questions.select(range(3))]
                rows = [{"id": id, "answer": "1998"} for id in ids]
                if path.stem == "labels":
                    rows = [row | {"label": i % 2} for i, row in enumerate(rows)]
            if path.suffix == ".csv":
                Dataset.from_list(rows).to_csv(path)
            else:
                path.write_text("".join(json.dumps(row) + "\n" for row in rows))
