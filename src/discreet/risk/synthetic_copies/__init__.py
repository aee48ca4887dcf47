"""What a synthetic copy gives away about the original."""
