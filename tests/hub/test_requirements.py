"""What a Space installs: resolved by pip before it is published, with a wheel of an unreleased version."""

import io
import zipfile
from pathlib import Path

import pytest
from huggingface_hub import SpaceCard

from qabench.errors import QabenchError
from qabench.evaluation.signature import version
from qabench.hub import staging
from qabench.hub.requirements import check_resolvable, own_wheel


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, from which alone pip installs."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    check_resolvable.cache_clear()
    return folder


def add(folder: Path, name: str, number: str, *lines: str) -> Path:
    """Add an empty wheel to a folder."""
    path, about = folder / f"{name}-{number}-py3-none-any.whl", f"{name}-{number}.dist-info"
    metadata = "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {number}", *lines, ""])
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{about}/METADATA", metadata)
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return path


def test_a_space_is_refused_if_pip_cannot_install_it(packages: Path, tmp_path: Path) -> None:
    folder = tmp_path / "space"
    staging.write_space("felm_factuality", folder, "someone")
    add(packages, "gradio", staging.GRADIO)
    with pytest.raises(QabenchError, match=rf"pip cannot install requirements\.txt: .*qabench=={version()}"):
        staging.check_requirements(folder)
    add(packages, "qabench", version(), "Requires-Python: >=3.99")
    check_resolvable.cache_clear()
    with pytest.raises(QabenchError, match=r"pip cannot install requirements\.txt"):
        staging.check_requirements(folder)
    add(packages, "qabench", version(), "Requires-Python: >=3.11")
    check_resolvable.cache_clear()
    staging.check_requirements(folder)


def test_an_unreleased_version_is_beside_its_space(packages: Path, tmp_path: Path) -> None:
    folder = tmp_path / "space"
    wheel = add(tmp_path, "qabench", version())
    staging.write_space("felm_factuality", folder, "someone", wheel)
    lines = (folder / "requirements.txt").read_text(encoding="utf-8").split("\n")
    url = f"https://huggingface.co/spaces/someone/felm_factuality/resolve/main/{wheel.name}"
    assert f"qabench @ {url}" in lines and (folder / wheel.name).read_bytes() == wheel.read_bytes()
    add(packages, "gradio", staging.GRADIO)
    staging.check_requirements(folder, wheel)


def test_cards_of_spaces_name_python_and_gradio(tmp_path: Path) -> None:
    staging.write_space("fanout_acc", tmp_path / "space", "someone")
    data = SpaceCard.load(tmp_path / "space/README.md").data
    assert (data.sdk, data.sdk_version, data.python_version) == ("gradio", staging.GRADIO, staging.PYTHON)


def test_the_wheel_of_this_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "false")  # pip's spelling of "without isolation": needs no network
    wheels = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        wheel = own_wheel(tmp_path / name)
        assert wheel is not None and wheel.name.startswith(f"qabench-{version()}-")
        wheels.append(wheel.read_bytes())
    assert wheels[0] == wheels[1], "a published version never changes"
    names = zipfile.ZipFile(io.BytesIO(wheels[0])).namelist()
    assert "qabench/hub/jobs.py" in names and "qabench/metrics/fanout_acc/fanout_acc.py" in names
