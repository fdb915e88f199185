"""The file of a log: its compression, its checksums, and why it cannot be read."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from qabench.data.rows import grouped
from qabench.errors import InputError, QabenchError
from qabench.io.limits import json_of
from qabench.io.redaction import printable, quoted
from qabench.runs.file_kinds import pointer_error

# The version of Inspect's log format that is read here.
VERSION = 2
# A member may be larger than the memory, so it is read in pieces.
_READ_AT_ONCE = 1 << 20
# The maximum unpacked size of a member.
_MAX_MEMBER_BYTES = 4 << 30


@contextmanager
def open_archive(path: str | Path) -> Iterator[zipfile.ZipFile]:
    """Open a log's zip archive, even in versions of Python that lack its compression."""
    if sys.version_info < (3, 14):
        import zipfile_zstd  # noqa: F401  (adds the compression of Inspect's logs to zipfile)
    with zipfile.ZipFile(path) as archive:
        yield archive


def check_archive(path: Path) -> None:
    """Compare each member of a log with its checksum.

    Inspect's reader ignores checksums, so a flipped bit could change an answer or a score.

    Raises:
        InputError: a member is damaged. The message names it.
    """
    name = "its table of contents"
    try:
        with open_archive(path) as archive:
            # Inspect may write a sample again, see ``with_samples_once``. All else occurs once.
            names = [name for name in archive.namelist() if not name.startswith("samples/")]
            if len(set(names)) < len(names):
                raise zipfile.BadZipFile("two files have the same name")
            for member in archive.infolist():
                name = member.filename
                if member.file_size > _MAX_MEMBER_BYTES:
                    raise zipfile.BadZipFile(f"{member.file_size} bytes")
                with archive.open(member) as content:
                    # Opening a member compares its names in both headers.
                    while content.read(_READ_AT_ONCE):
                        # Reading to the end compares the checksum.
                        pass
    except Exception as error:
        # The decompressor has its own exception classes.
        raise damaged(path, f"{name}: {error}") from None


def check_is_file(path: str | Path) -> None:
    """Raise InputError for a path without a regular file. Reading a pipe would wait for its writer."""
    if not isinstance(path, str | Path) or not Path(path).exists():
        raise InputError(
            f"the log {path} does not exist; `qabench run` prints the path of its .eval file before the first question"
        )
    if not Path(path).is_file():
        raise InputError(f"the log {path} is not a regular file; give the path of a log (.eval)")


@contextmanager
def named_errors(path: str | Path) -> Iterator[None]:
    """Turn any exception about the content of a log into an InputError that names the log."""
    try:
        yield
    except (QabenchError, ImportError):
        raise
    except Exception as error:
        # Content in another format can cause any exception.
        raise damaged(path, _one_line(error)) from error


def _one_line(error: Exception) -> str:
    """Return the name and the message of an exception from Inspect's reader in one line."""
    from pydantic import ValidationError

    name = type(error).__name__
    if not isinstance(error, ValidationError):
        return f"{name}: {' '.join(str(error).split())}"
    # The text of pydantic's exception has several lines, and a URL.
    problem = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(map(str, problem["loc"])) or "the whole"
    return f"{name}: {field}: {problem['msg']}, got {quoted(problem['input'], 60)}"


def damaged(path: str | Path, reason: str) -> InputError:
    """Return the error for a file that is not a log, has another format, or is damaged."""
    if cause := _cause(Path(path)):
        return InputError(f"{path} {cause}")
    detail = printable(reason, 300)
    return InputError(f"{path} is not a log of Inspect AI, or is damaged ({detail}); copy it again")


def _cause(path: Path) -> str | None:
    """Return why a file that may be intact cannot be read as a log, or None if that is unknown."""
    if cause := pointer_error(path):
        return cause
    try:
        if path.suffix == ".json":
            header = json_of(path.read_text(encoding="utf-8"))
        else:
            with open_archive(path) as archive:
                header = json_of(archive.read("header.json"))
    except Exception:
        # The file is damaged, and the caller says so. The decompressor has its own exception
        # classes.
        return None
    if not isinstance(header, dict):
        return None
    version = header.get("version")
    if version is None and isinstance(header.get("eval"), dict):
        return "has no field 'version', which logs of Inspect AI have; was it edited, or written by another program?"
    if isinstance(version, int) and version > VERSION:
        return (
            f"is of version {version} of the format of Inspect AI's logs, and the installed inspect_ai reads up to "
            f"{VERSION}; to read it: pip install --upgrade inspect_ai"
        )
    return None


def with_samples_once(file: Path, copy: Path) -> Path:
    """Return a log that has each sample once: the file itself, or a copy without repetitions.

    Inspect writes a sample again if a run was killed and resumed. The last copy without an error is
    kept. Raises ValueError if copies without an error have different answers. The log must have
    passed ``check_archive``, because any file that occurs several times is read as a sample.
    """
    with open_archive(file) as archive:
        by_name = grouped((member.filename, member) for member in archive.infolist())
        if len(by_name) == len(archive.infolist()):
            return file
        with zipfile.ZipFile(copy, "w") as once:
            for name, members in by_name.items():
                contents = list(map(archive.read, members))
                if len(contents) > 1:
                    contents = answered_copies(name, contents) or contents
                once.writestr(name, contents[-1])
    return copy


def answered_copies(name: str, contents: Sequence[bytes]) -> list[bytes]:
    """Return the copies of a sample that have no error.

    Raises:
        ValueError: the copies have different answers.
    """
    answered: list[bytes] = []
    answers: set[str] = set()
    for content in contents:
        sample = json_of(content)
        if not sample.get("error"):
            answered.append(content)
            answers.add(json.dumps([sample.get("output"), sample.get("scores")]))
    if len(answers) > 1:
        raise ValueError(f"{name} occurs {len(contents)} times, with different answers")
    return answered
