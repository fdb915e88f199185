"""The exceptions of qabench. Every message says what was wrong, where, what is allowed and how to mend it."""

from __future__ import annotations


class QabenchError(Exception):
    """Base of all errors that qabench raises on purpose. The command line exits with 1 on it."""


class InputError(QabenchError, ValueError):
    """Something the user gave cannot be used: an option, a name, a file. The command line exits with 2 on it."""


class DataError(InputError):
    """A row of a data file is not what the benchmark's schema says; the message names file, row and field."""


class SourceError(QabenchError):
    """A source file could not be provided."""


class SourceUnavailable(SourceError):
    """A source file is in no mirror and no cache, and could not be downloaded."""


class DigestMismatch(SourceError):
    """A file's content is not the content that was pinned; it is never used."""


class MissingExtra(QabenchError, ImportError):
    """An optional dependency is needed; the message names the extra and the command that installs it."""
