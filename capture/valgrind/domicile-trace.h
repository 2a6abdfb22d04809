/* domicile-trace.h: what a program may report to the recorder about itself.

   Include it and call the macros; they cost a few instructions and do nothing when the program
   does not run under `domicile record`. C and C++.

   ----------------------------------------------------------------
   This one file is under the following licence, so that any program may include it. The
   recorder's tool itself is under GPL-2.0-or-later.

   Copyright (C) 2025 the Domicile authors. All rights reserved.

   Redistribution and use in source and binary forms, with or without modification, are
   permitted provided that the following conditions are met:

   1. Redistributions of source code must retain the above copyright notice, this list of
      conditions and the following disclaimer.

   2. The origin of this software must not be misrepresented; you must not claim that you wrote
      the original software.

   3. Altered source versions must be plainly marked as such, and must not be misrepresented as
      being the original software.

   THIS SOFTWARE IS PROVIDED BY THE AUTHORS ``AS IS'' AND ANY EXPRESS OR IMPLIED WARRANTIES,
   INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A
   PARTICULAR PURPOSE ARE DISCLAIMED. IN NO EVENT SHALL THE AUTHORS BE LIABLE FOR ANY DIRECT,
   INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT
   LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR
   BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT,
   STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE
   USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
   ---------------------------------------------------------------- */

#ifndef DOMICILE_TRACE_H
#define DOMICILE_TRACE_H

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))

#include <stddef.h>

/* The number of a request: 'D', 'M', and which one. */
#define DOMICILE_REQUEST_(n) (0x444d0000ull + (n))
enum {
   DOMICILE_REQUEST_PHASE = 0,
   DOMICILE_REQUEST_WORK_BEGIN = 1,
   DOMICILE_REQUEST_WORK_END = 2,
   DOMICILE_REQUEST_ARRAY = 3,
   DOMICILE_REQUEST_RECORD = 4,
   DOMICILE_REQUEST_SLOT = 5,
   DOMICILE_REQUEST_SLOT_FREE = 6,
   DOMICILE_REQUEST_DATA_RANGE = 7,
   DOMICILE_REQUEST_DATA_THREAD = 8,
   DOMICILE_REQUEST_ALLOCATE = 9,
   DOMICILE_REQUEST_DATA_FREE = 10,
   DOMICILE_REQUEST_RECORDING = 11,
   DOMICILE_REQUEST_SUMMARY = 12,
   DOMICILE_REQUEST_LINE = 13,
   DOMICILE_REQUEST_AT_LINES = 14,
   DOMICILE_REQUEST_ASIDE = 15
};

/* For DOMICILE_ALLOCATE: the data set is not worth caching. */
#define DOMICILE_NO_SLOT (~0ull)

/* The most lines that DOMICILE_AT_LINES takes. */
#define DOMICILE_LINES_MAX 8

/* Valgrind's sequence for a client request: rotations that cancel out and an exchange of a
   register with itself, so that it does nothing on the bare processor. */
static inline unsigned long long domicile_request_(unsigned long long request,
                                                   unsigned long long a, unsigned long long b,
                                                   unsigned long long c)
{
   volatile unsigned long long args[6];
   volatile unsigned long long result;
   args[0] = request;
   args[1] = a;
   args[2] = b;
   args[3] = c;
   args[4] = 0;
   args[5] = 0;
   __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n\t"
                    "xchgq %%rbx, %%rbx"
                    : "=d"(result)
                    : "a"(&args[0]), "0"(0ull)
                    : "cc", "memory");
   return result;
}

/* The program enters the phase `name` (a string). */
#define DOMICILE_PHASE(name)                                                                     \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_PHASE),                           \
                            (unsigned long long)(size_t)(name), 0, 0))

/* A work item begins; `hints` points to `count` addresses (at most 16) that it will use. Work
   items do not nest. */
#define DOMICILE_WORK_BEGIN(count, hints)                                                        \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_WORK_BEGIN),                      \
                            (unsigned long long)(count), (unsigned long long)(size_t)(hints), 0))
#define DOMICILE_WORK_END()                                                                      \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_WORK_END), 0, 0, 0))

/* `[addr, addr + bytes)` is called `name` (a string). */
#define DOMICILE_ARRAY(name, addr, bytes)                                                        \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_ARRAY),                           \
                            (unsigned long long)(size_t)(name),                                  \
                            (unsigned long long)(size_t)(addr), (unsigned long long)(bytes)))

/* References between STOP and START are not recorded (and not counted). */
#define DOMICILE_RECORD_START()                                                                  \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_RECORD), 1, 0, 0))
#define DOMICILE_RECORD_STOP()                                                                   \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_RECORD), 0, 0, 0))

/* Cache slots: which data sets share which part of the shared caches. The program gives slots and data sets
   numbers of its own choice, below 2^48, each kind its own; a number can be used again after it was freed. A data set is
   first given its ranges and threads, then allocated; more ranges or threads count from its next
   allocation on.

   A slot of `bytes` in each shared cache; `is_private` is 1 (the data sets given to it have it for themselves)
   or 0 (shared with whatever has weak locality). */
