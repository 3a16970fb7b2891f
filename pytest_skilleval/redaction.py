"""Secrets taken out of bytes and text before they are stored: exact values first, key names second."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

MASK = "[redacted]"
"""What stands where a secret stood."""

MIN_LENGTH = 6
"""Shorter values are left alone: `1`, `true` or `dev` occur everywhere by chance, so that masking them would
destroy the transcript and, by the places where the mask appears, tell the value anyway."""

_ENCODED_MIN = 8  # an encoded form shorter than this would hit ordinary text by chance


class Redactor:
    """Replaces every given secret, also in its base64, URL-encoded and JSON-escaped forms.

    Args:
        secrets: The values themselves. Those shorter than `MIN_LENGTH` are ignored (see there).
    """

    def __init__(self, secrets: tuple[str, ...] | list[str]) -> None:
        forms: set[bytes] = set()
        for secret in secrets:
            if len(secret) >= MIN_LENGTH:
                forms |= _forms(secret)
        # Longest first: where one form is the head of another, the regex takes the first that fits.
        self._needles = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile(b"|".join(re.escape(form) for form in self._needles)) if forms else None
        self._longest = len(self._needles[0]) if forms else 0

    def bytes(self, data: bytes) -> bytes:
        """Return `data` with each secret replaced by `[redacted]`."""
        if self._pattern is None or not any(needle in data for needle in self._needles):
            return data
        return self._pattern.sub(MASK.encode(), data)

    def text(self, text: str) -> str:
        """Return `text` with each secret replaced by `[redacted]`; lone surrogates come through unchanged."""
        if self._pattern is None:
            return text
        return self.bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def stream(self) -> RedactedStream:
        """Return a filter for one stream of chunks: what it gives does not depend on where the chunks are cut."""
        return RedactedStream(self._needles, self._pattern, self._longest)


class RedactedStream:
    """Redacts chunk by chunk; holds back only bytes that may be the head of a secret, less than one secret's length."""

    def __init__(self, needles: list[bytes], pattern: re.Pattern[bytes] | None, longest: int) -> None:
        self._needles = needles
        self._pattern = pattern
        self._longest = longest
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """Take the next chunk and return what is now certain."""
        if self._pattern is None:
            return chunk
        data = self._held + chunk
        if not any(needle in data for needle in self._needles):
            cut = self._open_end(data, 0)
            self._held = data[cut:]
            return data[:cut]
        pieces: list[bytes] = []
        position = 0
        cut = self._open_end(data, 0)
        for match in self._pattern.finditer(data):
            if match.start() >= cut:
                break  # a longer secret may begin here: the next chunk decides
            pieces += (data[position : match.start()], MASK.encode())
            position = match.end()
            if position > cut:
                cut = self._open_end(data, position)
        pieces.append(data[position:cut])
        self._held = data[cut:]
        return b"".join(pieces)

    def flush(self) -> bytes:
        """Return the rest at the end of the stream."""
        held, self._held = self._held, b""
        return held if self._pattern is None else self._pattern.sub(MASK.encode(), held)

    def _open_end(self, data: bytes, start: int) -> int:
        """Return where the longest tail of `data[start:]` begins that is the unfinished head of a secret."""
        begin = max(start, len(data) - self._longest + 1)
        best = len(data)
        for needle in self._needles:
            at = data.find(needle[:1], max(begin, len(data) - len(needle) + 1))
            while at != -1 and at < best:
                if needle.startswith(data[at:]):
                    best = at
                    break
                at = data.find(needle[:1], at + 1)
        return best


def _forms(secret: str) -> set[bytes]:
    raw = secret.encode("utf-8", "surrogateescape")
    forms = {raw}
    forms |= _url_forms(raw)
    forms |= _json_forms(secret)
    for alphabet in (base64.b64encode, base64.urlsafe_b64encode):
        forms |= _base64_forms(raw, alphabet(b"\0\0" + raw), alphabet(b"\0" + raw), alphabet(raw))
    # A key file is printed line by line as often as whole; its long lines are secrets of their own.
    lines = secret.splitlines()
    if len(lines) > 1:
        for line in lines:
            if len(line.strip()) >= 2 * _ENCODED_MIN and not line.startswith("-----"):
                forms |= {line.strip().encode("utf-8", "surrogateescape")} | _json_forms(line.strip())
    return forms


