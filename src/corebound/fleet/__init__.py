"""A fleet: one plan measured on many hosts, through an existing engine."""
