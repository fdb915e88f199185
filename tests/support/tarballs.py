"""Tarballs of pages, well-formed and hostile."""

import io
import tarfile
from pathlib import Path


def tarball(path: Path, members: list[tuple[str, bytes | str]], mode: str = "w:gz", kind: bytes = b"") -> Path:
    """A tarball of (name, content); ``kind`` makes all of them links (content is the target), devices and so on."""
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, content in members:
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            if kind:
                member.type, member.linkname = kind, data.decode()
                tar.addfile(member)
            else:
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return path
