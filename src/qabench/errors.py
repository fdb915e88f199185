"""The exceptions of qabench. Every message says what was wrong, where, what is allowed and how to fix it."""

from __future__ import annotations


class QabenchError(Exception):
    """Base class of all errors that qabench raises. The command line exits with 1."""


class InputError(QabenchError, ValueError):
    """Invalid input of the user: an option, a name, a file. The command line exits with 2."""


class DataError(InputError):
    """A row of a data file does not fit the benchmark's schema; the message names file, row and field."""


class SourceError(QabenchError):
    """A source file could not be provided."""


class SourceUnavailable(SourceError):
    """A source file is in no mirror and no cache, and could not be downloaded."""


class DigestMismatch(SourceError):
    """A file does not have the pinned content; it is never used."""


class MissingExtra(QabenchError, ImportError):
    """An optional dependency is needed; the message names the extra and the command that installs it."""
