"""Lists the packages; everything else is in pyproject.toml.

The package has four roots, which setuptools cannot search from pyproject.toml. A new benchmark or
metric is a new folder, found here.
"""

import sys
import tomllib
from pathlib import Path

ROOTS = {
    "qabench": "src/qabench",
    "qabench.loading_scripts": "loading_scripts",
    "qabench.metrics": "metrics",
    "qabench.retrieval": "retrieval",
}


def packages() -> list[str]:
    """Return every folder with Python files below the roots."""
    here = Path(__file__).parent
    names = {
        ".".join([package, *path.parent.relative_to(here / folder).parts])
        for package, folder in ROOTS.items()
        for path in (here / folder).rglob("*.py")
    }
    return sorted(names)


if __name__ == "__main__":
    from setuptools import (
        setup,
    )  # only builds have it: virtual environments of Python 3.12 and later do not
    from setuptools.command.build_py import build_py

    class BuildWithCommit(build_py):
        """Write the commit of the checkout next to the modules, so that signatures can name the
        code.
        """

        def run(self) -> None:
            super().run()
            here = Path(__file__).parent
            version = tomllib.loads((here / "pyproject.toml").read_text(encoding="utf-8"))[
                "project"
            ]["version"]
            sys.path.insert(0, str(here / "src"))
            from qabench.io.environment import commit_of

            commit = commit_of(here, version)
            if commit and not self.editable_mode:
                Path(self.build_lib, "qabench/commit.txt").write_text(commit, encoding="utf-8")

    setup(packages=packages(), package_dir=ROOTS, cmdclass={"build_py": BuildWithCommit})
