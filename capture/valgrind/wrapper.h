/* What our wrappers tell the tool, and how they know that they are outermost.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#ifndef DOMICILE_WRAPPER_H
#define DOMICILE_WRAPPER_H

#include "domicile-trace.h"

enum {
   WRAPPER_ALLOC = 0x100, /* address, bytes; the caller's stack is taken by the tool */
   WRAPPER_FREE = 0x101,  /* address */
   WRAPPER_SYNC = 0x102,  /* enum SyncOp, object, value */
};

#define WRAPPER_TELL(what, a, b, c)                                                              \
   ((void)domicile_request_(DOMICILE_REQUEST_(what), (unsigned long long)(a),                    \
                            (unsigned long long)(b), (unsigned long long)(c)))

/* A function that is wrapped may call another one (operator new calls malloc): only the
   outermost call is told, under the name of which the program asked. Where the outermost call's
   frame was is remembered; a call whose frame is not below it is outermost itself, so that an
   exception or a longjmp out of a wrapped function leaves nothing behind. */
static inline int wrapper_enter(char** state, char* frame)
{
   if (*state != 0 && frame < *state)
      return 0;
   *state = frame;
   return 1;
}

#define WRAPPER_ENTER(state)                                                                     \
   int outermost = wrapper_enter(&(state), (char*)__builtin_frame_address(0))
#define WRAPPER_LEAVE(state)                                                                     \
   do {                                                                                          \
      if (outermost)                                                                             \
         (state) = 0;                                                                            \
   } while (0)

#endif
