"""The review page of a proof bundle: everything shown or linked, nothing run, nothing fetched."""

from __future__ import annotations

import base64
import functools
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from .terminal import parse_asciicast

if TYPE_CHECKING:
    import jinja2

    from .bundle import BundleFile, Manifest

__all__ = ["review_page", "visible"]

TEXT_CHARS = 20_000
"""Text of one file that is shown."""
PAGE_TEXT_CHARS = 1_000_000
"""Text of all files that is shown."""
PICTURE_BYTES = 4 * 1024 * 1024
"""A larger picture is linked and not shown."""
PAGE_PICTURE_BYTES = 32 * 1024 * 1024

# Marks that reorder the text around them can make a line read as another one.
_BIDI = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}


class _Entry(NamedTuple):
    file: BundleFile
    href: str
    picture: str
    """A data: address, or ""."""
    text: str
    cut: bool


def visible(text: str) -> str:
    """Return a text in which control characters and marks that reorder it can be seen."""
    return "".join(
        character
        if character in "\n\t" or (character.isprintable() and ord(character) not in _BIDI)
        else f"\\u{ord(character):04x}"
        for character in text
    )


@functools.cache
def _template() -> jinja2.Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, loader=FileSystemLoader(Path(__file__).parent)
    )
    environment.filters["visible"] = visible
    return environment.get_template("review.html.j2")


def review_page(manifest: Manifest, bundle: Path, title: str) -> str:
    """Return the page; links and pictures name files of the bundle only, relative to it."""
    entries, text_room, picture_room = [], PAGE_TEXT_CHARS, PAGE_PICTURE_BYTES
    for file in sorted(manifest.files, key=lambda file: (file.kind != "report", file.name)):
        data = (bundle / file.path).read_bytes()
        text, cut = _text(file, data, min(TEXT_CHARS, text_room))
        text_room -= len(text)
        picture = ""
        if file.kind == "screenshot" and file.problem is None and len(data) <= min(PICTURE_BYTES, picture_room):
            picture_room -= len(data)
            kind = "png" if data.startswith(b"\x89PNG") else "jpeg"
            picture = f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"
        entries.append(_Entry(file, quote(file.path), picture, text, cut))
    style = (Path(__file__).parent / "review.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    return _template().render(
        title=title or "Proof bundle", entries=entries, refused=manifest.refused, style=style, style_digest=digest
    )


def _text(file: BundleFile, data: bytes, room: int) -> tuple[str, bool]:
    if file.kind in {"screenshot", "video", "other"}:
        return "", False
    text = data[: 16 * TEXT_CHARS].decode("utf-8", "replace")
    if file.kind == "recording" and file.problem is None:
        text = parse_asciicast(data.decode("utf-8", "replace")).text
    return text[:room], len(text) > room or len(data) > 16 * TEXT_CHARS
