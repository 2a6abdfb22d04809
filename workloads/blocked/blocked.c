/* MatMul (Ding11, section 4.2): C = C + A B by blocks. A block of A is multiplied with all blocks of a block row of B
   into a block row of C, and should stay in the cache meanwhile. Each thread has some block rows of A and C. */
#include "blocked.h"

#include "team.h"

static const char *const LAYOUTS[] = {"blocks", "rows", 0};
struct setting settings[] = {
   {"n", "rows and columns", 1, 32768, 2048, 0},
   {"block", "rows and columns of a block; 0: the paper's 360 for one thread, 256 for several", 0, 32768, 0, 0},
   {"part", "blocks of A that each thread multiplies; 0: all", 0, 1 << 30, 0, 0},
   {"layout", "how matrices lie in memory: block after block, or row after row", 0, 0, 0, LAYOUTS},
   {"pad", "doubles between two rows (layout rows)", 0, 4096, 8, 0},
   {0, 0, 0, 0, 0, 0},
};

static int64_t n, side, across; /* blocks in each direction */
static double *a, *b, *c;

static int64_t of_side(int64_t block) { return n - block * side < side ? n - block * side : side; }

/* Row of blocks, column of blocks. */
static struct block block_of(double *matrix, int64_t row, int64_t column)
{
   struct block at;
   at.height = of_side(row);
   at.width = of_side(column);
   if (setting("layout") == 0) {
      at.stride = at.width;
      at.first = matrix + row * side * n + at.height * column * side;
   } else {
      at.stride = n + setting("pad");
      at.first = matrix + row * side * at.stride + column * side;
   }
   return at;
}

static int64_t doubles(void) { return n * (n + (setting("layout") ? setting("pad") : 0)); }

static double *row_start(double *matrix, int64_t row) { return row < across ? block_of(matrix, row, 0).first : matrix + doubles(); }

static int64_t first_row(int thread) { return across * thread / team_threads(); }

static struct piece piece_of(double *matrix, int64_t first, int64_t end)
{
   struct piece piece;
   piece.start = row_start(matrix, first);
   piece.bytes = (size_t)(row_start(matrix, end) - row_start(matrix, first)) * sizeof(double);
   return piece;
}

/* Small whole numbers, so that all sums are exact; indices from 1, as matmul's. */
static double a_of(int64_t i, int64_t j) { return (double)((3 * i + 5 * j) % 17 - 8); }
static double b_of(int64_t i, int64_t j) { return (double)((7 * i + 2 * j) % 13 - 6); }

static void fill(int thread)
{
   int64_t row, column, i, j;
   for (row = first_row(thread); row < first_row(thread + 1); row++)
      for (column = 0; column < across; column++) {
         const struct block of_a = block_of(a, row, column), of_b = block_of(b, row, column);
         const struct block of_c = block_of(c, row, column);
         for (i = 0; i < of_a.height; i++)
            for (j = 0; j < of_a.width; j++) {
               of_a.first[i * of_a.stride + j] = a_of(row * side + i + 1, column * side + j + 1);
               of_b.first[i * of_b.stride + j] = b_of(row * side + i + 1, column * side + j + 1);
               of_c.first[i * of_c.stride + j] = 0;
            }
      }
}

/* Each thread's part of A has the cache space of one block for itself; B and C share what is left. */
static void give_slots(int thread)
{
   const int64_t space = slot_bytes(side * side * (int64_t)sizeof(double));
   const struct piece own = piece_of(a, first_row(thread), first_row(thread + 1));
   /* First what all caches must have room for in the same place. */
   if (thread == 0) {
      const struct piece rest[] = {piece_of(b, 0, across), piece_of(c, 0, across)};
      const int64_t left = team_cache() - team_sharing() * space;
      if (left <= 0)
         frame_fail("the blocks of A leave no cache for B and C: take a smaller --block");
      slot_give(slot_define(left, SLOT_SHARED), rest, 2, EVERYONE);
   }
   team_barrier();
   if (own.bytes > 0)
      slot_give(slot_define(space, SLOT_PRIVATE), &own, 1, thread, thread);
}

static void thread_body(int thread)
{
   const int64_t part = setting("part");
   int64_t row, column, k, done = 0;
   if (slots_on())
      give_slots(thread);
   team_barrier();
   fill(thread);
   team_barrier();
   if (thread == 0)
      frame_begin();
   team_barrier();
   for (row = first_row(thread); row < first_row(thread + 1); row++)
      for (column = 0; column < across && (part == 0 || done < part); column++, done++)
         for (k = 0; k < across; k++)
            multiply(block_of(a, row, column), block_of(b, column, k), block_of(c, row, k));
   team_barrier();
   if (thread == 0)
      frame_end();
}

void workload(void)
{
   double checksum = 0;
   int64_t row, column, i, j;
   n = setting("n");
   side = setting("block") ? setting("block") : team_threads() > 1 ? 256 : 360;
   if (side > n)
      side = n;
   across = (n + side - 1) / side;
   a = team_memory("a", (size_t)doubles() * sizeof *a);
   b = team_memory("b", (size_t)doubles() * sizeof *b);
   c = team_memory("c", (size_t)doubles() * sizeof *c);
   team_run(thread_body);
   for (row = 0; row < across; row++)
      for (column = 0; column < across; column++) {
         const struct block of_c = block_of(c, row, column);
         for (i = 0; i < of_c.height; i++)
            for (j = 0; j < of_c.width; j++)
               checksum += of_c.first[i * of_c.stride + j] *
                           (double)((row * side + i + 1 + 31 * (column * side + j + 1)) % 101 + 1);
      }
   frame_report("checksum", checksum);
   frame_report("side", (double)side);
}
