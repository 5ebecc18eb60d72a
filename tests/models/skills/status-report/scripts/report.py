import sys
print('report for', sys.argv[2] if len(sys.argv) > 2 else 'nobody')
print('code word: heron-42')
