"""How results are shown: one view of each, as sections that every renderer understands."""
