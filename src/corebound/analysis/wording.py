"""The wording of results: configurations, ratios, verdicts, dates."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, Protocol, Self

from msgspec import Struct
from msgspec.structs import replace

from corebound.machine.doctor.result import State
from corebound.scenario.cell import BindingMode, Cell
from corebound.scenario.metrics import Metric
from corebound.scenario.settings import SETTINGS
from corebound.stats.comparison import Comparison, Verdict
from corebound.stats.intervals import Interval, is_usable, is_usable_ratio, is_usable_spread
from corebound.units import duration, percent, ratio

Tone = Literal["good", "bad", "warn", "plain"]


class TextSpan(Struct, frozen=True):
    """A piece of text with one style; strong text may link to an address."""

    text: str
    kind: Literal["plain", "strong", "good", "bad", "code"]
    link: str = ""


Text = tuple[TextSpan, ...]


class Label(Struct, frozen=True, kw_only=True):
    """A cell's name: coloured by binding mode, with the rest of its axes."""

    mode: str
    name: str
    more: str

    @property
    def whole(self) -> str:
        """The name in running text: `physical cores, 2 threads`."""
        return f"{self.name}, {self.more}" if self.more else self.name


class VerdictWord(Struct, frozen=True, kw_only=True):
    """A verdict as tone, sign and word."""

    tone: Tone
    sign: str
    word: str

    @property
    def text(self) -> str:
        """The sign and the word."""
        return f"{self.sign} {self.word}".strip()


class Flag(Struct, frozen=True, kw_only=True):
    """A notice about the results; `link` is an address or empty."""

    tone: Tone
    sign: str
    title: str
    detail: str
    link: str = ""

    @classmethod
    def warning(cls, title: str, detail: str, link: str = "") -> Self:
        """A warning that some results are doubtful or left out."""
        return cls(tone="warn", sign="!", title=title, detail=detail, link=link)


class ValueWithBounds(Struct, frozen=True, kw_only=True):
    """A value with its unit, and its bounds below it; `ends` is empty if they are unknown."""

    value: str
    ends: str = ""


_BINDINGS: dict[BindingMode, tuple[str, str]] = {
    # mode: (name, what one does to get it)
    "none": ("unbound", "Leaving threads unbound"),
    "one-cpu": ("one CPU", "Binding to one CPU"),
    "cpus": ("chosen CPUs", "Binding to chosen CPUs"),
    "physical-cores": ("physical cores", "Binding to physical cores"),
    "logical-cpus": ("logical CPUs", "Binding to all logical CPUs"),
    "smt-siblings": ("SMT siblings", "Binding to SMT siblings"),
    "cache": ("one cache", "Binding to one cache"),
    "node": ("one node", "Binding to one node"),
    "socket": ("one socket", "Binding to one socket"),
    "per-worker": ("cores per worker", "Giving each worker cores of its own"),
    "compact": ("compact", "Packing threads close together"),
    "scatter": ("scattered", "Scattering threads"),
    "launcher": ("PyTorch's launcher (run_cpu)", "Using PyTorch's launcher (run_cpu)"),
}
_VERDICTS: dict[Verdict, VerdictWord] = {
    "faster": VerdictWord(tone="good", sign="▲", word="faster"),
    "slower": VerdictWord(tone="bad", sign="▼", word="slower"),
    "equivalent": VerdictWord(tone="plain", sign="≈", word="equivalent"),
    "inconclusive": VerdictWord(tone="plain", sign="?", word="inconclusive"),
}
_CHECKS: dict[State, tuple[Tone, str]] = {
    "ok": ("good", "✓"),
    "warning": ("warn", "!"),
    "unavailable": ("plain", "–"),
}
# A smaller difference from 1 counts as none.
_MOST_DECIMALS = 9
# Percentages below this have a decimal.
_SMALL_SHARE = 0.1
# Ten thousand years: no measurement lasts that long, so the value is unknown.
_LONGEST_NS = 3e20
# Shown instead of an interval that is too wide to be useful.
TOO_WIDE = "values differ too much"
# Shown instead of an interval where one side was launched once.
ONE_LAUNCH = "no interval: 1 launch"
# A headline says how large a difference is at least, if its interval spans more than this factor.
_WIDE = 2.0
REFERENCE = VerdictWord(tone="plain", sign="", word="baseline")
NOT_MEASURED = VerdictWord(tone="warn", sign="!", word="no valid launch")
NOT_COMPARED = VerdictWord(tone="plain", sign="", word="not compared")
NO_BASELINE = VerdictWord(tone="plain", sign="", word="baseline not measured")


