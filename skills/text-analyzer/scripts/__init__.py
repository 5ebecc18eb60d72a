"""Makes `from scripts.logs import read_log` work in the skill's folder."""
