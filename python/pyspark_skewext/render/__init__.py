"""Text, pages, pictures and advice, from results."""
