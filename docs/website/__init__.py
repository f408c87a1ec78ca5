"""What docs/build.py makes the site with."""
