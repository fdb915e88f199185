"""The unmodified stock functions in a separate process: empty HF_HOME, another folder, no Hub."""

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset
from typer.testing import CliRunner

from qabench import loading_scripts
from qabench.cli import app
from qabench.cli.data import _print_registrations
from qabench.errors import InputError
from qabench.hub.register import Registration, register_dataset
from qabench.loading_scripts import dataset_table
from qabench.loading_scripts.load import builder
from qabench.metrics import metric_names

SAMPLES = [(name, loading_scripts.dataset_table(name)) for name in loading_scripts.benchmark_names()]
DEFAULT = """
import json, sys
from datasets import load_dataset
print(json.dumps(load_dataset(sys.argv[1])[sys.argv[2]].info.config_name))
"""
NO_DEFAULT = """
import json, sys
from datasets import load_dataset
try:
    print(json.dumps(load_dataset(sys.argv[1])))
except ValueError as error:
    print(json.dumps(str(error)))
"""
STOCK = """
import json, sys
from datasets import load_dataset
import qabench
rows = {}
for name, config in json.loads(sys.argv[1]):
    every = load_dataset(f"qabench/{name}", config)
    for split, stock in every.items():
        part = load_dataset(f"qabench/{name}", config, split=f"{split}[:1]")
        streamed = load_dataset(f"qabench/{name}", config, split=split, streaming=True)
        ours = qabench.load_dataset(name, config, split=split)
        assert list(streamed) == list(stock) == list(ours) and part[0] == ours[0] and len(part) == 1
        assert stock.features == ours.features and len(stock.to_pandas()) == len(ours)
    rows[f"{name} {config}"] = sum(map(len, every.values()))
print(json.dumps(rows))
"""
METRIC = """
import json, sys, evaluate
names = json.loads(sys.argv[1])
loaded = {name: type(evaluate.load(f"qabench/{name}")).__name__ for name in names}
both = evaluate.combine(["qabench/fanout_acc", "qabench/fanout_rouge"])
print(json.dumps({"loaded": loaded, "both": both.compute(predictions=["Paris"], references=["Paris"])}))
"""


@pytest.fixture
def hf_home(tmp_path: Path) -> Path:
    return tmp_path / "hf"


def python(code: str, hf_home: Path, *arguments: str, **environment: str) -> Any:
    """Runs code in another folder and returns its output, parsed if it is JSON."""
    (hf_home / "elsewhere").mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "HF_HOME": str(hf_home), "HF_HUB_OFFLINE": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        cwd=hf_home / "elsewhere", env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def register(hf_home: Path, *arguments: str, **environment: str) -> Any:
    code = "import sys; from qabench.cli import main; main()"
    return python(code, hf_home, "register", *arguments, "--json", **environment)


def test_the_stock_load_dataset_by_hub_name(hf_home: Path, tmp_path: Path) -> None:
    """The configs that ship with the package; the others have no data here, and say so."""
    nothing = {"QABENCH_MIRROR": str(tmp_path), "QABENCH_CACHE": str(tmp_path)}
    rows = register(hf_home, "--all", "--skip-missing", **nothing)["registrations"]
    samples = [(name, config.name) for name, table in SAMPLES for config in table.configs.values() if not config.files]
    registered = [(row["name"].split("/")[1], row["config"]) for row in rows if row["state"] == "registered"]
    assert registered[: len(samples)] == samples and {row["state"] for row in rows} == {"registered", "no data"}
    assert all("neither in a mirror" in row["detail"] for row in rows if row["state"] == "no data")
    assert all(python(STOCK, hf_home, json.dumps(samples)).values())
    # the data of the default config is missing: no other config is the answer
    for name in ("felm", "fanoutqa", "expertqa"):
        assert "Please specify which configuration" in python(NO_DEFAULT, hf_home, f"qabench/{name}")


