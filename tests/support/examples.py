"""Numbers of examples of property tests: few in `make test`, in proportion more in `make fuzz`."""

from hypothesis import settings

# Those of the profile `gate` of tests/conftest.py.
_USUAL = 30


def examples(count: int) -> settings:
    """Set how many examples a test has in `make test`, if each takes long or rare ones matter."""
    most = settings().max_examples
    return settings(max_examples=count if most == _USUAL else min(most, count * most // _USUAL))
