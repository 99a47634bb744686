"""The worker process: runs under an environment's Python; the runner imports only its protocol."""
