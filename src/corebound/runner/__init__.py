"""The run: what is to be launched, in which order, and what of it has been done."""

from corebound.runner.launcher import launcher
from corebound.runner.scheduler import Clock, Ending, Job, Observer, Runner, Task, is_complete

__all__ = ["Clock", "Ending", "Job", "Observer", "Runner", "Task", "is_complete", "launcher"]
