"""What the functions find: plain data, which knows nothing of how it is shown."""
