"""The entry point of the command `corebound` and of `python -m corebound`."""

from __future__ import annotations

import signal
import sys
import threading
from typing import NoReturn

from corebound.cli import crash


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C.

    If a plain KeyboardInterrupt leaves code that was compiled from a string, such as the code
    that creates dataclasses, CPython ends by the signal even if the exception was caught.
    """


def main() -> None:
    """Run the command line; never returns.

    Ctrl-C and SIGTERM shut it down cleanly: it ends the processes that it started and keeps what
    it has measured. Crashes during import and crashes of threads are reported like all others.
    """
    # A shell that starts us in the background sets SIGINT to be ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _terminate)
    of_threads: list[int] = []

    def of_thread(failed: threading.ExceptHookArgs) -> None:
        if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
            of_threads.append(crash.report(failed.exc_value))

    threading.excepthook = of_thread
    try:
        # Imported here, so that a failing import is reported as a crash too.
        from corebound.cli.app import main as run  # noqa: PLC0415

        run()
    except SystemExit as end:
        sys.exit(next(iter(of_threads), end.code))
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001  # the last handler, for failing imports
        sys.exit(crash.report(error))
    finally:
        # The command has ended: ignore signals so that Python's shutdown prints no traceback.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise _Interrupted


def _terminate(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
