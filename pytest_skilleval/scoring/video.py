"""Videos, as far as their containers tell: WebM and MP4, with their duration.

No decoder is needed to see that a file is a video with pictures in it, so none is required. Sources: RFC 8794 (EBML),
RFC 9559 (Matroska), ISO/IEC 14496-12 (MP4).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Video", "parse_video"]

ELEMENTS = 200_000
"""Elements that are looked at in one file."""

_EBML, _DOC_TYPE, _SEGMENT, _CLUSTER = 0x1A45DFA3, 0x4282, 0x18538067, 0x1F43B675
_INFO, _SCALE, _DURATION, _CLUSTER_TIME, _SIMPLE_BLOCK = 0x1549A966, 0x2AD7B1, 0x4489, 0xE7, 0xA3


class Video(NamedTuple):
    """A video file."""

    container: str
    """`webm` or `mp4`."""
    duration: float | None
    """Seconds; None when the file does not say."""


def parse_video(data: bytes) -> Video:
    """Read the container of a video.

    Raises:
        ValueError: It is no WebM or MP4 with pictures in it.
    """
    try:
        if data.startswith(_EBML.to_bytes(4, "big")):
            return _webm(data)
        if data[4:8] == b"ftyp":
            return _mp4(data)
    except (IndexError, struct.error):
        raise ValueError("the container is cut off or damaged") from None
    raise ValueError("neither WebM nor MP4")


def _number(data: bytes, at: int, *, keep_marker: bool) -> tuple[int | None, int]:
    """Return a variable-length integer (RFC 8794, 4) and where it ends; None = unknown size."""
    first = data[at]
    length = 9 - first.bit_length()
    if first == 0 or at + length > len(data):
        raise IndexError
    value = int.from_bytes(data[at : at + length], "big")
    if not keep_marker:
        value -= 1 << (7 * length)
        if value == (1 << (7 * length)) - 1:
            return None, at + length
    return value, at + length


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Walk all elements flatly: the masters that matter are entered, the others passed over."""
    at, count = 0, 0
    while at < len(data) and count < ELEMENTS:
        count += 1
        name, at = _number(data, at, keep_marker=True)
        size, at = _number(data, at, keep_marker=False)
        if name in (_EBML, _SEGMENT, _CLUSTER, _INFO):
            yield name, b""
        else:
            end = len(data) if size is None else at + size
            yield name or 0, data[at : min(end, at + 64)]
            at = end


def _webm(data: bytes) -> Video:
    kind, scale, said, last, clusters, start = "", 1_000_000, 0.0, 0, 0, 0
    for name, content in _elements(data):
        if name == _DOC_TYPE:
            kind = content.rstrip(b"\0").decode("ascii", "replace")
        elif name == _SCALE:
            scale = int.from_bytes(content, "big")
        elif name == _DURATION:
            said = struct.unpack(">f" if len(content) == 4 else ">d", content)[0]
        elif name == _CLUSTER:
            clusters += 1
        elif name == _CLUSTER_TIME:
            start = int.from_bytes(content, "big")
            last = max(last, start)
        elif name == _SIMPLE_BLOCK and len(content) > 3:
            _, after = _number(content, 0, keep_marker=False)
            last = max(last, start + int.from_bytes(content[after : after + 2], "big", signed=True))
    if kind != "webm":
        raise ValueError(f"an EBML file of type {kind!r}, not webm")
    if not clusters:
        raise ValueError("a WebM without any picture in it")
    # Recorders that stream write no duration: the last block's time is then the best that is known.
    seconds = max(said, float(last)) * scale / 1e9
    return Video("webm", seconds or None)


def _mp4(data: bytes) -> Video:
    at, count, duration, pictures = 0, 0, None, False
    while at + 8 <= len(data) and count < ELEMENTS:
        count += 1
        size, name = struct.unpack_from(">I4s", data, at)
        head = 8
        if size == 1:
            (size,) = struct.unpack_from(">Q", data, at + 8)
            head = 16
        size = size or len(data) - at
        if size < head:
            raise IndexError
        if name == b"mvhd":
            duration = _movie_seconds(data, at + head)
        pictures = pictures or (name in (b"mdat", b"moof") and size > head)
        at += head if name == b"moov" else size
    if duration is None or not pictures:
        raise ValueError("an MP4 without a movie in it")
    return Video("mp4", duration or None)


def _movie_seconds(data: bytes, at: int) -> float:
    if data[at] == 1:
        scale, length = struct.unpack_from(">IQ", data, at + 20)
    else:
        scale, length = struct.unpack_from(">II", data, at + 12)
    return float(length) / scale if scale else 0.0
