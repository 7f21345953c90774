"""``python -m psilonnet`` is the command line."""

from psilonnet.cli import main

main()
