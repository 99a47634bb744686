"""Data exchange: import results of other tools, and export corebound's results to them."""
