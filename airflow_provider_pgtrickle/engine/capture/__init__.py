"""How changes of tables get into the change buffers, and out again."""
