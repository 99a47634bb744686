"""A cache of compiled templates that persists between reports."""

from __future__ import annotations

from pathlib import Path

from jinja2.bccache import Bucket, BytecodeCache

from corebound.records import cache


class Compiled(BytecodeCache):
    """Stores compiled templates; compiling them takes a fifth of the time of a small report.

    The cache contains code, which runs unchecked. It therefore belongs into the user's own cache
    folder, never beside records, which may come from anybody.
    """

    def __init__(self, folder: Path) -> None:
        """Use this folder, which is corebound's cache folder of this user."""
        self._folder = folder
        # Compiling a template applies filters to its constants, so the cache depends on their code.
        self._version = cache.code("report/render.py")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load a template's bytecode into its bucket if it was compiled before."""
        code = cache.load(bytes, self._folder, _name(bucket), version=self._version)
        if code is not None:
            # Jinja checks that the bytecode matches this source and this Python version.
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Store a template's bytecode."""
        code = bucket.bytecode_to_string()
        cache.keep(code, self._folder, _name(bucket), version=self._version)


def _name(bucket: Bucket) -> str:
    return f"template-{bucket.key}"
