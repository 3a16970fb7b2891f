"""Find the case on whose result one can rely least, and sort the others."""

from proof import groups, keep_run, rate, record, write_json, write_report

record("run", "pytest", "--trials", "8", "--skilleval-condition=self-load", about="every case got eight trials")
report = keep_run("run.json", "the run")

found = groups(report)
flaky = max(found, key=lambda case: found[case]["flip_rate"])
sort = {
    case: "never-passes" if group["passed"] == 0 else "stable" if group["flip_rate"] < 0.2 else "flaky"
    for case, group in found.items()
}
write_json("flaky.json", {"case": flaky, "flip_rate": found[flaky]["flip_rate"], "sorted": sort}, "the finding, to be read by a program")
write_report(
    report,
    summary=f"**{flaky}** is the flakiest: {rate(found[flaky])}, two of its trials disagree in {found[flaky]['flip_rate']:.0%} of pairs.",
    results=[f"- {case}: **{sort[case]}**, {rate(group)}, flip rate {group['flip_rate']:.2f}" for case, group in found.items()],
    issues="\n".join(f"- {case} is **{word}**" for case, word in sort.items() if word != "stable")
    + "\n\nEight trials leave wide intervals: a case called stable may still flip now and then. One that never passes is not flaky but out of reach.",
)
