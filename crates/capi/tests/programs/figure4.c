/* Figure 4 of the paper as a whole program: the master divides the available cache among its threads,
 * and each thread gets a private slot for its data. Where the kernel shows frames, each page is then
 * looked at without the library. */
#define _GNU_SOURCE
#include "frames.h"
#include <domicile/domicile.h>
#include <domicile/ulcc.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

enum { Num_Threads = 4, WORDS = 70001, ROOM = 64 * PAGE };

static long Average_Space;
static uint32_t used[Num_Threads];
static uint64_t *kept[Num_Threads];
static pthread_barrier_t all;

/* Every whole page of a range has one of the colors. */
static void look(const char *from, const char *to, uint32_t allowed)
{
    uintptr_t page = ((uintptr_t)from + PAGE - 1) / PAGE * PAGE;
    for (; page + PAGE <= (uintptr_t)to; page += PAGE) {
        int color = color_of((void *)page);
        CHECK(color >= 0 && (allowed >> color & 1));
    }
}

/* As in the paper, each thread is kept on a processor. */
static void pin(int at, const cpu_set_t *processors)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, processors) && at-- == 0)
            CPU_SET(cpu, &one);
    CHECK(pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0);
}

static cpu_set_t processors;
static int Num_Processors;

static int pattern(const uint64_t *numbers, long seed)
{
    for (int i = 0; i < WORDS; i++)
        if (numbers[i] != (uint64_t)i * 2654435761u + (uint64_t)seed)
            return 0;
    return 1;
}

static void *slave(void *number)
{
    long My_Thread_ID = (long)(intptr_t)number;
    pin((int)My_Thread_ID % Num_Processors, &processors);
    /* One range was written before, at no particular address; the other has never been touched. */
    uint64_t *numbers = malloc(WORDS * sizeof *numbers);
    char *room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(numbers != NULL && room != MAP_FAILED);
    for (int i = 0; i < WORDS; i++)
        numbers[i] = (uint64_t)i * 2654435761u + (uint64_t)My_Thread_ID;
    char *Addr1 = (char *)numbers, *Addr2 = (char *)(numbers + WORDS), *Addr3 = room, *Addr4 = room + ROOM;
    pthread_barrier_wait(&all);

    /* Define a cache space slot */
    ULCC_Slot Cache_Slot_ID = ULCC_Cache_Slot(Average_Space, private);
    /* Define a set of threads */
    ULCC_Threads TG = ULCC_Thread_Group(NULL, My_Thread_ID);
    /* Create a data set to use the cache space slot */
    ULCC_Data Data_Set = ULCC_Data_Set(TG);
    /* Include data in address ranges from Addr1 to Addr2 and from Addr3 and Addr4 into data set */
    CHECK(ULCC_More_Data(Data_Set, Addr1, Addr2) == 0);
    CHECK(ULCC_More_Data(Data_Set, Addr3, Addr4) == 0);
    /* Do the actual cache space allocation on the processor that the thread runs on */
    if (ULCC_Allocate(Data_Set, Cache_Slot_ID) != 0) {
        fprintf(stderr, "ULCC_Allocate: %s\n", ULCC_Error());
        exit(1);
    }

    CHECK(pattern(numbers, My_Thread_ID));
    for (int i = 0; i < ROOM; i++)
        CHECK(room[i] == 0);
    memset(room, (int)My_Thread_ID + 1, ROOM);

    uint32_t colors[COLORS];
    size_t count = 0;
    CHECK(domicile_data_set_colors(Data_Set, colors, COLORS, &count) == DOMICILE_OK);
    CHECK((long)count == Average_Space / KB_OF_COLOR);
    for (size_t i = 0; i < count; i++)
        used[My_Thread_ID] |= UINT32_C(1) << colors[i];
    domicile_census census = {.size = sizeof census};
    CHECK(domicile_data_set_census(Data_Set, &census) == DOMICILE_OK);
    CHECK(census.pages >= ROOM / PAGE + WORDS * 8 / PAGE - 1 && census.allowed + census.unknown == census.pages);
    if (frames_are_shown()) {
        CHECK(census.allowed == census.pages);
        look(Addr1, Addr2, used[My_Thread_ID]);
        look(Addr3, Addr4, used[My_Thread_ID]);
    }
    pthread_barrier_wait(&all);

    /* What is freed is memory as any other. */
    if (My_Thread_ID % 2)
        CHECK(ULCC_Free_Data_Set(Data_Set) == 0);
    CHECK(pattern(numbers, My_Thread_ID));
    if (My_Thread_ID % 2)
        free(numbers);
    else
        kept[My_Thread_ID] = numbers;
    CHECK(munmap(room, ROOM) == 0);
    return NULL;
}

int main(void)
{
    pthread_t threads[Num_Threads];
    CHECK(pthread_barrier_init(&all, NULL, Num_Threads) == 0);
    CHECK(sched_getaffinity(0, sizeof processors, &processors) == 0);
    Num_Processors = CPU_COUNT(&processors) < 2 ? 1 : 2;

    if (ULCC_Init(Num_Processors) != 0) {
        printf("not initialised: %s\n", ULCC_Error());
        return 2;
    }
    /* Available cache space size in KB for the application */
    long Space_Avail_App = ULCC_Available_Space_App();
    CHECK(Space_Avail_App > 0 && Space_Avail_App % (COLORS * KB_OF_COLOR) == 0);
    long caches = Space_Avail_App / (COLORS * KB_OF_COLOR);
    CHECK(caches <= Num_Processors);
    /* Cache space in KB for each thread on average */
    Average_Space = Space_Avail_App / Num_Threads;
    for (intptr_t i = 0; i < Num_Threads; i++)
        CHECK(pthread_create(&threads[i], NULL, slave, (void *)i) == 0);
    for (int i = 0; i < Num_Threads; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < Num_Threads; i++)
        for (int j = 0; j < i; j++)
            if (caches == 1 || i % Num_Processors == j % Num_Processors)
                CHECK((used[i] & used[j]) == 0);
    CHECK(ULCC_Exit() == 0);
    for (int i = 0; i < Num_Threads; i++) {
        CHECK(kept[i] == NULL || pattern(kept[i], i));
        free(kept[i]);
    }
    puts("done");
    return 0;
}
