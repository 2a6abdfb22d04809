/* domicile/stream.h: reading and writing memory that will not be used again soon, without driving out
 * of the caches what will. C99 and C++; nothing to link with.
 *
 * A data set that is allocated without a slot is confined to the fewest colors of the cache; these are
 * what the program itself can do on top. They are hints of the processor: what is stored by
 * domicile_stream_copy goes to memory past the caches on x86-64; what domicile_prefetch_once fetches
 * is marked to be replaced first, in ways that differ from processor to processor. Elsewhere the first
 * is memcpy and the second whatever the compiler has for it.
 */
#ifndef DOMICILE_STREAM_H
#define DOMICILE_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Copies as memcpy does. Other threads see what was stored no later than what the caller stores next. */
static inline void domicile_stream_copy(void *to, const void *from, size_t bytes)
{
#if defined(__SSE2__)
    char *into = (char *)to;
    const char *out_of = (const char *)from;
    /* Stores past the caches begin at a multiple of 16 bytes. */
    size_t front = (size_t)(0 - (uintptr_t)into) % 16;
    if (front > bytes)
        front = bytes;
    memcpy(into, out_of, front);
    into += front;
    out_of += front;
    bytes -= front;
    for (; bytes >= 16; bytes -= 16, into += 16, out_of += 16)
        _mm_stream_si128((__m128i *)(void *)into, _mm_loadu_si128((const __m128i *)(const void *)out_of));
    _mm_sfence();
    memcpy(into, out_of, bytes);
#else
    memcpy(to, from, bytes);
#endif
}

/* Fetches the cache line of an address that will be read once. Any address will do. */
static inline void domicile_prefetch_once(const void *address)
{
#if defined(__SSE2__)
    _mm_prefetch((const char *)address, _MM_HINT_NTA);
#elif defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(address, 0, 0);
#else
    (void)address;
#endif
}

#endif