#define DOMICILE_SLOT(slot, bytes, is_private)                                                   \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_SLOT), (unsigned long long)(slot), \
                            (unsigned long long)(bytes), (unsigned long long)(is_private)))
#define DOMICILE_SLOT_FREE(slot)                                                                 \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_SLOT_FREE),                       \
                            (unsigned long long)(slot), 0, 0))
/* `[addr, addr + bytes)` belongs to data set `set`. */
#define DOMICILE_DATA_RANGE(set, addr, bytes)                                                    \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_DATA_RANGE),                      \
                            (unsigned long long)(set), (unsigned long long)(size_t)(addr),       \
                            (unsigned long long)(bytes)))
/* The thread `tid` (as gettid numbers it; 0: the calling one) uses the data set. Without this, all threads do. */
#define DOMICILE_DATA_THREAD(set, tid)                                                           \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_DATA_THREAD),                     \
                            (unsigned long long)(set), (unsigned long long)(tid), 0))
/* The data set gets the slot, or DOMICILE_NO_SLOT. */
#define DOMICILE_ALLOCATE(set, slot)                                                             \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_ALLOCATE),                        \
                            (unsigned long long)(set), (unsigned long long)(slot), 0))
/* The data set is no more; its memory stays. */
#define DOMICILE_DATA_FREE(set)                                                                  \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_DATA_FREE),                       \
                            (unsigned long long)(set), 0, 0))

/* What is known of the arrays of a parallel loop: `bytes` bytes (at most 1 MiB) of JSON at `text`. Said once, before the
   loop runs. Usually it is libdomicile that says it, of what domicile_parallel_loop was given. 1 if it was recorded. */
#define DOMICILE_SUMMARY(text, bytes)                                                            \
   (domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_SUMMARY),                               \
                      (unsigned long long)(size_t)(text), (unsigned long long)(bytes), 0) == 1)

/* For interpreters: the program that is interpreted has a line `line`, called `number` from now on (a number of the caller's
   choice). `name` is a string: the function, a newline, the file. */
#define DOMICILE_LINE(number, line, name)                                                        \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_LINE),                            \
                            (unsigned long long)(number), (unsigned long long)(line),            \
                            (unsigned long long)(size_t)(name)))
/* The calling thread is at the line whose number is numbers[0], called from numbers[1] and so on; of `count` numbers the first
   DOMICILE_LINES_MAX count. What it does from now on has the names of these lines, and so has what it allocates. 0: it is at
   no such line, and has the interpreter's names again. */
#define DOMICILE_AT_LINES(count, numbers)                                                        \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_AT_LINES),                        \
                            (unsigned long long)(count), (unsigned long long)(size_t)(numbers), 0))
/* 1: what the calling thread does from now on is not the program's (an interpreter that looks where it is) and not recorded; 0: it
   is again. */
#define DOMICILE_ASIDE(aside)                                                                    \
   ((void)domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_ASIDE),                           \
                            (unsigned long long)(aside), 0, 0))

/* 1 while `domicile record` listens, else 0. */
#define DOMICILE_RECORDING()                                                                     \
   (domicile_request_(DOMICILE_REQUEST_(DOMICILE_REQUEST_RECORDING), 0, 0, 0) == 1)

#else

#define DOMICILE_NO_SLOT (~0ull)
#define DOMICILE_LINES_MAX 8

#define DOMICILE_PHASE(name)              ((void)(name))
#define DOMICILE_WORK_BEGIN(count, hints) ((void)(count), (void)(hints))
#define DOMICILE_WORK_END()               ((void)0)
#define DOMICILE_ARRAY(name, addr, bytes) ((void)(name), (void)(addr), (void)(bytes))
#define DOMICILE_RECORD_START()           ((void)0)
#define DOMICILE_RECORD_STOP()            ((void)0)
#define DOMICILE_SLOT(slot, bytes, is_private) ((void)(slot), (void)(bytes), (void)(is_private))
#define DOMICILE_SLOT_FREE(slot)               ((void)(slot))
#define DOMICILE_DATA_RANGE(set, addr, bytes)  ((void)(set), (void)(addr), (void)(bytes))
#define DOMICILE_DATA_THREAD(set, tid)         ((void)(set), (void)(tid))
#define DOMICILE_ALLOCATE(set, slot)           ((void)(set), (void)(slot))
#define DOMICILE_DATA_FREE(set)                ((void)(set))
#define DOMICILE_SUMMARY(text, bytes)          ((void)(text), (void)(bytes), 0)
#define DOMICILE_LINE(number, line, name)      ((void)(number), (void)(line), (void)(name))
#define DOMICILE_AT_LINES(count, numbers)      ((void)(count), (void)(numbers))
#define DOMICILE_ASIDE(aside)                  ((void)(aside))
#define DOMICILE_RECORDING()                   0

#endif
#endif
