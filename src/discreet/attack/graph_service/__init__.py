"""What does a service that answers from a network of people give away about who knows whom?"""
