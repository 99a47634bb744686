"""Our topology agrees with hwloc's about saved, unusual and live machines."""

import json
from pathlib import Path

import pytest

from corebound.machine.discovery import live_topology, saved_topology
from support import needs
from support.hwloc import HWLOC_ANSWERS, agree, hwloc_answers, our_answers
from support.machine_trees import UNUSUAL_MACHINES, machine_files, saved_machines, write_files

pytestmark = needs.hwloc


@pytest.mark.parametrize("machine", saved_machines())
def test_hwloc_gives_the_recorded_answers(machine: str, tmp_path: Path) -> None:
    recorded = json.loads(HWLOC_ANSWERS.read_text(encoding="utf-8"))[machine]

    assert hwloc_answers(write_files(machine_files(machine), tmp_path)) == recorded


@pytest.mark.quick
@pytest.mark.parametrize("name", UNUSUAL_MACHINES)
def test_hwloc_agrees_about_unusual_machines(name: str, tmp_path: Path) -> None:
    root = write_files(
        {path: text.encode() for path, text in UNUSUAL_MACHINES[name].items()}, tmp_path
    )
    ours, theirs = our_answers(saved_topology(root)), hwloc_answers(root)

    assert agree(ours, theirs), (ours, theirs)


@pytest.mark.quick
def test_hwloc_agrees_about_this_machine() -> None:
    ours, theirs = our_answers(live_topology()), hwloc_answers(None)

    assert agree(ours, theirs), (ours, theirs)
