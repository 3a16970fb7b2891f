"""The report inside a proof bundle, taken apart."""

from __future__ import annotations

import pytest

from pytest_skilleval.scoring.account import parse_account

REPORT = """\
# Noise of the greeting skill

## Summary

The rate is 0.6 [0.23, 0.88].

## 1. Setup and environment

```sh
# a comment
python -m venv .venv
SEED=4 pytest --trials 5
```

Steps
-----

```console
$ pytest cases -n 4
200 passed
```

```python
$ not_a_shell = 1
print("x")
```

## Results

| case | rate |
|------|------|
| resize | 0.4 |

## Evidence

See [the run](runs/report.json), ![screen](shots/screen%201.png "Screen"), [log][log] and <a href="run.cast">this</a>.
Also [outside](https://example.com/x.png), [up](#summary), `code.txt`.

```
[not a link](nowhere.txt)
```

[log]: notes.txt

## Issues

- resize is flaky: 2 of 5
- rotate is slow

## Empty
"""

NAMES = {"report.md", "runs/report.json", "shots/screen 1.png", "notes.txt", "run.cast"}


def test_sections_are_found_by_their_words_and_must_hold_something() -> None:
    share, missing = parse_account(REPORT).completeness(("Summary", "Setup", "Steps", "Results", "Evidence", "Issues"))
    assert (share.value, missing) == (1.0, ())
    share, missing = parse_account(REPORT).completeness(("Summary", "Empty", "Conclusion", "Set"))
    assert (share.value, missing) == (0.25, ("Empty", "Conclusion", "Set"))
    assert share.reason == "1 of 4 sections; not: Empty, Conclusion, Set"


def test_a_heading_inside_a_code_block_is_no_section() -> None:
    account = parse_account("# Summary\n\n```\n# Results\nnone\n```\n")
    assert account.completeness(("Results",))[1] == ("Results",)


def test_references_are_links_and_pictures_to_local_files() -> None:
    account = parse_account(REPORT)
    assert set(account.references()) == {"runs/report.json", "shots/screen%201.png", "notes.txt", "run.cast"}
    assert account.unresolved("report.md", NAMES) == ()


@pytest.mark.parametrize(
    ("link", "resolves"),
    [
        ("runs/report.json", True),
        ("./runs/report.json#L3", True),
        ("runs/", True),
        ("runs", True),
        ("runs/absent.json", False),
        ("../secret.txt", False),
        ("/etc/passwd", False),
        ("runs/../../run.cast", False),
    ],
)
def test_a_reference_must_name_a_file_of_the_bundle(link: str, resolves: bool) -> None:
    unresolved = parse_account(f"[x]({link})").unresolved("report.md", NAMES)
    assert unresolved == (() if resolves else (link,))


def test_references_start_from_the_reports_own_folder() -> None:
    account = parse_account("[x](report.json) [y](../run.cast)")
    assert account.unresolved("runs/summary.md", NAMES) == ()
    assert account.unresolved("report.md", NAMES) == ("report.json", "../run.cast")


@pytest.mark.parametrize(
    ("issues", "value"),
    [
        ("- resize is flaky\n- drift in rotate\n", 1.0),
        ("- resize is flaky\n- rotate is slow\n", 0.5),
        ("1. slow\n2. odd\n", 0.0),
        ("| case | kind |\n|---|---|\n| resize | Flaky |\n| rotate | slow |\n", 0.5),
        ("No issues were found.\n", 1.0),
        ("It is flaky.\n", 1.0),
        ("It is odd.\n", 0.0),
        ("- resize is unflakyish\n", 0.0),
    ],
)
def test_findings_are_named_by_the_taxonomy(issues: str, value: float) -> None:
    account = parse_account(f"# Summary\n\nAll well.\n\n# Issues\n\n{issues}")
    assert account.taxonomy(("flaky", "drift", "underpowered")).value == value


def test_commands_count_fully_in_setup_or_steps_and_half_elsewhere() -> None:
    account = parse_account(REPORT)
    assert [command for _, command in account.commands] == [
        "python -m venv .venv",
        "SEED=4 pytest --trials 5",
        "pytest cases -n 4",
    ]
    assert account.reproducibility().value == 1.0
    assert parse_account("# Results\n\n```bash\npytest\n```\n").reproducibility().value == 0.5
    assert parse_account("# Steps\n\nRun pytest.\n\n```python\nprint(1)\n```\n").reproducibility().value == 0.0


def test_a_report_of_any_shape_is_read_without_fault() -> None:
    for text in ("", "```", "[x](", "|", "===\n---\n", "#" * 1000, "[" * 20_000, "<a " * 20_000, "\x00" * 100):
        account = parse_account(text)
        account.references()
        account.taxonomy(("flaky",))
        account.reproducibility()
