// The commands do what the compilers do: compile only, several sources, link only, preprocess, dependencies, shared
// and relocatable objects, no file at all; and a program does the same.
//
// RUN: rm -rf %t && mkdir -p %t/lib %t/bin && cd %t
// RUN: clang-19 -shared -fPIC -Wl,-soname,libdomicile.so.0 -x c /dev/null -o lib/libdomicile.so.0
// RUN: ln -s libdomicile.so.0 lib/libdomicile.so
// RUN: export DOMICILE_LIBRARY=%t/lib
// RUN: %commands/domicile-cc -Werror -Wall -O2 -DPART -c %s -o part.o
// RUN: %commands/domicile-cc -Werror -Wall -O2 -DWHOLE -c %s -o whole.o
// RUN: %commands/domicile-cc -Werror part.o whole.o -o linked && ./linked a 'b c' | FileCheck %s
// RUN: %commands/domicile-cc -Werror -O2 -DWHOLE -DPART %s -o at_once && ./at_once a 'b c' | FileCheck %s
// RUN: %commands/domicile-cc -Werror -E -DPART %s | FileCheck --check-prefix=E %s
// RUN: %commands/domicile-cc -Werror -MM -DPART %s | FileCheck --check-prefix=MM %s
// RUN: %commands/domicile-cc -Werror -S -DPART %s -o - | FileCheck --check-prefix=S %s
// RUN: %commands/domicile-cc -Werror -shared -fPIC -DPART %s -o libpart.so
// RUN: %commands/domicile-cc -Werror whole.o -L. -lpart -Wl,-rpath,%t -o shared && ./shared a 'b c' | FileCheck %s
// RUN: %commands/domicile-cc -r part.o whole.o -o both.o && %commands/domicile-cc both.o -o r && ./r a 'b c' | FileCheck %s
// RUN: %commands/domicile-c++ -Werror -Wno-deprecated -x c++ -DWHOLE -DPART %s -o plus && ./plus a 'b c' | FileCheck %s
// RUN: %commands/domicile-fc -Werror part.o whole.o -o by_flang && ./by_flang a 'b c' | FileCheck %s
// RUN: echo '-O1 -DWHOLE -DPART "%s"' >response && %commands/domicile-cc @response -o answered && ./answered a 'b c' | FileCheck %s
// RUN: printf 'all: made\nmade: part.o whole.o\n\t$(CC) $^ -o $@\n' >Makefile && make -s CC=%commands/domicile-cc && ./made a 'b c' | FileCheck %s
// RUN: not %commands/domicile-cc -c -DWRONG %s 2>&1 | FileCheck --check-prefix=WRONG %s
// RUN: not %commands/domicile-cc 2>&1 | FileCheck --check-prefix=NONE %s
// RUN: %commands/domicile-cc -v 2>&1 | FileCheck --check-prefix=VERSION %s
// RUN: %commands/domicile-cc --version | FileCheck --check-prefix=VERSION %s
// Called by a link elsewhere it finds what belongs to it.
// RUN: ln -s %commands/domicile-cc bin/elsewhere-cc && bin/elsewhere-cc -Werror -DWHOLE -DPART %s -o far && ./far a 'b c' | FileCheck %s
// The library is linked, and is looked for where it was found; objects can be linked without it.
// RUN: llvm-readelf-19 -d at_once | FileCheck --check-prefix=NEEDED %s
// RUN: %commands/domicile-cc -O2 -fopenmp -DPART -DWHOLE -DLOOP -c %s -o loop.o && clang-19 -fopenmp loop.o -o alone && ./alone a 'b c' | FileCheck %s

// CHECK: 3 a [b c] 42
// E: int part(int number)
// MM: {{^}}like_the_compiler.o:
// S: part:
// WRONG: error: "on purpose"
// NONE: error: no input files
// VERSION: clang version 19
// NEEDED-DAG: NEEDED{{.*}}libdomicile.so.0
// NEEDED-DAG: RUNPATH{{.*}}/lib]

#ifdef __cplusplus
#include <cstdio>
#else
#include <stdio.h>
#endif
#ifdef WRONG
#error "on purpose"
#endif
#ifdef PART
int part(int number) { return number + 2; }
#endif
#ifdef WHOLE
int part(int number);
double numbers[4096];
int main(int count, char **arguments) {
#ifdef LOOP
#pragma omp parallel for schedule(static)
  for (int i = 0; i < 4096; i++)
    numbers[i] = i;
#endif
  printf("%d %s [%s] %d\n", count, arguments[1], arguments[2], part(40));
  return 0;
}
#endif
