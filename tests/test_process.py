"""A process of the command ``qabench`` ends with its exit status, its output, and closed files."""

import signal
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
    qabench.cache = EntryFile(Path("cache.sqlite"), schema, name="cache", if_damaged="", if_unusable="")
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


# A command that waits, with a forked process, and says that it is interrupted.
WAITING = """
import multiprocessing, sys, time
import qabench.__main__, qabench.cli

def started():
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    process.start()
    return process

def main():
    child = started()
    for _ in range(20):
        ended_at_once = started()
        ended_at_once.terminate()
        ended_at_once.join(30)
        assert ended_at_once.exitcode == -15
    try:
        print("waiting", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        child.terminate()
        child.join()
        print("interrupted", child.exitcode)
        {end}

qabench.cli.main = main
qabench.__main__.run_process()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGTERM and fork")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("end", ["raise", "sys.exit(130)"])
def test_a_terminated_command_is_interrupted(number: signal.Signals, end: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WAITING.format(end=end)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(number)
        printed, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (128 + number, "")
    # The forked process has been ended by the signal, without a traceback.
    assert printed == f"interrupted -{signal.SIGTERM.value}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGTERM")
def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    code = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
        + COMMAND.format(end="signal.raise_signal(signal.SIGTERM)")
    ).replace("import atexit, sys", "import atexit, signal, sys")
    done = run(code, tmp_path)
    assert (done.returncode, done.stdout) == (0, "printed, registered\n")
