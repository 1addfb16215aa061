"""The checks that run on a CUDA GPU; see README.md beside this file."""
