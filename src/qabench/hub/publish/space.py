"""A metric as a Space: its folder, with requirements pinned to this version and the signature of the card's example."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from qabench.errors import QabenchError
from qabench.files import write_json, write_text
from qabench.hub.build import repository
from qabench.hub.build.card import in_namespace
from qabench.signature import version

FORMAT = "qabench metric space"
_REQUIREMENT = re.compile(r"^qabench(\[[\w,-]+\])?$", re.MULTILINE)


def stage(name: str, folder: Path, namespace: str) -> None:
    """Writes the files of a metric's Space, except what the run of its example gives; see ``sign``.

    The files are those of the metric's folder. Only ``requirements.txt`` is another, with ``qabench==VERSION`` and its
    extras, because a Space's scores are to stay what its signatures say; and the card's Hub names are those of
    ``namespace``.

    Raises:
        QabenchError: the requirements do not name qabench, or pin a version themselves.
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
    """Requirements with the line that names qabench pinned to the installed version, and the others as they are.

    Raises:
        QabenchError: there is not exactly one such line, or it has a version.
    """
    text, count = _REQUIREMENT.subn(lambda found: f"{found[0]}=={version()}", requirements)
    if count != 1:
        raise QabenchError(
            f"requirements.txt has {count} lines like qabench or qabench[EXTRA]; it needs one, with no version"
        )
    return text


def sign(name: str, folder: Path, signature: str) -> None:
    """Adds to a staged Space the signature that its example gave, and the manifest."""
    path = folder / "README.md"
    section = f"""
## Signature

With qabench {version()}, the example above gives this signature. Equal options and references give equal ones.

```text
{signature}
```
"""
    write_text(path, path.read_text(encoding="utf-8").rstrip("\n") + "\n" + section)
    write_json(folder / repository.MANIFEST, _manifest(name, folder, signature))


def _manifest(name: str, folder: Path, signature: str) -> dict[str, Any]:
    """The manifest, which marks the Space as ours: the version, the signature and the digests of all files."""
    return {
        "format": FORMAT,
        "metric": name,
        "made_with": {"qabench": version()},
        "signature": signature,
        "files": repository.digests(folder),
    }
