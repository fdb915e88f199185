"""Every command takes a benchmark outside of the package, as ``qabench new`` writes it."""

import base64
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_server import MAIN, TOKEN, Commit, Hub, Repo
from openai_server import OpenAIServer

pytest.importorskip("lm_eval.api.model", reason="needs the extra lm-eval")
# What reads the questions as other commands do, whose tests have both kinds, has one.
FILES = pytest.mark.parametrize("rivers", ["files"], indirect=True)
REPLIES = {"Paris": "It is the Seine.", "Cairo": "THE NILE", "Vienna": "the Danube", "Manaus": "I do not know."}


def run(folder: Path, *arguments: str, fails: bool = False, **variables: str) -> str:
    """Run Python in a folder with the benchmark on the path; return what it prints."""
    caches = {"HF_HOME": f"{folder}/huggingface", "QABENCH_CACHE": f"{folder}/cache", "HF_HUB_OFFLINE": "1"}
    environment = {name: value for name, value in os.environ.items() if name != "QABENCH_MIRROR"} | caches
    environment |= {"QABENCH_PATH": str(folder), "COLUMNS": "200", "INSPECT_LOG_LEVEL": "error"} | variables
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr * fails


def qabench(folder: Path, *arguments: str, **variables: str) -> str:
    return run(folder, "-m", "qabench", *arguments, **variables)


def use_the_hub(folder: Path) -> None:
    """Move the benchmark's rows to a Hub, under other names, as the guide says."""
    questions, module = folder / "rivers/questions.jsonl", folder / "rivers/__init__.py"
    rows = questions.read_text().replace('"id"', '"no"').replace('"question"', '"asked"')
    questions.unlink()
    (folder / "rivers/configs.json").unlink()
    with Hub() as hub:
        repo = hub.repos["dataset", "org/water"] = Repo("dataset", "org/water")
        repo.add(MAIN, Commit({"test.jsonl": hub.regular(rows.encode())}, None, "rows"))
        line = f'    data = HubDataset("org/water", question="asked", id="no", revision="{repo.refs[MAIN]}")\n'
        text = module.read_text().replace("import Benchmark, ", "import Benchmark, HubDataset, ")
        module.write_text(text.replace("    settings", line + "    settings"))
        there = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "QABENCH_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
        (file,) = json.loads(qabench(folder, "fetch", "rivers", "--json", **there))["files"]
    digest = hashlib.sha256(Path(file["local_path"]).read_bytes()).hexdigest()
    module.write_text(module.read_text().replace("revision=", f'sha256="{digest}", revision='))


