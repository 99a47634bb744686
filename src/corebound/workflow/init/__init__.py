"""What a repository needs to be measured every night: files to begin with."""
