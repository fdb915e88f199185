"""Notebooks as pages of the site: their text, code, outputs and plots."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import nbformat


def page_of(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and the images in it by file name.

    Args:
        path: a notebook with its outputs.
    """
    images: dict[str, bytes] = {}
    parts = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts.append(f"```python\n{cell.source}\n```")
            parts += [_output(output, path.stem, images) for output in cell.outputs]
    repository = "https://github.com/qabench/qabench/blob/main/examples"
    links = f"*This page is [a notebook]({repository}/{path.name}) and [a script]({repository}/{path.stem}.py).*"
    return "\n\n".join([*filter(None, parts), links]) + "\n", images


def _output(output: Any, name: str, images: dict[str, bytes]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        file = f"{name}-{len(images)}.png"
        images[file] = base64.b64decode(data["image/png"])
        return f"![Plot {len(images)}]({file})"
    if "text/html" in data:
        return f'<div class="output">{"".join(data["text/html"])}</div>'
    text = output.get("text") or data.get("text/plain", "")
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""
