/* Wrappers around the threads library: who waits for whom, so that a simulator can let the
   threads run by clocks of its own.

   In glibc 2.34 and later the functions are in libc.so, before in libpthread.so. Names end in a
   star because some symbols carry a version (pthread_cond_wait@@GLIBC_2.3.2). In the names,
   Valgrind's encoding: Zu is "_", Zd is ".", Za is "*".

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "valgrind.h"

#include "wire.h"
#include "wrapper.h"

/* Defines the wrapper for both libraries. The body may use `fn`. */
#define WRAP(name, parameters, arguments, body)                                                  \
   static inline int wrapped_##name(OrigFn fn, parameters) body;                                 \
   int I_WRAP_SONAME_FNNAME_ZZ(libcZdsoZa, name)(parameters);                                    \
   int I_WRAP_SONAME_FNNAME_ZZ(libcZdsoZa, name)(parameters)                                     \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      return wrapped_##name(fn, arguments);                                                      \
   }                                                                                             \
   int I_WRAP_SONAME_FNNAME_ZZ(libpthreadZdsoZa, name)(parameters);                              \
   int I_WRAP_SONAME_FNNAME_ZZ(libpthreadZdsoZa, name)(parameters)                               \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      return wrapped_##name(fn, arguments);                                                      \
   }
#define LIST(...) __VA_ARGS__

#define NOTE(op, object, value) WRAPPER_NOTE(WRAPPER_SYNC, op, object, value)

/* ---- calls that succeed or fail on one object, and what success means ---- */

#define AFTER_1(name, op)                                                                        \
   WRAP(name, LIST(void* object), LIST(object), {                                                \
      int result;                                                                                \
      CALL_FN_W_W(result, fn, object);                                                           \
      if (result == 0)                                                                           \
         NOTE(op, object, 0);                                                                    \
      return result;                                                                             \
   })
#define AFTER_2(name, op)                                                                        \
   WRAP(name, LIST(void* object, void* b), LIST(object, b), {                                    \
      int result;                                                                                \
      CALL_FN_W_WW(result, fn, object, b);                                                       \
      if (result == 0)                                                                           \
         NOTE(op, object, 0);                                                                    \
      return result;                                                                             \
   })
#define AFTER_3(name, op)                                                                        \
   WRAP(name, LIST(void* object, void* b, void* c), LIST(object, b, c), {                        \
      int result;                                                                                \
      CALL_FN_W_WWW(result, fn, object, b, c);                                                   \
      if (result == 0)                                                                           \
         NOTE(op, object, 0);                                                                    \
      return result;                                                                             \
   })
/* ... and those that are reported before, since others may go on while they run */
#define BEFORE_1(name, op)                                                                       \
   WRAP(name, LIST(void* object), LIST(object), {                                                \
      int result;                                                                                \
      NOTE(op, object, 0);                                                                       \
      CALL_FN_W_W(result, fn, object);                                                           \
      return result;                                                                             \
   })

AFTER_1(pthreadZumutexZulockZa, SYNC_LOCK)
AFTER_1(pthreadZumutexZutrylockZa, SYNC_LOCK)
AFTER_2(pthreadZumutexZutimedlockZa, SYNC_LOCK)
AFTER_3(pthreadZumutexZuclocklockZa, SYNC_LOCK)
BEFORE_1(pthreadZumutexZuunlockZa, SYNC_UNLOCK)

AFTER_1(pthreadZuspinZulockZa, SYNC_LOCK)
AFTER_1(pthreadZuspinZutrylockZa, SYNC_LOCK)
BEFORE_1(pthreadZuspinZuunlockZa, SYNC_UNLOCK)

AFTER_1(pthreadZurwlockZuwrlockZa, SYNC_LOCK)
AFTER_1(pthreadZurwlockZutrywrlockZa, SYNC_LOCK)
AFTER_2(pthreadZurwlockZutimedwrlockZa, SYNC_LOCK)
AFTER_1(pthreadZurwlockZurdlockZa, SYNC_READ_LOCK)
AFTER_1(pthreadZurwlockZutryrdlockZa, SYNC_READ_LOCK)
AFTER_2(pthreadZurwlockZutimedrdlockZa, SYNC_READ_LOCK)
BEFORE_1(pthreadZurwlockZuunlockZa, SYNC_UNLOCK)

BEFORE_1(semZupostZa, SYNC_SEM_POST)
AFTER_1(semZuwaitZa, SYNC_SEM_WAITED)
AFTER_1(semZutrywaitZa, SYNC_SEM_WAITED)
AFTER_2(semZutimedwaitZa, SYNC_SEM_WAITED)
AFTER_3(semZuclockwaitZa, SYNC_SEM_WAITED)

BEFORE_1(pthreadZucondZusignalZa, SYNC_COND_SIGNAL)
BEFORE_1(pthreadZucondZubroadcastZa, SYNC_COND_SIGNAL)

WRAP(semZuinitZa, LIST(void* object, unsigned long shared, unsigned long value),
     LIST(object, shared, value), {
        int result;
        CALL_FN_W_WWW(result, fn, object, shared, value);
        if (result == 0)
           NOTE(SYNC_SEM_INIT, object, (unsigned)value);
        return result;
     })

/* ---- barriers ---- */

WRAP(pthreadZubarrierZuinitZa, LIST(void* object, void* attributes, unsigned long count),
     LIST(object, attributes, count), {
        int result;
        CALL_FN_W_WWW(result, fn, object, attributes, count);
        if (result == 0)
           NOTE(SYNC_BARRIER_INIT, object, (unsigned)count);
        return result;
     })
BEFORE_1(pthreadZubarrierZuwaitZa, SYNC_BARRIER)

/* ---- condition variables: the mutex is let go and taken back on the way ---- */

#define COND_WAIT(name, parameters, arguments, call)                                             \
   WRAP(name, LIST(parameters), LIST(arguments), {                                               \
      int result;                                                                                \
      NOTE(SYNC_UNLOCK, mutex, 0);                                                               \
      call;                                                                                      \
      if (result == 0)                                                                           \
         NOTE(SYNC_COND_WAITED, object, 0);                                                      \
      NOTE(SYNC_LOCK, mutex, 0);                                                                 \
      return result;                                                                             \
   })

COND_WAIT(pthreadZucondZuwaitZa, LIST(void* object, void* mutex), LIST(object, mutex),
          CALL_FN_W_WW(result, fn, object, mutex))
COND_WAIT(pthreadZucondZutimedwaitZa, LIST(void* object, void* mutex, void* time),
          LIST(object, mutex, time), CALL_FN_W_WWW(result, fn, object, mutex, time))
COND_WAIT(pthreadZucondZuclockwaitZa, LIST(void* object, void* mutex, unsigned long clock, void* time),
          LIST(object, mutex, clock, time), CALL_FN_W_WWWW(result, fn, object, mutex, clock, time))

/* ---- the end of a thread ---- */

AFTER_2(pthreadZujoinZa, SYNC_JOINED)
AFTER_2(pthreadZutryjoinZunpZa, SYNC_JOINED)
AFTER_3(pthreadZutimedjoinZunpZa, SYNC_JOINED)
AFTER_2(thrdZujoinZa, SYNC_JOINED)
