import sys
sys.exit('error: the backup store does not answer; try again tomorrow')
