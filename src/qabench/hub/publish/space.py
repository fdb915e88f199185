"""A metric as a Space: its folder, with requirements pinned to this version and the signature of the card's example."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from qabench.errors import QabenchError
from qabench.hub.build import repository
from qabench.hub.build.card import in_namespace
from qabench.io.files import write_json, write_text
from qabench.signature import version

FORMAT = "qabench metric space"
_REQUIREMENT = re.compile(r"^qabench(\[[\w,-]+\])?$", re.MULTILINE)


def stage(name: str, folder: Path, namespace: str) -> None:
    """Writes the files of a metric's Space, except the output of its example; see ``sign``.

    The files are those of the metric's folder, with two changes: ``requirements.txt`` has ``qabench==VERSION`` and its
    extras, so that the Space's scores do not change; and the Hub names in the card are those of ``namespace``.

    Raises:
        QabenchError: the requirements do not contain qabench, or pin its version.
    """
    import qabench.metrics

    source = Path(qabench.metrics.__file__).parent / name
    for path in sorted(source.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            target = folder / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    card = (source / "README.md").read_text(encoding="utf-8")
    write_text(folder / "README.md", in_namespace(card, namespace))
    write_text(folder / "requirements.txt", pinned((source / "requirements.txt").read_text(encoding="utf-8")))


def pinned(requirements: str) -> str:
    """Requirements with qabench pinned to the installed version; other lines are not changed.

    Raises:
        QabenchError: there is not exactly one line for qabench, or it has a version.
    """
    text, count = _REQUIREMENT.subn(lambda found: f"{found[0]}=={version()}", requirements)
    if count != 1:
        raise QabenchError(
            f"requirements.txt has {count} lines like qabench or qabench[EXTRA]; it needs one, without a version"
        )
    return text


def sign(name: str, folder: Path, signature: str) -> None:
    """Adds the signature of its example and the manifest to a staged Space."""
    path = folder / "README.md"
    section = f"""
## Signature

With qabench {version()}, the example above has this signature. The same options and references give the same signature.

```text
{signature}
```
"""
    write_text(path, path.read_text(encoding="utf-8").rstrip("\n") + "\n" + section)
    write_json(folder / repository.MANIFEST, _manifest(name, folder, signature))


def _manifest(name: str, folder: Path, signature: str) -> dict[str, Any]:
    """The manifest, which marks the Space as qabench's: the version, the signature and the digests of all files."""
    return {
        "format": FORMAT,
        "metric": name,
        "made_with": {"qabench": version()},
        "signature": signature,
        "files": repository.digests(folder),
    }
