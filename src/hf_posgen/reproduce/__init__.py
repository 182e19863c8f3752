"""Studies reproduced: the sweep, the analyses, and a verdict per claim against thresholds written down beforehand."""
