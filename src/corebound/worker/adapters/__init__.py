"""What differs between frameworks, one module each."""
