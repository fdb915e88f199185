"""The checks before publishing: cards with working code and correct numbers, and requirements that
pip resolves.
"""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import SpaceCard
from only_the_sample import only_the_sample
from tiny_bleurt import write_tiny_bleurt
from typer.testing import CliRunner

from qabench.cli import app
from qabench.errors import InputError, QabenchError
from qabench.evaluation.signature import version
from qabench.hub import staging
from qabench.hub.build import build, digests
from qabench.hub.cards import license_of
from qabench.hub.staging import check_dataset, run_card, stage_dataset, stage_space, write_space
from qabench.hub.wheel import own_wheel
from qabench.loading_scripts import benchmark_names, dataset_table
from qabench.metrics import metric_names

OPEN = [name for name in benchmark_names() if not dataset_table(name).restriction]
APP = """
import runpy, gradio
gradio.Blocks.launch = lambda blocks, **_: print(blocks.title)
runpy.run_path("app.py")
"""


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Networks with random weights for the metrics whose examples need gigabytes of weights."""

    def provide(name: str) -> None:
        if name == "fanout_bleurt":
            for package in ("sentencepiece", "torch", "transformers"):
                pytest.importorskip(package, reason="needs the extra bleurt")
            (tmp_path / "weights").mkdir()
            write_tiny_bleurt(tmp_path / "weights")
            monkeypatch.setenv("QABENCH_BLEURT_MODEL", str(tmp_path / "weights"))

    return provide


@pytest.mark.parametrize("name", metric_names())
def test_every_metric_passes(name: str, tmp_path: Path, models: Callable[[str], None], monkeypatch: Any) -> None:
    """The card's code runs in a new process by Hub name, and prints the stated output."""
    models(name)
    staged = stage_space(name, "qabench", tmp_path)
    assert (staged.state, staged.reason) == ("staged", None)
    assert json.loads((staged.folder / "qabench.json").read_text(encoding="utf-8"))["files"] == digests(staged.folder)


@pytest.mark.parametrize("name", OPEN)
def test_every_sample_passes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_the_sample(tmp_path / "home", monkeypatch)
    staged = stage_dataset(name, "qabench", tmp_path, skip_missing=True)
    assert (staged.state, staged.reason) == ("staged", None)
    assert staged.missing == tuple(config.name for config in dataset_table(name).configs.values() if config.files)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "qabench"
    build(out, ["felm"], ["sample"])
    return out


@pytest.fixture
def felm(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built repository to be damaged, without the code of its card."""
    monkeypatch.setattr("qabench.hub.staging.run_card", lambda card, folder: [])
    shutil.copytree(built, tmp_path / "qabench")
    return tmp_path / "qabench/felm"


def rewrite(folder: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change the rows of the Parquet file and their number in the card, like a wrong build."""
    (path,) = folder.rglob("*.parquet")
    table = pq.read_table(path)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    card = (folder / "README.md").read_text(encoding="utf-8")
    card = re.sub(r"num_examples: \d+", f"num_examples: {len(rows)}", card)
    (folder / "README.md").write_text(card, encoding="utf-8")


def flip(rows: list[dict[str, Any]]) -> None:
    rows[3]["labels"][0] = not rows[3]["labels"][0]


def test_rows_that_differ_from_the_source(felm: Path) -> None:
    rewrite(felm, lambda rows: None)
    check_dataset("felm", felm)
    rewrite(felm, flip)
    with pytest.raises(QabenchError, match=r"sample, test: row 3, field 'labels' is \["):
        check_dataset("felm", felm)
    rewrite(felm, lambda rows: (flip(rows), rows.pop()))
    with pytest.raises(QabenchError, match="sample, test: 12 rows; the source has more"):
        check_dataset("felm", felm)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [("license: apache-2.0", "license: [apache-2.0", "load_dataset cannot read it"),
     ("dtype: bool", "dtype: string", "sample, test: the features differ from the benchmark's")],
)  # fmt: skip
def test_invalid_repositories(old: str, new: str, problem: str, felm: Path) -> None:
    edit(felm / "README.md", old, new)
    with pytest.raises(QabenchError, match=problem):
        check_dataset("felm", felm)


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [("README.md", "```python", "```text", "the card has no Python code"),
     ("README.md", "# 0.5 0.625", "# 0.5 0.626", "states that its code prints '0.5 0.626'"),
     ("felm_factuality.py", "class FelmFactuality", "oops class", "SyntaxError")],
)  # fmt: skip
def test_invalid_spaces(file: str, old: str, new: str, problem: str, tmp_path: Path) -> None:
    folder = tmp_path / "qabench/felm_factuality"
    write_space("felm_factuality", folder, "qabench")
    edit(folder / file, old, new)
    with pytest.raises(QabenchError, match=problem):
        run_card((folder / "README.md").read_text(encoding="utf-8"), folder.parents[1])


