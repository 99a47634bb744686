"""Charts and tables of histories, and their export."""
