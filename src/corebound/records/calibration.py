"""What comparing a cell with itself says of a host's noise."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from corebound.bounds import Amount, Count, Positive, Share

# Of files that keep calibrations.
CALIBRATION_SCHEMA = 1


class Noise(Struct, frozen=True, kw_only=True):
    """What so many launches of each of two equal cells can tell apart.

    Attributes:
        launches: Of each.
        floor_ratio: How far, either way, the interval of their ratio reaches as a rule, for
            half of them reach further: 0.02 is from 0.98 to 1.02.
        false_alarm_rate: How often they would be called faster or slower.
        detectable_ratio: The least slowdown that is called so nine times in ten; 0.03 takes
            3 % longer. None where none up to tenfold is.
    """

    launches: Count
    floor_ratio: Amount
    false_alarm_rate: Share
    detectable_ratio: Amount | None


class Calibration(Struct, frozen=True, kw_only=True):
    """A cell compared with itself: every difference is noise.

    It is of use only where like is compared with like: of the same host, in the same
    environment, of the same scenario under the same profile.

    Attributes:
        schema: `CALIBRATION_SCHEMA` of the corebound that wrote it.
        run: Id of the run it rests on.
        at: When that began, ISO 8601 in UTC.
        host: The host's id.
        host_name: The same for the eye.
        kernel: The host's then.
        environment: Name of the cell's environment, and `lock` a hash of what it held.
        scenario: The scenario's name, and `sha256` its hash.
        profile: Under which it was measured.
        cell: Key of the cell, which is the scenario's baseline.
        blocks: How many pairs of launches it rests on.
        pair_spread_ratio: Standard deviation of the ratio within a pair, as a share.
        launch_spread_ratio: Of the launches' own figures.
        speedup_ratio: One copy as a multiple of the other's speed.
        interval: Of that, 95 %.
        verdict: What a page would have said of two copies of one thing.
        noise: For the fewest and the most launches the profile makes; one where these are
            the same.
    """

    schema: Count
    run: str
    at: str
    host: str
    host_name: str
    kernel: str
    environment: str
    lock: str
    scenario: str
    sha256: str
    profile: Literal["quick", "nightly"] | None
    cell: str
    blocks: Count
    pair_spread_ratio: Amount
    launch_spread_ratio: Amount
    speedup_ratio: Positive
    interval: tuple[Positive, Positive]
    verdict: Literal["faster", "slower", "equivalent", "undecided"]
    noise: tuple[Noise, ...]
