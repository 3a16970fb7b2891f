"""The built-in anti-patterns: habits that spoil a measurement, or hide that there was none."""

from __future__ import annotations

from pytest_skilleval.casespec import AntiPattern

__all__ = ["BUILT_IN"]

# Gaps stay within a sentence and are bounded, so that no pattern here is slow.
_GAP = r"[^.;\n]{0,60}"
_AGAIN = (
    r"(?:re-?run(?:ning)?|run(?:ning)?|re-?tr(?:y|ies|ied|ying)|try(?:ing)?|repeat(?:ing|ed)?|loop(?:ing)?"
    r"|keep\w*\s+running)"
)
_GREEN = r"(?:green|pass(?:es|ing|ed)?|succeeds?|works?|clean)"
_PURPOSE = r"(?:pass|green|so\s+that|to\s+get|to\s+make)"
_RUNNER = r"(?:pytest|skilleval|make\s+(?:eval|test))"
_PYTHON = r"(?:uv\s+run\s+|python\d?\s+-m\s+)?"
_BASELINE = r"--(?:skilleval-)?compare-baseline\b"
_ERRORED = (
    r"(?:error(?:s|ed)?(?:\s+trials)?|errored\s+(?:trials|runs)|missing\s+trials|timeouts"
    r"|trials\s+that\s+(?:errored|crashed|timed\s+out))\b"
)


def _pattern(name: str, severity: str, fix: str, *patterns: str) -> AntiPattern:
    return AntiPattern.model_validate({"id": name, "severity": severity, "fix": fix, "patterns": patterns})


