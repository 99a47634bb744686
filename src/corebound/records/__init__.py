"""What is kept: runs, launches, histories and decisions, as files that are only appended to."""
