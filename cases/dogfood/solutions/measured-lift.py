"""Measure the skill with and without it, five trials each, and prove the lift."""

from proof import groups, keep_run, rate, record, write_report

record("run", "pytest", "--trials", "5", "--skilleval-condition=none", "--skilleval-condition=self-load", about="the evals ran")
report = keep_run("run.json", "the run")

lift = next(x for x in report["lift"] if (x["metric"], x["of"]) == ("realised", "pass_rate"))
low, high = lift["ci"]
clear = low > 0
word = "lift" if clear else "underpowered"
results = ["| case | without the skill | installed |", "|---|---|---|"]
without, installed = groups(report, "none"), groups(report)
results += [f"| {case} | {rate(without[case])} | {rate(installed[case])} |" for case in installed]
results += ["", f"Lift in pass rate: {lift['value']:+.3f} (95 % interval {low:+.3f} to {high:+.3f}, {lift['cases']} cases)."]
write_report(
    report,
    summary=f"**{word}**: the skill changes the pass rate by {lift['value']:+.3f} (95 % interval {low:+.3f} to {high:+.3f}) over {lift['cases']} cases. "
    + ("The interval excludes 0." if clear else "The interval holds 0, so this may be noise; more cases would tell."),
    results=results,
    issues="- **noise**: the four cases differ much, which makes the interval wide; it lies between cases, not between trials.\n"
    f"- **{word}**: five trials of four cases, nothing left out.",
)
