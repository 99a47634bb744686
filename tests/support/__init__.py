"""What tests share: builders, one `corebound()` helper, sample sites and histories."""
