"""Deliberately wrong lowerings, each of which the suite has to catch (`make mutants`)."""
