"""Makes `from scripts.tables import open_table` work in the skill's folder."""
