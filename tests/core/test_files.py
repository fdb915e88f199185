"""Writing of files."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from qabench.io.files import check_writable, write_text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    check_writable(pipe)
    reader.start()
    write_text(pipe, "content")
    reader.join()
    assert read == ["content"] and stat.S_ISFIFO(pipe.stat().st_mode)
