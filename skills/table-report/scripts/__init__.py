"""Makes `from scripts.report import read_table, write_workbook` work in the skill's folder."""
