"""Results for the terminal: text, Markdown, JSON, JUnit, progress."""
