"""What setup.py, the Makefile and the tests call to build the extension and the wheel."""
