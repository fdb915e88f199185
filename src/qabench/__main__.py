"""``python -m qabench``."""

from qabench.cli import main

main()
