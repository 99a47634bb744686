"""What the doctor saw when a run began, for who reads it when those processes are gone."""

from __future__ import annotations

import re

from corebound.model.host_check import HostCheck

# The one check that names processes, each as `name (id) share`.
_OF_PROCESSES = "busy processes"
_ID = re.compile(r" \(\d+\)(?= \d)")
_MEND = "end or pause what keeps CPUs busy; `corebound doctor` says how"


def value_of(one: HostCheck) -> str:
    """What was seen; an id may be another process's by now.

    >>> busy = HostCheck(check="busy processes", group="load", state="warning", value="a (7) 20 %",
    ...     why="", mend="kill -STOP 7", undo=None)
    >>> value_of(busy), mend_of(busy)
    ('a 20 %', 'end or pause what keeps CPUs busy; `corebound doctor` says how')
    """
    return _ID.sub("", one.value) if one.check == _OF_PROCESSES else one.value


def mend_of(one: HostCheck) -> str:
    """What mends a warning at any time; empty for what warns of nothing."""
    if one.state != "warning" or one.mend is None:
        return ""
    return _MEND if one.mend.startswith("kill ") else one.mend
