"""Ctrl-C and SIGTERM: the process exits at once while modules load; later, an exception ends it.

It imports next to nothing, because no import must happen without its handlers.
"""

import os
import signal
import sys

# The exit codes of the interrupts that arrived. Libraries that are written in C may replace the
# exception of an interrupt by an error of their own.
received: list[int] = []


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C.

    If a plain KeyboardInterrupt leaves code that was compiled from a string, such as the code
    that creates dataclasses, CPython ends by the signal even if the exception was caught.
    """


def exit_at_once() -> None:
    """Let Ctrl-C and SIGTERM end the process without a traceback: nothing has been started.

    An exception would be lost in places such as the callbacks of import locks.
    """
    # A shell that starts us in the background sets SIGINT to be ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)
    signal.signal(signal.SIGTERM, _exit)


def raise_exceptions() -> None:
    """Let Ctrl-C and SIGTERM raise, so that a command ends what it started and keeps results."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, _interrupt)
    if signal.getsignal(signal.SIGTERM) is _exit:
        signal.signal(signal.SIGTERM, _terminate)


def ignore() -> None:
    """Ignore both from now on, so that Python's shutdown prints no traceback."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _exit(number: int, _frame: object) -> None:
    os._exit(128 + number)


def _interrupt(number: int, _frame: object) -> None:
    received.append(128 + number)
    raise _Interrupted


def _terminate(number: int, _frame: object) -> None:
    received.append(128 + number)
    sys.exit(128 + number)
