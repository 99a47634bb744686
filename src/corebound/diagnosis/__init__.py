"""From the evidence in records to findings that a reader can act on. Pure rules."""
