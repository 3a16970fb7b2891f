"""`skilleval lifts`: several providers side by side, and pooled over the cases that all of them measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.commands.conftest import Said, Shell

NONE = {f"c{number}:none": "ff" for number in range(1, 5)}
CLAUDE = NONE | {"c1:self-load": "pf", "c2:self-load": "pp", "c3:self-load": "pf", "c4:self-load": "ff"}
CODEX = NONE | {"c1:self-load": "ff", "c2:self-load": "pf", "c3:self-load": "ff", "c4:self-load": "ff"}


def pooled(said: Said, metric: str = "realised", of: str = "pass_rate") -> dict[str, Any]:
    (row,) = [row for row in said.json["pooled"] if (row["metric"], row["of"]) == (metric, of)]
    return row


def test_each_provider_has_its_own_lifts_and_the_pooled_one_is_clustered_by_case(shell: Shell) -> None:
    shell.judged("one", CLAUDE, provider="claude", model="m")
    shell.judged("two", CODEX, provider="codex")
    said = shell("lifts", "one", "two", "--json")
    assert (said.status, said.err) == (0, "")
    lifts = {one["name"]: one["lift"] for one in said.json["providers"]}
    assert {name: [row["value"] for row in rows] for name, rows in lifts.items()} == {
        "claude m": [0.5, 0.5],
        "codex": [0.125, 0.125],
    }
    # By hand: the cases' means over providers are 1/4, 3/4, 1/4 and 0; mean 0.3125, sd 0.314576, t(3) = 3.182446,
    # half width 3.182446 * 0.314576 / 2 = 0.500560. Eight units taken as independent would give 0.311.
    for of in ("pass_rate", "score"):
        row = pooled(said, of=of)
        assert (row["lane"], row["value"], row["cases"], row["units"]) == ("execution", 0.3125, 4, 8)
        assert row["ci"] == pytest.approx([0.3125 - 0.500560, 0.3125 + 0.500560], abs=1e-5)
    assert said.json["notes"] == []


def test_all_four_lifts_are_pooled_with_the_sign_of_the_reports(shell: Shell) -> None:
    cases = {
        f"c{number}:{condition}": letters
        for number in (1, 2)
        for condition, letters in {"none": "pf", "self-load": "pf", "preloaded": "pp", "stale": "ff"}.items()
    }
    shell.judged("one", cases, provider="claude")
    shell.judged("two", cases, provider="codex")
    said = shell("lifts", "one", "two", "--json")
    for metric, value in {"realised": 0.0, "oracle": 0.5, "routing_gap": 0.5, "stale_harm": 0.5}.items():
        assert pooled(said, metric)["value"] == value
        low, high = pooled(said, metric)["ci"]
        assert low < value < high


def test_the_table_has_a_column_for_each_provider_and_one_for_all(shell: Shell) -> None:
    shell.judged("one", CLAUDE, provider="claude", model="m")
    shell.judged("two", CODEX, provider="codex")
    lines = shell("lifts", "one", "two").out.splitlines()
    assert lines[0].split("  ")[0] == "lane"
    assert [word.strip() for word in lines[0].split("  ") if word.strip()][3:] == ["claude m", "codex", "pooled"]
    assert lines[2].split()[:3] == ["execution", "realised", "pass_rate"]
    assert "+0.312 [-0.19, +0.81] (4 cases)" in lines[2]


def test_a_case_that_one_provider_did_not_measure_is_not_pooled(shell: Shell) -> None:
    shell.judged("one", CLAUDE, provider="claude")
    shell.judged("two", CODEX | {"c2:self-load": "ee"}, provider="codex")
    said = shell("lifts", "one", "two", "--json")
    row = pooled(said)
    # 1/4, 1/4 and 0 are left.
    assert (row["value"], row["cases"], row["units"]) == (pytest.approx(1 / 6), 3, 6)
    assert any("run two is invalid" in note for note in said.json["notes"])


def test_a_case_whose_text_or_skill_differs_is_not_pooled_and_said(shell: Shell) -> None:
    shell.judged("one", CLAUDE, provider="claude")
    shell.judged("two", CODEX, provider="codex", fingerprint="e" * 16)
    shell.judged("three", CODEX, provider="codex", skill="b" * 64)
    for other in ("two", "three"):
        said = shell("lifts", "one", other, "--json")
        assert (pooled(said)["value"], pooled(said)["cases"]) == (None, 0)
        names = "execution:c1, execution:c2, execution:c3, execution:c4"
        assert said.json["notes"] == [f"4 cases not pooled, for the text or the skill differs: {names}"]
        assert said.json["providers"][0]["lift"][0]["value"] == 0.5


def test_a_simulated_provider_is_named_as_such(shell: Shell) -> None:
    shell.judged("one", CLAUDE)
    said = shell("lifts", "one")
    assert "note: stub: simulated, no agent was run" in said.out
    assert "pooled" not in said.out


def test_a_run_without_two_conditions_has_no_lift(shell: Shell) -> None:
    shell.judged("one", {"c1:none": "pf"}, provider="claude")
    assert shell("lifts", "one").out.startswith("no lift: ")


def test_the_same_provider_twice_is_refused(shell: Shell) -> None:
    shell.judged("one", CLAUDE, provider="claude")
    shell.judged("two", CODEX, provider="claude")
    said = shell("lifts", "one", "two")
    assert said.status == 4
    assert "claude is in more than one report; give one for each provider: `skilleval merge`" in said.err


def test_a_run_that_is_not_judged_is_refused(shell: Shell) -> None:
    shell.run("one", CLAUDE, provider="claude")
    said = shell("lifts", "one")
    assert said.status == 4
    assert "has no report.json, which skilleval lifts needs" in said.err
