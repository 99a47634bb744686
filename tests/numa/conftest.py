"""The suite runs inside the booted machine and is never collected here."""

# pytest imports modules to look for doctests.
collect_ignore = ["suite"]