_ALL = (
    _pattern(
        "rerun-until-green",
        "error",
        "Fix the number of trials beforehand (--trials N), run once, and report all of them with the interval.",
        rf"(?i)\b{_AGAIN}\b{_GAP}\b(?:until|till)\b{_GAP}\b{_GREEN}\b",
        rf"(?i)\b(?:until|while\s+!)\s+{_PYTHON}{_RUNNER}\b[^\n]*\bdo\b",
        r"(?i)\bpytest\b[^\n|&;]*\s(?:--reruns\b|--only-rerun\b)",
        rf"(?i)\bpytest\b[^\n]*\|\|\s*{_PYTHON}pytest\b",
    ),
    _pattern(
        "one-run-comparison",
        "error",
        "Run several trials of both versions (--trials 5 or more) and let --compare-baseline judge the difference.",
        rf"(?i)\b(?:run|try|test|execute|measure)\b{_GAP}\bonce\b{_GAP}\b(?:each|both|with\s+and\s+without|compar\w+)\b",
        rf"(?i)\b(?:run|try|test|execute|measure)\b{_GAP}\b(?:each|both|with\s+and\s+without)\b{_GAP}\bonce\b",
        rf"(?i)\b(?:compar\w+|contrast\w*)\b{_GAP}\b(?:a\s+single|one|1)\s+(?:run|trial)\b",
        r"(?i)\b(?:a\s+single|one)\s+(?:run|trial)\s+(?:each|per\s+(?:version|side|condition))\b",
        r"(?i)\b(?:a\s+single|one)\s+(?:run|trial)\s+is\s+(?:enough|sufficient)\b",
        rf"(?i)--trials[= ]1\b[^\n]*{_BASELINE}",
        rf"(?i){_BASELINE}[^\n]*--trials[= ]1\b",
    ),
    _pattern(
        "mean-without-interval",
        "warning",
        "Read the interval beside the mean; while it holds 0, the difference is not shown.",
        r"(?i)\b(?:just|only|simply)\s+(?:look\s+at|compare|check|report|read|quote)\s+the\s+(?:two\s+)?"
        r"(?:mean|average|pass[ -]rate|score)s?\b",
        r"(?i)\b(?:mean|average|pass[ -]rate|score)\s+(?:is|was|went|rose|looks|increased)\s+(?:\w+\s+)?"
        rf"(?:higher|better|up|larger|improved)\b{_GAP}\bso\b{_GAP}\b(?:improve[ds]?|better|helps?|works?|ship|merge)\b",
        r"(?i)\b(?:ignore|skip|leave\s+out|drop|omit)\s+(?:the\s+)?(?:confidence\s+)?intervals?\b",
    ),
    _pattern(
        "dropped-errors",
        "error",
        "Keep errors and missing trials beside the rate, mend the cause, and run these again with --skilleval-resume.",
        r"(?i)\b(?:drop|ignor|exclud|remov|delet|discard|skip|filter|throw)\w*\s+(?:out\s+|away\s+)?"
        rf"(?:all\s+|the\s+|any\s+|those\s+)?{_ERRORED}",
        r"(?i)\bcount\w*\s+(?:the\s+|all\s+)?(?:errors|errored\s+trials|missing\s+trials)\s+as\s+(?:pass|fail)\w*",
    ),
    _pattern(
        "best-seed",
        "error",
        "Choose the seed before the run and report every trial of it.",
        r"(?i)\b(?:pick|choos|select|keep|report|us|tak|publish|show)(?:e|es|ing|s)?\s+(?:only\s+)?(?:the\s+|our\s+)?"
        r"(?:best|luckiest|highest[- ]scoring|top)[- ](?:\w+[- ])?(?:seed|run|trial|result|attempt|score)s?\b",
        rf"(?i)\b(?:try|search|sweep|loop\s+over)\b{_GAP}\bseeds?\b{_GAP}\b(?:best|until|highest|passes|wins)\b",
        r"(?i)\bfor\s+\w*seed\w*\s+in\b[^\n]*(?:\bpytest\b|\bskilleval\b)[^\n]*\bbreak\b",
    ),
    _pattern(
        "trials-until-significant",
        "error",
        "Plan the number of trials first (skilleval plan), then look once.",
        rf"(?i)\b(?:add|run|collect|increase)\w*\b{_GAP}\b(?:trials?|runs?|samples?)\b{_GAP}\b(?:until|till)\b{_GAP}"
        r"\b(?:significan\w+|p\s*<|improved|better|excludes?\s+(?:0|zero))",
    ),
    _pattern(
        "loosened-check",
        "error",
        "Leave the check as it is, or mend it in a change of its own and measure both versions again.",
        r"(?i)\b(?:loosen|weaken|relax|delet|remov|disabl|comment\s+out|skip)\w*\s+(?:the\s+|a\s+|that\s+|this\s+)?"
        rf"(?:failing\s+|strict\s+|broken\s+)?(?:checks?|assertions?|cases?|tests?)\b{_GAP}\b{_PURPOSE}",
        rf"(?i)\b(?:lower|reduc)\w*\s+(?:the\s+)?(?:min_pass_rate|threshold|gate)\b{_GAP}\b{_PURPOSE}",
    ),
    _pattern(
        "edited-results",
        "error",
        "Leave records alone; `skilleval rebuild` makes the report again from them.",
        r"(?i)\bsed\s+-i\b[^\n]*\b(?:report|record|intent)\.json\b",
        r"(?i)\b(?:edit|chang|adjust|patch)\w*\s+(?:the\s+)?(?:numbers|results?|(?:report|record)\.json)\s+"
        r"(?:by\s+hand|manually|directly)\b",
        r"(?i)>\s*(?:\S*/)?record\.json\b",
    ),
    _pattern(
        "sleep-instead-of-wait",
        "warning",
        "Wait for the event itself (a file, a port, a process's end), with a limit.",
        r"(?im)(?:^|[;&|(`]|\bdo\b|\bthen\b)[ \t]*sleep\s+\d",
        r"\btime\.sleep\(\s*\d",
        r"(?i)\b(?:add|use|insert)\s+an?\s+(?:\w+\s+)?sleep\b",
    ),
    _pattern(
        "unbounded-wait",
        "warning",
        "Give the loop a limit and an error when it is reached.",
        r"(?i)\bwhile\s+(?:true|:|\[\s*1\s*\])\s*;?\s*do\b",
        r"\bwhile\s+(?:True|1)\s*:",
    ),
    _pattern(
        "hidden-failure",
        "warning",
        "Let the exit status through; --skilleval-gate says what is to be red.",
        rf"(?i)\b{_RUNNER}\b[^\n]*\|\|\s*(?:true\b|:(?:\s|$)|exit\s+0\b)",
        r"(?i)\bcontinue-on-error:\s*true\b",
    ),
)

BUILT_IN: dict[str, AntiPattern] = {anti_pattern.id: anti_pattern for anti_pattern in _ALL}
"""The anti-patterns that a case can name."""
