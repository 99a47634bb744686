"""The worker's side: launched under an environment's Python, imported only for its protocol."""
