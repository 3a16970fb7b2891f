"""JSON text to plain data, without NaN and duplicate keys, and the line of each key."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from pytest_skilleval.errors import CaseMistake

from .yamlfile import MAX_DEPTH, Loc, dotted

__all__ = ["JsonText", "parse_json"]

_SPACE = re.compile(r"[ \t\r\n]*")
_TRAILING = re.compile(r",\s*[}\]]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class _RejectedError(ValueError):
    """A value that JSON's grammar, or this reader, does not take."""


def _constant(text: str) -> NoReturn:
    raise _RejectedError(f"{text} is not allowed; write a finite number or null")


def _float(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _constant(text[:40])


def _int(text: str) -> int:
    if len(text) > 300:
        raise _RejectedError(f"a number of {len(text)} digits; at most 300 are read")
    return int(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise _RejectedError("is given twice")
    return data


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_constant, parse_float=_float, parse_int=_int, strict=True
)
_LENIENT = json.JSONDecoder()


class JsonText(NamedTuple):
    """Parsed JSON."""

    data: Any
    """None, bool, int, float, str, list and dict; no NaN, no infinity."""
    text: str

    def line(self, loc: Loc) -> int | None:
        """Return the 1-based line of a key or item, or None where there is no such place."""
        here = start = _SPACE.match(self.text, 0).end()  # type: ignore[union-attr]
        for part in loc:
            for name, name_at, value_at in _members(self.text, start):
                if name == part and type(name) is type(part):
                    here, start = name_at, value_at
                    break
            else:
                return None
        return self.text.count("\n", 0, here) + 1

    def item_lines(self, loc: Loc) -> list[int]:
        """Return the line of each item of the list at a place."""
        start = _SPACE.match(self.text, 0).end()  # type: ignore[union-attr]
        for part in loc:
            start = next((at for name, _, at in _members(self.text, start) if name == part), len(self.text))
        lines, line, before = [], 1, 0
        for _, _, at in _members(self.text, start):
            line += self.text.count("\n", before, at)
            before = at
            lines.append(line)
        return lines


def _members(text: str, start: int) -> Iterator[tuple[str | int, int, int]]:
    """Yield name (or index), its offset and its value's offset for each member of the array or object at an offset."""

    def skip(at: int) -> int:
        return _SPACE.match(text, at).end()  # type: ignore[union-attr]

    is_object = text[start : start + 1] == "{"
    if not is_object and text[start : start + 1] != "[":
        return
    at, index = skip(start + 1), 0
    while at < len(text) and text[at] not in "]}":
        name: str | int = index
        name_at = at
        if is_object:
            name, at = _LENIENT.raw_decode(text, at)
            at = skip(skip(at) + 1)
        yield name, name_at, at
        _, at = _LENIENT.raw_decode(text, at)
        at, index = skip(at), index + 1
        if at < len(text) and text[at] == ",":
            at = skip(at + 1)


def parse_json(text: str, name: object) -> JsonText:
    """Parse a JSON document.

    Args:
        text: The document, without a byte order mark.
        name: The path that mistakes name.

    Raises:
        CaseMistake: With the line and key of the first thing that is wrong.
    """
    if not text.strip():
        raise CaseMistake(str(name), 1, "", "is empty")
    try:
        data = _DECODER.decode(text)
        if "\\u" in text or "\\U" in text:
            _refuse_surrogates(text, data, str(name))
    except json.JSONDecodeError as exc:
        at, message = exc.pos, exc.msg
        before = re.search(r",\s*\Z", text[:at])
        # Python 3.13 points at the comma itself, older ones at the bracket behind it.
        if _TRAILING.match(text, before.start() if before else at):
            at, message = before.start() if before else at, "a comma may not stand before a closing bracket"
        column = at - text.rfind("\n", 0, at)
        raise CaseMistake(
            str(name), text.count("\n", 0, at) + 1, "", f"not JSON: {message} (column {column})"
        ) from None
    except RecursionError:
        raise CaseMistake(str(name), 1, "", f"nested deeper than {MAX_DEPTH} levels") from None
    except _RejectedError as exc:
        loc, at, message = _find_rejected(text, _SPACE.match(text, 0).end(), ()) or ((), 0, str(exc))  # type: ignore[union-attr]
        raise CaseMistake(str(name), text.count("\n", 0, at) + 1, dotted(loc), message) from None
    if _depth(data) > MAX_DEPTH:
        raise CaseMistake(str(name), 1, "", f"nested deeper than {MAX_DEPTH} levels")
    return JsonText(data, text)


def _find_rejected(text: str, start: int, loc: Loc) -> tuple[Loc, int, str] | None:
    """Return place, offset and message of the first value that was rejected."""
    seen: dict[str | int, int] = {}
    for name, name_at, value_at in _members(text, start):
        here = (*loc, name)
        if name in seen:
            first = text.count("\n", 0, seen[name]) + 1
            return here, name_at, f"is given twice; the first is on line {first}; keep one"
        seen[name] = name_at
        if found := _find_rejected(text, value_at, here):
            return found
        try:
            _DECODER.raw_decode(text, value_at)
        except _RejectedError as exc:
            return here, name_at, str(exc)
    return None


def _depth(data: Any) -> int:
    depth, level = 0, [data]
    while level:
        depth += 1
        level = [
            child
            for value in level
            if isinstance(value, dict | list)
            for child in (value.values() if isinstance(value, dict) else value)
        ]
    return depth


def _refuse_surrogates(text: str, data: Any, name: str) -> None:
    """Half a surrogate pair is no character: it could be written to no file."""
    todo: list[tuple[Loc, Any]] = [((), data)]
    while todo:
        loc, value = todo.pop()
        if isinstance(value, dict):
            todo += [((*loc, key), child) for key, child in value.items()]
            value = "".join(value)
        elif isinstance(value, list):
            todo += [((*loc, index), child) for index, child in enumerate(value)]
        if isinstance(value, str) and _LONE_SURROGATE.search(value):
            line = JsonText(data, text).line(loc)
            raise CaseMistake(
                name, line, dotted(loc), "holds half of a surrogate pair (\\ud800 to \\udfff); write the character"
            )
