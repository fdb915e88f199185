"""``qabench build``: rows, bytes, cards and tasks of the repositories, and what may be replaced."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import datasets
import pytest
from processes import qabench as command

import qabench
import qabench.hub.build as build_module
from qabench.data.sources import find_local
from qabench.errors import InputError
from qabench.hub.build import build
from qabench.loading_scripts import FOLDER, benchmark_names, dataset_table
from qabench.loading_scripts.load import builder

Tree = dict[str, bytes]


def tree(folder: Path) -> Tree:
    """Return all files below a folder, with their bytes."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if not path.is_dir()}


def shipped(name: str) -> list[str]:
    return [config.name for config in dataset_table(name).configs.values() if not config.files]


def at_hand(name: str) -> list[str]:
    """Return the configs that can be built here."""
    table = dataset_table(name).sources
    configs = dataset_table(name).configs.values()
    return [config.name for config in configs if all(find_local(table[file]) for file in config.files)]


def assert_equal_rows(folder: Path, name: str, config: str, cache: Path) -> int:
    """Compare rows, features and splits of the stock function with our builder's, and return the
    number of rows.
    """
    ours = qabench.load_dataset(name, config)
    stock = datasets.load_dataset(str(folder / name), config, cache_dir=str(cache))
    assert list(stock) == list(ours)
    count = 0
    for split, rows in ours.items():
        assert stock[split].features == rows.features
        for expected, row in zip(rows, stock[split], strict=True):
            assert row == expected
            count += 1
    return count


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Repositories of all shipped configs."""
    out = tmp_path_factory.mktemp("samples") / "out"
    for name in benchmark_names():
        build(out, [name], shipped(name))
    return out


@pytest.fixture(scope="module")
def real(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Repositories of all data in the mirror."""
    out = tmp_path_factory.mktemp("real") / "out"
    build(out)
    return out


@pytest.mark.parametrize("name", benchmark_names())
def test_real_rows_equal_the_builders(name: str, real: Path, tmp_path: Path, compared: Callable[[str], None]) -> None:
    built = datasets.get_dataset_config_names(str(real / name))
    assert built == at_hand(name) and set(built) > set(shipped(name))
    rows = {config: assert_equal_rows(real, name, config, tmp_path) for config in built}
    manifest = build_module.read_manifest(real / name)
    assert rows == {config: sum(splits.values()) for config, splits in manifest["configs"].items()}
    compared(f"{sum(rows.values())} rows of {len(rows)} built configs of {name}, with the builder's")


@pytest.mark.parametrize("name", benchmark_names())
def test_a_partial_card_has_only_the_configs_of_the_copy(name: str, samples: Path) -> None:
    text = (samples / name / "README.md").read_text(encoding="utf-8")
    table = text.partition("### Configs")[2].partition("\n#")[0]
    rows = re.findall(r"^\| `(\w+)`( \(default\))? \|", table, re.MULTILINE)
    assert {config for config, _ in rows} == set(shipped(name))
    (note,) = re.findall(r"Its default\s+config is `(\w+)`", text)
    assert [config for config, marker in rows if marker] == [note]


