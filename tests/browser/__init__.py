"""Tests of the site in a browser, with what they share."""
