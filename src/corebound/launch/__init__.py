"""Executes one launch: starts the workers, monitors them, verifies CPU binding, cleans up."""
