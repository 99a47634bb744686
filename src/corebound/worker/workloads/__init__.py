"""The workloads that come with corebound."""
