"""One file a page: a function that wires the state of a journey to widgets. Work is a job that calls the library."""
