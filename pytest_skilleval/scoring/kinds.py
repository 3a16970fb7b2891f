"""What kind of evidence a file is: by its content first, by its name second."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal

from .media import parse_picture
from .terminal import parse_asciicast
from .values import parse_json
from .video import parse_video

__all__ = ["EvidenceKind", "content_problem", "kind_of"]

EvidenceKind = Literal["screenshot", "video", "recording", "json", "report", "notes", "other"]

_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
_TEXT_NAMES = {".md", ".markdown", ".txt", ".rst", ".log"}


def kind_of(name: str, data: bytes) -> EvidenceKind:
    """Return the kind of a file; what only its name claims, a damaged picture say, keeps the claimed kind."""
    suffix = PurePosixPath(name).suffix.lower()
    if data.startswith(_PICTURES) or suffix in {".png", ".jpg", ".jpeg"}:
        return "screenshot"
    if data.startswith(b"\x1a\x45\xdf\xa3") or data[4:8] == b"ftyp" or suffix in {".webm", ".mp4"}:
        return "video"
    return _kind_of_text(suffix, PurePosixPath(name).stem.lower(), data)


def _kind_of_text(suffix: str, stem: str, data: bytes) -> EvidenceKind:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "other"
    if "\0" in text:
        return "other"
    if suffix == ".cast" or _is_asciicast(text):
        return "recording"
    if suffix in {".json", ".jsonl", ".ndjson"} or (suffix not in _TEXT_NAMES and _is_json(text)):
        return "json"
    return "report" if stem == "report" and suffix in _TEXT_NAMES | {""} else "notes"


def _is_asciicast(text: str) -> bool:
    if not text.startswith("{") or '"version"' not in text[:2000]:
        return False
    try:
        parse_asciicast(text)
    except ValueError:
        return False
    return True


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        parse_json(text)
    except ValueError:
        return False
    return True


def content_problem(name: str, data: bytes, kind: str) -> str | None:
    """Return why a file's content is no good example of its kind, or None."""
    if not data.strip():
        return "it is empty"
    try:
        if kind == "screenshot":
            return "it is blank" if parse_picture(data).blank else None
        if kind == "video":
            parse_video(data)
        elif kind == "recording":
            return None if parse_asciicast(data.decode("utf-8", "replace")).text.strip() else "it shows nothing"
        elif kind == "json":
            _parse_values(name, data.decode("utf-8-sig"))
        elif kind in {"report", "notes", "text"} and b"\0" in data:
            return "it is no text"
    except ValueError as problem:
        return str(problem)
    return None


def _parse_values(name: str, text: str) -> None:
    lines = name.lower().endswith((".jsonl", ".ndjson"))
    for part in text.splitlines() if lines else [text]:
        if part.strip():
            parse_json(part)
