"""``qabench publish`` to a Hub on loopback: what is sent, what is not changed, and what a second
call does.

The checks before publishing have separate tests; here they always pass.
"""

import json
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx2
import pytest
import typer
from hub_server import TOKEN, Hub
from huggingface_hub import HfApi, constants
from only_the_sample import only_the_sample
from typer.testing import CliRunner

from qabench.cli.hub import publish as command
from qabench.errors import InputError, QabenchError
from qabench.hub import client, staging
from qabench.hub.build import digests
from qabench.hub.publish import Published, publish
from qabench.io.transport import Transport

TAG = f"v{metadata.version('qabench')}"
METRICS = ["fanout_acc", "felm_factuality"]
SENT = ["qabench/expertqa", "qabench/fanoutqa", "qabench/felm", *(f"qabench/{name}" for name in METRICS)]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """An empty Hub, two metrics, and datasets of which only the sample is available."""
    only_the_sample(tmp_path / "home", monkeypatch)
    # so that single files can be observed
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr("huggingface_hub.utils._http.time", Mock(wraps=time, sleep=lambda seconds: None))
    monkeypatch.setattr("qabench.hub.publish.metric_names", lambda: METRICS)
    monkeypatch.setattr(staging, "check_dataset", lambda name, folder: None)
    monkeypatch.setattr("qabench.hub.publish.own_wheel", lambda folder: None)
    monkeypatch.setattr(staging, "run_card", lambda card, folder: None)
    with Hub(("qabench", "elsewhere")) as hub:
        hub.used_here(monkeypatch)
        yield hub


@pytest.fixture
def api(hub: Hub) -> HfApi:
    return HfApi(endpoint=hub.url, token=TOKEN)


def send(what: Any = "all", org: str = "qabench", **options: Any) -> Published:
    return publish(what, org, **{"accept_licenses": True, "skip_missing": True, "unreleased": True} | options)


def states(published: Published) -> dict[str, str]:
    return {one.repo_id.split("/")[1]: one.state for one in published.repositories if one.state != "skipped"}


def the(published: Published, name: str) -> staging.Repository:
    return next(outcome for outcome in published.repositories if outcome.repo_id.endswith(f"/{name}"))


def writes(hub: Hub) -> list[str]:
    """The requests that could change something, so not the validation of cards."""
    return [line for line in hub.lines("POST", "PUT", "PATCH", "DELETE") if "/api/validate-yaml" not in line]


def content(hub: Hub, kind: str, id_: str, path: str) -> str:
    return hub.contents[hub.repo(kind, id_).tip.tree[path].etag].decode()


