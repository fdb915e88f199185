"""Checks that wheel and sdist hold every file of the package folders that users need:
``check_dist.py DIST...``.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

FOLDERS = {
    "src/qabench": "qabench",
    "loading_scripts": "qabench/loading_scripts",
    "metrics": "qabench/metrics",
}
FOLDERS["retrieval"] = "qabench/retrieval"


def wanted() -> dict[str, str]:
    """Source path of each file -> its path in a wheel."""
    return {
        str(path): f"{package}/{path.relative_to(folder)}"
        for folder, package in FOLDERS.items()
        for path in Path(folder).rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not path.parts[1].endswith(".egg-info")
    }


def main() -> None:
    failed = False
    for name in sys.argv[1:]:
        if name.endswith(".whl"):
            held, needed = set(zipfile.ZipFile(name).namelist()), set(wanted().values())
        else:
            with tarfile.open(name) as archive:
                held = {member.partition("/")[2] for member in archive.getnames()}
            needed = set(wanted())
        missing = sorted(needed - held)
        print(
            f"{Path(name).name}: {len(needed)} files needed, {len(missing)} missing",
            *missing,
            sep="\n  ",
        )
        failed |= bool(missing)
    sys.exit(failed)


if __name__ == "__main__":
    main()
