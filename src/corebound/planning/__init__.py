"""Plan launches: cells and a topology become placements and commands. No side effects."""
