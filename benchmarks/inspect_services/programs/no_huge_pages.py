"""Run a program without transparent huge pages: `no_huge_pages.py COMMAND…`."""

from __future__ import annotations

import ctypes
import os
import sys

_PR_SET_THP_DISABLE = 41

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606  # a program of the catalogue
