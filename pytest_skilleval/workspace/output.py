"""One output stream of a command on its way to a file: redacted, cut to size, digested, in bounded memory."""

from __future__ import annotations

import hashlib
import os
import stat
import time

from pytest_skilleval.redaction import Redactor

CHUNK = 1 << 16
_LAST_WORD = 1 << 20  # a result line that comes after the cut is kept up to this length


def open_output(path: bytes) -> int:
    """Create the file, never through a link, a FIFO or a device.

    Raises:
        OSError: It cannot be created, or is no regular file.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{os.fsdecode(path)} is not a regular file")
    os.ftruncate(descriptor, 0)
    return descriptor


class Output:
    """Writes one stream; a line is in the file whole, or is replaced by a marker line, or lies behind the cut.

    A long line is written as it comes and taken back (the file is truncated to the line's start) once it is over the
    limit, so that memory does not grow with the line.

    Args:
        file: Descriptor of a regular file, open for reading and writing. Owned from here on.
        redactor: Masks secrets before anything is written.
        limit: Bytes kept, markers not counted.
        line_limit: Bytes of a line that is kept.
        markers: A complete line that holds all of them is the result (see `result_at`).
        json_lines: Write markers as JSON objects, else as text.
    """

    def __init__(
        self,
        file: int,
        redactor: Redactor,
        *,
        limit: int,
        line_limit: int,
        markers: tuple[bytes, ...] = (),
        json_lines: bool = False,
    ) -> None:
        self._file = file
        self._redacted = redactor.stream()
        self._digest = hashlib.sha256()
        self._limit = limit
        self._line_limit = max(line_limit, CHUNK)
        self._json = json_lines
        self._result = _ResultLine(markers)
        self._size = 0  # of the file
        self._line = 0  # where the current line begins in the file
        self._long: _Cut | None = None  # the current line, once it is over the limit
        self._rest: _Cut | None = None  # all behind the cut, once the stream is over the limit
        self._late = b""  # the current line behind the cut, in case it is the result
        self._late_length = 0
        self.bytes_total = 0
        self.cut_lines = 0
        self.truncated = False
        self.failure = ""
        """Why the file could not be written (a full disk); what comes after is only counted."""
        self.last_byte_at: float | None = None
        self.result_at: float | None = None
        """When the result line was complete, by the monotonic clock."""

    def feed(self, chunk: bytes) -> None:
        """Take what was read."""
        self.bytes_total += len(chunk)
        self.last_byte_at = time.monotonic()
        self._take(self._redacted.feed(chunk))

    def finish(self) -> dict[str, object]:
        """Write what is left and the marker of the cut, close the file, and say what was kept."""
        self._take(self._redacted.flush())
        if not self.failure:
            try:
                self._end()
            except OSError as error:
                self._fail(error)
        os.close(self._file)
        return {
            "bytes_total": self.bytes_total,
            "bytes_kept": self._size,
            "truncated": self.truncated,
            "sha256": self._digest.hexdigest(),
            "cut_lines": self.cut_lines,
        }

    def _take(self, data: bytes) -> None:
        if not data:
            return
        self._digest.update(data)
        if self._result.feed(data):
            self.result_at = time.monotonic()
        if not self.failure:
            try:
                self._store(data)
            except OSError as error:
                self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.failure = error.strerror or str(error)
        self.truncated = True

    def _end(self) -> None:
        if self._rest is not None:
            self._end_late_line(newline=False)
        if self._long is not None:
            self._end_long_line()
        self._mark_rest()

    def _store(self, data: bytes) -> None:
        first = data.find(b"\n") + 1
        last = data.rfind(b"\n") + 1
        if first:
            self._piece(data[:first], ends=True)
        if last > first:
            self._piece(data[first:last], ends=True)
        if last < len(data):
            self._piece(data[last:], ends=False)

    def _piece(self, data: bytes, *, ends: bool) -> None:
        """Take the end of a line, several whole lines shorter than a chunk, or the head of a line."""
        if self._rest is not None:
            self._behind_the_cut(data)
        elif self._long is not None:
            self._long.add(data)
            if ends:
                self._end_long_line()
        elif self._size - self._line + len(data) > self._line_limit and (not ends or data.count(b"\n") == 1):
            self._long = self._take_back(data)
            if ends:
                self._end_long_line()
        elif self._size + len(data) > self._limit:
            whole = data[: data.rfind(b"\n", 0, max(self._limit - self._size, 0)) + 1]
            if whole:
                self._write(whole)
                self._line = self._size
            self._rest = self._take_back(b"")
            self._behind_the_cut(data[len(whole) :])
        else:
            self._write(data)
            if ends:
                self._line = self._size

    def _behind_the_cut(self, data: bytes) -> None:
        whole = data[: data.rfind(b"\n") + 1]
        if whole and not self._result.may_be_in(self._late + whole):
            self._late_part(whole)
            self._end_late_line(newline=False)
        else:
            for line in whole.split(b"\n")[:-1]:
                self._late_part(line + b"\n")
                self._end_late_line(newline=True)
        self._late_part(data[len(whole) :])

    def _late_part(self, data: bytes) -> None:
        if self._rest is None:
            self._rest = _Cut()
        self._late_length += len(data)
        if self._late_length <= _LAST_WORD:
            self._late += data
        else:
            self._rest.add(self._late + data)
            self._late = b""

    def _end_late_line(self, *, newline: bool) -> None:
        line, self._late, self._late_length = self._late, b"", 0
        if newline and self._result.is_in(line):
            self._mark_rest()
            self._write(line)
            self._line = self._size
            self._rest = _Cut()
        elif self._rest is not None:
            self._rest.add(line)

    def _take_back(self, data: bytes) -> _Cut:
        """Cut the current line out of the file again and begin its digest with what was there."""
        cut = _Cut()
        position = self._line
        while position < self._size:
            part = os.pread(self._file, CHUNK, position)
            if not part:
                break
            cut.add(part)
            position += len(part)
        cut.add(data)
        os.ftruncate(self._file, self._line)
        os.lseek(self._file, self._line, os.SEEK_SET)
        self._size = self._line
        self.truncated = True
        return cut

    def _end_long_line(self) -> None:
        cut, self._long = self._long, None
        if cut is not None:
            self.cut_lines += 1
            self._mark(cut, "a line of ")

    def _mark_rest(self) -> None:
        cut, self._rest = self._rest, None
        if cut is not None and cut.length:
            self._mark(cut, "")

    def _mark(self, cut: _Cut, what: str) -> None:
        if self._json:
            text = f'{{"type":"skilleval.cut","bytes":{cut.length},"sha256":"{cut.digest.hexdigest()}"}}\n'
        else:
            text = f"[skilleval: {what}{cut.length} bytes cut]\n"
        self._write(text.encode())
        self._line = self._size

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]
        self._size += len(data)


class _Cut:
    """Length and digest of bytes that are not kept."""

    def __init__(self) -> None:
        self.length = 0
        self.digest = hashlib.sha256()

    def add(self, data: bytes) -> None:
        self.length += len(data)
        self.digest.update(data)


class _ResultLine:
    """Notices a complete line that holds all markers, however it is cut into chunks, without keeping the line."""

    def __init__(self, markers: tuple[bytes, ...]) -> None:
        self._markers = markers
        self._overlap = max((len(marker) for marker in markers), default=1) - 1
        self._tail = b""
        self._seen: set[bytes] = set()

    def may_be_in(self, lines: bytes) -> bool:
        """Tell, fast, whether one of these lines may be the result."""
        return bool(self._markers) and self._markers[0] in lines

    def is_in(self, line: bytes) -> bool:
        return bool(self._markers) and all(marker in line for marker in self._markers)

    def feed(self, data: bytes) -> bool:
        if not self._markers:
            return False
        data = self._tail + data
        found = False
        last = data.rfind(b"\n") + 1
        if last and (self._seen or any(marker in data for marker in self._markers)):
            for line in data[:last].split(b"\n")[:-1]:
                found = found or all(marker in self._seen or marker in line for marker in self._markers)
                self._seen = set()
        if last:
            self._seen = set()
        rest = data[last:]
        self._seen |= {marker for marker in self._markers if marker in rest}
        self._tail = rest[-self._overlap :] if self._overlap else b""
        return found
