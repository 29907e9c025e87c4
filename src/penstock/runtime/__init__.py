"""A running topology: its lifecycle, its epochs' commits, its progress."""
