"""Compares corebound with asv, pyperf, hyperfine and the Timer of PyTorch."""
