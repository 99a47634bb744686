"""The sections of a scenario's page."""
