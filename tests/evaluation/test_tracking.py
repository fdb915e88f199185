"""``score --track``: what is sent to a tracker, through its package's public functions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock, Mock

import pytest
from typer.testing import CliRunner

from qabench.cli import app
from qabench.errors import InputError, MissingExtra
from qabench.loading_scripts import FOLDER

ANSWERS = sorted((FOLDER / "fanoutqa/sample/generations").iterdir())[0]
COMMAND = ["score", "fanoutqa", str(ANSWERS), "--config", "sample", "--lemmatizer", "simplemma", "--track"]


def check(parameters: dict[str, str], values: dict[str, float]) -> None:
    assert values["acc.loose/low"] < values["acc.loose"] < values["acc.loose/high"] and values["acc.loose/n"] == 12
    assert parameters["signature acc"].startswith("fanout_acc|") and "simplemma" in str(parameters)
    assert sum(value for name, value in values.items() if name.startswith("count/")) == 12


def test_a_run_per_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    package = Mock()
    monkeypatch.setitem(sys.modules, "wandb", package)
    assert CliRunner().invoke(app, [*COMMAND, "wandb:mine"], catch_exceptions=False).exit_code == 0
    assert package.init.call_args.kwargs["project"] == "mine"
    check(package.init.call_args.kwargs["config"], package.log.call_args.args[0])
    package.finish.assert_called_once_with()


def test_several_systems_in_a_local_trackio(tmp_path: Path) -> None:
    pytest.importorskip("trackio", reason="needs the extra dev")
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path)}
    others = sorted(map(str, (FOLDER / "fanoutqa/sample/generations").iterdir()))[:2]
    command = ["compare", "fanoutqa", *others, *COMMAND[3:], "trackio:mine", "--json"]
    compared = subprocess.run(
        [sys.executable, "-m", "qabench", *command], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(compared.stdout)["config"] == "sample", "the tracker's messages are on standard error"
    code = """if True:
        import json, trackio
        runs = trackio.Api().runs("mine")
        rows = [(run.config, trackio.SQLiteStorage.get_logs("mine", run.name)) for run in runs]
        print(json.dumps(rows))
    """
    read = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    rows = json.loads(read.stdout.splitlines()[-1])
    assert sorted(parameters["path"] for parameters, _ in rows) == others
    for parameters, (values,) in rows:
        check(parameters, values)


def test_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    package = MagicMock()
    monkeypatch.setitem(sys.modules, "mlflow", package)
    assert CliRunner().invoke(app, [*COMMAND, "mlflow"], catch_exceptions=False).exit_code == 0
    package.set_experiment.assert_called_once_with("qabench")
    check(package.set_tags.call_args.args[0], package.log_metrics.call_args.args[0])


def test_unknown_and_missing_trackers(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("other", "wandb:"):
        error = CliRunner().invoke(app, [*COMMAND, wrong]).exception
        assert isinstance(error, InputError) and "allowed: trackio, wandb, mlflow" in str(error)
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert isinstance(CliRunner().invoke(app, [*COMMAND, "wandb"]).exception, MissingExtra)
