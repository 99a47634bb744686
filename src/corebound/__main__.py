"""`python -m corebound`."""

from corebound.cli.app import main

if __name__ == "__main__":
    main()
