"""What notebooks/build.py is made of: sources, runs, stored files, classes, translations."""
