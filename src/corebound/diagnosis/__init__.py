"""Diagnose likely causes and fixes of slow configurations from records. No side effects."""
