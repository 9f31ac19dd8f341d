"""`python -m ballast`."""

from ballast.cli.main import main

main()
