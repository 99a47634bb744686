"""The steps that are compared; each file runs alone in the environment of its framework.

Each file has a function for each of its steps, which returns the step, and
`extra_work(size)`, which returns additional work of the same kind.
"""
