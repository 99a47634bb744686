"""The work behind each command, independent of the terminal."""
