/* MergeSort (Ding11, sections 2 and 4.2): elements go to buckets by their keys; each thread sorts its buckets, block
   by block with a sorting buffer, and merges a bucket's blocks into the destination in one pass.

   A thread's buckets lie side by side, and so do their places in the destination: one data set, of which only the
   block at hand is used again and again. The sorting buffer and the tree are the other. */
#include "mergesort.h"

#include "team.h"

#define PAGE 4096

struct setting settings[] = {
   {"n", "elements of 60 bytes", 1, 1 << 30, 10000000, 0},
   {"buckets", "at least one for each thread", 1, 1 << 16, 32, 0},
   {"block", "bytes of a block, and of a sorting buffer; 0: so that both fill the thread's part of the cache", 0, 1 << 30, 0, 0},
   {0, 0, 0, 0, 0, 0},
};

static int64_t n, buckets, block_elements;
static struct element *unsorted, *buckets_memory, *sorted_memory;
/* By bucket: where it lies, where it goes when it is sorted, and how many elements it has. */
static struct element **bucket, **sorted;
static int64_t *bucket_count;
/* By thread, by bucket: how many elements the thread's part of the array has, and then where its next one goes. A
   thread's are on lines of its own. */
static int64_t *placed;
static int64_t *place_in(int thread, int64_t b) { return &placed[thread * ((buckets + 7) / 8 * 8) + b]; }
/* By thread: the sorting buffer, and behind it a tree that would do for all elements in one bucket. */
static char **buffer;
static int64_t buffer_bytes, tree_bytes;

static int64_t pages(int64_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }
static int64_t part(int64_t whole, int thread) { return whole * thread / team_threads(); }

/* Numbers that look random, the same in every run (the mixing function of splitmix64). */
static uint64_t mixed(uint64_t x)
{
   x += 0x9e3779b97f4a7c15u;
   x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
   x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
   return x ^ (x >> 31);
}

static int32_t key_of(int64_t i)
{
   const int32_t key = (int32_t)(mixed((uint64_t)i) >> 33);
   return key == INT32_MAX ? 0 : key;
}

static int64_t bucket_of(int32_t key) { return (int64_t)key * buckets >> 31; }

static void fill(int thread)
{
   int64_t i;
   int k;
   for (i = part(n, thread); i < part(n, thread + 1); i++) {
      unsorted[i].key = key_of(i);
      unsorted[i].content[0] = (int32_t)i;
      for (k = 1; k < 14; k++)
         unsorted[i].content[k] = (int32_t)(mixed((uint64_t)i) >> k);
   }
}

static void count_keys(int thread)
{
   int64_t i;
   for (i = part(n, thread); i < part(n, thread + 1); i++)
      (*place_in(thread, bucket_of(unsorted[i].key)))++;
}

/* Where everything goes. Each thread's buckets begin on a page of their own. */
static void lay_out(void)
{
   int64_t b, at = 0;
   int thread, owner = 0;
   for (b = 0; b < buckets; b++) {
      int64_t begin = 0;
      while (b >= part(buckets, owner + 1))
         owner++;
      if (b == part(buckets, owner))
         at = pages(at);
      bucket[b] = (struct element *)((char *)buckets_memory + at);
      sorted[b] = (struct element *)((char *)sorted_memory + at);
      for (thread = 0; thread < team_threads(); thread++) {
         const int64_t count = *place_in(thread, b);
         *place_in(thread, b) = begin;
         begin += count;
      }
      bucket_count[b] = begin;
      at += begin * (int64_t)sizeof(struct element);
   }
}

static void give_slots(int thread)
{
   const int64_t first = part(buckets, thread), last = part(buckets, thread + 1) - 1;
   const size_t bytes = (size_t)((char *)(bucket[last] + bucket_count[last]) - (char *)bucket[first]);
   /* Half of the cache for each, or a quarter where two threads share it. */
   const int64_t half = team_cache() / (2 * team_sharing());
   const int data = slot_define(half, SLOT_PRIVATE), sorting = slot_define(half, SLOT_PRIVATE);
   const struct piece weak[] = {{bucket[first], bytes}, {sorted[first], bytes}};
   const struct piece strong[] = {{buffer[thread], (size_t)(buffer_bytes + tree_bytes)}};
   slot_give(data, weak, 2, thread, thread);
   slot_give(sorting, strong, 1, thread, thread);
}

