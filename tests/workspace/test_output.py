"""One output stream on its way to a file: cut to size, redacted, digested, in bounded memory."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_skilleval.redaction import Redactor
from pytest_skilleval.workspace.output import CHUNK, Output, open_output

RESULT = b'{"type":"result","subtype":"success"}\n'
MARKERS = (b'"type":"result"', b'"subtype"')


def pump(path, chunks, *, secrets=(), limit=1 << 30, line_limit=1 << 20, markers=(), json_lines=True):
    output = Output(
        open_output(os.fsencode(path)),
        Redactor(list(secrets)),
        limit=limit,
        line_limit=line_limit,
        markers=markers,
        json_lines=json_lines,
    )
    for chunk in chunks:
        for start in range(0, len(chunk), CHUNK):
            output.feed(chunk[start : start + CHUNK])
    return output, output.finish(), path.read_bytes()


def sha(data):
    return hashlib.sha256(data).hexdigest()


def test_what_fits_is_kept_byte_for_byte_with_its_digest(tmp_path):
    data = b"one\ntwo\nhalf a li"
    output, kept, stored = pump(tmp_path / "out", [data[:5], data[5:]])
    assert stored == data
    assert kept == {"bytes_total": 17, "bytes_kept": 17, "truncated": False, "sha256": sha(data), "cut_lines": 0}
    assert output.result_at is None


def test_b40_undecodable_bytes_are_kept_raw_also_at_a_chunk_border(tmp_path):
    data = bytes(range(256)) + b"x" * (CHUNK - 257) + b"\x80" + b'\n"\\ud800"\n\0\n'
    _, kept, stored = pump(tmp_path / "out", [data])
    assert stored == data
    assert kept["sha256"] == sha(data)


def test_b39_a_line_over_the_limit_becomes_a_marker_and_its_neighbours_stay_whole(tmp_path):
    long = b'{"text":"' + b"x" * (3 << 20) + b'"}\n'
    five = b'{"text":"' + b"y" * 1000 + b'"}\n'
    _, kept, stored = pump(tmp_path / "out", [five + long + RESULT], line_limit=1 << 20)
    lines = stored.splitlines(keepends=True)
    assert lines[0] == five
    assert json.loads(lines[1]) == {"type": "skilleval.cut", "bytes": len(long), "sha256": sha(long)}
    assert lines[2] == RESULT
    assert len(lines) == 3
    assert (kept["truncated"], kept["cut_lines"]) == (True, 1)
    assert kept["bytes_total"] == len(five + long + RESULT)
    assert kept["sha256"] == sha(five + long + RESULT)


def test_a_line_of_exactly_the_limit_is_kept(tmp_path):
    line = b"x" * (CHUNK - 1) + b"\n"
    _, kept, stored = pump(tmp_path / "out", [line, b"x" + line], line_limit=CHUNK)
    assert stored.startswith(line)
    assert json.loads(stored[len(line) :])["bytes"] == CHUNK + 1
    assert kept["cut_lines"] == 1


def test_an_unfinished_long_line_at_the_end_is_marked_too(tmp_path):
    _, kept, stored = pump(tmp_path / "out", [b"short\n" + b"x" * (2 * CHUNK)], line_limit=CHUNK, json_lines=False)
    assert stored == b"short\n[skilleval: a line of %d bytes cut]\n" % (2 * CHUNK)
    assert kept["cut_lines"] == 1


def test_over_the_limit_whole_lines_are_kept_and_the_rest_is_counted_on_a_line_of_its_own(tmp_path):
    lines = b"".join(b"%04d\n" % number for number in range(1000))
    _, kept, stored = pump(tmp_path / "out", [lines[:333], lines[333:]], limit=102, json_lines=False)
    assert stored == lines[:100] + b"[skilleval: 4900 bytes cut]\n"
    assert kept == {
        "bytes_total": 5000,
        "bytes_kept": len(stored),
        "truncated": True,
        "sha256": sha(lines),
        "cut_lines": 0,
    }


def test_a_line_that_begins_below_the_limit_and_ends_above_is_cut_as_a_whole(tmp_path):
    _, _, stored = pump(tmp_path / "out", [b"head\n", b"0123", b"456789\n", b"tail\n"], limit=12)
    lines = stored.splitlines(keepends=True)
    assert lines[0] == b"head\n"
    assert json.loads(lines[1]) == {"type": "skilleval.cut", "bytes": 16, "sha256": sha(b"0123456789\ntail\n")}
    assert len(lines) == 2


def test_the_result_line_is_kept_although_it_comes_after_the_cut(tmp_path):
    flood = b'{"type":"assistant"}\n' * 10_000
    output, kept, stored = pump(
        tmp_path / "out", [flood + RESULT[:9], RESULT[9:] + b"bye\n"], limit=1000, markers=MARKERS
    )
    lines = stored.splitlines(keepends=True)
    before, result, after = lines[-3:]
    assert result == RESULT
    assert json.loads(before)["bytes"] == len(flood) - 47 * len(b'{"type":"assistant"}\n')
    assert json.loads(after)["bytes"] == len(b"bye\n")
    assert output.result_at is not None
    assert kept["truncated"]


def test_the_result_is_noticed_wherever_the_chunks_are_cut(tmp_path):
    data = b'{"type":"assistant"}\n' + RESULT
    for cut in range(len(data)):
        output, _, _ = pump(tmp_path / "out", [data[:cut], data[cut:]], markers=MARKERS)
        assert output.result_at is not None, cut


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(RESULT[:-1], id="no end of line"),
        pytest.param(b'{"type":"result"}\n{"subtype":1}\n', id="markers on two lines"),
        pytest.param(b'{"text":"\\"type\\":\\"result\\" \\"subtype\\""}\n', id="quoted inside another event"),
    ],
)
def test_what_only_looks_like_the_result_is_not_taken_for_it(tmp_path, data):
    for cut in range(len(data)):
        output, _, _ = pump(tmp_path / "out", [data[:cut], data[cut:]], markers=MARKERS)
        assert output.result_at is None, cut


def test_b43_no_form_of_a_secret_reaches_the_disk_at_any_chunk_size(tmp_path):
    secret = "sk-test-AAAABBBB/CCCC"
    data = (
        b'{"header":"Bearer sk-test-AAAABBBB/CCCC","u":"sk-test-AAAABBBB%2FCCCC","b":"c2stdGVzdC1BQUFBQkJCQi9DQ0ND"}\n'
    )
    for size in range(1, 60):
        chunks = [data[start : start + size] for start in range(0, len(data), size)]
        _, kept, stored = pump(tmp_path / "out", chunks, secrets=[secret])
        assert stored == b'{"header":"Bearer [redacted]","u":"[redacted]","b":"[redacted]"}\n'
        assert kept["sha256"] == sha(stored)
        assert kept["bytes_total"] == len(data)


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(st.sampled_from([10, 500, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK]), max_size=8),
    limit=st.integers(0, 5 * CHUNK),
    size=st.sampled_from([999, CHUNK // 3, CHUNK]),
)
def test_every_line_is_whole_or_a_marker_and_no_byte_is_uncounted(tmp_path_factory, lines, limit, size):
    data = b"".join(b"%d" % (number % 10) * (length - 1) + b"\n" for number, length in enumerate(lines))
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    _, kept, stored = pump(tmp_path_factory.mktemp("output") / "out", chunks, limit=limit, line_limit=CHUNK)
    originals = data.splitlines(keepends=True)
    position = cut = 0
    for line in stored.splitlines(keepends=True):
        if line in originals:
            position += len(line)
        else:
            marker = json.loads(line)
            assert marker["sha256"] == sha(data[position : position + marker["bytes"]])
            position += marker["bytes"]
            cut += 1
    assert position == len(data)
    assert kept["truncated"] == bool(cut)
    assert kept["sha256"] == sha(data)
    assert len(stored) <= limit + 200 * cut


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told_and_the_stream_is_still_read_and_counted():
    output = Output(os.open("/dev/full", os.O_RDWR), Redactor([]), limit=1 << 20, line_limit=1 << 20)
    output.feed(b"one\n")
    output.feed(b"two\n")
    assert output.failure == "No space left on device"
    kept = output.finish()
    assert (kept["bytes_total"], kept["bytes_kept"], kept["truncated"], kept["sha256"]) == (
        8,
        0,
        True,
        sha(b"one\ntwo\n"),
    )


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_output_goes_into_no_link_fifo_or_folder(tmp_path, kind):
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    path = tmp_path / "out"
    {"link": lambda: path.symlink_to(target), "fifo": lambda: os.mkfifo(path), "folder": path.mkdir}[kind]()
    with pytest.raises(OSError, match=r"out|Too many|directory"):
        open_output(os.fsencode(path))
    assert target.read_bytes() == b"precious"
