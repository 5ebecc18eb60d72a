"""Makes `from scripts.explore import open_table` work in the skill's folder."""
