"""The risk of a sample: individual risk from weights, special uniques, unsafe combinations."""
