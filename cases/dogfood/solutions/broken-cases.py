"""Let the oracle and the no-op loose on all cases: who passes where nobody should, who fails where all should pass?"""

from proof import keep_run, record, write_json, write_report

record("oracle", "pytest", "--skilleval-provider", "oracle", "--skilleval-condition=none", about="the oracle solved every case")
oracle = keep_run("oracle.json", "the oracle's run")
record("noop", "pytest", "--skilleval-provider", "noop", "--skilleval-condition=none", about="the no-op did nothing")
noop = keep_run("noop.json", "the no-op's run")

impossible = sorted(trial["case"] for trial in oracle["trials"] if trial["outcome"] != "passed")
empty = sorted(f"{trial['case']}:{check['id']}" for trial in noop["trials"] for check in trial["checks"] if check["passed"])
sound = sorted({trial["case"] for trial in oracle["trials"]} - set(impossible) - {name.partition(":")[0] for name in empty})
write_json("findings.json", {"cannot-fail": empty, "impossible": impossible, "sound": sound}, "the findings, to be read by a program")
why = {trial["case"]: trial["reason"] for trial in oracle["trials"]}
write_report(
    noop,
    summary=f"{len(impossible)} case is **impossible**, {len(empty)} check **cannot-fail**, and {len(sound)} cases are **sound**.",
    results=[
        *(f"- {case}: **impossible**, its own solution does not pass ({why[case]})" for case in impossible),
        *(f"- {name}: **cannot-fail**, it passes where nothing was done" for name in empty),
        *(f"- {case}: **sound**" for case in sound),
    ],
    issues="\n".join([*(f"- {case} is **impossible**: mend its solution or its check" for case in impossible),
                      *(f"- {name} **cannot-fail**: it has to ask for something that must be done" for name in empty)])
    + "\n\nSound means solvable and not given away; whether a case asks for the right thing, these two runs cannot say.",
)