@pytest.mark.parametrize("size", [1, 1500])
def test_shards_contain_all_rows_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(build_module, "MAX_SHARD_BYTES", size)
    build(tmp_path, ["fanoutqa"], ["sample"])
    rows = qabench.load_dataset("fanoutqa", "sample", split="validation")
    count = min(12, -(-int(rows.info.splits["validation"].num_bytes) // size))
    names = sorted(path.name for path in (tmp_path / "fanoutqa/sample").glob("*.parquet"))
    assert names == [f"validation-{number:05d}-of-{count:05d}.parquet" for number in range(count)]
    assert assert_equal_rows(tmp_path, "fanoutqa", "sample", tmp_path / "cache") == 12


def test_two_builds_are_identical(samples: Path, tmp_path: Path) -> None:
    """In another process and directory, with other caches, and from Arrow files of two processes."""
    code = (
        "import sys, os; from pathlib import Path; import qabench; "
        "from qabench.hub.build import build; "
        "[qabench.load_dataset('fastbook', name, num_proc=2) for name in sys.argv[2:]]; "
        "build(Path(sys.argv[1]), ['fastbook'], sys.argv[2:])"
    )
    env = {**os.environ, "HF_HOME": str(tmp_path / "hf"), "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    arguments = [sys.executable, "-c", code, "there", *shipped("fastbook")]
    subprocess.run(arguments, cwd=tmp_path, env=env, check=True, capture_output=True)
    files = tree(tmp_path / "there/fastbook")
    assert files == tree(samples / "fastbook")
    for data in files.values():
        assert not any(str(path).encode() in data for path in (tmp_path, samples, Path.home()))


@pytest.mark.parametrize("name", benchmark_names())
def test_the_card_says_what_was_built(name: str, samples: Path) -> None:
    text = (samples / name / "README.md").read_text(encoding="utf-8")
    infos = datasets.info.DatasetInfosDict.from_directory(str(samples / name))
    features = {config: builder(name, config).info.features for config in shipped(name)}
    assert {config: info.features for config, info in infos.items()} == features
    for config in shipped(name):
        stock, ours = datasets.load_dataset_builder(str(samples / name), config).info, builder(name, config).info
        for key in ("description", "citation", "homepage", "license"):
            assert getattr(stock, key) == getattr(ours, key) != "", key
    assert f"This copy contains `{shipped(name)[0]}`" in text
    assert datasets.get_dataset_default_config_name(str(samples / name)) == shipped(name)[0]
    source = (FOLDER / name / "README.md").read_text(encoding="utf-8")
    title, _, body = source.split("\n---\n", 1)[1].lstrip("\n").partition("\n")
    assert title in text
    before, _, rest = body.partition("### Configs\n")  # whose table has only what was built
    assert before in text and rest.partition("\n#")[2] in text


def test_a_complete_card_has_no_note_and_the_default_config(real: Path) -> None:
    text = (real / "felm/README.md").read_text(encoding="utf-8")
    source = (FOLDER / "felm/README.md").read_text(encoding="utf-8")
    assert text.split("\n---\n", 1)[1] == source.split("\n---\n", 1)[1]
    assert datasets.get_dataset_default_config_name(str(real / "felm")) == "all"


def test_the_book_is_not_for_upload(mirror: Path, tmp_path: Path) -> None:
    done = command("build", tmp_path, "fastbook", "--config", "corpus")
    assert f"warning: do not upload {tmp_path / 'fastbook'}: " in done.stderr
    assert "**Do not upload this copy.** The benchmark" in (tmp_path / "fastbook/README.md").read_text("utf-8")
    command("build", tmp_path, "fastbook", "--config", "sample_corpus")  # only this project's data
    assert build_module.read_manifest(tmp_path / "fastbook")["redistributable"] is True


def test_an_older_build_is_replaced(tmp_path: Path) -> None:
    build(tmp_path, ["fastbook"], ["sample", "sample_qrels"])
    build(tmp_path, ["fastbook"], ["sample"])
    assert datasets.get_dataset_config_names(str(tmp_path / "fastbook")) == ["sample"]
    assert {path.name for path in tmp_path.iterdir()} <= {"fastbook", ".qabench-build.lock"}
    (tmp_path / "fastbook/README.md").unlink()  # a build with a missing file can be repaired
    assert build(tmp_path, ["fastbook"], ["sample"])[0].rows


@pytest.mark.parametrize("name", ["README.md", ".git/HEAD"])
def test_other_files_are_not_replaced(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "felm"
    build(tmp_path, ["felm"], ["sample"])
    (folder / ".git").mkdir()
    (folder / name).write_text("mine")
    content = tree(tmp_path)
    with pytest.raises(InputError, match=r"(?s)felm.*It was not changed; move it away"):
        build(tmp_path, ["expertqa", "felm"], progress=lambda done, total: pytest.fail("work before the check"))
    assert tree(tmp_path) == content


class Killed(BaseException):
    """The process ends here."""


def test_a_build_killed_anywhere_leaves_no_half_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path / "whole", ["felm"], ["sample"])
    whole = tree(tmp_path / "whole/felm")
    left = -1

    def step(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == -1:
                raise Killed
            # A killed process does not clean up.
            return None if left < -1 else function(*arguments, **options)

        return counted

    for module, name in ((build_module, "write_json"), (os, "rename"), (shutil, "rmtree")):
        monkeypatch.setattr(module, name, step(getattr(module, name)))
    for at in range(20):
        out = tmp_path / f"killed{at}"
        shutil.copytree(tmp_path / "whole", out)
        left = at
        with suppress(Killed):
            build(out, ["felm"], ["sample"])
        finished, left = left >= 0, 1000
        assert not (out / "felm").exists() or tree(out / "felm") == whole
        build(out, ["felm"], ["sample"])
        assert tree(out / "felm") == whole
        assert {path.name for path in out.iterdir()} <= {"felm", ".qabench-build.lock"}
        if finished:
            break
    assert finished and at > 4


def test_missing_configs_are_left_out_and_listed(tmp_path: Path) -> None:
    """No mirror, no cache, and no Arrow files of an earlier run."""
    nothing = {name: str(tmp_path / name) for name in ("QABENCH_MIRROR", "QABENCH_CACHE", "HF_HOME")}
    done = command("build", tmp_path / "out", "--json", code=1, **nothing)
    for built in json.loads(done.stdout)["repositories"]:
        name = built["benchmark"]
        assert list(built["rows"]) == shipped(name) and built["redistributable"]
        assert list(built["missing"]) == [c for c in dataset_table(name).configs if c not in shipped(name)]
        assert all("qabench fetch" in reason for reason in built["missing"].values())
    for options, code, advice in (([], 1, True), (["--skip-missing"], 0, False)):
        done = command("build", tmp_path / "out", "felm", *options, code=code, **nothing)
        assert "felm: no data for all, wk, science" in done.stderr
        assert ("or use --skip-missing" in done.stderr) is advice


def test_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown benchmark 'nope'; allowed: expertqa"):
        build(tmp_path, ["nope"])
    with pytest.raises(InputError, match="no config 'nope'; allowed: all, wk"):
        build(tmp_path, ["felm"], ["nope"])
    with pytest.raises(InputError, match="exactly one benchmark; got 4"):
        build(tmp_path, configs=["sample"])
    (tmp_path / "file").write_text("")
    assert "cannot write" in command("build", tmp_path / "file/out", "felm", "--config", "sample", code=1).stderr