@pytest.fixture
def change(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Path], object]], None]:
    """Changes the content of the staged Space of fanout_acc."""
    write_space = staging.write_space

    def use(alter: Callable[[Path], object]) -> None:
        def stage(name: str, folder: Path, namespace: str, wheel: Path | None) -> None:
            write_space(name, folder, namespace)
            if name == "fanout_acc":
                alter(folder)

        monkeypatch.setattr(staging, "write_space", stage)

    return use


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Increases the version of qabench."""
    return lambda: monkeypatch.setattr("qabench.evaluation.signature.package_version", lambda name: "9.9")


def test_everything_once(hub: Hub) -> None:
    first = send()
    assert first.ok and states(first) == dict.fromkeys((id_.split("/")[1] for id_ in SENT), "published")
    for outcome in first.repositories:
        if outcome.state == "skipped":
            assert outcome.repo_id == "qabench/fastbook" and "may not be redistributed" in (outcome.reason or "")
            continue
        repo = hub.repo(outcome.kind, outcome.repo_id)
        assert [commit.title for commit in repo.history()] == [f"qabench {TAG[1:]}", "initial commit"]
        assert repo.refs[f"refs/tags/{TAG}"] == repo.tip.id == outcome.commit
        stored = {path: hub.contents[blob.etag] for path, blob in repo.tip.tree.items()}
        digests = {path: {"size": len(data), "sha256": sha256(data).hexdigest()} for path, data in stored.items()}
        assert {".gitattributes": digests[".gitattributes"]} | outcome.files == digests
    requirements = content(hub, "space", "qabench/fanout_acc", "requirements.txt")
    assert requirements.startswith(f"qabench[fast,spacy]=={TAG[1:]}\n")
    assert hub.outside == []
    hub.requests.clear()
    second = send()
    assert set(states(second).values()) == {"unchanged"}
    assert writes(hub) == []


def test_the_leaderboards_are_those_of_a_framework(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    # The sample, which is all that is there, has no leaderboard.
    tasks = "evaluation_framework: {}\ntasks: [{{id: math_raw_f1}}]\n".format
    monkeypatch.setattr("qabench.hub.build.eval_tasks", lambda table, built, framework: tasks(framework))
    with pytest.raises(InputError, match=r"eval\.yaml has no framework 'other'; allowed: inspect-ai, qabench"):
        send("datasets", framework="other")
    arguments = {"names": ["felm"], "framework": "qabench"}
    assert "evaluation_framework must be one of" in str(the(send("datasets", **arguments), "felm").reason)
    hub.frameworks.add("qabench")
    assert send("datasets", **arguments).ok
    assert "evaluation_framework: qabench" in content(hub, "dataset", "qabench/felm", "eval.yaml")


def test_names_of_another_organization(hub: Hub) -> None:
    send(org="elsewhere")
    assert 'evaluate.load("elsewhere/fanout_acc")' in content(hub, "space", "elsewhere/fanout_acc", "README.md")
    assert 'load_dataset("elsewhere/fanoutqa", ' in content(hub, "dataset", "elsewhere/fanoutqa", "README.md")
    assert not [key for key in hub.repos if key[1].startswith("qabench/")]


def test_a_new_version_is_one_commit(hub: Hub, api: HfApi, next_version: Any, change: Any) -> None:
    send()
    api.upload_file(path_or_fileobj=b"mine", path_in_repo="NOTES.md", repo_id="qabench/fanout_acc", repo_type="space")
    hub.requests.clear()
    next_version()
    change(lambda folder: (folder / "example.json").unlink())
    assert set(states(send()).values()) == {"published"}
    repo = hub.repo("space", "qabench/fanout_acc")
    assert len(repo.history()) == 4 and repo.refs["refs/tags/v9.9"] == repo.tip.id != repo.refs[f"refs/tags/{TAG}"]
    assert "example.json" not in repo.tip.tree
    assert "NOTES.md" in repo.tip.tree, "what others put there stays"
    assert not [line for line in writes(hub) if line.startswith("PUT /upload")], "the Hub has the large files"


def test_a_published_version_does_not_change(hub: Hub, change: Any) -> None:
    send()
    before = hub.repo("space", "qabench/fanout_acc").tip
    hub.requests.clear()
    change(lambda folder: (folder / "app.py").write_text("print(1)"))
    second = send()
    assert not second.ok
    reason = the(second, "fanout_acc").reason or ""
    assert f"{TAG} is published with other content: app.py" in reason and "increase the version" in reason
    assert states(second)["felm_factuality"] == "unchanged"
    assert writes(hub) == [] and hub.repo("space", "qabench/fanout_acc").tip is before


def test_repositories_of_others_are_not_changed(hub: Hub, api: HfApi) -> None:
    for id_, kind, path in (("felm", "dataset", "data.csv"), ("fanout_acc", "space", "qabench.json")):
        api.create_repo(f"qabench/{id_}", repo_type=kind, space_sdk="gradio" if kind == "space" else None)
        api.upload_file(path_or_fileobj=b"[1]", path_in_repo=path, repo_id=f"qabench/{id_}", repo_type=kind)
    first = send()
    assert {name for name, state in states(first).items() if state == "failed"} == {"felm", "fanout_acc"}
    assert "was not published by qabench (it contains .gitattributes, data.csv)" in (the(first, "felm").reason or "")
    assert hub.repo("dataset", "qabench/felm").tip.tree.keys() == {".gitattributes", "data.csv"}


def test_private(hub: Hub, next_version: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qabench.hub.publish.is_released", lambda: True)
    assert send("metrics", private=True).ok and all(repo.private for repo in hub.repos.values())
    for repo in hub.repos.values():
        repo.private = False
    next_version()
    public = send("metrics", private=True)
    assert all("it is public, but --private was given" in (one.reason or "") for one in public.repositories)


def test_a_dry_run_sends_nothing(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    first = send(dry_run=True, accept_licenses=False)
    assert (first.ok, set(states(first).values())) == (True, {"to publish"})
    assert writes(hub) == [] and hub.repos == {}
    assert the(send(), "felm").files == the(first, "felm").files
    assert set(states(send(dry_run=True)).values()) == {"unchanged"}
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    offline = send("metrics", dry_run=True)
    assert offline.ok and {outcome.state for outcome in offline.repositories} == {"to publish"}
    assert "not compared with the Hub: HF_HUB_OFFLINE is set" in (offline.repositories[0].reason or "")


def test_no_configs_are_lost(hub: Hub, api: HfApi, next_version: Any) -> None:
    send("datasets")
    manifest = json.loads(content(hub, "dataset", "qabench/felm", "qabench.json"))
    manifest["configs"]["wk"] = {"test": 184}
    text = json.dumps(manifest).encode()
    api.upload_file(path_or_fileobj=text, path_in_repo="qabench.json", repo_id="qabench/felm", repo_type="dataset")
    next_version()
    second = send("datasets")
    assert "the Hub has configs whose data is missing here: wk" in (the(second, "felm").reason or "")
    assert states(second)["fanoutqa"] == "published"


def test_missing_data_is_reported(hub: Hub) -> None:
    first = send("datasets", skip_missing=False)
    assert set(states(first).values()) == {"failed"}
    reason = the(first, "fanoutqa").reason or ""
    assert "no data for dev, test, dev_nov23, test_nov23, leaderboard: run `qabench fetch`" in reason
    assert writes(hub) == []
    assert "dev" in the(send("datasets"), "fanoutqa").missing


def test_licenses_must_be_accepted(hub: Hub) -> None:
    with pytest.raises(InputError, match="--accept-licenses") as error:
        send(accept_licenses=False)
    assert "felm: cc-by-nc-sa-4.0" in str(error.value) and "expertqa: mit" in str(error.value)
    assert "fastbook" not in str(error.value) and hub.requests == []
    assert send("metrics", accept_licenses=False).ok


def test_a_fault_leaves_a_part_for_the_next_call(hub: Hub) -> None:
    """Two of three large files arrive, the connection breaks at the third: the second call sends
    only the third.
    """
    hub.fail("PUT /upload/", nth=3, times=100, drop_request_after=10)
    first = send()
    assert (first.ok, states(first)["expertqa"], states(first)["felm"]) == (False, "published", "failed")
    assert "run the command again" in (the(first, "felm").reason or "") and states(first)["fanout_acc"] == "published"
    assert len(hub.repo("dataset", "qabench/felm").history()) == 1
    hub.faults.clear()
    hub.requests.clear()
    second = send()
    assert second.ok and [name for name, state in states(second).items() if state == "published"] == ["felm"]
    # of felm: sample and leaderboard
    assert len([line for line in hub.lines("PUT") if "/upload/" in line]) == 2


class Killed(BaseException):
    """Not an error that anything handles, like the end of the process."""


def test_a_kill_at_any_request(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    send_request = Transport.handle_request
    left = 0

    def send_until_killed(transport: Transport, request: httpx2.Request) -> httpx2.Response:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return send_request(transport, request)

    monkeypatch.setattr(Transport, "handle_request", send_until_killed)
    kills = 0
    tags: dict[str, str] = {}
    published = None
    while published is None:
        left = kills
        try:
            published = send("metrics")
        except Killed:
            kills += 1
        for name in METRICS:
            repo = hub.repos.get(("space", f"qabench/{name}"))
            if repo and (commit := repo.refs.get(f"refs/tags/{TAG}")):
                assert tags.setdefault(name, commit) == commit == repo.tip.id
    assert published.ok and sorted(tags) == METRICS and kills > 10
    assert {name: len(hub.repo("space", f"qabench/{name}").history()) for name in METRICS} == dict.fromkeys(METRICS, 2)
    left = 99
    assert set(states(send("metrics")).values()) == {"unchanged"}


@pytest.mark.parametrize(
    ("fault", "words"),
    [({"status": 403}, "must be a member of the organization"),
     ({"status": 412}, "someone else"),
     ({"status": 429, "headers": {"Retry-After": "77"}}, "too many requests: wait 77 seconds"),
     ({"status": 503}, "it has an internal error")],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)  # fmt: skip
def test_a_rejection_includes_advice(hub: Hub, fault: dict[str, Any], words: str) -> None:
    hub.fail("POST .*/fanout_acc/commit", times=100, **fault)
    first = send("metrics")
    assert not first.ok and words in (the(first, "fanout_acc").reason or "")
    assert states(first)["felm_factuality"] == "published"
    hub.faults.clear()
    assert send("metrics").ok


def test_a_missing_tag_is_added(hub: Hub) -> None:
    hub.fail("POST .*/fanout_acc/tag", status=500)
    first = send("metrics")
    assert states(first) == {"fanout_acc": "failed", "felm_factuality": "published"}
    hub.requests.clear()
    assert states(send("metrics")) == {"fanout_acc": "published", "felm_factuality": "unchanged"}
    repo = hub.repo("space", "qabench/fanout_acc")
    assert repo.refs[f"refs/tags/{TAG}"] == repo.tip.id
    sent = [line for line in writes(hub) if "/commit/" in line or "/tag/" in line]
    assert sent == [f"POST /api/spaces/qabench/fanout_acc/tag/{repo.tip.id}"]


@pytest.fixture
def run(hub: Hub) -> Callable[..., Any]:
    app = typer.Typer()
    app.command()(command)
    return lambda *arguments: CliRunner().invoke(
        app, [*arguments, "--org", "qabench", "--unreleased"], env={"COLUMNS": "200"}
    )


def test_the_command(run: Callable[..., Any], hub: Hub) -> None:
    result = run("metrics", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "To be published" in result.stdout and "qabench/fanout_acc" in result.stdout
    result = run("metrics", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["ok"]) == (0, True)
    assert [one["state"] for one in document["repositories"]] == ["published"] * 2
    hub.fail("GET /api/spaces/qabench/fanout_acc", status=403, times=100)
    result = run("metrics")
    assert result.exit_code == 1 and "qabench/fanout_acc (space): " in result.stderr and "unchanged" in result.stdout


def test_wrong_use(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    for org in ("", "a/b", "-a"):
        with pytest.raises(InputError, match="is not a name on the Hub"):
            send(org=org)
    monkeypatch.setenv("HF_TOKEN", "hf_of_nobody")
    with pytest.raises(QabenchError, match="401: the token is not valid"):
        send("metrics")
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(QabenchError, match="no token for"):
        send("metrics")
    assert writes(hub) == []
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(QabenchError, match=r"http://127\.0\.0\.1:9 cannot be reached .*: check the network"):
        send("metrics")


@pytest.mark.parametrize("fault", [{"body": b"[1]"}, {"status": 302, "headers": {"Location": "http://127.0.0.2:9/x"}}])
def test_a_hostile_hub_fails_each_repository(run: Callable[..., Any], hub: Hub, fault: dict[str, Any]) -> None:
    hub.fail("(GET|POST) /api/(spaces|datasets|repos)/", **{"status": 200, "times": 1000} | fault)
    result = run("all", "--accept-licenses", "--skip-missing")
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    output = result.stdout + result.stderr
    assert TOKEN not in output and "Traceback" not in output and all(f"{name} (" in result.stderr for name in SENT)


@pytest.mark.parametrize("answer", ["silence", "slow", "slow headers", "large"])
def test_endless_answers_end(hub: Hub, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = {"silence": "MAX_SILENT_SECONDS", "large": "MAX_ANSWER_BYTES"}.get(answer, "MAX_ANSWER_SECONDS")
    monkeypatch.setattr(f"qabench.hub.client.{limit}", 50_000 if answer == "large" else 0.5)
    hub.fail("GET /api/spaces/qabench/fanout_acc$", endless=answer, times=100)
    reason = the(send("metrics"), "fanout_acc").reason or ""
    assert ("more than 50,000 bytes" if answer == "large" else "ReadTimeout") in reason


@pytest.mark.quick
def test_a_user_s_client_is_given_back() -> None:
    from huggingface_hub import get_session, set_client_factory
    from huggingface_hub.utils import _http

    own = httpx2.Client()
    set_client_factory(lambda: own)
    try:
        with client.bounded_answers():
            assert get_session() is not own
        assert get_session() is own
    finally:
        set_client_factory(_http.default_client_factory)


def test_an_upload_without_an_answer_ends(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time grows with the bytes that were sent."""
    from huggingface_hub import get_session

    monkeypatch.setattr("qabench.hub.client.MAX_ANSWER_SECONDS", 0.5)
    monkeypatch.setattr("qabench.hub.client.MIN_BYTES_PER_SECOND", 50_000)
    hub.fail("PUT", endless="slow headers", times=100)
    message = r"no complete answer within (1\.[5-9]|[2-9]\.\d|\d\d+\.\d) seconds"
    with client.bounded_answers(), pytest.raises(httpx2.ReadTimeout, match=message):
        get_session().put(f"{hub.url}/file", content=b"a" * 50_000)


