"""Lists the packages; everything else is in pyproject.toml.

The package has four roots, which setuptools cannot search from pyproject.toml. A new benchmark or metric is a new
folder, found here.
"""

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
    from setuptools import setup  # only builds have it: virtual environments of Python 3.12 and later do not

    setup(packages=packages(), package_dir=ROOTS)
