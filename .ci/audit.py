"""Compares the installed packages with a database of known vulnerabilities, by pip-audit.

Exit code 1: a package has a vulnerability that a newer version fixes. Where the database cannot be
reached, one line says so: a package with known vulnerabilities is looked up first, because
pip-audit reports no error then.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CANARY = "jinja2==2.4.1"
SECONDS = 300


def audit(*arguments: str) -> list[dict[str, Any]] | None:
    """The packages that pip-audit looked up; None if it failed."""
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "--format",
        "json",
        "--progress-spinner",
        "off",
        *arguments,
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        return list(json.loads(done.stdout)["dependencies"])
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        return None


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "canary.txt"
        requirements.write_text(CANARY)
        known = audit("--requirement", str(requirements), "--no-deps", "--disable-pip")
    if not known or not any(package.get("vulns") for package in known):
        print("pip-audit: skipped, its database cannot be reached from here")
        return
    packages = audit("--local", "--skip-editable") or []
    found = [(package, one) for package in packages for one in package.get("vulns", ())]
    for package, one in found:
        print(
            f"{package['name']} {package['version']}: {one['id']}, fixed in {', '.join(one['fix_versions']) or 'none'}"
        )
    skipped = sum("skip_reason" in package for package in packages)
    print(
        f"pip-audit: {len(packages) - skipped} packages looked up, {skipped} unknown, {len(found)} vulnerabilities"
    )
    sys.exit(any(one["fix_versions"] for _, one in found))


if __name__ == "__main__":
    main()
