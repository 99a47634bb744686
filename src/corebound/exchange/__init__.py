"""Operator profiles that other tools made, in; one module a format."""