def verdict_word(verdict: Verdict, words: tuple[str, str] = ("faster", "slower")) -> VerdictWord:
    """A verdict as sign, word and tone; the meaning never depends on colour alone."""
    known = _VERDICTS[verdict]
    if verdict in {"faster", "slower"}:
        return replace(known, word=words[verdict == "slower"])
    return known


def check_sign(state: State) -> tuple[Tone, str]:
    """The tone and sign before a host check; the check's state is also written as a word."""
    return _CHECKS[state]


# Why a comparison is inconclusive. `budget`: the run's budget ended before the launches that the
# scenario asks for.
OpenReason = Literal["one launch", "disturbance", "budget", "spread"]


def open_reason(comparison: Comparison, *, out_of_budget: bool = False) -> OpenReason | None:
    """Why a comparison is inconclusive; None if it is decided.

    Args:
        out_of_budget: Whether the budget ended before the launches that the scenario asks for.
    """
    if comparison.verdict != "inconclusive":
        return None
    interval = comparison.interval
    if interval is not None and not interval.contains(1):
        # By its interval it is decided: only a disturbance of the slower side prevents that.
        return "disturbance"
    if comparison.p_value is None and comparison.pairs < 2:
        return "one launch"
    return "budget" if out_of_budget else "spread"


def open_note(comparison: Comparison | None, reason: OpenReason | None = None) -> str:
    """What is missing to decide a comparison, below its interval; empty if decided or unknown.

    Args:
        reason: Why it is inconclusive, if more is known of that than the comparison says.
    """
    if comparison is None:
        return ""
    reason = reason or open_reason(comparison)
    if reason == "disturbance":
        return "disturbed by other programs"
    needed = comparison.launches_needed
    notes = (
        "the budget ended" if reason == "budget" else "",
        f"about {needed:,} launches each" if needed else "",
    )
    return ", ".join(filter(None, notes))


def rich(*parts: str | TextSpan) -> Text:
    """Text made of pieces; bare strings are plain.

    >>> rich("a ", strong("b"))[0].kind
    'plain'
    """
    return tuple(TextSpan(part, "plain") if isinstance(part, str) else part for part in parts)


def coded(text: str) -> Text:
    """Text in which passages between backticks are code; an unmatched backtick stays.

    >>> [piece.kind for piece in coded("Set `threads: 1` here.")]
    ['plain', 'code', 'plain']
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return rich(text)
    return tuple(
        TextSpan(part, "code" if index % 2 else "plain") for index, part in enumerate(parts) if part
    )


def strong(text: str, link: str = "") -> TextSpan:
    """An emphasised piece of text, which may link to an address."""
    return TextSpan(text, "strong", link)


def plain(text: Text) -> str:
    """Text without its styles, for titles and descriptions."""
    return "".join(piece.text for piece in text)


def mode_class(mode: BindingMode) -> str:
    """The CSS class that colours a binding mode, the same on every page."""
    return f"m-{mode}"


def binding_name(cell: Cell) -> str:
    """A cell's binding as a name: `physical cores`, `CPUs 0-3`."""
    if cell.binding.mode == "cpus":
        return f"CPUs {dict(cell.axes).get('binding', '')}".strip()
    if cell.binding.mode == "launcher" and cell.runtime.server is not None:
        return "TorchServe's launcher (run_cpu)"
    return _BINDINGS[cell.binding.mode][0]


