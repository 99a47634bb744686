"""Format values for people; elsewhere values keep the units in their names."""

# Outside these limits a number would have too many zeros to read.
_LEAST_WRITTEN, _MOST_WRITTEN = 1e-9, 1e15
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def time_unit(value_ns: float) -> tuple[float, str]:
    """The most readable unit for a duration: its length in nanoseconds and its symbol."""
    for length_ns, symbol in _TIMES:
        if abs(value_ns) >= length_ns:
            return length_ns, symbol
    return _TIMES[-1]


def significant(value: float, digits: int = 3) -> str:
    """Format a number with `digits` significant digits; powers of ten only for extreme values.

    >>> significant(1234.5), significant(0.9876), significant(42.04), significant(1e300)
    ('1,234', '0.988', '42.0', '1.00e+300')
    """
    if value == 0:
        return "0"
    if not _LEAST_WRITTEN < abs(value) < _MOST_WRITTEN:
        return f"{value:.{digits - 1}e}"
    # 9.999 becomes 10.0: use the magnitude after rounding.
    rounded = abs(float(f"{value:.{digits - 1}e}"))
    magnitude = len(str(int(rounded))) if rounded >= 1 else 0
    decimals = max(0, digits - magnitude)
    return f"{value:,.{decimals}f}"


def duration(value_ns: float) -> str:
    """Format a duration.

    >>> duration(42_300_000), duration(850), duration(3_210_000_000)
    ('42.3 ms', '850 ns', '3.21 s')
    """
    length_ns, symbol = time_unit(value_ns)
    return f"{significant(value_ns / length_ns)} {symbol}"


def size(value_bytes: float) -> str:
    """Format a size in binary units.

    >>> size(33_554_432)
    '32 MiB'
    """
    for power, symbol in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if value_bytes >= 1024**power:
            value = value_bytes / 1024**power
            return f"{value:.0f} {symbol}" if value >= 10 else f"{value:.1f} {symbol}"
    return f"{value_bytes:.0f} B"


def counted(number: float) -> str:
    """Format a count the same way everywhere; a median or a mean may not be a whole number.

    >>> counted(12345.5), counted(174.5), counted(0.3333)
    ('12,346', '174.5', '0.333')
    """
    if number % 1 and abs(number) < 10:
        return f"{number:.3g}"
    return f"{number:,.{1 if abs(number) < 1000 else 0}f}".removesuffix(".0")


def ratio(value: float) -> str:
    """Format a ratio with a multiplication sign.

    >>> ratio(1.4234), ratio(21.04)
    ('1.42×', '21×')
    """
    return f"{value:.2f}×" if value < 10 else f"{value:,.0f}×"


def percent(share: float, digits: int = 1) -> str:
    """Format a share as a percentage, with a narrow space before the sign.

    >>> percent(0.0213)
    '2.1 %'
    """
    return f"{share * 100:.{digits}f} %"


def systemd_quota(cpus: float) -> str:
    """Format a CPU quota of 0.01 CPUs or more for `CPUQuota=`.

    systemd ignores a percentage with more than two decimals, and one with an exponent.

    >>> systemd_quota(1.5), systemd_quota(1 / 3), systemd_quota(0.01), systemd_quota(65536)
    ('150%', '33.33%', '1%', '6553600%')
    """
    return f"{100 * cpus:.2f}".rstrip("0").rstrip(".") + "%"


def cpu_quota(cpus: float | None) -> str:
    """Format a number of CPUs, such as a quota; None means that there is none.

    >>> cpu_quota(1.5), cpu_quota(1), cpu_quota(None)
    ('1.5 CPUs', '1 CPU', 'none')
    """
    return "none" if cpus is None else f"{cpus:g} CPU{'' if cpus == 1 else 's'}"
