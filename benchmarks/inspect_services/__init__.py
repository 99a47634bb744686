"""How often `corebound inspect` is right: real services, with and without planted faults."""
