"""The tasks of a person's day, and when each is solved.

`prompt`: what the user types. `has`: patterns that the answer must match, blanks and commas between
digits removed. `lacks`: patterns that it must not match. `files`: what a file must hold afterwards
(a pattern; None: it must not exist). `no_tool`: no tool may be called. `skills`: False for none.
`question`: what is asked, for the table.
"""

ORDERS = """order,region,product,amount
1,North,pump,410.5
2,South,valve,220
3,East,pump,130.25
4,North,valve,612
5,West,hose,75
6,South,pump,340.1
7,East,hose,55.5
8,North,hose,93
9,West,pump,401
10,South,hose,18.75
"""
NOTES = "Meeting with Anna on Tuesday.\nBudget: 1200 euro.\nAnna brings the slides.\n"
LOG = "".join(
    f"2026-03-0{1 + n // 20} 10:{n % 60:02}:00 "
    + ("ERROR disk full on /dev/sda1\n" if n % 17 == 5 else
       "WARN slow request\n" if n % 5 == 2 else "INFO request served\n")
    for n in range(60))

FILES = {
    "orders.csv": ORDERS,
    "notes.txt": NOTES,
    "todo.txt": "- call Berta\n- order hoses\n- pay the rent\n",
    "app.log": LOG,
    "config.json": '{\n  "name": "pumps",\n  "port": 8080,\n  "debug": false\n}\n',
    "big.log": "".join(f"line {n}: nothing to see\n" for n in range(60_000)) + "line 60000: the vault opens at noon\n",
    "hello.py": 'print("hello from a script")\n',
    "broken.py": 'prices = {"pump": 3}\nprint(prices["hose"])\n',
}

TASKS = [
    # The seven tasks that every change is measured with.
    {"name": "power", "kind": "calculate", "prompt": "What is 2 to the power of 64, exactly?", "has": ["18446744073709551616"]},
    {"name": "factorial", "kind": "calculate", "prompt": "Use the calculator skill: what is 25 factorial?", "has": ["15511210043330985984000000"]},
    {"name": "region", "kind": "table", "prompt": "Which region has the highest total amount in orders.csv, and how much is it?", "has": ["North", r"1115\.5"]},
    {"name": "capital", "kind": "no skill", "prompt": "What is the capital of Norway?", "has": ["Oslo"], "no_tool": True},
    {"name": "write", "kind": "write", "prompt": "Write the word hello into a new file named greeting.txt.", "files": {"greeting.txt": r"^hello\s*$"}},
    {"name": "edit", "kind": "edit", "prompt": "In notes.txt replace every Anna by Berta.", "files": {"notes.txt": r"^Meeting with Berta on Tuesday\.\nBudget: 1200 euro\.\nBerta brings the slides\.\n?$"}},
    {"name": "codeword", "kind": "skill's command", "prompt": "Make the daily status report and tell me its code word.", "has": ["heron-42"]},
    # More of each kind.
    {"name": "product", "kind": "calculate", "prompt": "What is 123456789 times 987654321?", "has": ["121932631112635269"]},
    {"name": "interest", "kind": "calculate", "prompt": "What are 1200 euro worth after 3 years with 4 percent interest a year? Round to cents.", "has": [r"1349\.8[45]"]},
    {"name": "median", "kind": "calculate", "prompt": "What is the median of 17, 3, 99, 24, 8, 51 and 40?", "has": [r"\b24\b"]},
    {"name": "weekday", "kind": "calculate", "prompt": "What day of the week was the 14th of March 1879?", "has": ["Friday"]},
    {"name": "rows", "kind": "table", "prompt": "How many orders are in orders.csv?", "has": [r"\b(10|ten)\b"]},
    {"name": "pumps", "kind": "table", "prompt": "What is the total amount of all pumps in orders.csv?", "has": [r"1281\.85"]},
    {"name": "largest", "kind": "table", "prompt": "Which order in orders.csv has the largest amount?", "has": [r"\b(4|four)\b|612"]},
    {"name": "errors", "kind": "log", "prompt": "How many ERROR lines are in app.log?", "has": [r"\b(4|four)\b"]},
    {"name": "cause", "kind": "log", "prompt": "What is the error in app.log about?", "has": ["disk|sda1"]},
    {"name": "budget", "kind": "read", "prompt": "What is the budget in notes.txt?", "has": ["1200"]},
    {"name": "port", "kind": "read", "prompt": "Which port does config.json set?", "has": ["8080"]},
    {"name": "count", "kind": "read", "prompt": "How many .txt files are in this folder?", "has": [r"\b(2|two)\b"]},
    {"name": "list", "kind": "write", "prompt": "Write the names of all .txt files of this folder into list.md, one a line.", "files": {"list.md": r"(?s)(?=.*notes\.txt)(?=.*todo\.txt)(?!.*orders)"}},
    {"name": "append", "kind": "edit", "prompt": "Add the line \"- buy milk\" to the end of todo.txt.", "files": {"todo.txt": r"^- call Berta\n- order hoses\n- pay the rent\n- buy milk\n?$"}},
    {"name": "setting", "kind": "edit", "prompt": "Set debug to true in config.json.", "files": {"config.json": r'^\{\s*"name": "pumps",\s*"port": 8080,\s*"debug": true\s*\}\s*$'}},
    {"name": "copy", "kind": "write", "prompt": "Copy notes.txt to a new file named old-notes.txt.", "files": {"old-notes.txt": "^" + NOTES.replace(".", r"\.") + "?$", "notes.txt": "^Meeting with Anna"}},
    {"name": "script", "kind": "skill's command", "prompt": "Run hello.py and tell me what it prints.", "has": ["hello from a script"]},
    {"name": "colour", "kind": "skill's fact", "prompt": "What is the main colour of our brand, as a hexadecimal code?", "has": ["(?i)1B7F5C"]},
    {"name": "slogan", "kind": "skill's fact", "prompt": "What is our company's slogan?", "has": ["Pumps that listen"]},
    {"name": "two", "kind": "two skills", "prompt": "Make the daily status report and write its code word and our main brand colour into report.txt.", "files": {"report.txt": r"(?is)(?=.*heron-42)(?=.*1B7F5C)"}},
    {"name": "greeting", "kind": "no skill", "prompt": "Say good morning in Spanish.", "has": ["(?i)buenos d"], "no_tool": True},
    {"name": "opposite", "kind": "no skill", "prompt": "What is the opposite of hot?", "has": ["(?i)cold"], "no_tool": True},
    {"name": "none", "kind": "none fits", "prompt": "Send an e-mail to Anna that the meeting is on Monday.", "has": ["(?i)can(not|'t|’t)|unable|not able|no tool|could(n't| not)|do not have|don't have|not possible|not installed|fail"], "lacks": ["(?i)(has been|was) sent"]},
    {"name": "large", "kind": "file too large", "prompt": "When does the vault open, says the last line of big.log?", "has": ["(?i)noon"]},
    {"name": "absent", "kind": "failing", "prompt": "What is the budget in plan.txt?", "has": ["(?i)not (exist|found|there)|no such|does(n't| not)|could(n't| not)|cannot|can't|unable|missing|no file"], "lacks": ["1200"]},
    {"name": "failing", "kind": "failing script", "prompt": "Make a backup of notes.txt and tell me its number.", "has": ["(?i)not answer|fail|could(n't| not)|error|unable|tomorrow"]},
    {"name": "fault", "kind": "failing script", "prompt": "Run broken.py. Why does it fail?", "has": ["(?i)KeyError|hose"]},
]
