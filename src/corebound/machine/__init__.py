"""What this host is, and what on it would disturb a measurement."""