def axis_value(cell: Cell, axis: str) -> str:
    """A cell's value on an axis, in words.

    >>> from support.build import a_cell
    >>> axis_value(a_cell(axes=(("threads", "per-core"),)), "threads")
    'one thread per core'
    >>> axis_value(a_cell(axes=(("cpu_quota", "1.5"),)), "cpu_quota")
    'quota of 1.5 CPUs'
    >>> axis_value(a_cell(axes=(("openmp", "llvm"),)), "openmp")
    "LLVM's OpenMP"
    """
    value = dict(cell.axes).get(axis, "")
    if axis == "binding":
        return binding_name(cell)
    if axis in SETTINGS and (name := SETTINGS[axis].words.get(value)) is not None:
        return name
    if axis in _DESCRIBED:
        return _DESCRIBED[axis](value)
    return f"{axis.removeprefix('parameters.').replace('_', ' ')} {value}"


def label(cell: Cell) -> Label:
    """A cell's name in a table: the first axis, or the binding, then the others."""
    axes = [axis for axis, _ in cell.visible_axes]
    first = "binding" if "binding" in axes or not axes else axes[0]
    others = ", ".join(axis_value(cell, axis) for axis in axes if axis != first)
    name = binding_name(cell) if first == "binding" else axis_value(cell, first)
    return Label(mode=mode_class(cell.binding.mode), name=name, more=others)


def full_name(cell: Cell) -> str:
    """A cell's name in running text: `physical cores, 2 threads`."""
    return label(cell).whole


def doing(cell: Cell, other: Cell) -> str:
    """What one does to get this cell instead of the other, as the subject of a sentence."""
    differing = differing_axes(cell, other)
    if "binding" in differing:
        name, start = _BINDINGS[cell.binding.mode]
        start = start.replace(name, binding_name(cell))
        rest = [axis_value(cell, axis) for axis in differing if axis != "binding"]
        return start + (f" with {' and '.join(rest)}" if rest else "")
    values = " and ".join(axis_value(cell, axis) for axis in differing)
    return f"Running with {values}" if values else capital(full_name(cell))


_IMPERATIVES = {
    "Leaving": "Leave",
    "Binding": "Bind",
    "Giving": "Give",
    "Packing": "Pack",
    "Scattering": "Scatter",
    "Using": "Use",
    "Running": "Run",
}


def instruction(cell: Cell, other: Cell) -> str:
    """What to do to get this cell instead of the other: `Bind to one CPU`, without a full stop."""
    subject = doing(cell, other)
    first, _, rest = subject.partition(" ")
    return f"{_IMPERATIVES[first]} {rest}" if first in _IMPERATIVES else f"Use {subject}"


def compared_with(cell: Cell, other: Cell) -> str:
    """The other cell, named by its differences from the first; default values are left out."""
    differing = differing_axes(cell, other)
    values = dict(other.axes)
    named = [axis for axis in differing if axis == "binding" or values.get(axis) != "default"]
    names = [axis_value(other, axis) for axis in named or differing]
    return " with ".join(names[:2]) + "".join(f" and {name}" for name in names[2:])


def capital(text: str) -> str:
    """Capitalise the first letter; the others stay, because names may contain capitals.

    >>> capital("one CPU")
    'One CPU'
    """
    return text[:1].upper() + text[1:]


def differing_axes(cell: Cell, other: Cell) -> list[str]:
    """The axes on which a cell has another value than the other, in the order of the file."""
    values = dict(other.axes)
    return [axis for axis, value in cell.axes if values.get(axis) != value]


def _threads(value: str) -> str:
    rules = {
        "default": "default threads",
        "per-core": "one thread per core",
        "per-cpu": "one thread per CPU",
        "host-cores": "one thread per host core",
        "cores-per-worker": "cores-per-worker threads",
        "quota": "threads by quota",
    }
    return rules.get(value) or _counted(value, "thread")


def _counted(value: str, noun: str) -> str:
    return f"{value} {noun}" if value == "1" else f"{value} {noun}s"


_DESCRIBED: Mapping[str, Callable[[str], str]] = {
    "threads": _threads,
    "workers": lambda value: _counted(value, "worker"),
    "cpu_quota": lambda value: f"quota of {_counted(value, 'CPU')}",
    "gpus": lambda value: f"on {_counted(value, 'GPU')}",
    "blocktime": lambda value: f"spinning for {value} ms",
}


