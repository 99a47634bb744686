"""Numbers as records hold them: one outside these bounds is damage.

msgspec checks them where a record is read, and names the place of a number that is outside.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

# 36 years in nanoseconds; eight of them still have a sum of 64 bits.
_MOST = 1 << 60
# 139 years in milliseconds.
_MOST_MS = 1 << 42

# How many there are of something, or how long or how big it is.
Count = Annotated[int, Meta(ge=0, le=_MOST)]
# A number that may be below zero, such as a number that the kernel gives.
Signed = Annotated[int, Meta(ge=-_MOST, le=_MOST)]
# A moment of a launch: what was before its workers were told to go is below zero.
OffsetMs = Annotated[int, Meta(ge=-_MOST_MS, le=_MOST_MS)]
Share = Annotated[float, Meta(ge=0, le=1)]
# How much of something there is, and the same of what there always is some of, such as a rate.
Amount = Annotated[float, Meta(ge=0, le=1e100)]
Positive = Annotated[float, Meta(gt=0, le=1e100)]
