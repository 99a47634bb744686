"""Faults of a scenario file by their lines and facts, so that their wording is free to change."""

from itertools import zip_longest

import pytest
import yaml

from support.paths import DATA
from support.texts import in_order


def fault_cases(name: str, **heads: str) -> pytest.MarkDecorator:
    """Parametrise a test by `text` and `expected` of each case in `tests/data/faults`.

    Args:
        name: A file's name without its suffix.
        heads: What comes before the text of a case that names it with `after`.
    """
    cases = yaml.safe_load((DATA / "faults" / f"{name}.yaml").read_text(encoding="utf-8"))
    return pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param(heads.get(case.get("after"), "") + case["text"], case["faults"], id=id_)
            for id_, case in cases.items()
        ],
    )


def unlike(told: str, expected: list[str], file: str = "f.yaml") -> list[tuple[str, str]]:
    """Return the faults that differ from what is expected, each with that.

    Args:
        told: A fault on each line: `f.yaml:6: what. fix`.
        expected: Of each fault the number of its line and facts in order: `6 | one | another`.
        file: The file that the faults name.
    """
    pairs = zip_longest(told.splitlines(), expected, fillvalue="")
    return [(line, facts) for line, facts in pairs if not facts or not _has(line, facts, file)]


def _has(line: str, facts: str, file: str) -> bool:
    number, *others = facts.split(" | ")
    return line.startswith(f"{file}:{number}: ") and in_order(line, *others)
