"""Executes a run: decides what to launch and in which order, and records each launch."""

from corebound.runner.jobs import Job, Task
from corebound.runner.launcher import launcher
from corebound.runner.progress import is_complete
from corebound.runner.scheduler import Clock, Ending, Observer, Runner

__all__ = ["Clock", "Ending", "Job", "Observer", "Runner", "Task", "is_complete", "launcher"]