def count(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> count(1, "launch", "launches"), count(1200, "cell")
    ('1 launch', '1,200 cells')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def and_more(number: int) -> str:
    """The number of remaining items after the first of many; empty if there are none.

    >>> and_more(1200), and_more(0), and_more(-2)
    ('and 1,200 more', '', '')
    """
    return f"and {number:,} more" if number > 0 else ""


def listed(names: Sequence[str], most: int) -> str:
    """The first names, at most `most`, and the number of the others.

    >>> listed(("a", "b", "c"), 2), listed(("a", "b"), 2)
    ('a, b and 1 more', 'a, b')
    """
    return f"{', '.join(names[:most])} {and_more(len(names) - most)}".rstrip()


def bounds(low: float, high: float) -> str:
    """An interval of ratios; an interval that is too wide is named as such.

    >>> bounds(1.381, 1.459), bounds(1.0001, 1.2), bounds(3.8e-05, float("inf"))
    ('1.38–1.46', '1.0001–1.20', 'values differ too much')
    """
    return f"{_bound(low)}–{_bound(high)}" if is_usable_ratio(low, high) else TOO_WIDE


def compared_bounds(comparison: Comparison | None, *, digits: int = 2) -> str:
    """The interval of a comparison, in the words of `relative_speed`, or why it has none."""
    if comparison is None:
        return ""
    if comparison.interval is not None:
        return speed_bounds(comparison.interval.low, comparison.interval.high, digits=digits)
    if open_reason(comparison) == "one launch":
        return ONE_LAUNCH
    pairs = f"{count(comparison.pairs, 'launch', 'launches')} differ"
    return f"{pairs} too much" if comparison.pairs else TOO_WIDE


def within(
    low: float, high: float, write: Callable[[float], str], *, beside: float | None = None
) -> str:
    """An interval; one that is too wide is named as such.

    Args:
        low: Its lower end.
        high: Its upper end.
        write: Formats an end with its unit.
        beside: The value that the interval is shown with. The unit is left out if it is the same.

    >>> within(1.2e6, 4.56e6, duration), within(1.2e6, 4.56e6, duration, beside=2e6)
    ('1.20–4.56 ms', '1.20–4.56')
    >>> within(8e5, 1.2e6, duration, beside=1e6), within(1.2, float("inf"), duration)
    ('800 µs–1.20 ms', 'values differ too much')
    """
    if not is_usable(low, high):
        return TOO_WIDE
    unit = "" if beside is None else write(beside).partition(" ")[2]
    return _joined(write(low), write(high), "–", unit)


def spread_bounds(low: float, high: float) -> str:
    """An interval of a spread, beside it; an interval that is too wide is named as such.

    >>> spread_bounds(0.019, 0.0765)
    '1.9–7.6'
    """
    if not is_usable_spread(low, high):
        return TOO_WIDE
    return _joined(percent(low), percent(high), "–", "%")


def ends(
    low: float, high: float, write: Callable[[float], str], *, beside: float | None = None
) -> str:
    """A minimum and a maximum, which look different from an interval.

    Args:
        write: Formats either with its unit.
        beside: The value that they are shown with. The unit is left out if it is the same.

    >>> ends(1.2e6, 4.56e6, duration), ends(8e5, 1.2e6, duration)
    ('1.20 … 4.56 ms', '800 µs … 1.20 ms')
    """
    unit = "" if beside is None else write(beside).partition(" ")[2]
    return _joined(write(low), write(high), " … ", unit)


def _joined(least: str, most: str, sign: str, omitted: str = "") -> str:
    """Two ends of a range; a shared unit is written once, or not at all if it is omitted."""
    (number, _, unit), (other, _, same) = least.partition(" "), most.partition(" ")
    if unit != same:
        return f"{least}{sign}{most}"
    return f"{number}{sign}{other} {'' if unit == omitted else unit}".rstrip()


def speedup(value: float) -> str:
    """Format a multiple of another value; below 0.1 with two significant digits.

    >>> speedup(1.4234), speedup(0.0213), speedup(0.0004)
    ('1.42×', '0.021×', '0.0004×')
    """
    return ratio(value) if value >= 0.1 else f"{value:.2g}×"


def relative_speed(
    speedup_ratio: float, *, digits: int = 2, words: tuple[str, str] = ("faster", "slower")
) -> str:
    """How much faster or slower something is; the ratio is never below 1.

    Args:
        speedup_ratio: The speed as a multiple of the other one's.
        digits: Decimals of a ratio below 10.
        words: What a ratio above 1 means, and what one below 1 means.

    >>> relative_speed(1.4234), relative_speed(0.8), relative_speed(0.02)
    ('1.42× faster', '1.25× slower', '50× slower')
    >>> relative_speed(0.9225, digits=3), relative_speed(1.004), relative_speed(1.0001)
    ('1.084× slower', '1.004× faster', '1.00×')
    """
    if not 0 < speedup_ratio < math.inf:
        return TOO_WIDE
    larger = max(speedup_ratio, 1 / speedup_ratio)
    text = times(larger, digits=digits)
    if round(larger, digits + 1) == 1:
        return text
    return f"{text} {words[0] if speedup_ratio > 1 else words[1]}"


def change_text(
    comparison: Comparison | None, words: tuple[str, str] = ("faster", "slower")
) -> str:
    """How one compares with another: `1.30× faster (95 % CI 1.21–1.39)`.

    Args:
        comparison: The comparison; None without launches of both.
        words: What a ratio above 1 means, and what one below 1 means.
    """
    if comparison is None:
        return "not compared"
    interval = comparison.interval
    if interval is None:
        looks = relative_speed(comparison.speedup_ratio, words=words)
        return f"looks {looks} ({compared_bounds(comparison)})"
    text: str = comparison.verdict
    if text in {"faster", "slower"}:
        text = relative_speed(comparison.speedup_ratio, words=words)
    return f"{text} (95 % CI {speed_bounds(*interval.ends)})"


def precise_speed(
    speedup_ratio: float,
    ends: tuple[float, float] | None,
    words: tuple[str, str] = ("faster", "slower"),
) -> str:
    """A ratio with a third decimal, for commits, and its interval (low, high), if there is one.

    `words` are as in `relative_speed`.

    >>> precise_speed(0.9225, (0.89, 0.956)), precise_speed(0.9225, None)
    ('1.084× slower (95 % CI 1.046–1.124)', '1.084× slower (values differ too much)')
    """
    bounds_text = TOO_WIDE if ends is None else speed_bounds(*ends, digits=3)
    name = "" if bounds_text == TOO_WIDE else "95 % CI "
    return f"{relative_speed(speedup_ratio, digits=3, words=words)} ({name}{bounds_text})"


def headline_speed(comparison: Comparison, words: tuple[str, str] = ("faster", "slower")) -> str:
    """How much faster or slower, for a headline: if that is hardly known, how much at least."""
    interval = comparison.interval
    if interval is None or interval.contains(1) or interval.high <= _WIDE * interval.low:
        return relative_speed(comparison.speedup_ratio, words=words)
    nearest = interval.low if interval.low > 1 else interval.high
    return f"at least {relative_speed(nearest, words=words)}"


def speed_bounds(low: float, high: float, *, digits: int = 2) -> str:
    """The interval of a speed-up beside its `relative_speed`; of one that is too wide, its end.

    An interval on both sides of 1 is in per cent, because its ends point in two directions.

    >>> speed_bounds(1.381, 1.459), speed_bounds(0.67, 0.9), speed_bounds(0.97, 1.054)
    ('1.38–1.46', '1.11–1.49', '−3.0 to +5.4 %')
    >>> speed_bounds(0.996, 1.78), speed_bounds(0.99999, 1.78)
    ('−0.4 to +78 %', '0 to +78 %')
    >>> speed_bounds(1.37, 9e4), speed_bounds(0.01, 9.0)
    ('≥1.37', 'values differ too much')
    """
    if not is_usable_ratio(low, high):
        # The nearer end is a bound even where the other one says nothing.
        nearest = max(low, 1 / high if high > 0 else 0.0)
        return f"≥{_bound(nearest, digits)}" if nearest > 1 else TOO_WIDE
    if low >= 1:
        return f"{_bound(low, digits)}–{_bound(high, digits)}"
    if high <= 1:
        return f"{_bound(1 / high, digits)}–{_bound(1 / low, digits)}"
    decimals = 1 if max(1 - low, high - 1) < _SMALL_SHARE else 0
    least, most = (_signed((end - 1) * 100, decimals) for end in (low, high))
    return f"{least} to {most} %".replace("-", "\N{MINUS SIGN}")


def _signed(number: float, decimals: int) -> str:
    """A number with its sign; with one more decimal if it would be 0, and without sign if it is."""
    texts = (f"{number:+,.{places}f}" for places in (decimals, decimals + 1))
    return next((text for text in texts if float(text.replace(",", ""))), "0")


def times(factor: float, *, digits: int = 2) -> str:
    """Format a ratio of at least 1; one just above 1 has one more of these decimals.

    >>> times(1.304), times(1.0179), times(1.004), times(1.0001), times(24.2), times(1234)
    ('1.30×', '1.02×', '1.004×', '1.00×', '24×', '1,234×')
    """
    if factor >= 10:
        return f"{factor:,.0f}×" if factor < 1e15 else f"{factor:.1e}×"
    is_close = round(factor, digits) == 1 < round(factor, digits + 1)
    return f"{factor:.{digits + is_close}f}×"


def _bound(value: float, digits: int = 2) -> str:
    if value >= 10:
        return f"{value:,.{0 if value >= 100 else 1}f}"
    if value >= 0.1 or value == 0:
        # An interval that excludes 1 must not be printed as one that includes it.
        texts = (f"{value:.{decimals}f}" for decimals in range(digits, _MOST_DECIMALS + 1))
        return next((text for text in texts if float(text) != 1), f"{value:.{digits}f}")
    return f"{value:.3f}" if value >= 0.01 else f"{value:.2g}"


def day(moment: str) -> str:
    """An ISO timestamp to the minute, in a readable form.

    >>> day("2026-01-02T03:04:05Z")
    '2026-01-02 03:04 UTC'
    """
    return f"{moment[:10]} {moment[11:16]} UTC" if len(moment) >= 16 else moment


def total_time(value_ns: float) -> str:
    """The total time of launches, which may be minutes.

    >>> total_time(90e9), total_time(3_660e9)
    ('90.0 s', '61 minutes')
    """
    if not value_ns:
        return "0 s"
    minutes = value_ns / 60e9
    return duration(value_ns) if minutes < 2 else count(round(minutes), "minute")


def about_time(value_s: float) -> str:
    """How long something is expected to take, in the unit that one would say.

    >>> about_time(3), about_time(44), about_time(130), about_time(9000)
    ('about 10 seconds', 'about 40 seconds', 'about 2 minutes', 'about 2.5 hours')
    """
    if value_s < 90:
        return f"about {max(round(value_s, -1), 10):.0f} seconds"
    minutes = value_s / 60
    return f"about {minutes:.0f} minutes" if minutes < 90 else f"about {minutes / 60:.1f} hours"


def time_text(value_ns: float | None) -> str:
    """A duration; a dash if there is none, and ∞ for an unknown upper end."""
    if value_ns is None:
        return "–"
    return "∞" if value_ns > _LONGEST_NS else duration(value_ns)


class _Measured(Protocol):
    """A cell, or what stands for one on several hosts."""

    @property
    def metric(self) -> Metric | None:
        """What is compared instead of its time, if it is."""


def value_text(value_ns: float | None, cell: _Measured) -> str:
    """The value of a cell, in the unit of its metric, or as a duration."""
    return time_text(value_ns) if cell.metric is None else cell.metric.text(value_ns)


def value_bounds(interval: Interval | None, cell: Cell, beside: float | None = None) -> str:
    """The interval of a cell's value, as by `within`; empty if there is none."""
    if interval is None:
        return ""
    low, high = interval.low, interval.high
    text = within(low, high, partial(value_text, cell=cell), beside=beside)
    if cell.metric is None or cell.metric.better == "lower" or text == TOO_WIDE:
        return text
    # The longest time is the lowest rate.
    unit = "" if beside is None else cell.metric.unit
    return _joined(cell.metric.text(high), cell.metric.text(low), "–", unit)


def value_span(span: tuple[float, float], cell: Cell) -> str:
    """The lowest and the highest of several values of a cell."""
    low, high = span if cell.metric is None or cell.metric.better == "lower" else span[::-1]
    return _joined(value_text(low, cell), value_text(high, cell), " … ")
