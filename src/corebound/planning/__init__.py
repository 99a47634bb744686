"""From cells and a topology to placements and commands. Pure."""
