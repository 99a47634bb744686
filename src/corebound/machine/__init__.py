"""Describe this host, and check it for anything that would disturb a measurement."""
