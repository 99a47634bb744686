"""The results of comparing a cell with itself to measure a host's noise."""

from typing import Literal

from msgspec import Struct

from corebound.bounded_numbers import Amount, Count, Positive, Share

# The schema of calibration files.
CALIBRATION_SCHEMA = 1


class Noise(Struct, frozen=True, kw_only=True):
    """The noise in comparisons of two equal cells with this many launches each.

    Attributes:
        floor_ratio: The median half-width of the interval of their ratio: 0.02 is from 0.98
            to 1.02. Half of the intervals are wider.
        false_alarm_rate: How often they would be called faster or slower.
        detectable_ratio: The least slowdown that is detected nine times in ten; 0.03 takes
            3 % longer. None if no slowdown up to tenfold is.
    """

    launches: Count
    floor_ratio: Amount
    false_alarm_rate: Share
    detectable_ratio: Amount | None


class Calibration(Struct, frozen=True, kw_only=True):
    """A cell compared with itself: every difference is noise.

    It applies only to the same host, the same environment, and the same scenario under the
    same profile.

    Attributes:
        schema: `CALIBRATION_SCHEMA` of the corebound that wrote it.
        run: Id of the run it is based on.
        at: When that run began, ISO 8601 in UTC.
        host: The host's id.
        kernel: The host's kernel at that time.
        environment: Name of the cell's environment, and `lock` a hash of its contents.
        scenario: The scenario's name, and `sha256` its hash.
        cell: Key of the cell, which is the scenario's baseline.
        blocks: How many pairs of launches it is based on.
        pair_spread_ratio: Standard deviation of the ratio within a pair, as a share.
        launch_spread_ratio: Standard deviation of the launches' own values, as a share.
        speedup_ratio: One copy's speed as a multiple of the other's.
        interval: The 95 % interval of that ratio.
        verdict: The verdict that a page would show for the two copies.
        noise: For the minimum and the maximum number of launches of the profile; a single one
            if these are equal.
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
    verdict: Literal["faster", "slower", "equivalent", "inconclusive"]
    noise: tuple[Noise, ...]
