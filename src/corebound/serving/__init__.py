"""Measures model servers under load: starts them, sends requests, monitors and stops them."""
