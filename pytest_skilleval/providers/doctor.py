"""The exposure check: what an agent's model would see in each condition, asked of the real program, for nothing.

Claude Code is started once a condition against an endpoint on the loopback interface; Codex prints its own prompt. No
model is asked, and a key is not needed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_skilleval.casespec import CaseSpec, Lane
from pytest_skilleval.errors import UserMistake
from pytest_skilleval.model import CONDITIONS, Case, Condition, Skill, TrialId
from pytest_skilleval.skills import install, preload_text
from pytest_skilleval.workspace.home import Home, home_base, make_home

from .base import Ask, Launch, ProviderSettings
from .claude import Claude
from .cli import AgentCli
from .codex import Codex
from .exposure import Finding, examine
from .loopback import Loopback, strings_in

__all__ = ["CHECKED", "check_exposure"]

CHECKED = ("claude", "codex")
"""The providers that can be checked."""
SECONDS = 60.0
_PROMPT = "Answer with the word ok."
_KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "CODEX_API_KEY"}


def check_exposure(
    name: str, settings: ProviderSettings, skills: Sequence[Skill], stale: Sequence[Skill] = ()
) -> Iterator[Finding]:
    """Yield what the agent sees of the skills in each condition, against what it should.

    Args:
        name: `claude` or `codex`.
        settings: As for a run; keys and login files are not used.
        skills: The skills under test.
        stale: Their stale versions; without any, that condition is left out.

    Raises:
        UserMistake: The provider cannot be checked, is not there, or did not start.
    """
    if name not in CHECKED:
        raise UserMistake(f"{name}: cannot be checked without asking a model; allowed: {', '.join(CHECKED)}")
    foreign = _foreign(settings)
    for condition in CONDITIONS.values():
        shown = stale if condition.installs == "stale" else skills
        if condition.installs == "stale" and not stale:
            continue
        text, said = _look(name, settings, condition, shown)
        yield from examine(condition, shown, text, foreign, said)


def _look(name: str, settings: ProviderSettings, condition: Condition, skills: Sequence[Skill]) -> tuple[str, str]:
    """Return all that the model would see, and what the program said on stderr."""
    base = home_base(settings.rootpath)
    place = make_home(base, "doctor", uuid.uuid4().hex[:20], settings.environ)
    try:
        place.install_git()
        return (
            _claude(settings, place, condition, skills)
            if name == "claude"
            else _codex(settings, place, condition, skills)
        )
    finally:
        shutil.rmtree(place.root, ignore_errors=True)
        for folder in (place.root.parent, base):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _claude(settings: ProviderSettings, place: Home, condition: Condition, skills: Sequence[Skill]) -> tuple[str, str]:
    with Loopback() as endpoint:
        provider = Claude(_offline(settings, "claude", endpoint.url))
        ask = _question(provider, place, condition, skills)
        launch = provider.prepare(ask)
        _, said = _run(launch.argv, ask, launch)
        if not endpoint.requests:
            raise UserMistake(
                f"{launch.argv[0]}: asked nothing within {SECONDS:g} s: {said[-300:] or 'no error output'}"
            )
        return endpoint.text, said


def _codex(settings: ProviderSettings, place: Home, condition: Condition, skills: Sequence[Skill]) -> tuple[str, str]:
    provider = Codex(_offline(settings, "codex", None))
    ask = _question(provider, place, condition, skills)
    launch = provider.prepare(ask)
    chosen = ("-c", f"model={json.dumps(settings.model)}") if settings.model is not None else ()
    out, said = _run((launch.argv[0], "debug", "prompt-input", *chosen, _PROMPT), ask, launch)
    try:
        return "\n".join(strings_in(json.loads(out))), said
    except ValueError:
        raise UserMistake(f"{launch.argv[0]} debug prompt-input: printed no JSON: {(said or out)[-300:]}") from None


def _offline(settings: ProviderSettings, name: str, url: str | None) -> ProviderSettings:
    """Return settings with a key that is none, and the loopback endpoint in place of the user's."""
    options = {key: value for key, value in settings.options.items() if key in ("program", "args", "env")}
    kept = {key: value for key, value in settings.environ.items() if key == "PATH"}
    return replace(
        settings,
        environ={**kept, _KEYS[name]: "sk-loopback"},
        options={**options, "base_url": url} if url is not None else options,
        record=None,
        replay=None,
    )


def _question(provider: AgentCli, place: Home, condition: Condition, skills: Sequence[Skill]) -> Ask:
    system = ""
    if condition.installs != "nothing":
        for skill in skills:
            install(skill, provider.skill_root(place.home))
    elif condition.preloads:
        system = "\n\n".join(preload_text(skill, install(skill, place.home / "skill")) for skill in skills)
    case = Case(
        lane=Lane.EXECUTION,
        id="doctor",
        spec=CaseSpec(prompt=_PROMPT),
        path=place.scratch / "doctor.yaml",
        line=1,
    )
    return Ask(
        id=TrialId(case.lane, case.id, condition.name, 1),
        case=case,
        kind=case.lane.kind,
        condition=condition,
        prompt=_PROMPT,
        system=system,
        skills=tuple(skills) if condition.installs != "nothing" else (),
        under_test=None,
        home=place.home,
        workspace=place.work,
        tmp=place.tmp,
        scratch=place.scratch,
        env=place.env,
        budget=case.spec.budget,
    )


def _run(argv: Sequence[str], ask: Ask, launch: Launch) -> tuple[str, str]:
    """Run a command to its end and return what it printed; its whole group is ended after it."""
    stdout, stderr = ask.scratch / "stdout", ask.scratch / "stderr"
    with (launch.stdin or Path(os.devnull)).open("rb") as given, stdout.open("wb") as out, stderr.open("wb") as err:
        process = subprocess.Popen(
            argv,
            cwd=ask.workspace,
            env={**ask.env, **launch.env},
            stdin=given,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, number)
                    process.wait(3)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue
    return tuple(path.read_bytes().decode("utf-8", "replace") for path in (stdout, stderr))  # type: ignore[return-value]


def _foreign(settings: ProviderSettings) -> Mapping[str, str]:
    """Return the user's own instructions: their presence in a prompt would be a leak."""
    home = Path(settings.environ.get("HOME", ""))
    paths = [home / ".claude" / "CLAUDE.md", home / ".codex" / "AGENTS.md"]
    paths += [folder / name for folder in (settings.rootpath, home) for name in ("CLAUDE.md", "AGENTS.md")]
    paths += sorted(
        path for root in (".claude", ".agents", ".codex") for path in (home / root / "skills").glob("*/SKILL.md")
    )
    found = {}
    for path in paths:
        try:
            found[str(path)] = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    return found
