"""The run: what is to be launched, in which order, and what of it has been done."""

from corebound.runner.job import Job, Task
from corebound.runner.launcher import launcher
from corebound.runner.run import Clock, Ending, Observer, Runner

__all__ = ["Clock", "Ending", "Job", "Observer", "Runner", "Task", "launcher"]
