"""Operator profiles that other tools made, one reader a format."""
