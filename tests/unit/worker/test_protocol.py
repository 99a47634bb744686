"""Specifies the records of the protocol between runner and worker."""

import signal
from typing import Any

import pytest

from corebound.worker import protocol
from corebound.worker.operator_table import Operator, Profile


def a_profile() -> Profile:
    operator = Operator(type="mm", calls=2, total_ns=5, quiet_ns=4, min_ns=1, max_ns=3)
    return Profile(
        iterations=3, step_ns=9, outside_ns=4, operators=[operator], phases={}, trace=None
    )


@pytest.mark.parametrize(
    "message",
    [
        protocol.Phase(name="import", duration_ns=7),
        protocol.Samples(wall_ns=[1, 2], cpu_ns=[1, 1]),
        protocol.End(allowed=[[0, 1]]),
        protocol.Failure(during="setup", what="no module", fix=None),
        protocol.Failure(during="loop", what="it was killed", fix=None, ended_by="kill"),
        a_profile(),
    ],
    ids=lambda message: message.kind,
)
def test_a_message_is_one_line_that_is_read_back(message: protocol.Message) -> None:
    line = protocol.encode(message)

    assert line.index(b"\n") == len(line) - 1
    assert protocol.decode_message(line) == message


@pytest.mark.parametrize(
    "values",
    [{"name": "import"}, {"name": "import", "duration_ns": 7, "other": 1}],
    ids=["a field is missing", "a field is unknown"],
)
def test_a_record_has_exactly_its_fields(values: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        protocol.Phase(**values)


def test_a_record_is_changed_only_as_a_copy() -> None:
    phase: Any = protocol.Phase(name="import", duration_ns=7)

    assert phase.replace(duration_ns=8) == protocol.Phase(name="import", duration_ns=8)
    with pytest.raises(AttributeError):
        phase.duration_ns = 9
    assert phase.duration_ns == 7


@pytest.mark.parametrize(
    "line", [b"", b"1", b"[]", b"{}", b'{"kind": "profile"}', b'{"kind": ["a"]}', b"\xff"]
)
def test_another_line_is_no_message(line: bytes) -> None:
    with pytest.raises(protocol.WireError):
        protocol.decode_message(line)


@pytest.mark.parametrize("number", sorted(set(signal.Signals)))
def test_only_signals_for_what_a_process_did_itself_are_crashes(number: int) -> None:
    # signal(7): the action "Core", without the terminal's SIGQUIT and the limits SIGXCPU, SIGXFSZ.
    crashes = {"SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGSYS"}
    is_crash = signal.Signals(number).name in crashes

    assert protocol.ended_by(-number) == ("crash" if is_crash else "kill")


@pytest.mark.parametrize(
    ("code", "how"), [(1, "error"), (3, "error"), (137, "kill"), (143, "kill")]
)
def test_a_shell_passes_on_that_its_child_was_killed(code: int, how: str) -> None:
    assert protocol.ended_by(code) == how
