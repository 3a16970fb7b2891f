"""Pictures, recordings and videos made byte by byte, as their specifications say."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

from PIL import Image, ImageDraw


def picture(kind: str = "PNG", size: tuple[int, int] = (320, 120), *, blank: bool = False, mode: str = "RGB") -> bytes:
    image = Image.new(mode, size, "white" if mode == "RGB" else (10, 20, 30, 0))
    if not blank:
        ImageDraw.Draw(image).text((10, 10), "5 passed, 1 missed", fill="black")
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


def cast_v2(*events: tuple[float, str, str], **header: Any) -> str:
    head = {"version": 2, "width": 80, "height": 24, **header}
    return "".join(json.dumps(line) + "\n" for line in (head, *events))


def cast_v3(*events: tuple[float, str, str]) -> str:
    head = {"version": 3, "term": {"cols": 80, "rows": 24}}
    lines = [json.dumps(head), "# a comment", *(json.dumps(event) for event in events)]
    return "\n".join(lines) + "\n"


def element(name: int, content: bytes, *, unknown_size: bool = False) -> bytes:
    """An EBML element (RFC 8794): its id, its size in eight bytes, its content."""
    head = name.to_bytes((name.bit_length() + 7) // 8, "big")
    size = b"\x01" + (b"\xff" * 7 if unknown_size else len(content).to_bytes(7, "big"))
    return head + size + content


def webm(
    *, doc_type: bytes = b"webm", duration: float | None = 2500.0, streamed: bool = False, clusters: int = 1
) -> bytes:
    info = element(0x2AD7B1, (1_000_000).to_bytes(3, "big"))
    if duration is not None:
        info += element(0x4489, struct.pack(">d", duration))
    body = element(0x1549A966, info)
    for number in range(clusters):
        time = element(0xE7, (number * 1000).to_bytes(2, "big"))
        block = element(0xA3, b"\x81" + (400).to_bytes(2, "big") + b"\x80" + b"picture" * 20)
        body += element(0x1F43B675, time + block, unknown_size=streamed)
    return element(0x1A45DFA3, element(0x4282, doc_type)) + element(0x18538067, body, unknown_size=streamed)


def box(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), name) + content


def mp4(*, seconds: int = 3, pictures: bool = True, version: int = 0) -> bytes:
    if version == 0:
        head = struct.pack(">IIIII", 0, 0, 0, 600, 600 * seconds)
    else:
        head = struct.pack(">IQQIQ", 1 << 24, 0, 0, 600, 600 * seconds)
    movie = box(b"moov", box(b"mvhd", head + b"\0" * 80))
    return box(b"ftyp", b"isom\0\0\2\0isomiso2") + movie + (box(b"mdat", b"picture" * 20) if pictures else b"")
