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

#endif
