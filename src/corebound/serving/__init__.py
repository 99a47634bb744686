"""Servers under load: started, sent requests, watched and stopped."""
