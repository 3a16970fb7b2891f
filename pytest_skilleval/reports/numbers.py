"""How numbers are written, everywhere: one home, and a table of examples as its test."""

from __future__ import annotations

__all__ = ["ci", "count", "money", "p_value", "percent", "points", "score", "seconds", "size", "tokens"]


def percent(value: float | None) -> str:
    """Write a share: `0%`, `7.5%`, `100%`, `-`."""
    if value is None:
        return "-"
    text = f"{100 * value:.1f}"
    return f"{text.removesuffix('.0')}%"


def score(value: float | None) -> str:
    """Write a score: `0.000` to `1.000`, `-`."""
    return "-" if value is None else f"{value:.3f}"


def points(value: float | None) -> str:
    """Write a difference with its sign: `+0.120`, `-0.050`, `0.000`."""
    if value is None:
        return "-"
    return "0.000" if abs(value) < 0.0005 else f"{value:+.3f}"


def ci(interval: tuple[float, float] | None, *, share: bool = False, signed: bool = False) -> str:
    """Write an interval: `[0.43, 0.89]`, `[43%, 89%]`, `[-0.12, +0.30]`."""
    if interval is None:
        return ""
    low, high = interval
    if share:
        return f"[{100 * low:.0f}%, {100 * high:.0f}%]"
    return f"[{low:+.2f}, {high:+.2f}]" if signed else f"[{low:.2f}, {high:.2f}]"


def count(number: int, noun: str) -> str:
    """Write a number with its noun: `1 case`, `0 errors`, `1,234 trials`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def seconds(value: float | None) -> str:
    """Write a duration: `0.4 s`, `59 s`, `2 min 05 s`, `1 h 01 min`."""
    if value is None:
        return "-"
    if value < 9.95:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def money(value: float | None) -> str:
    """Write US dollars: `$0.0123`, `$12.30`, `-` when unknown."""
    if value is None:
        return "-"
    return f"${value:.4f}" if value < 1 else f"${value:,.2f}"


def tokens(value: float | None) -> str:
    """Write a number of tokens: `950`, `12.3k`, `1.20M`, `-` when unknown."""
    if value is None:
        return "-"
    if value < 1000:
        return f"{value:.0f}"
    return f"{value / 1000:.1f}k" if value < 999_950 else f"{value / 1e6:.2f}M"


def size(value: int) -> str:
    """Write a number of bytes: `0 B`, `999 B`, `1.5 kB`, `12.0 MB`."""
    if value < 1000:
        return f"{value} B"
    return f"{value / 1000:.1f} kB" if value < 999_950 else f"{value / 1e6:.1f} MB"


def p_value(value: float | None) -> str:
    """Write a probability: `0.034`, `0.50`, `< 0.001`, `-`."""
    if value is None:
        return "-"
    if value < 0.001:
        return "< 0.001"
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}"
