"""The Python API behind `import corebound`, and the pytest plugin."""
