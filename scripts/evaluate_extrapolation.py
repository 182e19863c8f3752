"""Measure a run folder at lengths and distances it never saw: the same as `posgen evaluate`."""

import sys

from hf_posgen.cli.dispatch import main

if __name__ == "__main__":
    main(["evaluate", *sys.argv[1:]])
