/* The ring: shared memory cut into slots, and a socket that says who may touch which.

   Generated code stores straight into the slot at the cursor, so nothing is copied in the
   program's process. A slot belongs to the tool until it is published by a message, and to
   the recorder until it answers. Messages go over a Unix socket because it shows the death
   of either side and never raises SIGPIPE (MSG_NOSIGNAL).

   The page with the cursor is shared too: should the program be killed, the recorder still
   knows which slots were published and how far the last one was filled. It believes the page and
   not the messages, which are sent before or after what they report (wire.h).

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#include "tool.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_vkiscnums.h"

/* Of Valgrind's core, without a public header. */
extern SysRes VG_(am_shared_mmap_file_float_valgrind)(SizeT length, UInt prot, Int fd,
                                                      Off64T offset);
extern SysRes VG_(am_do_mmap_NO_NOTIFY)(Addr start, SizeT length, UInt prot, UInt flags, Int fd,
                                        Off64T offset);
extern Int VG_(safe_fd)(Int oldfd);

Bool ring_alive = False;

/* A page of its own: ring_connect maps the shared page over it. */
static union {
   struct WireControl control;
   UChar page[WIRE_CONTROL_BYTES];
} control_page __attribute__((aligned(WIRE_CONTROL_BYTES)));
extern struct WireControl ring_control __attribute__((alias("control_page")));

static Int socket_fd = -1;
static Addr slots_at;      /* the first slot; 0 without shared memory */
static SizeT slots_bytes;  /* of all slots */
static SizeT slot_bytes;
static UInt slot_count;
static UInt slots_free;    /* beyond the one being filled */
static ULong slot_begin;   /* address of the slot being filled */

/* ---- system calls that Valgrind's library does not offer ---- */

static Long syscall6(UWord number, UWord a, UWord b, UWord c, UWord d, UWord e, UWord f)
{
   register UWord r10 __asm__("r10") = d;
   register UWord r8 __asm__("r8") = e;
   register UWord r9 __asm__("r9") = f;
   Long result;
   __asm__ volatile("syscall"
                    : "=a"(result)
                    : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                    : "rcx", "r11", "memory");
   return result;
}

enum {
   LINUX_AF_UNIX = 1,
   LINUX_SOCK_SEQPACKET = 5,
   LINUX_SOCK_CLOEXEC = 02000000,
   LINUX_MSG_NOSIGNAL = 0x4000,
   LINUX_SOL_SOCKET = 1,
   LINUX_SCM_RIGHTS = 1,
   LINUX_EINTR = 4,
};

static Bool send_all(const void* message, SizeT bytes)
{
   Long sent;
   do
      sent = syscall6(__NR_sendto, socket_fd, (UWord)message, bytes, LINUX_MSG_NOSIGNAL, 0, 0);
   while (sent == -LINUX_EINTR);
   return sent == (Long)bytes;
}

/* Receives one message, and a file descriptor with it if `fd` is given. */
static Bool receive(void* message, SizeT bytes, Int* fd)
{
   struct {
      SizeT length;
      Int level, type;
      Int fd, padding;
   } rights;
   struct {
      void* base;
      SizeT bytes;
   } part = {message, bytes};
   struct {
      void* name;
      UInt name_bytes;
      void* parts;
      SizeT part_count;
      void* rights;
      SizeT rights_bytes;
      Int flags;
   } header;
   Long got;
   VG_(memset)(&header, 0, sizeof header);
   VG_(memset)(&rights, 0, sizeof rights);
   header.parts = &part;
   header.part_count = 1;
   header.rights = fd ? &rights : NULL;
   header.rights_bytes = fd ? sizeof rights : 0;
   do
      got = syscall6(__NR_recvmsg, socket_fd, (UWord)&header, 0, 0, 0, 0);
   while (got == -LINUX_EINTR);
   if (got != (Long)bytes)
      return False;
   if (fd) {
      if (header.rights_bytes < 20 || rights.level != LINUX_SOL_SOCKET ||
          rights.type != LINUX_SCM_RIGHTS)
         return False;
      *fd = rights.fd;
   }
   return True;
}

/* ---- slots ---- */

/* Where superblocks write that are not to be recorded. */
static ULong nowhere[2 * BLOCK_WORDS_MAX];

