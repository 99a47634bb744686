"""Change-point detection in histories: location, confidence, early warnings and alarms."""
