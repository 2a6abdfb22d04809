/* The language spoken through the ring, from the tool to the recorder.

   The ring carries 64-bit words. A word whose top bit is clear is the address of a
   reference; a word whose top bit is set says in bits 60..62 what it is:

     NULL    a guarded reference that was not performed
     BLOCK   a superblock was entered; bits 0..31 are its number
     EXIT    the superblock was left early; bits 0..15 are the number of the exit
     RECORD  something else; bits 48..59 say what (enum RecordType), bits 0..31 how many
             words of payload follow

   Superblocks are described once, by RECORD_BLOCK, before they are first entered. Their
   addresses then follow in program order, and a run that is shorter than the number of
   references says where the superblock was left: at the one exit without a marker that has
   that many references before it, or at the exit that a trailing EXIT word names.

   The Rust side of this file is crates/capture/src/wire.rs. Change them together, and
   WIRE_VERSION with them.

   Copyright (C) 2025 the Domicile authors. GPL-2.0-or-later, see COPYING. */

#ifndef DOMICILE_WIRE_H
#define DOMICILE_WIRE_H

#define WIRE_MAGIC   0x52434d44u /* "DMCR" */
#define WIRE_VERSION 11u

#define WORD_NULL         0x8000000000000000ULL
#define WORD_BLOCK        0x9000000000000000ULL
#define WORD_EXIT         0xA000000000000000ULL
#define WORD_RECORD       0xB000000000000000ULL
#define WORD_RECORD_SHIFT 48

/* No superblock needs more words than this: the ring keeps that much room at every entry. */
#define BLOCK_WORDS_MAX 4096

/* How an exit is left: by a branch that may go the other way (several at once may), or to a place that is known only then. */
enum { EXIT_CONDITIONAL = 1, EXIT_INDIRECT = 2 };

enum RecordType {
   /* number, instructions | references << 16 | exits << 32 | register writes << 48, then a word for each:
      instruction: pc | bytes << 56
      reference:   instruction | bytes << 16 | op << 32   (op: 0 read, 1 write, 2 modify, 3 prefetch)
      exit:        references before it | instructions run << 16 | has a marker << 32 | EXIT_* << 40
      then two words for each:
      reference:   what its address comes from, what the value comes from that it writes (flow.c; 0: unknown)
      one for each:
      exit:        what decides which way its branch goes
      and two for each:
      register write: instruction | number of the register << 16, what its value comes from */
   RECORD_BLOCK = 1,
   RECORD_THREAD = 2,        /* thread: what follows was done by this thread */
   RECORD_THREAD_CREATE = 3, /* child */
   RECORD_THREAD_START = 4,  /* thread, Linux tid, thread pointer, stack low, stack high
                                (the whole mapping; 0: unknown) */
   RECORD_THREAD_EXIT = 5,   /* thread */
   RECORD_THREAD_NAME = 6,   /* thread, text */
   RECORD_MAP = 7,           /* start, bytes, protection | kind << 8, offset, stack, text path */
   RECORD_UNMAP = 8,         /* start, bytes */
   RECORD_STACK = 9,         /* number, program counters, innermost first */
   RECORD_ALLOC = 10,        /* address, bytes, stack */
   RECORD_FREE = 11,         /* address */
   RECORD_SYNC = 12,         /* enum SyncOp, object, value */
   RECORD_FORK = 13,         /* pid of the child */
   RECORD_WAITED = 14,       /* pid of the child that was waited for */
   RECORD_EXEC = 15,         /* 1: about to call execve; 0: it failed */
   RECORD_PROGRAM = 16,      /* text: path and arguments, each ended by NUL */
   RECORD_END = 17,          /* exit code: the program ended in an orderly way */
   RECORD_PHASE = 18,        /* text */
   RECORD_WORK_BEGIN = 19,   /* hints */
   RECORD_WORK_END = 20,
   RECORD_ARRAY = 21,        /* address, bytes, text */
   RECORD_SWITCH = 22,       /* 1: recording goes on; 0: it pauses (asked for by the program) */
   RECORD_SLOTS = 23,        /* enum SlotOp, and three words */
   RECORD_SUMMARY = 24,      /* bytes of all of it, bytes before this piece, text: a piece. The pieces of
                                one summary follow each other */
   RECORD_SPUN = 25,         /* turns of Valgrind that ended in the loop, its first superblock, what it read */
   RECORD_LIMIT_REFUSED = 26, /* the hard limit of file descriptors that the program asked for (setrlimit) and did not get */
   RECORD_LATENCY = 27,      /* superblock, then a word for each way from a part of the state at its entry to one at its
                                end: part at the end | part at the entry << 8 (0xff: none) | clocks << 16 (latency.c).
                                A part that no word is about stays as it is. From 64 on follow the references: the value that
                                one writes, and that one loads */
   RECORD_CALLED = 28,       /* stack: a sample of the thread's call stack, at the superblock that begins here */
   RECORD_LINE = 29,         /* number, line, text: FUNCTION, a newline, FILE; of a program that is interpreted */
   RECORD_AT_LINES = 30,     /* numbers of lines, innermost first: where the interpreter is in its program, in this thread
                                and from here on. None: nowhere */
};
/* A text is a word with its length in bytes, then the bytes, padded to whole words. */

