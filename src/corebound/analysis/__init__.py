"""Results from records and statistics: no HTML, no terminal. Pure."""