@pytest.fixture(scope="module", params=["files", "hub"])
def rivers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rivers")
    qabench(folder, "new", "rivers", "--output", str(folder))
    if request.param == "hub":
        use_the_hub(folder)
    answers = {"r1": "It is the Seine.", "r2": "the Nile", "r3": "x", "r4": "y"}
    lines = [{"id": id, "answer": answer} for id, answer in answers.items()]
    (folder / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        server.reply = lambda body: next((REPLIES[city] for city in REPLIES if city in str(body["messages"])), "ready")
        yield server


@pytest.fixture(scope="module")
def log(rivers: Path, server: OpenAIServer) -> Path:
    where = ("--model", "m", "--base-url", server.base_url, "--log-dir", "logs", "--quiet", "--json")
    (report,) = json.loads(qabench(rivers, "run", "rivers", *where))["evaluations"]
    assert (report["scores"], report["n"], report["deviations"]) == ({"match": 0.75}, {"match": 4}, {"match": []})
    (path,) = (rivers / "logs").glob("*.eval")
    return path


@pytest.mark.quick
def test_the_template_is_small(rivers: Path) -> None:
    files = [path for path in [*rivers.glob("*.*"), *(rivers / "rivers").rglob("*")] if path.is_file()]
    files.remove(rivers / "answers.jsonl")
    assert len(files) <= 11  # the last one is how to cite it
    assert sum(len(path.read_text().splitlines()) for path in files if path.suffix == ".py") <= 120
    assert "choose another" in run(rivers, "-m", "qabench", "new", "rivers", fails=True)


def test_its_own_test_passes(rivers: Path) -> None:
    assert "2 passed" in run(rivers, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_rivers.py")


def test_data(rivers: Path) -> None:
    assert "rivers_match" in qabench(rivers, "list")
    assert json.loads(qabench(rivers, "stats", "rivers", "--json"))
    qabench(rivers, "register", "rivers")
    stock = "import datasets, evaluate; ((row, *_),) = datasets.load_dataset('qabench/rivers').values(); "
    stock += "metric = evaluate.load('qabench/rivers_match'); "
    stock += "print(metric.compute(predictions=['x ' + row['answer']], references=[row['answer']])['match'])"
    assert run(rivers, "-c", stock).strip().endswith("1.0")
    qabench(rivers, "build", "out", "rivers")
    card = (rivers / "out/rivers/README.md").read_text()
    assert "license: cc-by-4.0" in card and "name: continent" in card


@pytest.mark.quick
def test_scores(rivers: Path) -> None:
    report = rivers / "report.json"
    shown = qabench(rivers, "score", "rivers", "answers.jsonl", "--by", "continent", "--output", str(report))
    (scored,) = json.loads(report.read_text())["evaluations"]
    assert "South America" in shown and (scored["scores"], scored["deviations"]) == ({"match": 0.5}, {"match": []})
    assert "0.5" in qabench(rivers, "results", "report.json", "--setting", "closed-book")
    assert "answers" in qabench(rivers, "leaderboard", "rivers", "answers.jsonl")


@FILES
def test_runs(rivers: Path, log: Path) -> None:
    compared = qabench(rivers, "compare", "rivers", str(log), "answers.jsonl")
    assert "0.7500" in compared and "0.5000" in compared
    qabench(rivers, "report", str(log), "--output", "page")
    page = (rivers / "page/index.html").read_text()
    data = [gzip.decompress(base64.b64decode(text)) for text in re.findall(r">(H4sI[\w+/=]+)<", page)]
    assert any(b"Which river flows through Manaus?" in part for part in data)


@FILES
def test_inspect_and_the_harness(rivers: Path, server: OpenAIServer) -> None:
    there = {"STUB_API_KEY": "k", "STUB_BASE_URL": server.base_url}
    options = ("--model", "openai-api/stub/m", "--log-dir", "inspect", "--display", "plain")
    assert "0.75" in run(rivers, "-m", "inspect_ai", "eval", "qabench/rivers", *options, **there)
    model = f"model=m,base_url={server.base_url}/chat/completions"
    arguments = ("--model", "local-chat-completions", "--model_args", model, "--apply_chat_template")
    shown = run(rivers, "-m", "lm_eval", "run", *arguments, "--include_path", str(rivers), "--tasks", "rivers")
    assert "0.75" in shown


@pytest.mark.parametrize("rivers", ["hub"], indirect=True)
def test_publish(rivers: Path) -> None:
    with Hub(("me",)) as hub:
        there = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
        options = ("--org", "me", "--benchmark", "rivers", "--accept-licenses", "--unreleased", "--json")
        # The check of a Space installs its requirements, which needs a package index.
        sent = json.loads(qabench(rivers, "publish", "datasets", *options, **there))
        assert [(each["repo_id"], each["state"]) for each in sent["repositories"]] == [("me/rivers", "published")]


@FILES
def test_an_installed_package(rivers: Path) -> None:
    pip = ("-m", "pip", "install", "--no-deps", "--no-build-isolation", "--target", "site", ".")
    run(rivers, *pip)
    code = "import qabench; print(qabench.evaluate_predictions('rivers', None, 'answers.jsonl').scores()['match'].n)"
    shown = run(rivers, "-c", code, QABENCH_PATH="", PYTHONPATH=str(rivers / "site"))
    assert shown.strip() == "4"