def _url_forms(raw: bytes) -> set[bytes]:
    texts = {quote(raw, safe=""), quote(raw, safe="/"), quote_plus(raw)}
    texts |= {re.sub(r"%[0-9A-F]{2}", lambda match: match.group().lower(), text) for text in texts}
    return {text.encode() for text in texts}


def _json_forms(secret: str) -> set[bytes]:
    """Return the inside of the JSON string; twice over too, as tool output that is JSON stands inside a JSON event."""
    forms: set[str] = set()
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        forms |= {once, once.replace("/", "\\/"), json.dumps(once, ensure_ascii=ascii_only)[1:-1]}
    return {form.encode("utf-8", "surrogateescape") for form in forms}


def _base64_forms(raw: bytes, shifted_two: bytes, shifted_one: bytes, plain: bytes) -> set[bytes]:
    """Return the characters that stay the same wherever the secret lies in a longer base64 text.

    A secret begins at byte 0, 1 or 2 of a group of three. The characters that it shares with its neighbours are
    dropped: the first 2 or 3 when it begins inside a group, the last when it ends inside one.
    """
    forms: set[bytes] = set()
    for text, lead, drop in ((plain, 0, 0), (shifted_one, 1, 2), (shifted_two, 2, 3)):
        body = text.rstrip(b"=")
        if (lead + len(raw)) % 3:
            body = body[:-1]
        if len(body) - drop >= _ENCODED_MIN:
            forms.add(body[drop:])
    return forms


_NAME = (
    r"(?:(?:api|access|secret|private)[_-]?key|client[_-]?secret|password|passwd|authorization|"
    r"(?:(?:auth|access|refresh|session|bearer)[_-]?)?token|secret)"
)
_ENDS = ("key", "secret", "password", "passwd", "authorization", "token")  # of the names above
_LONGEST_NAME = 16
_NAME_ENDS = re.compile(rf"(?<![a-z0-9]){_NAME}\Z")
# The value must look like a credential (8 or more of its characters, no blank): `token: the word after` is prose.
_VALUE_FOLLOWS = re.compile(
    r"""\\{0,8}["']?\s{0,3}[:=]\s{0,3}\\{0,8}["']?(?P<scheme>(?:bearer|basic|token|digest)\s{1,3})?"""
    r"""(?P<value>[A-Za-z0-9+/=_.~%-]{8,})""",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?:[0-9]+|[A-Za-z]+)\Z")
_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def redact_named(text: str) -> str:
    """Mask values that stand behind a telling name: `api_key=...`, `"token": "..."`, `Authorization: Bearer ...`.

    Conservative on purpose: a plain number (`token: 12345678` is a count) or a plain word stays. The time is linear in
    the text, whatever the text.
    """
    # Looking for the few words first, and backwards from them for the name, is forty times as fast as one regex.
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text.translate(_ASCII_LOWER)  # some capital letters become two small ones
    spans = sorted(span for word in _ENDS for span in _named_values(text, lowered, word))
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        if start >= position:
            pieces += (text[position:start], MASK)
        position = max(position, end)
    return "".join(pieces) + text[position:]


def _named_values(text: str, lowered: str, word: str) -> Iterator[tuple[int, int]]:
    at = lowered.find(word)
    while at != -1:
        end = at + len(word)
        match = _VALUE_FOLLOWS.match(text, end)
        if match is not None and _NAME_ENDS.search(lowered, max(0, end - _LONGEST_NAME), end) is not None:
            # What follows `Bearer` is a credential even if it reads as a word.
            if match["scheme"] or not _WORD.match(match["value"]):
                yield match.span("value")
            end = match.end()
        at = lowered.find(word, end)


_SECRET_KEY = re.compile(rf"(?:\A|[_-])(?:{_NAME}|cookie)\Z", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def redact_keys(value: object) -> object:
    """Return a copy of a JSON value in which strings under a telling key are masked, and all strings `redact_named`."""
    if isinstance(value, dict):
        return {key: _masked(key, inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redact_keys(inner) for inner in value]
    return redact_named(value) if isinstance(value, str) else value


def _masked(key: object, value: object) -> object:
    if isinstance(value, str) and value and _SECRET_KEY.search(_CAMEL.sub("_", str(key))):
        return MASK
    return redact_keys(value)
