"""Makes `from scripts.tables import read_table` work in the skill's folder."""
