"""Executes a run: decides what to launch and in which order, and records each launch."""

from corebound.runner.launcher import launcher
from corebound.runner.scheduler import Clock, Ending, Job, Observer, Runner, Task, is_complete

__all__ = ["Clock", "Ending", "Job", "Observer", "Runner", "Task", "is_complete", "launcher"]
