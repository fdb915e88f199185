"""``qabench fetch``: selection, output and exit codes, without network access."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from pinned_files import make_source, put
from typer.testing import CliRunner, Result

import qabench.cli.data
from qabench.cli.data import fetch
from qabench.errors import InputError

GOOD, BAD, ABSENT = (make_source(path=f"data/{name}.json") for name in ("good", "bad", "absent"))
TABLE = {source.path: source for source in (GOOD, BAD, ABSENT)}
CONFIGS = {"dev": [GOOD.path], "test": [ABSENT.path, GOOD.path]}


def config_of(name: str) -> SimpleNamespace:
    if name not in CONFIGS:
        raise InputError(f"fanoutqa has no config {name!r}; there are dev, test")
    return SimpleNamespace(files=CONFIGS[name])


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One benchmark with three files, of which a mirror has a correct and a damaged one; no
    network.
    """
    for name, value in {
        "benchmark_names": lambda: ["fanoutqa", "felm"],
        "dataset_table": lambda name: SimpleNamespace(
            name=name, config=config_of, sources=TABLE if name == "fanoutqa" else {}
        ),
    }.items():
        monkeypatch.setattr(qabench.cli.data, name, value)
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setenv("QABENCH_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "200")
    put(tmp_path / "mirror", GOOD)
    put(tmp_path / "mirror", BAD, b"bad")


def run(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(fetch)
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize("check", [[], ["--check"]])
def test_json(check: list[str]) -> None:
    result = run("--json", *check)
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert (document["ok"], document["failed"]) == (1, 2)
    assert [file["state"] for file in document["files"]] == ["ok", "damaged", "missing"]
    assert document["files"][0]["local_path"].endswith("mirror/owner/repo/data/good.json")
    assert document["files"][2]["url"] == ABSENT.url


def test_table() -> None:
    result = run("fanoutqa")
    assert result.exit_code == 1 and "1 of 3 files ok, 1 missing, 1 damaged" in result.stdout
    assert "data/absent.json" in result.stdout and "QABENCH_MIRROR=DIR" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["fanoutqa", "--config", "train"], "no config 'train'; there are dev, test"),
     (["--config", "dev"], "exactly one benchmark")],
)  # fmt: skip
def test_wrong_usage_is_an_input_error(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, InputError) and message in str(result.exception) and result.output == ""


def test_mirror_then_check_it(tmp_path: Path) -> None:
    to = str(tmp_path / "to")
    assert run("fanoutqa", "--config", "dev", "--mirror", to).exit_code == 0
    assert (tmp_path / "to" / GOOD.mirror_path).is_file()
    assert run("fanoutqa", "--config", "dev", "--mirror", to, "--check").exit_code == 0
    several = run("fanoutqa", "--config", "dev", "--config", "test", "--mirror", to, "--check", "--json")
    assert several.exit_code == 1
    assert [file["path"] for file in json.loads(several.stdout)["files"]] == [GOOD.path, ABSENT.path]
