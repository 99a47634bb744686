"""Import of operator profiles from other tools, with one reader for each format."""
