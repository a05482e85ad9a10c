"""Each operator has its own file, and its rule is the first line of the file's docstring."""