/* What was written before is written, for whoever reads the shared memory, before this is. */
static void set(unsigned long long* word, ULong value)
{
   __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Where a superblock may not begin any more: the cursor never comes to the slot's end. */
static ULong limit_of_slot(void)
{
   return slot_begin + slot_bytes - 8 * (BLOCK_WORDS_MAX + 1);
}

/* ---- samples of the call stack ---- */

Bool ring_call_stacks = False;

/* One is due when so many more words are written, on average. The distance varies, so that no loop of the program is in step
   with it. */
enum { SAMPLE_WORDS = 1 << 12 };
/* Where the last sample's records lie in the slot that is being filled; both 0 if there are none. */
static ULong sampled_from, sampled_to;
static ULong sample_at; /* the address in the slot from which on one is due; beyond the slot if not in this one */

static void next_sample(ULong from)
{
   static UInt state = 1; /* xorshift: the same samples in each run */
   state ^= state << 13;
   state ^= state >> 17;
   state ^= state << 5;
   sample_at = from + 8 * (SAMPLE_WORDS / 2 + state % SAMPLE_WORDS);
}

/* Where a superblock stops to look: at the slot's end, or where a sample is due. */
static ULong next_stop(void)
{
   ULong end = limit_of_slot();
   return ring_call_stacks && sample_at < end ? sample_at : end;
}

/* Makes the slot after those that were published the one that is filled. */
static void begin_slot(void)
{
   slot_begin = slots_at + ring_control.published % slot_count * slot_bytes;
   sampled_from = sampled_to = 0;
   if (ring_call_stacks)
      next_sample(slot_begin);
   ring_control.limit = next_stop();
   set(&ring_control.cursor, slot_begin);
   set(&ring_control.aside, 0);
}

static void write_nowhere(void)
{
   if (ring_control.aside == 0)
      set(&ring_control.aside, ring_control.cursor);
   ring_control.limit = (Addr)(nowhere + BLOCK_WORDS_MAX);
   set(&ring_control.cursor, (Addr)nowhere);
}

void ring_quiet(Bool quiet)
{
   if (!ring_alive || quiet == (ring_control.aside != 0))
      return;
   if (quiet) {
      write_nowhere();
   } else {
      ring_control.limit = next_stop();
      set(&ring_control.cursor, ring_control.aside);
      set(&ring_control.aside, 0);
   }
}

/* Nobody listens (any more): the program runs on. What was sent may still be read. */
static void detach(void)
{
   ring_alive = False;
   if (socket_fd >= 0)
      VG_(close)(socket_fd);
   socket_fd = -1;
   write_nowhere();
}

static Bool handshake(const HChar* path, Bool forked, ULong parent_slots)
{
   struct {
      UShort family;
      HChar path[108];
   } address;
   struct WireHello hello;
   struct WireWelcome welcome;
   Int memory = -1, plain;
   SysRes mapped;

   if (VG_(strlen)(path) >= sizeof address.path)
      return False;
   plain = (Int)syscall6(__NR_socket, LINUX_AF_UNIX, LINUX_SOCK_SEQPACKET | LINUX_SOCK_CLOEXEC, 0,
                         0, 0, 0);
   if (plain < 0)
      return False;
   socket_fd = VG_(safe_fd)(plain); /* out of the program's sight; close-on-exec */
   if (socket_fd < 0)
      return False;
   VG_(memset)(&address, 0, sizeof address);
   address.family = LINUX_AF_UNIX;
   VG_(strcpy)(address.path, path);
   if (syscall6(__NR_connect, socket_fd, (UWord)&address, sizeof address, 0, 0, 0) != 0)
      return False;

   VG_(memset)(&hello, 0, sizeof hello);
   hello.magic = WIRE_MAGIC;
   hello.version = WIRE_VERSION;
   hello.pid = VG_(getpid)();
   hello.parent = VG_(getppid)();
   hello.forked = forked;
   hello.parent_slots = parent_slots;
   if (!send_all(&hello, sizeof hello) || !receive(&welcome, sizeof welcome, &memory))
      return False;
   if (welcome.magic != WIRE_MAGIC || welcome.version != WIRE_VERSION || welcome.slots < 2 ||
       welcome.slots > WIRE_SLOTS_MAX || welcome.slot_bytes < 4 * 8 * BLOCK_WORDS_MAX) {
      VG_(close)(memory);
      return False;
   }

   slot_count = welcome.slots;
   slot_bytes = welcome.slot_bytes;
   slots_bytes = slot_count * slot_bytes;
   mapped = VG_(am_shared_mmap_file_float_valgrind)(slots_bytes, VKI_PROT_READ | VKI_PROT_WRITE,
                                                    memory, WIRE_CONTROL_BYTES);
   if (!sr_isError(mapped)) {
      slots_at = sr_Res(mapped);
      mapped = VG_(am_do_mmap_NO_NOTIFY)((Addr)&control_page, WIRE_CONTROL_BYTES,
                                         VKI_PROT_READ | VKI_PROT_WRITE,
                                         VKI_MAP_SHARED | VKI_MAP_FIXED, memory, 0);
   }
   VG_(close)(memory);
   return !sr_isError(mapped);
}

void ring_connect(const HChar* path, Bool forked, ULong parent_slots)
{
   tl_assert(!ring_alive);
   if (!handshake(path, forked, parent_slots)) {
      detach();
      return;
   }
   ring_alive = True;
   slots_free = slot_count - 1;
   ring_control.published = 0;
   ring_control.slots = slots_at;
   begin_slot();
}

void ring_drain(void)
{
   struct WireFilled filled;
   ULong words;
   if (!ring_alive || ring_control.aside) {
      ring_control.cursor = (Addr)nowhere;
      return;
   }
   words = (ring_control.cursor - slot_begin) / 8;
   tl_assert(words < slot_bytes / 8);
   ring_control.words[ring_control.published % slot_count] = words;
   filled.published = ring_control.published + 1;
   set(&ring_control.published, filled.published);
   if (!send_all(&filled, sizeof filled)) {
      detach();
      return;
   }
   if (slots_free == 0) {
      UChar byte;
      if (!receive(&byte, 1, NULL)) {
         detach();
         return;
      }
      slots_free++;
   }
   slots_free--;
   begin_slot();
}

void ring_stop(void)
{
   if (!ring_alive || ring_control.aside || ring_control.cursor > limit_of_slot())
      ring_drain();
   if (ring_call_stacks && ring_alive && !ring_control.aside && ring_control.cursor > sample_at) {
      ThreadId tid = VG_(get_running_tid)();
      ULong from = ring_control.cursor, slot = slot_begin;
      /* First: the records move the cursor. */
      sample_at = ~0ULL;
      ring_word(RECORD_CALLED, stacks_sampled(tid));
      sampled_from = slot == slot_begin ? from : slot_begin;
      sampled_to = ring_control.cursor;
      if (ring_alive && ring_control.cursor > limit_of_slot())
         ring_drain();
      next_sample(ring_control.cursor);
      if (ring_alive)
         ring_control.limit = next_stop();
   }
}

void ring_flush(void)
{
   Bool quiet = ring_control.aside != 0;
   ring_quiet(False);
   if (ring_alive && ring_control.cursor != slot_begin)
      ring_drain();
   ring_quiet(quiet);
}

const ULong* ring_tail(UInt most, UInt* count)
{
   /* Samples are further apart than this is long. */
   static ULong without_sample[SAMPLE_WORDS / 2];
   ULong words = 0, before, after;
   if (ring_alive && !ring_control.aside)
      words = (ring_control.cursor - slot_begin) / 8;
   after = sampled_to ? (ring_control.cursor - sampled_to) / 8 : words;
   if (after >= most || after >= words) {
      *count = words < most ? words : most;
      return (const ULong*)(Addr)ring_control.cursor - *count;
   }
   tl_assert(most <= SAMPLE_WORDS / 2);
   before = (sampled_from - slot_begin) / 8;
   if (before > most - after)
      before = most - after;
   VG_(memcpy)(without_sample, (const ULong*)(Addr)sampled_from - before, before * sizeof(ULong));
   VG_(memcpy)(without_sample + before, (const void*)(Addr)sampled_to, after * sizeof(ULong));
   *count = before + after;
   return without_sample;
}

ULong ring_published(void)
{
   return ring_control.published;
}

/* The record that was begun and does not count yet. */
static struct {
   Bool begun, quiet;
   ULong end; /* where the cursor will be */
} record;

ULong* ring_record(enum RecordType type, UInt words)
{
   ULong* at;
   tl_assert(words < BLOCK_WORDS_MAX - 1 && !record.begun);
   record.begun = True;
   record.quiet = ring_control.aside != 0;
   ring_quiet(False);
   if (ring_control.cursor > limit_of_slot())
      ring_drain();
   at = ring_alive ? (ULong*)(Addr)ring_control.cursor : nowhere;
   at[0] = WORD_RECORD | ((ULong)type << WORD_RECORD_SHIFT) | words;
   record.end = (Addr)(at + 1 + words);
   return at + 1;
}

void ring_commit(void)
{
   tl_assert(record.begun);
   record.begun = False;
   if (ring_alive)
      set(&ring_control.cursor, record.end);
   ring_quiet(record.quiet);
}

void ring_word(enum RecordType type, ULong word)
{
   *ring_record(type, 1) = word;
   ring_commit();
}

ULong* ring_record_text(enum RecordType type, UInt words, const HChar* text, SizeT bytes)
{
   ULong* at;
   UInt text_words;
   if (bytes > 4096)
      bytes = 4096;
   text_words = (bytes + 7) / 8;
   at = ring_record(type, words + 1 + text_words);
   at[words] = bytes;
   if (text_words > 0)
      at[words + text_words] = 0;
   VG_(memcpy)(&at[words + 1], text, bytes);
   return at;
}

void ring_abandon(void)
{
   if (socket_fd >= 0)
      VG_(close)(socket_fd);
   socket_fd = -1;
   ring_alive = False;
   if (slots_at != 0) {
      /* The cursor is the parent's, even where that is not heard any more: take a private page in its stead. */
      VG_(am_do_mmap_NO_NOTIFY)((Addr)&control_page, WIRE_CONTROL_BYTES,
                                VKI_PROT_READ | VKI_PROT_WRITE,
                                VKI_MAP_PRIVATE | VKI_MAP_FIXED | VKI_MAP_ANONYMOUS, -1, 0);
      VG_(am_munmap_valgrind)(slots_at, slots_bytes);
      slots_at = 0;
   }
   write_nowhere();
}
