"""How a report on a query is shown."""
