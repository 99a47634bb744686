"""The command `corebound`, also as `python -m corebound`."""

from __future__ import annotations

import signal
import sys
import threading
from typing import NoReturn

from corebound.cli import crash


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C.

    Where a KeyboardInterrupt itself leaves code that was compiled from a string, as dataclasses
    do when they are made, CPython ends by the signal in the end, whatever was caught.
    """


def main() -> None:
    """Run the command line; never returns.

    Ctrl-C and SIGTERM end it in order: what it has started is ended, and what it has measured is
    kept. A crash while it is being imported is told like any other, and so is one of a thread.
    """
    # Who starts us in the background has SIGINT ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _terminate)
    of_threads: list[int] = []

    def of_thread(failed: threading.ExceptHookArgs) -> None:
        if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
            of_threads.append(crash.told(failed.exc_value))

    threading.excepthook = of_thread
    try:
        from corebound.cli.app import main as run  # noqa: PLC0415

        run()
    except SystemExit as end:
        sys.exit(next(iter(of_threads), end.code))
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001
        sys.exit(crash.told(error))
    finally:
        # It has ended: what Python still does is not to be interrupted with a traceback.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise _Interrupted


def _terminate(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