def test_the_stock_evaluate_load_by_hub_name(hf_home: Path) -> None:
    register(hf_home, "fanoutqa", "--config", "sample")
    result = python(METRIC, hf_home, json.dumps(metric_names()))
    assert len(set(result["loaded"].values())) == len(metric_names())
    assert result["both"]["loose"] == result["both"]["rouge1"]["fscore"] == 1


def here(*arguments: str, code: int = 0) -> Any:
    """The command in this process, in the HF_HOME of the tests."""
    result = CliRunner().invoke(app, ["register", *arguments, "--json"])
    if isinstance(result.exception, InputError):
        return str(result.exception)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_an_older_registration_is_replaced() -> None:
    first = here("felm", "--config", "sample")
    assert here("felm", "--config", "sample") == first
    current = Path(first["registrations"][0]["path"])
    old, foreign = current.with_name("0" * 40), current.with_name("1" * 40)
    current.rename(old)  # as if the data or the code were different
    foreign.mkdir()
    (foreign / "dataset_info.json").write_text('{"config_name": "sample"}')
    here("felm", "--config", "sample")
    assert current.exists() and foreign.exists() and not old.exists()


def test_what_a_killed_run_left_is_removed() -> None:
    current = Path(here("felm", "--config", "sample")["registrations"][0]["path"])
    unfinished = current.with_name("2" * 40 + ".incomplete")
    unfinished.mkdir()
    half_removed = current.with_name("3" * 40)
    half_removed.mkdir()
    (half_removed / "felm-test.arrow").write_bytes(b"cut")
    for file in current.glob("*.arrow"):
        file.write_bytes(b"cut")
    (row, *_) = here("felm", "--config", "sample")["registrations"]
    assert row["state"] == "registered"
    assert not unfinished.exists() and not half_removed.exists()
    assert load_dataset("qabench/felm", "sample")["test"].num_rows > 0


WRITES = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.utime", "shutil.rmtree"}
KILLED = 9


def register_until(last: int, root: Path, calls: Any) -> None:
    """Registers, in a process of its own, which ends at a call for a file below ``root``, as by
    SIGKILL. 0: never.
    """

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in WRITES and str(arguments[0]).startswith(str(root)):
            calls.value += 1
            if calls.value == last:
                os._exit(KILLED)

    sys.addaudithook(hook)
    register_dataset("felm", "sample", root)
    os._exit(0)


def in_another_process(last: int, root: Path) -> tuple[int | None, int]:
    """Returns the exit code and the number of calls."""
    context = multiprocessing.get_context("fork")  # a new interpreter would take seconds
    calls = context.Value("i", 0)
    process = context.Process(target=register_until, args=(last, root, calls))
    process.start()
    process.join()
    return process.exitcode, calls.value


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_killed_run_and_an_upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade is killed at ten calls from the first to the last; the next one heals what it
    left.
    """

    def use_version(digit: str) -> None:
        monkeypatch.setattr("qabench.loading_scripts.builder.cache_hash", lambda *arguments: digit * 40)

    whole = tmp_path / "whole"
    use_version("1")
    register_dataset("felm", "sample", whole)
    use_version("2")
    code, calls = in_another_process(0, whole)
    assert code == 0 and calls > 20
    rows = load_dataset("qabench/felm", "sample", cache_dir=str(whole))["test"].to_list()
    for last in sorted({1 + (calls - 1) * step // 9 for step in range(10)}):
        root = tmp_path / str(last)
        use_version("1")
        register_dataset("felm", "sample", root)
        use_version("2")
        assert in_another_process(last, root)[0] == KILLED, last
        use_version("3")
        registration = register_dataset("felm", "sample", root)
        assert registration.state == "registered" and registration.path is not None
        loaded = load_dataset("qabench/felm", "sample", cache_dir=str(root))["test"]
        assert loaded.to_list() == rows, last
        (file,) = loaded.cache_files
        assert Path(file["filename"]).parent == Path(registration.path), last
        assert not list(root.rglob("*.incomplete")), last


def test_configs_of_the_same_file_have_folders_of_their_own(mirror: Path) -> None:
    for name, table in SAMPLES:
        hashes = {Path(builder(name, config).cache_dir).name for config in table.configs}
        assert len(hashes) == len(table.configs), name


def test_the_default_config_is_found_beside_others(hf_home: Path, mirror: Path) -> None:
    """Both FELM configs come from one file."""
    register(hf_home, "felm", QABENCH_MIRROR=str(mirror))
    assert python(DEFAULT, hf_home, "qabench/felm", "test") == dataset_table("felm").default


FULL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))  # a longer file is an OSError, as on a full disk
from qabench.cli import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size")
def test_a_full_disk_is_one_error(hf_home: Path) -> None:
    arguments = [sys.executable, "-c", FULL_DISK, "register", "felm", "--config", "sample", "--json"]
    env = {**os.environ, "HF_HOME": str(hf_home)}
    done = subprocess.run(arguments, env=env, capture_output=True, text=True)
    (line,) = done.stderr.splitlines()
    assert (
        line.startswith("qabench: the cache of Hugging Face's libraries cannot be used") and "Free some space" in line
    )
    document = json.loads(done.stdout)
    assert done.returncode == 1 and document == {"registrations": [], "error": line.removeprefix("qabench: ")}


def test_datasets_in_another_cache(hf_home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other cache"
    rows = register(hf_home, "felm", "--config", "sample", "--cache-dir", str(other))["registrations"]
    assert Path(rows[0]["path"]).is_relative_to(other)
    code = """
