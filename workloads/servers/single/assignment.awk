# A linear program (CPLEX's format): who does which of n tasks at the least cost. Its network is what memory is full of.
# Usage: awk -v n=N -f assignment.awk
BEGIN {
  print "Minimize\n cost:"
  for (i = 1; i <= n; i++) for (j = 1; j <= n; j++) print " + " (i * 7919 + j * 104729 + i * j * 31) % 997 + 1 " x" i "_" j
  print "Subject To"
  for (i = 1; i <= n; i++) { printf " who%d:", i; for (j = 1; j <= n; j++) printf " + x%d_%d\n", i, j; print " = 1" }
  for (j = 1; j <= n; j++) { printf " task%d:", j; for (i = 1; i <= n; i++) printf " + x%d_%d\n", i, j; print " = 1" }
  print "End"
}
