"""Run the same evals again with nothing changed, and say what chance alone did."""

from pathlib import Path

from proof import groups, keep, keep_run, load, record, write_json, write_report

[earlier] = Path("runs").glob("*/report.json")
record("again", "pytest", "--trials", "4", "--skilleval-seed", "7", "--skilleval-condition=self-load", about="the evals ran again")
again = keep_run("again.json", "the second run")
Path("proof/before.json").write_bytes(earlier.read_bytes())
before = load(Path("proof/before.json"))
keep("before.json", "report.json of the run that lay there")

a, b = groups(before), groups(again)
changed = sorted(case for case in a if a[case]["passed"] != b[case]["passed"])
same_skill = before["run"]["skills"] == again["run"]["skills"]
cross = {
    case: (a[case]["passed"] * b[case]["failed"] + a[case]["failed"] * b[case]["passed"]) / (a[case]["n"] * b[case]["n"])
    for case in a
}
flips = sum(cross.values()) / len(cross)
write_json("noise.json", {"changed": changed, "flip_rate": flips, "same_skill": same_skill}, "the numbers, to be read by a program")
rows = [
    f"- {case}: {a[case]['passed']}/{a[case]['n']} before, {b[case]['passed']}/{b[case]['n']} again; two trials disagree in {cross[case]:.0%} of pairs"
    for case in a
]
write_report(
    again,
    summary=f"Nothing was changed, and {len(changed)} of {len(a)} cases have another pass rate: they are **flaky**. This is no **drift**, and a comparison of four "
    "trials a case is **underpowered** for differences of this size.",
    results=[*rows, f"- over all cases two trials of the two runs disagree in {flips:.0%} of pairs"],
    issues=f"- no **drift**: the skill's digest is {'the same' if same_skill else 'another one'} in both runs, and nothing else was changed\n"
    "- **underpowered**: four cases are few, so the flip rate itself is uncertain",
)
