"""The commands, mostly one in each file."""
