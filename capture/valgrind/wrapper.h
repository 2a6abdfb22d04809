/* What our wrappers report to the tool, and how they know that they are outermost.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#ifndef DOMICILE_WRAPPER_H
#define DOMICILE_WRAPPER_H

#include "domicile-trace.h"

enum {
   WRAPPER_ALLOC = 0x100, /* address, bytes; the caller's stack is taken by the tool */
   WRAPPER_FREE = 0x101,  /* address */
   WRAPPER_SYNC = 0x102,  /* enum SyncOp, object, value */
   WRAPPER_QUIET = 0x103, /* 1: what the thread does from now on is waiting; 0: no more */
};

#define WRAPPER_NOTE(what, a, b, c)                                                              \
   ((void)domicile_request_(DOMICILE_REQUEST_(what), (unsigned long long)(a),                    \
                            (unsigned long long)(b), (unsigned long long)(c)))

/* Whether the thread only waits, for its team or for work, as a stack of bits with the present one lowest: a
   task may be run by a thread that waits at a barrier, and it may wait itself. What is beyond the 64th is
   forgotten. The tool hears of the present one. */
extern __thread unsigned long waiting_;

static inline void waiting_sent(void)
{
   WRAPPER_NOTE(WRAPPER_QUIET, waiting_ & 1, 0, 0);
}

static inline void waiting_push(int waits)
{
   waiting_ = waiting_ << 1 | waits;
   waiting_sent();
}

static inline void waiting_pop(void)
{
   waiting_ >>= 1;
   waiting_sent();
}

/* In place of the present one. */
static inline void waiting_is(int waits)
{
   waiting_ = (waiting_ & ~1ul) | waits;
   waiting_sent();
}

/* In place of all. */
static inline void waiting_only(int waits)
{
   waiting_ = waits;
   waiting_sent();
}

/* A function that is wrapped may call another one (operator new calls malloc): only the
   outermost call is reported, under the name of which the program asked. Where the outermost call's
   frame was is remembered; a call whose frame is not below it is outermost itself, so that an
   exception or a longjmp out of a wrapped function leaves nothing behind. */
static inline int wrapper_enter(char** state, char* frame)
{
   if (*state != 0 && frame < *state)
      return 0;
   *state = frame;
   return 1;
}

/* Of the allocator: what is allocated within is not reported. */
extern __thread char* heap_busy_;

#define WRAPPER_ENTER(state)                                                                     \
   int outermost = wrapper_enter(&(state), (char*)__builtin_frame_address(0))
#define WRAPPER_LEAVE(state)                                                                     \
   do {                                                                                          \
      if (outermost)                                                                             \
         (state) = 0;                                                                            \
   } while (0)

#endif
