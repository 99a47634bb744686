"""Number types of records, with bounds; a number outside its bounds means a damaged record.

msgspec checks the bounds when it reads a record, and reports where a number is outside them.
"""

from typing import Annotated

from msgspec import Meta

# 36 years in nanoseconds; the sum of eight such numbers still fits into 64 bits.
_MOST = 1 << 60
# 139 years in milliseconds.
_MOST_MS = 1 << 42

# A count, a duration or a size.
Count = Annotated[int, Meta(ge=0, le=_MOST)]
# A number that may be negative, such as an id from the kernel.
Signed = Annotated[int, Meta(ge=-_MOST, le=_MOST)]
# A time within a launch; negative before its workers start to measure.
OffsetMs = Annotated[int, Meta(ge=-_MOST_MS, le=_MOST_MS)]
Share = Annotated[float, Meta(ge=0, le=1)]
# An amount that may be 0, and one that is always above 0, such as a rate.
Amount = Annotated[float, Meta(ge=0, le=1e100)]
Positive = Annotated[float, Meta(gt=0, le=1e100)]
