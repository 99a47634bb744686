"""What other tools measured, in; and what corebound measured, out for other tools."""
