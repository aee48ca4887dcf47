"""What could be rebuilt from published tables, and what would that disclose?"""