import json, sys
from datasets import load_dataset
print(json.dumps(load_dataset("qabench/felm", "sample", cache_dir=sys.argv[1])["test"].num_rows))
"""
    assert python(code, hf_home, str(other)) > 0


def test_two_at_once(hf_home: Path) -> None:
    code = "import sys; from qabench.cli import main; main()"
    env = {**os.environ, "HF_HOME": str(hf_home)}
    command = [sys.executable, "-c", code, "register", "felm", "--config", "sample"]
    processes = [subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert python(STOCK, hf_home, '[["felm", "sample"]]')["felm sample"] > 0


def test_missing_data_and_wrong_usage(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path))
    (row, *_) = here("fanoutqa", "--config", "test_nov23", code=1)["registrations"]
    assert row["state"] == "no data" and "fanout-final-test-nov23.json" in row["detail"]
    for arguments, message in [
        ((), "name the benchmarks to register (expertqa, fanoutqa, fastbook, felm), or use --all"),
        (("felm", "fanoutqa", "--config", "dev"), "--config needs exactly one benchmark"),
        (("felm", "--config", "nope"), "felm has no config 'nope'"),
    ]:
        assert message in here(*arguments)


def test_one_line_for_each_benchmark_and_one_for_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        Registration("dataset", f"qabench/{name}", config, "registered") for name in ("felm", "x") for config in "ab"
    ]
    rows.append(Registration("dataset", "qabench/x", "c", "no data", detail="no network"))
    rows += [Registration("metric", f"qabench/{name}", None, "registered") for name in ("m", "n")]
    _print_registrations(rows)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["qabench/felm", "a,", "b"] in lines and ["qabench/x", "a,", "b", "c"] in lines
    assert ["metrics", "qabench/m,", "qabench/n"] in lines


def test_registering_shows_one_bar(hf_home: Path) -> None:
    code = "import sys; sys.argv[1:] = ['register', 'felm', '--config', 'sample']; from qabench.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env=os.environ | {"HF_HOME": str(hf_home)})  # fmt: skip
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert lines and all(line.startswith("Registering: ") for line in lines)


def test_missing_data_is_one_error(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [Registration("dataset", "qabench/felm", config, "no data", detail="no network\nmore") for config in "abc"]
    _print_registrations(rows)
    shown = capsys.readouterr().out
    assert shown.count("no network") == 1 and "felm a: no network" in shown and "2 more have no data" in shown
