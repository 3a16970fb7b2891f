"""Text that tries to leave its place, for every place that a report has."""

from __future__ import annotations

from typing import Any

from pytest_skilleval.results import Report

from .made import compared, made, trial

PAYLOADS = (
    '"><script>window.hit=1</script>',
    "</script><script>window.hit=2</script>",
    "</style><img src=x onerror=window.hit=3>",
    "<img src=x onerror='window.hit=4'>",
    '" onmouseover="window.hit=5" autofocus onfocus="window.hit=5" x="',
    "' onmouseover='window.hit=6' x='",
    "<svg/onload=window.hit=7>",
    "javascript:window.hit=8",
    "{{ 7*7 }}{% raw %}${7*7}#{7*7}",
    "--><script>window.hit=9</script><!--",
    "]]><script>window.hit=10</script>",
    "</pre></details></main></title></textarea><script>window.hit=11</script>",
    '<iframe srcdoc="<script>parent.hit=12</script>"></iframe>',
    '<a href="javascript:window.hit=13" id=q>x</a><base href="https://example.invalid/">',
    '<meta http-equiv="refresh" content="0;url=https://example.invalid/">',
    '<link rel=stylesheet href="https://example.invalid/x.css"><img src="https://example.invalid/x.png">',
    "<style>@import url(https://example.invalid/y.css);*{display:none}</style>",
    "&lt;script&gt;window.hit=14&lt;/script&gt;",
    "\u2028<script>window.hit=15</script>\u2029",
    '<math><mtext></form><form><mglyph><svg><mtext><style><path id="</style><img onerror=window.hit=16 src>">',
)
CONTROLS = (
    "".join(map(chr, range(32)))
    + "\x7f"
    + "".join(map(chr, range(0x80, 0xA0)))
    + "\u202e\u2066\u200f\ufeff\ufffe\uffff\ud800"
)
ANSI = "\x1b[2J\x1b]8;;https://example.invalid\x07link\x1b]8;;\x07\x1b]52;c;aGk=\x07\x9b31m"
MARKDOWN = (
    "a | b | c",
    "![x](https://example.invalid/x.png)",
    "[x](javascript:alert(1))",
    "<b>bold</b> &amp;",
    "**bold** _it_ ~~no~~ `code`",
    "``` \n# head\n```",
    "https://example.invalid www.example.invalid",
    "@someone user@example.invalid :fire: $x$",
    "line\n\n| new | row |\n|---|---|",
    "\\| \\` trailing \\",
    "- item\n1. item\n> quote\n# head\n---",
    "</details><script>x</script>",
)


def poisoned(text: str) -> dict[str, Any]:
    """A trial whose every free text is this."""
    return trial(
        case=text,
        condition=text,
        outcome="error",
        reason=text,
        error={"class": "internal", "message": text},
        checks=[
            {
                "id": text,
                "kind": text,
                "passed": False,
                "reason": text,
                "error": True,
                "judged": {"provider": text, "model": text, "answers": ["no"], "evidence": text},
            }
        ],
        score={"total": 0.5, "components": [{"id": text, "value": 0.5, "weight": 2.0, "reason": text}]},
        selected_skill=text,
        artifacts=[{"name": text, "kind": text, "path": text, "bytes": 5, "digest": text, "truncated": True}],
        exposure={"skills": [{"name": text, "digest": text}]},
        isolation={"sandbox": "none", "sandbox_reason": text},
        notes=[text],
    )


def poisoned_report(texts: tuple[str, ...]) -> Report:
    """A report that holds each of these wherever a case, an agent, a provider or a baseline could have put it."""
    all_text = " ".join(texts)
    comparison = compared(
        reasons=[all_text],
        added=[all_text],
        removed=[{"lane": all_text, "case": all_text}],
        skills=[{"skill": all_text, "condition": all_text, "baseline": all_text, "candidate": None}],
        kind=all_text,
    )
    comparison["baseline"] = {"run": all_text, "digest": all_text, "trials": 3}
    for row in comparison["groups"]:
        row |= {"case": all_text, "text": all_text}
    return made(
        trials=[poisoned(text) for text in texts],
        run={
            "id": all_text,
            "argv": list(texts),
            "notes": list(texts),
            "reasons": list(texts),
            "provider": {"id": all_text, "version": all_text, "model": all_text, "effort": all_text, "simulated": True},
            "environment": {"os": all_text, "packages": {all_text: all_text}},
            "commit": {"sha": all_text, "dirty": True},
            "skills": [{"name": all_text, "digest": all_text}],
        },
        comparison=comparison,
        readings=[{"lane": "execution", "diagnosis": all_text, "text": all_text}],
        lift=[
            {
                "lane": "execution",
                "metric": all_text,
                "of": all_text,
                "value": 0.1,
                "ci": (0.0, 0.2),
                "cases": 3,
                "note": all_text,
            }
        ],
        gate={"passed": False, "mode": all_text, "reasons": [all_text, *texts]},
        power={"reasons": [all_text]},
    )


def steps(text: str) -> list[dict[str, Any]]:
    """A transcript whose every text is this."""
    return [
        {"type": "context", "text": text},
        {"type": "prompt", "text": text},
        {"type": "tool", "name": text, "command": text, "output": text, "status": text},
        {"type": "skill", "name": text, "how": text, "evidence": text},
        {"type": text, "text": text},
        {"type": "answer", "text": text},
    ]