def test_an_unreleased_version_is_published_only_on_request(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(QabenchError, match=r"was not installed from an index: .* Nothing was published"):
        send(unreleased=False)
    with pytest.raises(QabenchError, match="private Spaces"):
        send("metrics", private=True)
    assert not writes(hub)
    monkeypatch.setattr("qabench.hub.publish.is_released", lambda: True)
    assert send("metrics", unreleased=False, private=True).ok


def test_the_repositories_can_be_looked_at(hub: Hub, tmp_path: Path) -> None:
    """``output`` has the files that would be sent, byte for byte."""
    staged = send("all", dry_run=True, output=tmp_path / "staged")
    assert not writes(hub)
    sent = [outcome for outcome in staged.repositories if outcome.state != "skipped"]
    assert {outcome.repo_id for outcome in sent} == set(SENT)
    for outcome in sent:
        folder = tmp_path / "staged" / f"{outcome.kind}s" / outcome.repo_id
        assert digests(folder, manifest=True) == outcome.files
    space = tmp_path / "staged/spaces/qabench/fanout_acc"
    assert {"README.md", "app.py", "fanout_acc.py", "requirements.txt"} <= {path.name for path in space.iterdir()}
    assert {row.get("folder") for row in staged.as_dict()["repositories"]} >= {str(space)}
    with pytest.raises(InputError, match="is not empty; name a new folder"):
        send(output=tmp_path / "staged")
