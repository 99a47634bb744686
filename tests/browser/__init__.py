"""The site in Chromium."""
