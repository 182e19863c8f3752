"""Encodings from outside the package. Empty here; when a checkpoint that uses one is exported, this file is written
anew with static imports of the files that travel with it."""

EXTERNAL: dict[str, type] = {}
