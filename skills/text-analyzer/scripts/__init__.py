"""Makes `from scripts.analyze import read_log` work in the skill's folder."""
