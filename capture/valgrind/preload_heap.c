/* Wrappers around the allocator: they call the program's own and report what came of it, so that
   the heap lies as it always does.

   Preloaded into dynamically linked programs by Valgrind. References made here are not recorded.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "valgrind.h"

#include "wire.h"
#include "wrapper.h"

__thread char* heap_busy_;

/* The functions of any library or of the program itself ("Za" is "*"). */
#define WRAP(name) I_WRAP_SONAME_FNNAME_ZU(Za, name)

/* ---- one size in, one address out ---- */

#define ALLOCATOR_1(name)                                                                        \
   void* WRAP(name)(size_t bytes);                                                               \
   void* WRAP(name)(size_t bytes)                                                                \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      void* result;                                                                              \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      WRAPPER_ENTER(heap_busy_);                                                                       \
      CALL_FN_W_W(result, fn, bytes);                                                            \
      WRAPPER_LEAVE(heap_busy_);                                                                       \
      if (outermost && result)                                                                   \
         WRAPPER_NOTE(WRAPPER_ALLOC, result, bytes, 0);                                          \
      return result;                                                                             \
   }

/* ... with another argument before it or after it */
#define ALLOCATOR_2(name, size)                                                                  \
   void* WRAP(name)(size_t a, size_t b);                                                         \
   void* WRAP(name)(size_t a, size_t b)                                                          \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      void* result;                                                                              \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      WRAPPER_ENTER(heap_busy_);                                                                       \
      CALL_FN_W_WW(result, fn, a, b);                                                            \
      WRAPPER_LEAVE(heap_busy_);                                                                       \
      if (outermost && result)                                                                   \
         WRAPPER_NOTE(WRAPPER_ALLOC, result, size, 0);                                           \
      return result;                                                                             \
   }

#define ALLOCATOR_3(name)                                                                        \
   void* WRAP(name)(size_t bytes, size_t b, size_t c);                                           \
   void* WRAP(name)(size_t bytes, size_t b, size_t c)                                            \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      void* result;                                                                              \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      WRAPPER_ENTER(heap_busy_);                                                                       \
      CALL_FN_W_WWW(result, fn, bytes, b, c);                                                    \
      WRAPPER_LEAVE(heap_busy_);                                                                       \
      if (outermost && result)                                                                   \
         WRAPPER_NOTE(WRAPPER_ALLOC, result, bytes, 0);                                          \
      return result;                                                                             \
   }

ALLOCATOR_1(malloc)
ALLOCATOR_1(valloc)
ALLOCATOR_1(pvalloc)
ALLOCATOR_2(calloc, a* b)
ALLOCATOR_2(memalign, b)
ALLOCATOR_2(aligned_alloc, b)
ALLOCATOR_1(_Znwm)                               /* operator new(unsigned long) */
ALLOCATOR_1(_Znam)                               /* operator new[](unsigned long) */
ALLOCATOR_2(_ZnwmRKSt9nothrow_t, a)              /* ... nothrow */
ALLOCATOR_2(_ZnamRKSt9nothrow_t, a)
ALLOCATOR_2(_ZnwmSt11align_val_t, a)             /* ... aligned */
ALLOCATOR_2(_ZnamSt11align_val_t, a)
ALLOCATOR_3(_ZnwmSt11align_val_tRKSt9nothrow_t) /* ... both */
ALLOCATOR_3(_ZnamSt11align_val_tRKSt9nothrow_t)

int WRAP(posix_memalign)(void** result, size_t alignment, size_t bytes);
int WRAP(posix_memalign)(void** result, size_t alignment, size_t bytes)
{
   OrigFn fn;
   int failed;
   VALGRIND_GET_ORIG_FN(fn);
   WRAPPER_ENTER(heap_busy_);
   CALL_FN_W_WWW(failed, fn, result, alignment, bytes);
   WRAPPER_LEAVE(heap_busy_);
   if (outermost && !failed && *result)
      WRAPPER_NOTE(WRAPPER_ALLOC, *result, bytes, 0);
   return failed;
}

/* The old block is gone before another thread can be given its place. */
void* WRAP(realloc)(void* old, size_t bytes);
void* WRAP(realloc)(void* old, size_t bytes)
{
   OrigFn fn;
   void* result;
   VALGRIND_GET_ORIG_FN(fn);
   WRAPPER_ENTER(heap_busy_);
   if (outermost && old)
      WRAPPER_NOTE(WRAPPER_FREE, old, 0, 0);
   CALL_FN_W_WW(result, fn, old, bytes);
   WRAPPER_LEAVE(heap_busy_);
   if (outermost) {
      if (result)
         WRAPPER_NOTE(WRAPPER_ALLOC, result, bytes, 0);
      else if (old && bytes > 0)
         WRAPPER_NOTE(WRAPPER_SYNC, SYNC_RESTORE, old, 0);
   }
   return result;
}

/* ---- giving back: reported before it happens, as above ---- */

#define RELEASE(name, parameters, call)                                                          \
   void WRAP(name) parameters;                                                                   \
   void WRAP(name) parameters                                                                    \
   {                                                                                             \
      OrigFn fn;                                                                                 \
      VALGRIND_GET_ORIG_FN(fn);                                                                  \
      WRAPPER_ENTER(heap_busy_);                                                                       \
      if (outermost && block)                                                                    \
         WRAPPER_NOTE(WRAPPER_FREE, block, 0, 0);                                                \
      call;                                                                                      \
      WRAPPER_LEAVE(heap_busy_);                                                                       \
   }

#define RELEASE_1(name) RELEASE(name, (void* block), CALL_FN_v_W(fn, block))
#define RELEASE_2(name) RELEASE(name, (void* block, size_t b), CALL_FN_v_WW(fn, block, b))
#define RELEASE_3(name)                                                                          \
   RELEASE(name, (void* block, size_t b, size_t c), CALL_FN_v_WWW(fn, block, b, c))

RELEASE_1(free)
RELEASE_1(cfree)
RELEASE_2(free_sized)
RELEASE_3(free_aligned_sized)
RELEASE_1(_ZdlPv) /* operator delete(void*) */
RELEASE_1(_ZdaPv)
RELEASE_2(_ZdlPvm) /* ... sized */
RELEASE_2(_ZdaPvm)
RELEASE_2(_ZdlPvRKSt9nothrow_t)
RELEASE_2(_ZdaPvRKSt9nothrow_t)
RELEASE_2(_ZdlPvSt11align_val_t)
RELEASE_2(_ZdaPvSt11align_val_t)
RELEASE_3(_ZdlPvmSt11align_val_t)
RELEASE_3(_ZdaPvmSt11align_val_t)
RELEASE_3(_ZdlPvSt11align_val_tRKSt9nothrow_t)
RELEASE_3(_ZdaPvSt11align_val_tRKSt9nothrow_t)
