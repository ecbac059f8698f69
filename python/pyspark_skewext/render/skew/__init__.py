"""How a report on a key is shown."""
