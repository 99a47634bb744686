"""Corebound, a CPU benchmark suite: which cores, how many threads, and is the result reliable?

This module imports nothing. The worker starts under another environment's Python and must
load only its own code.
"""

__version__ = "0.2.0"
