#!/bin/sh
# How fast programs are recorded, side by side with Valgrind's own tools.
#
#   bench/record.sh [RECORD COMMAND ...]
#
# The command is given `-o TRACE -- PROGRAM ARGS`; without one, the `record` example of
# crates/capture is built and used. Prints one line for each program:
#   none     seconds under Valgrind's empty tool
#   ours     seconds recorded, with the trace written and symbols read
#   ratio    ours / none                                        (floor: at most 2)
#   Mrefs/s  references recorded a second
#   B/ref    bytes of trace for each reference                  (floor: under 2)
#   lackey   how many times longer lackey --trace-mem takes for each reference, measured on a
#            smaller run of the same kind, start-up taken off   (floor: at least 20)
# Times are the best of BENCH_RUNS (3). Run it on a machine that does nothing else.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
runs=${BENCH_RUNS:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

make -s -C "$here/capture/valgrind"
if [ $# -gt 0 ]; then
   record="$*"
else
   (cd "$here" && cargo build -q --release -p domicile-capture --examples)
   record="$here/target/release/examples/record --quiet"
fi

cat >"$work/matmul.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#define MOST 384
static double a[MOST][MOST], b[MOST][MOST], c[MOST][MOST];
int main(int argc, char** argv)
{
   int i, j, k, n = argc > 1 ? atoi(argv[1]) : MOST;
   for (i = 0; i < n; i++)
      for (j = 0; j < n; j++) { a[i][j] = i + j; b[i][j] = i - j; }
   for (i = 0; i < n; i++)
      for (j = 0; j < n; j++) {
         double sum = 0;
         for (k = 0; k < n; k++)
            sum += a[i][k] * b[k][j];
         c[i][j] = sum;
      }
   printf("%g\n", c[n / 2][n / 3]);
   return 0;
}
C
gcc -O1 -o "$work/matmul" "$work/matmul.c"
gcc -O0 -o "$work/matmul-O0" "$work/matmul.c"

sql() {
   cat <<SQL
create table a(i integer primary key, x int);
create table b(i integer primary key, y int);
with recursive c(n) as (select 1 union all select n+1 from c where n<$1)
  insert into a select n, (n*7919)%$1 from c;
insert into b select i, (x*31)%$1 from a;
select count(*), sum(a.x*b.y) from a join b on a.x=b.i where b.y%3=0;
SQL
}
sql 40000 >"$work/join.sql"
sql 600 >"$work/join-small.sql"
cp "$work/matmul.c" "$work/unit.c"

# Seconds of the fastest of $runs runs of a command.
best() {
   for _ in $(seq "$runs"); do
      begin=$(date +%s.%N)
      "$@" >/dev/null 2>&1
      end=$(date +%s.%N)
      echo "$begin $end"
   done | awk '{ t = $2 - $1; if (!n++ || t < best) best = t } END { printf "%.3f", best }'
}
none() { best valgrind --tool=none -q --vgdb=no --trace-children=yes "$@"; }
ours() { best $record -o "$work/out.dtr" -- "$@"; }
# Lines of references of a lackey run, and its seconds.
lackey() { best valgrind --tool=lackey --trace-mem=yes --vgdb=no --log-file="$work/lackey" "$@"; }
lines() { grep -c '^ [LSM]' "$work/lackey"; }

# name, small run for lackey (or -), the run
measure() {
   name=$1 small=$2
   shift 2
   none=$(none "$@")
   ours=$(ours "$@")
   bytes=$(stat -c %s "$work/out.dtr")
   refs=$("$here/target/release/examples/record" -o "$work/out.dtr" -- "$@" 2>&1 >/dev/null |
      sed -n 's/.*references: \([0-9]*\),.*/\1/p')
   slower=-
   if [ "$small" != - ]; then
      start=$(lackey /bin/true)
      before=$(lines)
      lackey=$(eval "lackey $small")
      slower=$(echo "$lackey $start $(lines) $before $ours $none $refs" |
         awk '{ printf "%.0f", (($1 - $2) / ($3 - $4)) / ($5 / $7) }')
   fi
   echo "$name $none $ours $refs $bytes $slower" |
      awk '{ printf "%-14s %7.2f %7.2f %6.2f %8.1f %7.3f %7s\n", $1, $2, $3, $3 / $2, $4 / $3 / 1e6, $5 / $4, $6 }'
}

(cd "$here" && cargo build -q --release -p domicile-capture --examples)
printf "%-14s %7s %7s %6s %8s %7s %7s\n" program none ours ratio Mrefs/s B/ref lackey
measure matmul "'$work/matmul' 48" "$work/matmul"
measure matmul-O0 "'$work/matmul-O0' 32" "$work/matmul-O0"
if command -v sqlite3 >/dev/null; then
   measure sqlite-join "sqlite3 :memory: '.read $work/join-small.sql'" sqlite3 :memory: ".read $work/join.sql"
fi
measure gcc-O2 - gcc -O2 -c -o "$work/unit.o" "$work/unit.c"
