"""Reading a stream of JSON lines: odd lines cost nothing but themselves."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from pytest_skilleval.providers.stream import LINE_BYTES, Stream


def events(path, data):
    path.write_bytes(data)
    stream = Stream(path)
    return list(stream), stream.unparsed


def test_b37_odd_lines_are_numbered_and_every_event_is_kept(tmp_path):
    data = (
        b"\xef\xbb\xbfStarting up ...\n"
        b"\n"
        b"\x1b[32mready\x1b[0m\n"
        b'{"n":1}\n{"n":2}\n{"n":3}\n'
        b'{"n":3.5, "text": "half an ev\n'
        b'{"n":4}\n'
    )
    found, unparsed = events(tmp_path / "s", data)
    assert [event["n"] for event in found] == [1, 2, 3, 4]
    assert unparsed == [1, 3, 7]


def test_a_byte_order_mark_before_an_event_does_not_hide_it(tmp_path):
    assert events(tmp_path / "s", b'\xef\xbb\xbf{"n":1}\n') == ([{"n": 1}], [])


def test_a_last_line_without_an_end_is_an_event(tmp_path):
    assert events(tmp_path / "s", b'{"n":1}\n{"n":2}') == ([{"n": 1}, {"n": 2}], [])


def test_values_that_are_no_objects_or_no_json_are_no_events(tmp_path):
    data = b'[1]\nnull\n"x"\n{"a":NaN}\n{"a":-Infinity}\n' + b"[" * 100_000 + b"\n" + b'{"a":' * 100_000 + b"\n"
    assert events(tmp_path / "s", data) == ([], [1, 2, 3, 4, 5, 6, 7])


def test_b40_undecodable_bytes_and_half_characters_are_replaced_not_fatal(tmp_path):
    data = (
        b'{"a":"'
        + bytes(range(0x80, 0x100))
        + b'"}\n{"a":"\\ud800","b":"\\ud83d\\ude00"}\n'
        + bytes(range(256))
        + b"\n"
    )
    found, unparsed = events(tmp_path / "s", data)
    assert found[1] == {"a": "?", "b": "\U0001f600"}
    assert len(found) == 2
    for event in found:
        json.dumps(event, ensure_ascii=False).encode("utf-8")
    assert unparsed == [3, 4]  # the bytes 00-FF hold a line end


def test_only_the_first_hundred_odd_lines_are_numbered(tmp_path):
    found, unparsed = events(tmp_path / "s", b"x\n" * 1000 + b'{"n":1}\n')
    assert found == [{"n": 1}]
    assert unparsed == list(range(1, 101))


def test_a_file_that_is_not_there_has_no_events(tmp_path):
    assert list(Stream(tmp_path / "none")) == []


@given(st.lists(st.one_of(st.binary(max_size=40), st.just(b'{"type":"x"}')), max_size=20))
def test_any_bytes_give_exactly_the_lines_that_are_objects(tmp_path_factory, lines):
    lines = [line.replace(b"\n", b"") for line in lines]
    path = tmp_path_factory.mktemp("any") / "s"
    found, _ = events(path, b"\n".join([b"", *lines]))
    assert sum(event == {"type": "x"} for event in found) == sum(line.strip() == b'{"type":"x"}' for line in lines)


MEASURED = """
import sys
from pathlib import Path
from pytest_skilleval.providers.stream import Stream
stream = Stream(Path(sys.argv[1]))
print([(len(event.get("text", "")), event["n"]) for event in stream], stream.unparsed)
# Not getrusage: its maximum starts at what the process that forked had.
print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


def test_b39_a_huge_line_is_skipped_in_little_memory_and_the_result_after_it_is_read(tmp_path):
    path = tmp_path / "s"
    with path.open("wb") as file:
        file.write(b'{"n":1,"text":"' + b"x" * 5_000_000 + b'"}\n')
        file.write(b'{"n":2,"text":"')
        file.seek(300_000_000, 1)  # a hole: it takes no space, and reads as bytes
        file.write(b'"}\n{"n":3}\n')
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path)],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (512 * 2**20, 512 * 2**20)),
    )
    said, peak = done.stdout.splitlines()
    assert said == "[(5000000, 1), (0, 3)] [2]"
    assert int(peak) < 150 * 1024


def test_a_line_as_long_as_the_limit_is_still_whole(tmp_path):
    path = tmp_path / "s"
    head, tail = b'{"n":1,"text":"', b'"}\n'
    path.write_bytes(head + b"x" * (LINE_BYTES - len(head) - len(tail)) + tail + b'{"n":2}\n')
    assert [event["n"] for event in Stream(path)] == [1, 2]
