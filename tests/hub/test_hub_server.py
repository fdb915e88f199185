"""The test Hub with the unmodified huggingface_hub: uploads by Xet and LFS, downloads, names, faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hub_server import TOKEN, Hub
from hub_server.files import ranged
from hub_server.routes import Request
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, DatasetCard, HfApi, RepoCard, constants
from huggingface_hub.errors import (
    HfHubHTTPError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from qabench import loading_scripts, metrics

ID = "qabench/things"
BIG = bytes(range(256)) * 1500 + b"the same again and again. " * 9000
FILES = {"README.md": b"---\nlicense: mit\n---\n# Things\n", "a/small.txt": b"small", "a/b/big.parquet": BIG}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with Hub() as hub:
        hub.used_here(monkeypatch)
        yield hub


@pytest.fixture
def api(hub: Hub) -> HfApi:
    api = HfApi(endpoint=hub.url, token=TOKEN)
    api.create_repo(ID, repo_type="dataset")
    return api


@pytest.fixture(params=["xet", "lfs"])
def protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "xet":
        pytest.importorskip("hf_xet", reason="Xet uploads need hf_xet")
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", request.param == "lfs")
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "folder"


def upload(api: HfApi, folder: Path, **options: Any) -> Any:
    return api.upload_folder(repo_id=ID, repo_type="dataset", folder_path=folder, **options)


def titles(api: HfApi, revision: str = "main") -> list[str]:
    return [commit.title for commit in api.list_repo_commits(ID, repo_type="dataset", revision=revision)]


def download(api: HfApi, name: str, cache: Path, **options: Any) -> bytes:
    return Path(api.hf_hub_download(ID, name, repo_type="dataset", cache_dir=cache, **options)).read_bytes()


def test_a_folder_round_trips(hub: Hub, api: HfApi, protocol: str, folder: Path, tmp_path: Path) -> None:
    first = upload(api, folder, commit_message="Version 1")
    assert set(api.list_repo_files(ID, repo_type="dataset")) == {".gitattributes", *FILES}
    for name, content in FILES.items():
        assert download(api, name, tmp_path / "cache") == content
    infos: list[Any] = api.get_paths_info(ID, ["a/b/big.parquet", "a/small.txt", "none"], repo_type="dataset")
    assert [bool(file.lfs) for file in infos] == [True, False]
    assert infos[0].lfs.size == len(BIG)
    assert bool([line for line in hub.lines("PUT") if "/upload/" in line]) == (protocol == "lfs")
    assert bool([line for line in hub.lines("POST") if "/v1/shards" in line]) == (protocol == "xet")
    before = len(hub.requests)
    assert upload(api, folder, commit_message="Version 1 again").oid == first.oid  # nothing changed: no commit
    assert not [seen for seen in hub.requests[before:] if "/commit/" in seen.path]
    assert titles(api) == ["Version 1", "initial commit"]


def test_names_of_versions(api: HfApi, folder: Path, tmp_path: Path) -> None:
    first = upload(api, folder)
    api.create_tag(ID, tag="v1", tag_message="the first", repo_type="dataset")
    (folder / "a/small.txt").write_bytes(b"changed")
    second = upload(api, folder)
    with pytest.raises(HfHubHTTPError, match="409"):
        api.create_tag(ID, tag="v1", repo_type="dataset")
    api.create_tag(ID, tag="v1", repo_type="dataset", exist_ok=True)
    refs = api.list_repo_refs(ID, repo_type="dataset")
    assert {tag.name: tag.target_commit for tag in refs.tags} == {"v1": first.oid}
    assert {branch.name: branch.target_commit for branch in refs.branches} == {"main": second.oid}
    for revision in ("v1", first.oid, first.oid[:10]):
        assert download(api, "a/small.txt", tmp_path / revision, revision=revision) == b"small"
        assert api.dataset_info(ID, revision=revision).sha == first.oid
    assert download(api, "a/small.txt", tmp_path / "main") == b"changed"
    api.create_branch(ID, branch="old/one", revision="v1", repo_type="dataset")
    assert upload(api, folder, revision="old/one", commit_message="Other").oid != second.oid
    assert len(titles(api, "old/one")) == 3
    api.delete_tag(ID, tag="v1", repo_type="dataset")
    with pytest.raises(RevisionNotFoundError):
        download(api, "a/small.txt", tmp_path / "again", revision="v1")
    with pytest.raises(RemoteEntryNotFoundError):
        download(api, "none", tmp_path / "again")


def test_listings(hub: Hub, api: HfApi, folder: Path) -> None:
    upload(api, folder, commit_message="All")
    second = api.create_commit(
        ID, [CommitOperationAdd("a/late.txt", b"late")], commit_message="Late", repo_type="dataset"
    )
    hub.page_size = 2
    listed: dict[str, Any] = {
        entry.path: entry for entry in api.list_repo_tree(ID, recursive=True, expand=True, repo_type="dataset")
    }
    assert set(listed) == {".gitattributes", "a", "a/b", "a/late.txt", *FILES}
    assert {path: entry.last_commit.title for path, entry in listed.items()} == {
        ".gitattributes": "initial commit", "README.md": "All", "a": "Late", "a/b": "All", "a/b/big.parquet": "All",
        "a/late.txt": "Late", "a/small.txt": "All",
    }  # fmt: skip
    assert [entry.path for entry in api.list_repo_tree(ID, "a", repo_type="dataset")] == [
        "a/b", "a/late.txt", "a/small.txt",
    ]  # fmt: skip
    info: Any = api.dataset_info(ID, files_metadata=True)
    assert (info.sha, info.card_data.license, info.private) == (second.oid, "mit", False)
    assert {file.rfilename: file.size for file in info.siblings}["a/b/big.parquet"] == len(BIG)
    assert api.dataset_info(ID, expand=["sha"]).siblings is None


def test_removed_files_are_deleted(api: HfApi, protocol: str, folder: Path) -> None:
    upload(api, folder)
    (folder / "a/small.txt").unlink()
    upload(api, folder, delete_patterns="*")
    assert set(api.list_repo_files(ID, repo_type="dataset")) == {".gitattributes", "README.md", "a/b/big.parquet"}
    api.create_commit(ID, [CommitOperationDelete("a/")], commit_message="Folder", repo_type="dataset")
    assert set(api.list_repo_files(ID, repo_type="dataset")) == {".gitattributes", "README.md"}
    with pytest.raises(HfHubHTTPError, match="doesn't exist"):
        api.create_commit(ID, [CommitOperationDelete("none")], commit_message="None", repo_type="dataset")


def test_a_commit_upon_another_state_is_refused(api: HfApi, folder: Path) -> None:
    old = api.dataset_info(ID).sha
    upload(api, folder)
    with pytest.raises(HfHubHTTPError, match="412"):
        api.create_commit(
            ID, [CommitOperationAdd("x", b"x")], commit_message="x", parent_commit=old, repo_type="dataset"
        )


def test_pull_requests(hub: Hub, api: HfApi, protocol: str, folder: Path) -> None:
    opened = upload(api, folder, create_pr=True, commit_message="Please")
    assert opened.pr_url == f"{hub.url}/datasets/{ID}/discussions/1"
    assert api.list_repo_files(ID, repo_type="dataset") == [".gitattributes"]
    assert set(api.list_repo_files(ID, repo_type="dataset", revision="refs/pr/1")) == {".gitattributes", *FILES}
    (pull_request,) = api.get_repo_discussions(ID, repo_type="dataset")
    assert (pull_request.title, pull_request.status) == ("Please", "draft")
    api.change_discussion_status(ID, 1, new_status="open", repo_type="dataset")
    api.merge_pull_request(ID, 1, repo_type="dataset")
    assert set(api.list_repo_files(ID, repo_type="dataset")) == {".gitattributes", *FILES}
    assert api.get_discussion_details(ID, 1, repo_type="dataset").status == "merged"


def test_permissions(hub: Hub, api: HfApi, folder: Path, tmp_path: Path) -> None:
    stranger = HfApi(endpoint=hub.url, token=False)
    assert (api.whoami()["name"], api.whoami()["orgs"][0]["name"]) == ("tester", "qabench")
    for act in (
        lambda: stranger.create_repo("qabench/other", repo_type="dataset"),
        lambda: upload(stranger, folder),
        lambda: stranger.create_tag(ID, tag="v1", repo_type="dataset"),
        lambda: HfApi(endpoint=hub.url, token="hf_wrong").whoami(),
    ):
        with pytest.raises(HfHubHTTPError, match=r"401|Invalid user token"):
            act()
    with pytest.raises(HfHubHTTPError, match="403"):
        api.create_repo("others/things", repo_type="dataset")
    with pytest.raises(HfHubHTTPError, match="409"):
        api.create_repo(ID, repo_type="dataset")
    assert api.create_repo(ID, repo_type="dataset", exist_ok=True).repo_id == ID
    upload(api, folder)
    api.update_repo_settings(ID, private=True, repo_type="dataset")
    assert not stranger.repo_exists(ID, repo_type="dataset")
    with pytest.raises(RepositoryNotFoundError):
        download(stranger, "README.md", tmp_path)
    assert download(api, "a/b/big.parquet", tmp_path) == BIG
    api.delete_repo(ID, repo_type="dataset")
    assert not api.repo_exists(ID, repo_type="dataset")


def test_collections(hub: Hub, api: HfApi) -> None:
    api.create_repo("qabench/space", repo_type="space", space_sdk="gradio")
    made = api.create_collection("All of it", namespace="qabench", description="x")
    assert api.create_collection("All of it", namespace="qabench", exists_ok=True).slug == made.slug
    for _ in range(2):
        api.add_collection_item(made.slug, ID, "dataset", note="data", exists_ok=True)
        api.add_collection_item(made.slug, "qabench/space", "space", exists_ok=True)
    with pytest.raises(HfHubHTTPError, match="409"):
        api.add_collection_item(made.slug, ID, "dataset")
    with pytest.raises(HfHubHTTPError, match="404"):
        api.add_collection_item(made.slug, "qabench/none", "dataset")
    items = api.get_collection(made.slug).items
    assert [(item.item_id, item.item_type, item.note) for item in items] == [
        (ID, "dataset", "data"), ("qabench/space", "space", None),
    ]  # fmt: skip
    api.update_collection_item(made.slug, items[1].item_object_id, position=0, note="first")
    assert [item.note for item in api.get_collection(made.slug).items] == ["first", "data"]
    assert api.update_collection_metadata(made.slug, description="y").description == "y"
    assert [one.slug for one in api.list_collections(owner="qabench")] == [made.slug]
    with pytest.raises(HfHubHTTPError, match="150 characters"):
        api.create_collection("Long", namespace="qabench", description="x" * 151)
    api.delete_collection_item(made.slug, items[0].item_object_id)
    api.delete_collection(made.slug)
    assert not list(api.list_collections(owner="qabench"))


def test_cards(hub: Hub, api: HfApi, folder: Path) -> None:
    metric_cards = sorted(Path(metrics.__file__).parent.glob("*/README.md"))
    assert len(metric_cards) == len(metrics.metric_names())
    for path in metric_cards:
        RepoCard.load(path).validate(repo_type="space")
    for name in loading_scripts.benchmark_names():
        DatasetCard.load(loading_scripts.FOLDER / name / "README.md").validate()
    for wrong in ("license: nonesuch", "language: English", "size_categories: many", "a: b: c"):
        (folder / "README.md").write_text(f"---\n{wrong}\n---\n")
        with pytest.raises(ValueError, match=r"Invalid metadata in README\.md"):
            upload(api, folder)
    for wrong in ("sdk: gradio\ncolorFrom: orange", "sdk: nonesuch", "sdk: gradio\nemoji: smile"):
        with pytest.raises(ValueError, match="must be"):
            RepoCard(f"---\n{wrong}\n---\n").validate(repo_type="space")
    assert titles(api) == ["initial commit"]


@pytest.mark.parametrize("how", [{"status": 429, "headers": {"Retry-After": "0"}}, {"status": 500}])
@pytest.mark.parametrize("what", ["POST .*/commit/", "POST .*/preupload/"])
def test_uploads_are_retried(hub: Hub, api: HfApi, folder: Path, what: str, how: dict[str, Any]) -> None:
    pytest.importorskip("hf_xet", reason="only the upload by Xet tries a commit again")
    fault = hub.faults.add(what, **how)
    upload(api, folder)
    assert fault.seen == 2
    assert len(titles(api)) == 2


@pytest.mark.parametrize("how", [{"status": 500}, {"drop_request_after": 10_000}])
def test_uploads_of_contents_are_retried(
    hub: Hub, api: HfApi, protocol: str, folder: Path, tmp_path: Path, how: dict[str, Any]
) -> None:
    fault = hub.faults.add("PUT /upload/" if protocol == "lfs" else "POST .*/xorbs/", **how)
    upload(api, folder)
    assert fault.seen == 2
    assert download(api, "a/b/big.parquet", tmp_path / "cache") == BIG


def test_a_failed_upload_is_resumed(hub: Hub, api: HfApi, protocol: str, folder: Path, tmp_path: Path) -> None:
    hub.faults.add("POST .*/commit/", status=403, times=100)
    with pytest.raises(HfHubHTTPError, match="403"):
        upload(api, folder)
    assert titles(api) == ["initial commit"]
    hub.faults.clear()
    before = len(hub.requests)
    upload(api, folder)
    assert not [seen for seen in hub.requests[before:] if "/upload/" in seen.path or "/v1/xorbs/" in seen.path]
    assert download(api, "a/b/big.parquet", tmp_path / "cache") == BIG


def test_a_commit_with_a_lost_response(hub: Hub, api: HfApi, protocol: str, folder: Path) -> None:
    """With Xet the client sends the commit again, which creates an empty one; with LFS it gives up."""
    hub.faults.add("POST .*/commit/", drop_response_after=0)
    if protocol == "xet":
        upload(api, folder, commit_message="Once")
    else:
        with pytest.raises(httpx2.RemoteProtocolError):
            upload(api, folder, commit_message="Once")
    upload(api, folder, commit_message="Never")
    expected = {"xet": ["Once", "Once", "initial commit"], "lfs": ["Once", "initial commit"]}
    assert titles(api) == expected[protocol]
    commits = list(hub.repo("dataset", ID).commits.values())
    assert commits[-1].tree == commits[1].tree


def test_a_broken_download_is_resumed(
    hub: Hub, api: HfApi, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 10_000)  # what it keeps is a multiple of this
    upload(api, folder)
    hub.faults.add("GET /cdn/", drop_response_after=100_000)
    assert download(api, "a/b/big.parquet", tmp_path / "cache") == BIG
    assert [seen.range for seen in hub.requests if "/cdn/" in seen.path] == [None, "bytes=100000-"]
    assert not [seen for seen in hub.requests if "/cdn/" in seen.path and seen.authorized]
    hub.faults.add("GET /cdn/", shorten_to=100_000)
    with pytest.raises(OSError, match="Consistency check failed"):
        download(api, "a/b/big.parquet", tmp_path / "other")
    assert not [path for path in (tmp_path / "other").rglob("*") if path.is_file() and path.stat().st_size > 50_000]
    hub.faults.add("GET /cdn/", status=429, headers={"Retry-After": "0"})
    assert download(api, "a/b/big.parquet", tmp_path / "other") == BIG


@given(content=st.binary(max_size=20), first=st.integers(0, 25) | st.none(), last=st.integers(0, 25) | st.none())
def test_ranges(content: bytes, first: int | None, last: int | None) -> None:
    text = f"bytes={'' if first is None else first}-{'' if last is None else last}"
    answer = ranged(Request("GET", "/", {"Range": text}), content)
    if first is None and last is None:
        expected = content
    elif first is None:
        expected = content[-last:] if last else b""
    else:
        expected = content[first : len(content) if last is None else last + 1]
    assert (answer.body, answer.status) == (expected, 206 if expected and (first, last) != (None, None) else 416) or (
        (first, last) == (None, None) and (answer.body, answer.status) == (content, 200)
    )


PIECES = st.sampled_from([b"\0\1\2\3" * 5000, b"text " * 3000, bytes(range(256)) * 40, b"\x7f\x3f\0\0" * 9000, b"x"])


@settings(max_examples=15)
@given(contents=st.lists(st.lists(PIECES, min_size=1, max_size=6).map(b"".join), min_size=1, max_size=4))
def test_uploads_by_xet_round_trip(contents: list[bytes]) -> None:
    """Chunks of all compressions, shared within and between files."""
    pytest.importorskip("hf_xet", reason="Xet uploads need hf_xet")
    with Hub() as hub, pytest.MonkeyPatch.context() as patch:
        hub.used_here(patch)
        api = HfApi(endpoint=hub.url, token=TOKEN)
        api.create_repo(ID, repo_type="dataset")
        operations = [CommitOperationAdd(f"{number}.bin", content) for number, content in enumerate(contents)]
        api.create_commit(ID, operations, commit_message="All", repo_type="dataset")
        tree = hub.repo("dataset", ID).tip.tree
        stored = [hub.store.contents[tree[f"{number}.bin"].etag] for number in range(len(contents))]
    assert stored == contents
