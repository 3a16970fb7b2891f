"""Show with two recorded runs when a failed trial makes pytest red, and when not."""

from proof import keep_run, record, write_json, write_report

one = record("one", "pytest", "--trials", "1", "--skilleval-case=birds", about="one trial a condition ran")
single = keep_run("one.json", "the run with one trial each")
many = record("many", "pytest", "--trials", "3", "--skilleval-case=birds", about="three trials a condition ran")
report = keep_run("many.json", "the run with three trials each")

failed = {name: run["run"]["counts"]["failed"] for name, run in (("one", single), ("many", report))}
write_json("status.json", {"one": one, "many": many, "failed": failed}, "exit statuses and failed trials, to be read by a program")
write_report(
    report,
    summary=f"With one trial each the failed trial under self-load is **red** and pytest ends with {one}; with three trials each all {failed['many']} failed "
    f"trials are **missed** and pytest ends with {many}. The failed trial of a **control** is never red.",
    results=[
        f"- one trial a condition: {failed['one']} failed (one of them under none, a control), exit status {one}",
        f"- three trials a condition: {failed['many']} failed, exit status {many}; a gate or a baseline would decide",
    ],
    issues="- **red**: one trial is a test, so its failure is one\n- **missed**: several trials are a measurement, which a gate judges\n"
    "- **control**: under none the agent has no skill, and is expected to fail\n\nAn error would be red in both runs; none occurred.",
)
