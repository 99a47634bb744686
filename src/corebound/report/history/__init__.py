"""Charts and tables of histories."""
