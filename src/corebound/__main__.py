"""The entry point of the command `corebound` and of `python -m corebound`."""

import sys

from corebound.cli import interrupts


def main() -> None:
    """Run the command line; never returns.

    Ctrl-C and SIGTERM shut it down cleanly: it ends the processes that it started and keeps what
    it has measured. Crashes during import and crashes of threads are reported like all others.
    """
    interrupts.exit_at_once()
    # Imported here, after the handlers are set.
    import threading  # noqa: PLC0415

    from corebound.cli import crash  # noqa: PLC0415

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
        interrupts.ignore()


if __name__ == "__main__":
    main()
