"""Parts that several built-in workloads share: models, training, checks of results."""
