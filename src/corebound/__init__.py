"""Corebound: which cores, how many threads, and can the answer be trusted?

Nothing is imported here: the worker starts under another environment's Python
and must pay for nothing but itself.
"""

__version__ = "0.1.0"
