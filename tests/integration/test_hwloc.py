"""hwloc itself, asked again: about the saved machines, the odd ones and this one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corebound.machine.discovery import live, probe
from support import needs
from support.record_oracle import ORACLE, agree, hwloc_answers, our_answers
from support.shapes import SHAPES
from support.trees import contents, saved, write

pytestmark = needs.hwloc


@pytest.mark.parametrize("machine", saved())
def test_hwloc_still_gives_the_recorded_answers(machine: str, tmp_path: Path) -> None:
    recorded = json.loads(ORACLE.read_text(encoding="utf-8"))[machine]

    assert hwloc_answers(write(contents(machine), tmp_path)) == recorded


@pytest.mark.parametrize("name", SHAPES)
def test_hwloc_reads_odd_machines_as_we_do(name: str, tmp_path: Path) -> None:
    root = write({path: text.encode() for path, text in SHAPES[name].items()}, tmp_path)
    ours, theirs = our_answers(probe(root)), hwloc_answers(root)

    assert agree(ours, theirs), (ours, theirs)


def test_hwloc_reads_this_machine_as_we_do() -> None:
    ours, theirs = our_answers(live()), hwloc_answers(None)

    assert agree(ours, theirs), (ours, theirs)
