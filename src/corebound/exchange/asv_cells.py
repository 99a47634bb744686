"""What asv calls machines and combinations of parameters, as texts that can be shown."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from corebound.exchange.reading import clean

_QUOTED = re.compile(r"""^u?'(.+)'$|^<class '(.+)'>$""")
# NumPy 2 writes `np.float64(0.1)` where NumPy 1 wrote `0.1`.
_SCALAR = re.compile(r"^(?:np|numpy)\.(?:bool|str|bytes|u?int|float|complex)_?\d*\((.+)\)$")
# NumPy 1.14 writes `[0. 1.]` where those before wrote `[ 0.  1.]`.
_PADDED = re.compile(r"(?<=\[) +| +(?=\])|(?<=[\d.]) +(?= [-\d.])")
# Where an object lay in memory, which is elsewhere in every process.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@lru_cache(maxsize=4096)
def cells_of(
    params: tuple[tuple[str, ...], ...], names: tuple[str, ...], environment: str
) -> tuple[str, ...]:
    """The key of each combination of parameters, in asv's order."""
    if len(names) != len(params):
        names = tuple(f"param{number}" for number, _ in enumerate(params, start=1))
    axes = [
        [f"{label(name)}={value}" for value in _values(values)]
        for name, values in zip(names, params, strict=True)
    ]
    where = f"environment={label(environment)}"
    cells = [",".join((*words, where)) for words in itertools.product(*axes)]
    # Values have commas and equal signs of their own.
    return tuple(_apart(cells))


def _values(values: Sequence[str]) -> list[str]:
    """Values without what only Python writes, unless two of them would then be the same."""
    bare = [label(_bare(value)) for value in values]
    if len(set(bare)) == len(bare):
        return bare
    return _apart([label(value) for value in values])


def _apart(texts: Sequence[str]) -> list[str]:
    """Texts with their place behind those that stand there more than once."""
    twice = Counter(texts)
    return [f"{text} ({index})" if twice[text] > 1 else text for index, text in enumerate(texts)]


def _bare(value: str) -> str:
    value = _ADDRESS.sub("", value) if value.startswith("<") else value
    scalar = _SCALAR.match(value)
    value = scalar.group(1) if scalar else value
    value = _PADDED.sub("", value) if "[" in value else value
    found = _QUOTED.match(value)
    return (found.group(1) or found.group(2)) if found else value


def label(text: str) -> str:
    """A text that can be shown; those that were cut or mended still differ from one another."""
    shown = clean(text)
    if shown == text:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{shown} #{digest[:6]}"
