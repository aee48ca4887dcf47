"""What does an explanation of a prediction give away about the person it explains?"""
