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
    return tuple(",".join((*words, where)) for words in itertools.product(*axes))


def _values(values: Sequence[str]) -> list[str]:
    """Values without their quotes, unless two of them would then be the same."""
    bare = [label(_bare(value)) for value in values]
    if len(set(bare)) == len(bare):
        return bare
    quoted = [label(value) for value in values]
    twice = Counter(quoted)
    return [
        f"{value} ({index})" if twice[value] > 1 else value for index, value in enumerate(quoted)
    ]


def _bare(value: str) -> str:
    found = _QUOTED.match(value)
    return (found.group(1) or found.group(2)) if found else value


def label(text: str) -> str:
    """A text that can be shown; those that were cut or mended still differ from one another."""
    shown = clean(text)
    if shown == text:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{shown} #{digest[:6]}"
