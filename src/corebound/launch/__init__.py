"""One launch: start it, watch it, prove its binding, end it."""
