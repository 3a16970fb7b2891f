"""Run all cases, one of which cannot be set up, and keep its errors out of the rate and in the report."""

from proof import groups, keep_run, rate, record, write_json, write_report

status = record("run", "pytest", "--trials", "4", "--skilleval-condition=self-load", about="the evals ran, errors and all")
report = keep_run("run.json", "the run")

found = groups(report)
errors = sorted({(t["case"], t["error"]["class"]) for t in report["trials"] if t["outcome"] == "error"})
message = next(t["error"]["message"] for t in report["trials"] if t["outcome"] == "error")
passed, n = sum(g["passed"] for g in found.values()), sum(g["n"] for g in found.values())
counts = report["run"]["counts"]
triage = {"errors": dict(errors), "error": counts["error"], "passed": passed, "n": n, "status": report["run"]["status"], "exit_status": status}
write_json("triage.json", triage, "the numbers, to be read by a program")
write_report(
    report,
    summary=f"{passed} of {n} measured trials passed; each **failure** among them is the agent's. Beside them stand {counts['error']} trials with an **error**, all of "
    f"{errors[0][0]}, and {counts['missing']} **missing** ones. The run is {report['run']['status']} and gives no verdict.",
    results=[f"- {case}: {rate(group)}" for case, group in found.items()],
    issues=f"- **error**: {errors[0][0]} could not be measured (class {errors[0][1]}: {message}). Its case must be mended; then\n"
    "  `pytest --skilleval-resume` runs these trials again.\n"
    f"- **failure**: {n - passed} measured trials did not do what was asked\n- **missing**: {counts['missing']}, every planned trial came home",
)
