/* Threads that spin: loops that read until another thread writes.

   Valgrind runs one thread at a time, for up to 100,000 superblocks. A thread that spins does so for
   the rest of its turn, whereas on processors of their own the other thread would have answered long
   before: such references are the recorder's making, and whoever reads the trace should know. (A loop of
   sched_yield gives its turn away at once; nothing need be said of it.)

   A thread spins where its turn ends in a loop that touches the same addresses again and again, where one
   of the words that it reads and nobody of its own writes was changed while the thread did not run, and where
   its next turn leaves the loop. All three are looked at when threads change, never while one runs: the loop is
   what the last words in the ring repeat.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "tool.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_threadstate.h"

enum {
   THREADS_LOOKED_AT = 512,
   LOOP_WORDS = 32,    /* of the longest loop that is known for one */
   REPEATED_WORDS = 1024, /* that have to repeat */
};

/* A turn's end in a loop. */
struct Loop {
   UInt words; /* 0: it was in none */
   ULong word[LOOP_WORDS];
   /* Of each word that is an address: what was there when the turn ended, when the next one began, and whether the
      thread itself writes there. */
   ULong left[LOOP_WORDS], found[LOOP_WORDS];
   Bool own[LOOP_WORDS];
   UInt turns;
};
static struct Loop loops[THREADS_LOOKED_AT];

/* By number of the superblock: whether reference i of it, up to 64, only reads. */
static ULong* only_reads;
static ULong only_reads_room;

void spinning_block(ULong number, ULong reads)
{
   if (number >= only_reads_room) {
      ULong room = number < 4096 ? 8192 : 2 * number;
      only_reads = VG_(realloc)("domicile.spinning", only_reads, room * sizeof *only_reads);
      VG_(memset)(only_reads + only_reads_room, 0, (room - only_reads_room) * sizeof *only_reads);
      only_reads_room = room;
   }
   only_reads[number] = reads;
}

static Bool is_block(ULong word)
{
   return word >> 60 == WORD_BLOCK >> 60;
}

static Bool is_record(ULong word)
{
   return word >> 60 == WORD_RECORD >> 60;
}

static Bool is_address(ULong word)
{
   return word >> 63 == 0;
}

static ULong read_word(Addr at)
{
   ULong word = 0;
   if (VG_(am_is_valid_for_client)(at, sizeof word, VKI_PROT_READ))
      VG_(memcpy)(&word, (void*)at, sizeof word);
   return word;
}

/* Whether these words are the loop's, from anywhere in it. */
static Bool is_of_loop(const struct Loop* loop, const ULong* words, UInt count)
{
   UInt begin, i;
   for (begin = 0; begin < loop->words; begin++) {
      for (i = 0; i < count && words[i] == loop->word[(begin + i) % loop->words]; i++)
         ;
      if (i == count)
         return True;
   }
   return False;
}

/* Whether the turn ended in the loop in which the one before ended. Of a slot that has just begun there are too few
   words to find a loop in: they only have to be of that one. */
static Bool is_same_loop(const struct Loop* before, const struct Loop* now)
{
   UInt count;
   const ULong* tail = ring_tail(REPEATED_WORDS, &count);
   if (count < REPEATED_WORDS)
      return is_of_loop(before, tail, count);
   return now->words == before->words && now->words > 0 &&
          VG_(memcmp)(now->word, before->word, now->words * sizeof now->word[0]) == 0;
}

/* The loop that the last words repeat, beginning with its lowest superblock; 0 words if they repeat none. */
static void find_loop(struct Loop* loop)
{
   UInt count, period, first, i;
   const ULong* tail = ring_tail(REPEATED_WORDS, &count);
   loop->words = 0;
   if (count < REPEATED_WORDS)
      return;
   for (i = 0; i < count; i++)
      if (is_record(tail[i]))
         return;
   for (period = 1; period <= LOOP_WORDS; period++) {
      for (i = period; i < count && tail[i] == tail[i - period]; i++)
         ;
      if (i == count)
         break;
   }
   if (period > LOOP_WORDS)
      return;
   first = count;
   for (i = count - period; i < count; i++)
      if (is_block(tail[i]) && (first == count || tail[i] < tail[first]))
         first = i;
   if (first == count)
      return;
   for (i = 0; i < period; i++)
      loop->word[i] = tail[first - period + (i < count - first ? i + period : i)];
   /* Two superblocks of one number would have to be told apart by where they lie: such loops are left alone. */
   for (i = 1; i < period; i++)
      if (loop->word[i] == loop->word[0])
         return;
   loop->words = period;
}

/* Which addresses the loop itself writes. */
static void find_own_writes(struct Loop* loop)
{
   UInt i, j, reference = 0;
   ULong reads = 0;
   VG_(memset)(loop->own, 0, sizeof loop->own);
   for (i = 0; i < loop->words; i++) {
      ULong word = loop->word[i];
      if (is_block(word)) {
         UInt number = (UInt)word;
         reads = number < only_reads_room ? only_reads[number] : 0;
         reference = 0;
      } else if (reference < 64 && (is_address(word) || word == WORD_NULL)) {
         if (!(reads >> reference & 1) && is_address(word))
            for (j = 0; j < loop->words; j++)
               loop->own[j] |= loop->word[j] == word;
         reference++;
      }
   }
}

static void leave_values(struct Loop* loop)
{
   UInt i;
   for (i = 0; i < loop->words; i++)
      if (is_address(loop->word[i]))
         loop->left[i] = read_word(loop->word[i]);
}

/* The turn of `tid` is over. */
static void turn_ends(ThreadId tid)
{
   struct Loop now, *before = &loops[tid];
   UInt i;
   find_loop(&now);
   if (is_same_loop(before, &now)) {
      /* What a whole turn of its own left unchanged is not its own, though it writes there: a lock that is tried. */
      for (i = 0; i < before->words; i++)
         if (is_address(before->word[i]) && before->own[i])
            before->own[i] = before->found[i] != read_word(before->word[i]);
      before->turns++;
      leave_values(before);
      return;
   }
   for (i = 0; i < before->words; i++)
      if (is_address(before->word[i]) && !before->own[i] && before->found[i] != before->left[i]) {
         ULong* w = ring_record(RECORD_SPUN, 3);
         w[0] = before->turns;
         w[1] = (UInt)before->word[0];
         w[2] = before->word[i];
         ring_commit();
         break;
      }
   *before = now;
   before->turns = 1;
   find_own_writes(before);
   leave_values(before);
   VG_(memcpy)(before->found, before->left, sizeof before->found);
}

static void turn_begins(ThreadId tid)
{
   struct Loop* loop = &loops[tid];
   UInt i;
   for (i = 0; i < loop->words; i++)
      if (is_address(loop->word[i]))
         loop->found[i] = read_word(loop->word[i]);
}

void spinning_switch(ThreadId from, ThreadId to)
{
   if (!ring_alive)
      return;
   if (from != VG_INVALID_THREADID && from < THREADS_LOOKED_AT)
      turn_ends(from);
   if (to < THREADS_LOOKED_AT)
      turn_begins(to);
}

void spinning_thread_begins(ThreadId tid)
{
   if (tid < THREADS_LOOKED_AT)
      loops[tid].words = 0;
}