def test_a_card_runs_unchanged_and_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    (tmp_path / "qabench").mkdir()  # not a package, despite its name
    text = "```python\nimport os, qabench\nx = os.listdir('.')\n```\n\n```python\nprint(x)  # ['qabench']\n```\n"
    run_card(text, tmp_path)
    with pytest.raises(QabenchError, match=r"OfflineMode"):
        run_card("```python\nimport huggingface_hub\nhuggingface_hub.HfApi().whoami(token='x')\n```\n", tmp_path)


def test_a_benchmark_without_a_license_is_rejected() -> None:
    with pytest.raises(InputError, match="fastbook cannot be published: its card has the license 'other'"):
        license_of("fastbook")


@pytest.mark.parametrize("license", ["apache-2.0", "cc-by-4.0", "odc-by"])
def test_any_license_of_the_hub_is_allowed(license: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").write_text(f"---\nlicense: {license}\n---\n")
    monkeypatch.setattr("qabench.hub.cards.folder_of", lambda name: tmp_path)
    assert license_of("fanoutqa") == license


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark outside of the package, as `qabench new` writes it; its folder is relative."""
    assert CliRunner().invoke(app, ["new", "rivers", "--output", str(tmp_path / "mine")]).exit_code == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QABENCH_PATH", "mine")


@pytest.mark.usefixtures("template")
def test_the_space_of_a_benchmark_outside_has_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gradio", reason="needs the extra space")
    staged = stage_space("rivers_match", "me", tmp_path)
    assert staged.state == "staged", staged.reason
    files = {"app.py", "pyproject.toml", "rivers/questions.jsonl", "rivers/metrics/rivers_match/rivers_match.py"}
    assert files < set(staged.files)
    environment = {name: value for name, value in os.environ.items() if name != "QABENCH_PATH"}
    command = [sys.executable, "-c", APP]
    done = subprocess.run(command, cwd=staged.folder, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "Rivers match\n", done.stderr


def add(folder: Path, name: str, number: str, *lines: str) -> Path:
    """Add an empty wheel to a folder."""
    path, about = folder / f"{name}-{number}-py3-none-any.whl", f"{name}-{number}.dist-info"
    metadata = "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {number}", *lines, ""])
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{about}/METADATA", metadata)
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return path


def test_an_unreleased_version_is_beside_its_space(tmp_path: Path) -> None:
    folder = tmp_path / "space"
    wheel = add(tmp_path, "qabench", version())
    staging.write_space("felm_factuality", folder, "someone", wheel)
    lines = (folder / "requirements.txt").read_text(encoding="utf-8").split("\n")
    url = f"https://huggingface.co/spaces/someone/felm_factuality/resolve/main/{wheel.name}"
    assert f"qabench @ {url}" in lines and (folder / wheel.name).read_bytes() == wheel.read_bytes()


def test_cards_of_spaces_name_python_and_gradio(tmp_path: Path) -> None:
    staging.write_space("fanout_acc", tmp_path / "space", "someone")
    data = SpaceCard.load(tmp_path / "space/README.md").data
    assert (data.sdk, data.sdk_version, data.python_version) == ("gradio", staging.GRADIO, staging.PYTHON)


def test_the_wheel_of_this_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # pip's spelling of "without isolation": needs no network
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "false")
    wheels = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        wheel = own_wheel(tmp_path / name)
        assert wheel is not None and wheel.name.startswith(f"qabench-{version()}-")
        wheels.append(wheel.read_bytes())
    assert wheels[0] == wheels[1], "a published version never changes"
    names = zipfile.ZipFile(io.BytesIO(wheels[0])).namelist()
    assert "qabench/hub/publish.py" in names and "qabench/metrics/fanout_acc/fanout_acc.py" in names
