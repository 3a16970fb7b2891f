"""Checks of what can be seen: screenshot and recording."""

from __future__ import annotations

import io
import warnings
from typing import NamedTuple

from pytest_skilleval.casespec import RecordingCheck, ScreenshotCheck

from .facts import Facts
from .finding import Finding, no, yes
from .folder import Folder, Refused
from .patterns import one_line, search
from .terminal import parse_asciicast
from .video import parse_video

__all__ = ["Picture", "check_recording", "check_screenshot", "parse_picture"]

PIXELS = 50_000_000
"""A picture with more is not decoded."""
BLANK_RANGE = 8
"""A picture whose colours differ by no more than this (of 255) is blank; a JPEG of one colour has some noise."""


class Picture(NamedTuple):
    """A decoded picture."""

    format: str
    """`PNG` or `JPEG`."""
    width: int
    height: int
    blank: bool
    """Whether all of it is one colour."""


def parse_picture(data: bytes) -> Picture:
    """Decode a picture wholly.

    Raises:
        ValueError: It is no PNG or JPEG, is damaged, or has too many pixels.
    """
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - most trials leave no picture

    try:
        with warnings.catch_warnings():
            # Pillow warns of decompression bombs; the size is looked at before anything is decoded.
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
                width, height = image.size
                if width * height > PIXELS:
                    raise ValueError(f"{width} x {height} pixels are too many; at most {PIXELS} are decoded")
                image.load()
                # What is transparent shows the page below it.
                page = Image.new("RGBA", image.size, "white")
                page.alpha_composite(image.convert("RGBA"))
                channels = page.convert("RGB").getextrema()
                kind = image.format or ""
    except UnidentifiedImageError:
        raise ValueError("neither PNG nor JPEG") from None
    except (OSError, SyntaxError, EOFError, MemoryError, Image.DecompressionBombError) as problem:
        raise ValueError(f"cannot be decoded: {one_line(str(problem))}") from None
    blank = all(isinstance(ends, tuple) and ends[1] - ends[0] <= BLANK_RANGE for ends in channels)
    return Picture(kind, width, height, blank)


def check_screenshot(check: ScreenshotCheck, facts: Facts) -> Finding:
    """Decode a picture and look at its size, and whether anything is on it."""
    folder = Folder(facts.workspace)
    try:
        name = folder.find(check.path)
        picture = parse_picture(folder.read(name))
    except Refused as refusal:
        return no(str(refusal))
    except ValueError as problem:
        return no(f"{check.path} is no picture: {problem}")
    size = f"{picture.width} x {picture.height}"
    if picture.width < check.min_width or picture.height < check.min_height:
        return no(f"{name} has {size} pixels, wanted at least {check.min_width} x {check.min_height}")
    if picture.blank:
        return no(f"{name} is blank: all of its {size} pixels have one colour")
    return yes(f"{name} is a {picture.format} of {size} pixels")


def check_recording(check: RecordingCheck, facts: Facts) -> Finding:
    """Read a recording of a terminal, or a video, and look at its text and duration."""
    folder = Folder(facts.workspace)
    try:
        name = folder.find(check.path)
        data = folder.read(name)
        if data[:1] in (b"\x1a", b"\0"):
            video = parse_video(data)
            kind, duration, text = video.container, video.duration, None
        else:
            cast = parse_asciicast(data.decode("utf-8", "replace"))
            kind, duration, text = f"asciicast v{cast.version}", cast.duration, cast.text
    except Refused as refusal:
        return no(str(refusal))
    except ValueError as problem:
        return no(f"{check.path} is no recording: {problem}")
    if check.min_duration > 0 and (duration is None or duration < check.min_duration):
        length = "does not say how long it is" if duration is None else f"lasts {duration:g} s"
        return no(f"{name} {length}, wanted at least {check.min_duration:g} s")
    if check.matches is not None:
        if text is None:
            return no(f"{name} is a video, which has no text to match {check.matches!r}")
        if search(check.matches, text) is None:
            return no(f"{name} shows nothing that matches {check.matches!r}")
    return yes(f"{name} is a recording ({kind})")