static void distribute(int thread)
{
   int64_t i;
   for (i = part(n, thread); i < part(n, thread + 1); i++) {
      const int64_t b = bucket_of(unsorted[i].key);
      bucket[b][(*place_in(thread, b))++] = unsorted[i];
   }
}

static void sort_buckets(int thread)
{
   struct element *room = (struct element *)buffer[thread];
   struct node *tree = (struct node *)(buffer[thread] + buffer_bytes);
   int64_t b, at;
   for (b = part(buckets, thread); b < part(buckets, thread + 1); b++) {
      const int64_t count = bucket_count[b];
      for (at = 0; at < count; at += block_elements)
         block_sort(bucket[b] + at, room, count - at < block_elements ? count - at : block_elements);
      if (count > 0)
         runs_merge(sorted[b], bucket[b], count, block_elements, tree);
   }
}

static void thread_body(int thread)
{
   fill(thread);
   team_barrier();
   if (thread == 0)
      frame_begin();
   team_barrier();
   count_keys(thread);
   team_barrier();
   if (thread == 0) {
      lay_out();
      frame_end();
   }
   team_barrier();
   give_slots(thread);
   team_barrier();
   if (thread == 0)
      frame_begin();
   team_barrier();
   distribute(thread);
   team_barrier();
   sort_buckets(thread);
   team_barrier();
   if (thread == 0)
      frame_end();
}

/* Sorted, and the same elements as before: `index` and key still belong together, and none came twice. */
static void verify(void)
{
   double checksum = 0;
   int64_t b, i, place = 0;
   uint64_t sum = 0;
   int32_t last_key = -1, last_index = -1;
   for (b = 0; b < buckets; b++)
      for (i = 0; i < bucket_count[b]; i++, place++) {
         const struct element *one = &sorted[b][i];
         const int32_t index = one->content[0];
         if (one->key < last_key || (one->key == last_key && index <= last_index))
            frame_fail("the elements are not sorted");
         if (one->key != key_of(index) || one->content[13] != (int32_t)(mixed((uint64_t)index) >> 13))
            frame_fail("an element was changed");
         last_key = one->key;
         last_index = index;
         sum += mixed((uint64_t)index) - mixed((uint64_t)place);
         checksum += (double)((place % 101 + 1) * (index % 1009));
      }
   if (place != n || sum != 0)
      frame_fail("elements were lost");
   frame_report("checksum", checksum);
}

void workload(void)
{
   const int64_t threads = team_threads();
   int64_t most, i;
   n = setting("n");
   buckets = setting("buckets");
   if (buckets < threads)
      frame_fail("there are fewer buckets than threads");
   most = setting("block") ? setting("block") : team_cache() / (2 * team_sharing());
   block_elements = most / (int64_t)sizeof(struct element);
   if (block_elements < 1)
      frame_fail("a block is smaller than an element");
   buffer_bytes = pages(block_elements * (int64_t)sizeof(struct element));
   tree_bytes = pages(tree_nodes((n + block_elements - 1) / block_elements) * (int64_t)sizeof(struct node));
   unsorted = team_memory("unsorted", (size_t)n * sizeof *unsorted);
   buckets_memory = team_memory("buckets", (size_t)(n * (int64_t)sizeof *unsorted + threads * PAGE));
   sorted_memory = team_memory("sorted", (size_t)(n * (int64_t)sizeof *unsorted + threads * PAGE));
   bucket = team_memory("places", (size_t)buckets * sizeof *bucket);
   sorted = team_memory("places", (size_t)buckets * sizeof *sorted);
   bucket_count = team_memory("counts", (size_t)buckets * sizeof *bucket_count);
   placed = team_memory("counts", (size_t)(threads * ((buckets + 7) / 8 * 8)) * sizeof *placed);
   buffer = team_memory("places", (size_t)threads * sizeof *buffer);
   for (i = 0; i < threads; i++)
      buffer[i] = team_memory("buffer", (size_t)(buffer_bytes + tree_bytes));
   team_run(thread_body);
   verify();
   frame_report("blocks", (double)((n / buckets + block_elements - 1) / block_elements));
}
