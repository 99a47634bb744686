"""Templates as Python has compiled them, kept from one report to the next."""

from __future__ import annotations

from pathlib import Path

from jinja2.bccache import Bucket, BytecodeCache

from corebound.records import cache


class Compiled(BytecodeCache):
    """Keeps what templates were compiled to, which takes a fifth of a small report.

    It is code, and run as it is. So it belongs where this user's code is, never beside records,
    which may be from anybody.
    """

    def __init__(self, folder: Path) -> None:
        """Take the folder of what this user's corebound keeps."""
        self._folder = folder
        # What filters make of constants is worked out while a template is compiled.
        self._version = cache.code("report/render.py")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill a template's bucket, if it was compiled before."""
        code = cache.load(bytes, self._folder, _name(bucket), version=self._version)
        if code is not None:
            # Jinja looks whether it is of this source, and of this Python.
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what a template was compiled to."""
        code = bucket.bytecode_to_string()
        cache.keep(code, self._folder, _name(bucket), version=self._version)


def _name(bucket: Bucket) -> str:
    return f"template-{bucket.key}"
