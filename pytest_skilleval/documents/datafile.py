"""A data file: read whole, decoded, and parsed by what its name says."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from pytest_skilleval.errors import CaseMistake

from .jsonfile import parse_json
from .yamlfile import Loc, parse_yaml

__all__ = ["Document", "decode", "read_document"]

MAX_BYTES = 32 * 1024 * 1024
"""The largest file that is read; ten thousand cases need about 5 MB."""


class Document(Protocol):
    """What a parsed file offers."""

    @property
    def data(self) -> Any:
        """None, bool, int, float, str, list and dict with text keys."""

    def line(self, loc: Loc) -> int | None:
        """Return the 1-based line of a key or item, or None where there is no such place."""

    def item_lines(self, loc: Loc) -> list[int]:
        """Return the line of each item of the list at a place."""


def decode(data: bytes, name: object) -> str:
    """Return the text of a UTF-8 file, without a byte order mark.

    Raises:
        CaseMistake: With the line of the first byte that is not UTF-8.
    """
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise CaseMistake(str(name), 1, "", "is UTF-16; save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        byte = data[exc.start]
        raise CaseMistake(str(name), line, "", f"the byte 0x{byte:02x} is not UTF-8; save the file as UTF-8") from None


def read_document(path: Path, *, name: object = None, strict: bool = True) -> Document:
    """Read a YAML or (by its name) JSON file.

    Args:
        path: The file.
        name: What mistakes call it; the path by default.
        strict: As for `parse_yaml`.

    Raises:
        CaseMistake: With line and key of the first thing that is wrong.
    """
    name = path if name is None else name
    # A pipe is not opened: it would be waited for.
    if path.exists() and not path.is_file():
        raise CaseMistake(str(name), None, "", "is no file")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as exc:
        raise CaseMistake(str(name), None, "", f"cannot be read: {exc.strerror or exc}") from None
    if len(data) > MAX_BYTES:
        raise CaseMistake(str(name), None, "", f"is larger than {MAX_BYTES // 2**20} MiB; split it")
    text = decode(data, name)
    if path.suffix.lower() == ".json":
        return parse_json(text, name)
    return parse_yaml(text, name, strict=strict)
