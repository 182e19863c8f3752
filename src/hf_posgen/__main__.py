"""`python -m hf_posgen` and `accelerate launch -m hf_posgen`: the same as `posgen`."""

from hf_posgen.cli.dispatch import main

main()