enum MapKind {
   MAP_ANONYMOUS_ = 0,
   MAP_FILE_ = 1,
   MAP_BREAK_ = 2,
   MAP_STACK_ = 3,
};

enum SyncOp {
   SYNC_LOCK = 1,       /* the thread now holds object */
   SYNC_UNLOCK = 2,     /* it is about to let go */
   SYNC_BARRIER_INIT = 3, /* value: threads */
   SYNC_BARRIER = 4,    /* value: threads, 0 if unknown */
   SYNC_COND_SIGNAL = 5,
   SYNC_COND_WAITED = 6, /* the wait on object ended by a signal */
   SYNC_SEM_INIT = 7,   /* value: units */
   SYNC_SEM_POST = 8,
   SYNC_SEM_WAITED = 9,
   SYNC_JOINED = 10,    /* object: thread pointer of the thread that ended */
   SYNC_TEAM_START = 11, /* OpenMP: object is the team */
   SYNC_TEAM_ENTER = 12, /* value: threads, 0 if unknown */
   SYNC_TEAM_LEAVE = 13,
   SYNC_TEAM_END = 14,
   SYNC_FUTEX_WAKE = 15, /* value: threads woken */
   SYNC_FUTEX_WAITED = 16,
   SYNC_RESTORE = 17,   /* a realloc of object failed: it was not freed */
   SYNC_READ_LOCK = 18, /* shared: any number of readers */
   SYNC_TEAM_BARRIER = 19, /* value: threads, 0 if unknown */
};

/* Cache slots (domicile-trace.h); words that are not named are 0. */
enum SlotOp {
   SLOT_DEFINE = 1,      /* slot, bytes, 1: private, 0: shared */
   SLOT_FREE = 2,        /* slot */
   SLOT_RANGE = 3,       /* data set, address, bytes */
   SLOT_THREAD = 4,      /* data set, Linux tid, 0: the one that says so */
   SLOT_ALLOCATE = 5,    /* data set, slot, all ones: none */
   SLOT_DATA_FREE = 6,   /* data set */
};

/* Messages over the socket (SOCK_SEQPACKET). The tool's first: */
struct WireHello {
   unsigned int magic, version;
   unsigned int pid, parent;
   unsigned int forked;            /* 1: made by fork, shares the superblocks of its parent */
   unsigned int reserved;
   unsigned long long parent_slots; /* if forked: slots that the parent had published before */
};
/* The recorder's answer, with the file descriptor of the shared memory (SCM_RIGHTS): */
struct WireWelcome {
   unsigned int magic, version;
   unsigned int slots, reserved;
   unsigned long long slot_bytes;
};
/* Then the tool sends a struct WireFilled for each slot that it has published, only to wake the
   recorder, which answers each by one byte when the slot may be used again. */
struct WireFilled {
   unsigned long long published;
};

/* The first page of the shared memory. The slots follow it.

   What the page says holds at every moment, whenever the process is killed. Slots are filled in
   turn: number n is slot n modulo the number of slots. Those below `published` are whole. The
   cursor, one word, is moved last: all before it in its slot was written, and it never lies at a
   slot's end, so it says in which slot it is. Where that is not the slot of number `published`,
   the next one was not begun. */
enum { WIRE_SLOTS_MAX = 64 };
struct WireControl {
   unsigned long long cursor; /* address (in the program) of the next word to write */
   unsigned long long limit;  /* beyond it a superblock may not begin */
   unsigned long long slots;  /* address of the first slot */
   unsigned long long published; /* slots, so far */
   /* The cursor is in no slot: nothing is recorded at present, and this is where it belongs. */
   unsigned long long aside;
   unsigned long long words[WIRE_SLOTS_MAX]; /* of each slot that was published */
};
#define WIRE_CONTROL_BYTES 4096

#endif
