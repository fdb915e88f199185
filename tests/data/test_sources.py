"""Source tables, digests, and finding the local path of a pinned file without network access."""

import json
import os
from pathlib import Path

import pytest
from pinned_files import COMMIT, CONTENT, make_source, put

from qabench.data import pinned, sources
from qabench.data.pinned import SourceFile
from qabench.errors import DigestMismatch, InputError, SourceUnavailable
from qabench.loading_scripts import dataset_table

BENCHMARKS = ("expertqa", "fanoutqa", "fastbook", "felm")


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QABENCH_MIRROR", "QABENCH_SOURCE_URL", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("QABENCH_OFFLINE", "1")


class TestTable:
    def test_lookup_lists_near_matches_and_entries_need_a_digest(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, sha = tmp_path / "sources.json", "a" * 64
        entry = {"path": "a/dev.json", "sha256": sha, "size": 3, "lfs": True}
        document = {"repo": "owner/repo", "commit": COMMIT, "license": "MIT", "files": [entry]}
        path.write_text(json.dumps(document))
        table = pinned.load_table(path, "felm")
        expected = SourceFile("felm", "owner/repo", COMMIT, "a/dev.json", "MIT", sha256=sha, size=3, lfs=True)
        assert table["a/dev.json"] == expected
        monkeypatch.setitem(vars(dataset_table("felm")), "sources", table)
        with pytest.raises(InputError, match=r"felm has no source file 'dev\.json' \(did you mean 'a/dev\.json'\?\)"):
            dataset_table("felm").open_path("dev.json")
        del entry["sha256"]
        path.write_text(json.dumps(document))
        with pytest.raises(InputError, match=r"a/dev\.json has no digest"):
            pinned.load_table(path, "felm")

    def test_urls(self) -> None:
        path = f"owner/repo/{COMMIT}/data/dev%20set.json"
        assert make_source().url == f"https://raw.githubusercontent.com/{path}"
        assert make_source(lfs=True).url == f"https://media.githubusercontent.com/media/{path}"


class TestDigest:
    @pytest.mark.parametrize("drop", ["git_blob_sha1", "sha256", "size"])
    def test_each_digest_alone_finds_a_flipped_byte(self, tmp_path: Path, drop: str) -> None:
        source, path = make_source(**{drop: None}), tmp_path / "x"
        path.write_bytes(CONTENT)
        assert pinned.find_mismatch(path, source) is None
        path.write_bytes(b"Q" + CONTENT[1:])
        assert "expected" in str(pinned.find_mismatch(path, source))

    def test_change_is_noticed_at_once(self, tmp_path: Path) -> None:
        path = tmp_path / "x"
        for content in (b"aaaa", b"bbbb", b"cccc"):
            path.write_bytes(content)
            for unknown in ("git_blob_sha1", "sha256"):
                assert pinned.find_mismatch(path, make_source(content, **{unknown: None})) is None


class TestLocalPath:
    def test_mirror_before_cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        source = make_source()
        assert sources.available(source) is None
        cached = sources.cache_path(source)
        assert cached == tmp_path / "cache/sources/owner/repo" / COMMIT / "data/dev set.json"
        cached.parent.mkdir(parents=True)
        cached.write_bytes(CONTENT)
        assert (sources.available(source), sources.local_path(source)) == ("cache", cached)
        mirrored = put(tmp_path / "two", source)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("QABENCH_MIRROR", os.pathsep.join([str(tmp_path / "one"), "two"]))
        assert (sources.available(source), sources.local_path(source)) == ("mirror", mirrored)

    def test_damaged_mirror_is_never_skipped(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        source = make_source()
        put(tmp_path / "bad", source, b"Q" + CONTENT[1:])
        put(tmp_path / "good", source)
        monkeypatch.setenv("QABENCH_MIRROR", f"{tmp_path / 'bad'}{os.pathsep}{tmp_path / 'good'}")
        with pytest.raises(DigestMismatch, match="QABENCH_MIRROR") as caught:
            sources.local_path(source)
        for part in (str(tmp_path / "bad"), "fanoutqa: data/dev set.json", "sha256 expected", source.url):
            assert part in str(caught.value)

    def test_damaged_cache_offline(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cached = sources.cache_path(make_source())
        cached.parent.mkdir(parents=True)
        cached.write_bytes(b"half")
        with pytest.raises(DigestMismatch, match=r"not the pinned content: size expected.*qabench fetch"):
            sources.local_path(make_source())
        assert cached.read_bytes() == b"half"

    def test_offline_error_says_what_where_and_how(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path / "absent"))
        with pytest.raises(SourceUnavailable) as caught:
            sources.local_path(make_source())
        for part in (
            "fanoutqa: data/dev set.json",
            "because QABENCH_OFFLINE is set",
            make_source().url,
            "`qabench fetch fanoutqa`",
            "`qabench fetch --mirror DIR fanoutqa`",
            "QABENCH_MIRROR=DIR",
            "owner/repo/data/dev set.json",
            f"(QABENCH_MIRROR is {tmp_path / 'absent'})",
        ):
            assert part in str(caught.value)


class TestManyFiles:
    def test_write_mirror_also_repairs_itself(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        good, absent, there, bad = (make_source(path=name) for name in ("a/good", "absent", "there", "bad"))
        for source in (good, bad):
            put(tmp_path / "from", source)
        put(tmp_path / "to", there)
        damaged = put(tmp_path / "to", bad, b"damaged")
        monkeypatch.setenv("QABENCH_MIRROR", f"{tmp_path / 'to'}{os.pathsep}{tmp_path / 'from'}")
        results = sources.fetch([absent, good, there, bad], mirror=tmp_path / "to")
        assert [result.state for result in results] == ["missing", "ok", "ok", "ok"]
        assert [result.detail for result in results[1:]] == ["written", "was there", "replaced"]
        assert damaged.read_bytes() == CONTENT
        assert (tmp_path / "to" / good.mirror_path).read_bytes() == CONTENT
        assert not list((tmp_path / "to").rglob(".*"))

    def test_the_checked_folder_is_reported(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        source = make_source()
        put(tmp_path / "other", source)
        damaged = put(tmp_path / "folder", source, b"damaged")
        monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path / "other"))
        (result,) = sources.check([source], directory=tmp_path / "folder")
        assert (result.state, result.where, result.path) == ("damaged", "mirror", damaged)
        (result,) = sources.check([source], directory=tmp_path / "absent")
        assert (result.state, result.where, result.path) == ("missing", None, None)


class TestShippedTables:
    @pytest.mark.parametrize("benchmark", BENCHMARKS)
    def test_table_loads(self, benchmark: str) -> None:
        needed = {file for config in dataset_table(benchmark).configs.values() for file in config.files}
        assert needed and needed <= dataset_table(benchmark).sources.keys()

    @pytest.mark.parametrize("benchmark", BENCHMARKS)
    def test_real_files_verify(self, benchmark: str, mirror: Path) -> None:
        results = sources.check(dataset_table(benchmark).sources.values(), directory=mirror)
        results = [result for result in results if result.state != "missing"]
        if not results:
            pytest.skip(f"QABENCH_MIRROR has no file of {benchmark}")
        assert not [result for result in results if not result.ok]


def test_a_file_that_changes_within_a_clock_tick_is_read_again(tmp_path: Path) -> None:
    source = make_source()
    path = put(tmp_path, source)
    assert pinned.find_mismatch(path, source) is None
    stat = path.stat()
    path.write_bytes(CONTENT[:-1] + b"?")
    # The same size and, as within one tick, the same timestamps.
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    changed = path.stat()
    assert pinned._digest(path, "sha256", stat) == pinned._digest(path, "sha256", changed)
    assert str(pinned.find_mismatch(path, source)).startswith("sha256 expected")
