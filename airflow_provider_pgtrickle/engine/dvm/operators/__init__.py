"""One operator a file; the rule is the docstring's first line."""
