"""Files of claims and the commands of ``qabench expertqa``, for its tests."""

import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from qabench.cli import main

Row = dict[str, Any]


def command(*arguments: object) -> int:
    with mock.patch.object(sys, "argv", ["qabench", *map(str, arguments)]):
        try:
            main()
        except SystemExit as stopped:
            return int(stopped.code or 0)
    return 0


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def written(path: Path, *rows: Row) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def claim(text: str, *evidence: str, **fields: Any) -> Row:
    return {"claim": text, "evidence": list(evidence), **fields}
