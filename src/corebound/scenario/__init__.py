"""Read and validate scenario files, and expand them into cells. No side effects."""
