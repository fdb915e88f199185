"""A process of the command ``qabench`` ends with its exit status, its output, and closed files."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

COMMAND = """
import atexit, sys
import qabench.__main__, qabench.cli

class Record:
    def __del__(self):
        print("freed")

def main():
    sys.record = Record()
    atexit.register(print, "registered")
    print("printed", end=", ")
    {end}

qabench.cli.main = main
qabench.__main__.run_process()
"""

# The cache of a command, which is open when the command ends.
OPEN_CACHE = """
from pathlib import Path
import qabench.__main__, qabench.cli

def main():
    from qabench.io.sqlite import EntryFile

    schema = "PRAGMA journal_mode=WAL; CREATE TABLE IF NOT EXISTS entries (value)"
    qabench.cache = EntryFile(Path("cache.sqlite"), schema, "cache", "", "")
    qabench.cache.attempt(lambda connection: connection.execute("INSERT INTO entries VALUES (1)"))
    assert Path("cache.sqlite-wal").exists()

qabench.cli.main = main
qabench.__main__.run_process()
"""

LONG_OUTPUT = """
import qabench.__main__, qabench.cli
from qabench.io.redaction import write_document

qabench.cli.app = lambda: write_document("x" * 10_000_000)
qabench.__main__.run_process()
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("end", "status"),
    [("return", 0), ("sys.exit()", 0), ("sys.exit(0)", 0), ("sys.exit(2)", 2)],
)
def test_objects_are_not_freed(end: str, status: int, tmp_path: Path) -> None:
    done = run(COMMAND.format(end=end), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (status, "printed, registered\n", "")


@pytest.mark.parametrize("end", ["sys.exit('a sentence')", "raise KeyError('a sentence')"])
def test_what_python_prints_is_printed(end: str, tmp_path: Path) -> None:
    done = run(COMMAND.format(end=end), tmp_path)
    assert done.returncode == 1
    assert "a sentence" in done.stderr
    assert done.stdout.startswith("printed, registered\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", COMMAND.format(end="sys.exit(0)")],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode != 0
    assert "No space left on device" in done.stderr


def test_caches_are_closed(tmp_path: Path) -> None:
    done = run(OPEN_CACHE, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["cache.sqlite"]


@pytest.mark.parametrize("is_read", [True, False])
def test_long_output_without_buffers_is_whole_or_an_error(is_read: bool) -> None:
    # Without its buffers, Python itself drops the rest of a text that was written in part.
    arguments = [sys.executable, "-u", "-c", LONG_OUTPUT]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        length = len(process.stdout.read(10_000_000 if is_read else 10))
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (0 if is_read else 1, b"")
    assert length == (10_000_000 if is_read else 10)
