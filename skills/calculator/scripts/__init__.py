"""Makes `from scripts.calc import evaluate` work in the skill's folder."""
