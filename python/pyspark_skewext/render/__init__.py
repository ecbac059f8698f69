"""Text, pages, pictures and advice, made of what was found."""
