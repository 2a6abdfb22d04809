// What the commands say themselves: their own options, and what is missing or wrong.
//
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %commands/domicile-fc --help | FileCheck --check-prefix=HELP %s
// HELP: Usage: domicile-fc [OPTIONS of flang]
// HELP: --domicile-summary=no
// HELP: DOMICILE_FLANG (flang-new-19)
//
// RUN: not %commands/domicile-cc --domicile-sumary=no -c %s 2>&1 | FileCheck --check-prefix=UNKNOWN %s
// UNKNOWN: domicile-cc: --domicile-sumary=no is not an option
// RUN: not %commands/domicile-cc --domicile-pad=perhaps -c %s 2>&1 | FileCheck --check-prefix=PERHAPS %s
// PERHAPS: domicile-cc: --domicile-pad=perhaps is neither --domicile-pad=yes nor --domicile-pad=no
// RUN: not %commands/domicile-cc --domicile-prefetch=soon -c %s 2>&1 | FileCheck --check-prefix=SOON %s
// SOON: not a number of nanoseconds
// RUN: not %commands/domicile-cc --domicile-machine 2>&1 | FileCheck --check-prefix=MACHINE %s
// MACHINE: --domicile-machine needs the name of a machine
// RUN: env DOMICILE_CLANG=clang-of-nobody not %commands/domicile-cc -c %s 2>&1 | FileCheck --check-prefix=NOBODY %s
// NOBODY: domicile-cc: there is no clang-of-nobody: install it
// RUN: env DOMICILE_PLUGIN=%t/nowhere.so not %commands/domicile-cc -c %s 2>&1 | FileCheck --check-prefix=NOWHERE %s
// NOWHERE: the passes are not where they are looked for: {{.*}}nowhere.so
// RUN: %commands/domicile-cc -c %s -o part.o
// RUN: env DOMICILE_LIBRARY=%t not %commands/domicile-cc part.o -o part 2>&1 | FileCheck --check-prefix=LIBRARY %s
// LIBRARY: domicile-cc: there is no libdomicile.so in
// RUN: env DOMICILE_LIBRARY=%t %commands/domicile-cc --domicile-summary=no part.o -o part && ./part
//
// What reaches the passes; `domicile` itself is a stand-in that knows one machine.
// RUN: printf '#!/bin/sh\n[ "$1 $2 $3 $4" = "machine show simos --json" ] || { echo "there is no machine $3"; exit 1; }\ncat %S/simos.json\n' >domicile
// RUN: printf '#!/bin/sh\necho "$DOMICILE_COMPILER"; echo "$*"\n' >shown && chmod +x domicile shown
// RUN: env PATH="%t:$PATH" CARGO_TARGET_DIR=%t DOMICILE_CLANG=shown %commands/domicile-cc --domicile-machine simos --domicile-prefetch \
// RUN:   --domicile-pad=no --domicile-report=r.json -c a.c | FileCheck --check-prefix=GIVEN %s
// GIVEN: summary=yes,align=yes,pad=no,report=r.json,prefetch=yes,line=128,way=16384,chip=32768,cache=1048576,page=4096,clock=400,latency=500,issue=1
// GIVEN-NEXT: {{-fpass-plugin=[^ ]*libdomicile_compiler.so .*-c a.c$}}
// RUN: env PATH="%t:$PATH" CARGO_TARGET_DIR=%t DOMICILE_CLANG=shown not %commands/domicile-cc --domicile-machine=other -c a.c 2>&1 | FileCheck --check-prefix=OTHER %s
// OTHER: the machine 'other' cannot be had: there is no machine other
// RUN: env DOMICILE_CLANG=%t/shown DOMICILE_COMPILER=line=256 %commands/domicile-cc --domicile-prefetch=300 --domicile-polly --domicile-align=no \
// RUN:   --domicile-summary=no -c 'a b.c' | FileCheck --check-prefix=POLLY %s
// POLLY: line=256,summary=no,align=no,pad=yes,prefetch=yes,latency=300
// POLLY-NEXT: -mllvm -polly -mllvm -polly-parallel {{.*}} -c a b.c
int main(void) { return 0; }
