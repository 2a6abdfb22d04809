/* The calls for slots in all their cases. */
#define _GNU_SOURCE
#include "frames.h"
#include <domicile/domicile.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { KB = 1024, PAGES = 96 };

static char *map(size_t pages)
{
    char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

static domicile_slots *open_slots(void)
{
    domicile_slots *slots = NULL;
    if (domicile_slots_open(NULL, &slots) != DOMICILE_OK) {
        fprintf(stderr, "%s\n", domicile_slots_message());
        exit(1);
    }
    return slots;
}

static domicile_slot *make_slot(domicile_slots *slots, uint64_t bytes, domicile_slot_kind kind)
{
    domicile_slot *slot = NULL;
    CHECK(domicile_slot_create(slots, bytes, kind, &slot) == DOMICILE_OK && slot != NULL);
    return slot;
}

static domicile_data_set *make_set(domicile_slots *slots, const void *start, size_t bytes)
{
    domicile_data_set *set = NULL;
    CHECK(domicile_data_set_create(slots, NULL, &set) == DOMICILE_OK && set != NULL);
    CHECK(domicile_data_set_add(set, start, bytes) == DOMICILE_OK);
    return set;
}

static uint32_t colors_of(const domicile_data_set *set)
{
    uint32_t colors[COLORS], allowed = 0;
    size_t count = 0;
    CHECK(domicile_data_set_colors(set, colors, COLORS, &count) == DOMICILE_OK && count <= COLORS);
    for (size_t i = 0; i < count; i++) {
        CHECK(colors[i] < COLORS && (i == 0 || colors[i] > colors[i - 1]));
        allowed |= UINT32_C(1) << colors[i];
    }
    return allowed;
}

static void look(const char *at, size_t pages, uint32_t allowed)
{
    if (!frames_are_shown())
        return;
    for (size_t i = 0; i < pages; i++) {
        int color = color_of(at + i * PAGE);
        CHECK(color >= 0 && (allowed >> color & 1));
    }
}

static void says(const char *words)
{
    if (strstr(domicile_slots_message(), words) == NULL) {
        fprintf(stderr, "not among \"%s\": \"%s\"\n", domicile_slots_message(), words);
        exit(1);
    }
}

static void an_application(void)
{
    domicile_slots_state state = {.size = sizeof state};
    domicile_slots *slots = open_slots();
    CHECK(domicile_slots_ask(slots, &state) == DOMICILE_OK);
    CHECK(state.colors == COLORS && state.color_bytes == KB_OF_COLOR * KB && state.caches >= 1);
    CHECK(state.available == (uint64_t)state.caches * COLORS * KB_OF_COLOR * KB);
    CHECK(domicile_slots_available(slots) == state.available);
    CHECK(state.source == DOMICILE_COLORS_FORCED && state.first_bit == 12 && !state.recording);
    CHECK(strlen(domicile_slots_means(slots)) > 20);
    CHECK(domicile_slots_close(slots) == DOMICILE_OK);
}

static void two_private_slots(void)
{
    domicile_slots *slots = open_slots();
    domicile_slot *one = make_slot(slots, 256 * KB, DOMICILE_SLOT_PRIVATE);
    domicile_slot *two = make_slot(slots, 512 * KB, DOMICILE_SLOT_PRIVATE);
    char *a = map(PAGES), *b = map(PAGES), *c = map(PAGES);
    /* Lest a huge page brings its frames along when what lies before it is touched. */
    CHECK(madvise(c, PAGES * PAGE, MADV_NOHUGEPAGE) == 0);
    memset(a, 'a', PAGES * PAGE);
    memset(b, 'b', PAGES * PAGE);
    domicile_data_set *in_one = make_set(slots, a, PAGES * PAGE);
    domicile_data_set *in_two = make_set(slots, b, PAGES * PAGE);
    domicile_data_set *too = make_set(slots, c, PAGES * PAGE);
    domicile_allocation done = {.size = sizeof done};

    CHECK(domicile_data_set_allocate(in_one, one, DOMICILE_OTHERS_ABSENT, &done) == DOMICILE_OK);
    CHECK(done.pages == PAGES && done.colors == 4 && done.left == 0 && done.kept + done.exchanged == PAGES);
    CHECK(domicile_data_set_allocate(in_two, two, DOMICILE_OTHERS_ABSENT, NULL) == DOMICILE_OK);
    /* A slot is shared in time by those that are given to it. */
    CHECK(domicile_data_set_allocate(too, one, DOMICILE_OTHERS_ABSENT, &done) == DOMICILE_OK);
    /* Untouched pages are filled, whatever frames they had in between. */
    CHECK(done.filled == PAGES && done.kept == 0 && done.exchanged == 0 && done.left == 0);
    CHECK(colors_of(too) == colors_of(in_one) && (colors_of(in_one) & colors_of(in_two)) == 0);
    look(a, PAGES, colors_of(in_one));
    look(b, PAGES, colors_of(in_two));
    look(c, PAGES, colors_of(in_one));
    for (size_t i = 0; i < PAGES * PAGE; i++)
        CHECK(a[i] == 'a' && b[i] == 'b' && c[i] == 0);

    /* More than is left is refused, and says what is left. */
    domicile_slot *three = make_slot(slots, 512 * KB, DOMICILE_SLOT_PRIVATE);
    char *d = map(PAGES);
    domicile_data_set *refused = make_set(slots, d, PAGES * PAGE);
    memset(d, 'd', PAGES * PAGE);
    CHECK(domicile_data_set_allocate(refused, three, DOMICILE_OTHERS_ABSENT, NULL) == DOMICILE_OVERCOMMITTED);
    CHECK(strlen(domicile_slots_message()) > 0);
    for (size_t i = 0; i < PAGES * PAGE; i++)
        CHECK(d[i] == 'd');
    /* A slot that was ended goes with the last data set that is in it. */
    CHECK(domicile_slot_destroy(two) == DOMICILE_OK);
    CHECK(domicile_data_set_allocate(refused, three, DOMICILE_OTHERS_ABSENT, NULL) == DOMICILE_OVERCOMMITTED);
    look(b, PAGES, colors_of(in_two));
    CHECK(domicile_data_set_destroy(in_two) == DOMICILE_OK);
    CHECK(domicile_data_set_allocate(refused, three, DOMICILE_OTHERS_ABSENT, NULL) == DOMICILE_OK);
    look(d, PAGES, colors_of(refused));

    /* A page has one data set. */
    domicile_data_set *twice = make_set(slots, a + PAGE, PAGE);
    CHECK(domicile_data_set_allocate(twice, one, DOMICILE_OTHERS_ABSENT, NULL) == DOMICILE_IN_USE);

    /* An array in parts: the same data set, more of it. */
    char *e = map(PAGES);
    memset(e, 'e', PAGES * PAGE);
    CHECK(domicile_data_set_add(in_one, e, PAGES * PAGE) == DOMICILE_OK);
    CHECK(domicile_data_set_allocate(in_one, one, DOMICILE_OTHERS_ABSENT, &done) == DOMICILE_OK);
    CHECK(done.pages == 2 * PAGES && done.left == 0);
    look(e, PAGES, colors_of(in_one));

    CHECK(domicile_slots_close(slots) == DOMICILE_OK);
    for (size_t i = 0; i < PAGES * PAGE; i++)
        CHECK(a[i] == 'a' && b[i] == 'b' && d[i] == 'd' && e[i] == 'e');
    munmap(a, PAGES * PAGE), munmap(b, PAGES * PAGE), munmap(c, PAGES * PAGE);
    munmap(d, PAGES * PAGE), munmap(e, PAGES * PAGE);
}

static void shared_slots_and_no_slot(void)
{
    domicile_slots *slots = open_slots();
    domicile_slot *one = make_slot(slots, 256 * KB, DOMICILE_SLOT_SHARED);
    domicile_slot *two = make_slot(slots, 128 * KB, DOMICILE_SLOT_SHARED);
    char *a = map(PAGES), *b = map(PAGES), *c = map(PAGES);
    domicile_data_set *in_one = make_set(slots, a, PAGES * PAGE);
    domicile_data_set *in_two = make_set(slots, b, PAGES * PAGE);
    domicile_data_set *in_none = make_set(slots, c, PAGES * PAGE);
    domicile_allocation done = {.size = sizeof done};
    CHECK(domicile_data_set_allocate(in_one, one, DOMICILE_OTHERS_ABSENT, &done) == DOMICILE_OK && done.colors == 4);
    CHECK(domicile_data_set_allocate(in_two, two, DOMICILE_OTHERS_ABSENT, &done) == DOMICILE_OK && done.colors == 2);
    CHECK(domicile_data_set_allocate(in_none, NULL, DOMICILE_OTHERS_ABSENT, &done) == DOMICILE_OK && done.colors == 1);
    /* Weak locality is put where weak locality is. */
    CHECK((colors_of(in_two) & ~colors_of(in_one)) == 0 && (colors_of(in_none) & ~colors_of(in_one)) == 0);
    look(a, PAGES, colors_of(in_one));
    look(b, PAGES, colors_of(in_two));
    look(c, PAGES, colors_of(in_none));
    CHECK(domicile_slots_close(slots) == DOMICILE_OK);
    munmap(a, PAGES * PAGE), munmap(b, PAGES * PAGE), munmap(c, PAGES * PAGE);
}

/* Frames that are exchanged behind the library's back are found, by who may know of frames. */
static void census_and_repair(void)
{
    domicile_census census = {.size = sizeof census};
    domicile_slots *slots = open_slots();
    domicile_slot *slot = make_slot(slots, 128 * KB, DOMICILE_SLOT_PRIVATE);
    char *a = map(PAGES), *thief = map(PAGES);
    memset(a, 'a', PAGES * PAGE);
    domicile_data_set *set = make_set(slots, a, PAGES * PAGE);
    CHECK(domicile_data_set_allocate(set, slot, DOMICILE_OTHERS_ABSENT, NULL) == DOMICILE_OK);
    CHECK(domicile_data_set_census(set, &census) == DOMICILE_OK);
    CHECK(census.pages == PAGES && census.other == 0 && census.allowed + census.unknown == PAGES);
    CHECK(munlock(a, PAGES * PAGE) == 0 && madvise(a, PAGES / 2 * PAGE, MADV_DONTNEED) == 0);
    CHECK(domicile_data_set_census(set, &census) == DOMICILE_OK && census.absent == PAGES / 2);
    memset(thief, 't', PAGES * PAGE);
    memset(a, 'a', PAGES * PAGE);
    if (frames_are_shown()) {
        size_t wrong = 0;
        for (size_t i = 0; i < PAGES; i++)
            wrong += !(colors_of(set) >> color_of(a + i * PAGE) & 1);
        CHECK(domicile_data_set_census(set, &census) == DOMICILE_OK);
        CHECK(census.other == wrong && census.allowed == PAGES - wrong);
        CHECK(domicile_data_set_repair(set, DOMICILE_OTHERS_ABSENT, &census) == DOMICILE_OK);
        CHECK(census.pages == PAGES && census.allowed == PAGES);
        look(a, PAGES, colors_of(set));
    } else {
        CHECK(domicile_data_set_repair(set, DOMICILE_OTHERS_ABSENT, &census) == DOMICILE_UNAVAILABLE);
        says("CAP_SYS_ADMIN");
        CHECK(domicile_data_set_allocate(set, slot, DOMICILE_OTHERS_ABSENT, NULL) == DOMICILE_OK);
    }
    for (size_t i = 0; i < PAGES * PAGE; i++)
        CHECK(a[i] == 'a' && thief[i] == 't');
    CHECK(domicile_slots_close(slots) == DOMICILE_OK);
    munmap(a, PAGES * PAGE), munmap(thief, PAGES * PAGE);
}

static void memory_in_a_slot(void)
{
    domicile_slots *slots = open_slots();
    domicile_slot *slot = make_slot(slots, 128 * KB, DOMICILE_SLOT_PRIVATE);
    void *memory = NULL, *kept = NULL;
    CHECK(domicile_slot_memory(slots, slot, NULL, 100000, &memory) == DOMICILE_OK && memory != NULL);
    CHECK((uintptr_t)memory % PAGE == 0);
    CHECK(domicile_slot_memory(slots, slot, NULL, 1, &kept) == DOMICILE_OK && kept != NULL && kept != memory);
    /* Two pages of one set show where the slot is. */
    char *beside = map(2);
    domicile_data_set *set = make_set(slots, beside, 2 * PAGE);
    CHECK(domicile_data_set_allocate(set, slot, DOMICILE_OTHERS_ABSENT, NULL) == DOMICILE_OK);
    look(memory, (100000 + PAGE - 1) / PAGE, colors_of(set));
    for (int i = 0; i < 100000; i++)
        CHECK(((char *)memory)[i] == 0);
    memset(memory, 1, 100000);
    memset(kept, 2, 1);
    CHECK(domicile_slot_memory_free(memory) == DOMICILE_OK);
    CHECK(domicile_slot_memory_free(memory) == DOMICILE_UNKNOWN_HANDLE);
    CHECK(domicile_slot_memory_free(beside) == DOMICILE_UNKNOWN_HANDLE);
    CHECK(domicile_slot_memory_free(NULL) == DOMICILE_OK);
    CHECK(domicile_slot_memory(slots, slot, NULL, 0, &memory) == DOMICILE_INVALID && memory == NULL);
    CHECK(domicile_slot_memory(slots, NULL, NULL, 1, &memory) == DOMICILE_NULL);
    CHECK(domicile_slot_memory(slots, slot, NULL, SIZE_MAX / 2, &memory) == DOMICILE_OUT_OF_MEMORY);
    CHECK(domicile_slots_close(slots) == DOMICILE_OK);
    /* Memory outlives its application. */
    CHECK(*(char *)kept == 2);
    CHECK(domicile_slot_memory_free(kept) == DOMICILE_OK);
    munmap(beside, 2 * PAGE);
}

static void *join(void *slots)
{
    CHECK(domicile_slots_bind(slots, -7) == DOMICILE_OK);
    return NULL;
}

static void threads_and_groups(void)
{
    domicile_slots *slots = open_slots(), *other = open_slots();
    domicile_thread_group *group = NULL, *foreign = NULL;
    domicile_slot *slot = make_slot(slots, 64 * KB, DOMICILE_SLOT_PRIVATE);
    domicile_data_set *set = NULL;
    pthread_t thread;
    char *a = map(PAGES);
    CHECK(domicile_thread_group_create(slots, &group) == DOMICILE_OK);
    CHECK(domicile_thread_group_add(group, 12) == DOMICILE_OK);
    CHECK(domicile_thread_group_add(group, -7) == DOMICILE_OK && domicile_thread_group_add(group, -7) == DOMICILE_OK);
    CHECK(pthread_create(&thread, NULL, join, slots) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(domicile_data_set_create(slots, group, &set) == DOMICILE_OK);
    CHECK(domicile_data_set_add(set, a, PAGES * PAGE) == DOMICILE_OK);
    CHECK(domicile_thread_group_destroy(group) == DOMICILE_OK);
    CHECK(domicile_data_set_allocate(set, slot, DOMICILE_OTHERS_ABSENT, NULL) == DOMICILE_OK);
    look(a, PAGES, colors_of(set));
    CHECK(domicile_thread_group_add(group, 1) == DOMICILE_UNKNOWN_HANDLE);

    CHECK(domicile_thread_group_create(other, &foreign) == DOMICILE_OK);
    CHECK(domicile_thread_group_add_cpu(foreign, UINT32_MAX) == DOMICILE_INVALID);
    CHECK(domicile_data_set_create(slots, foreign, &set) == DOMICILE_INVALID && set == NULL);
    says("different applications");
    CHECK(domicile_slots_close(slots) == DOMICILE_OK && domicile_slots_close(other) == DOMICILE_OK);
    munmap(a, PAGES * PAGE);
}

/* A child has none of its parent's, and may have its own. */
static void forks(void)
{
    int status = 1;
    domicile_slots *slots = open_slots();
    domicile_slot *slot = make_slot(slots, 64 * KB, DOMICILE_SLOT_PRIVATE);
    char *a = map(PAGES);
    memset(a, 'a', PAGES * PAGE);
    domicile_data_set *set = make_set(slots, a, PAGES * PAGE);
    CHECK(domicile_data_set_allocate(set, slot, DOMICILE_OTHERS_ABSENT, NULL) == DOMICILE_OK);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(domicile_data_set_allocate(set, slot, DOMICILE_OTHERS_ABSENT, NULL) == DOMICILE_UNKNOWN_HANDLE);
        says("forked");
        CHECK(domicile_slots_available(slots) == 0);
        CHECK(domicile_slots_close(slots) == DOMICILE_OK);
        slots = open_slots();
        slot = make_slot(slots, 64 * KB, DOMICILE_SLOT_PRIVATE);
        memset(a, 'c', PAGES * PAGE);
        set = make_set(slots, a, PAGES * PAGE);
        CHECK(domicile_data_set_allocate(set, slot, DOMICILE_OTHERS_ABSENT, NULL) == DOMICILE_OK);
        look(a, PAGES, colors_of(set));
        for (size_t i = 0; i < PAGES * PAGE; i++)
            CHECK(a[i] == 'c');
        CHECK(domicile_slots_close(slots) == DOMICILE_OK);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    for (size_t i = 0; i < PAGES * PAGE; i++)
        CHECK(a[i] == 'a');
    CHECK(domicile_data_set_destroy(set) == DOMICILE_OK && domicile_slots_close(slots) == DOMICILE_OK);
    munmap(a, PAGES * PAGE);
}

static void misuse(void)
{
    domicile_slots_attributes attributes = {.size = 3};
    domicile_slots_state state = {.size = 0};
    domicile_slots *slots = (domicile_slots *)&attributes;
    domicile_slot *slot = (domicile_slot *)&attributes;
    domicile_data_set *set = NULL;
    char *a = map(4);
    CHECK(domicile_slots_open(&attributes, &slots) == DOMICILE_INVALID && slots == NULL);
    says("sizeof(domicile_slots_attributes)");
    CHECK(domicile_slots_open(NULL, NULL) == DOMICILE_NULL);
    attributes = (domicile_slots_attributes){.size = sizeof attributes, .force = 1, .first_bit = 11, .bits = 4};
    CHECK(domicile_slots_open(&attributes, &slots) != DOMICILE_OK && slots == NULL);
    CHECK(domicile_slots_close(NULL) == DOMICILE_OK && domicile_slots_available(NULL) == 0);
    CHECK(domicile_slots_ask(NULL, &state) == DOMICILE_NULL && domicile_slots_means(NULL) != NULL);

    slots = open_slots();
    CHECK(domicile_slots_ask(slots, &state) == DOMICILE_INVALID && domicile_slots_ask(slots, NULL) == DOMICILE_NULL);
    CHECK(domicile_slot_create(slots, 1, 3, &slot) == DOMICILE_INVALID && slot == NULL);
    CHECK(domicile_slot_create(slots, 0, DOMICILE_SLOT_SHARED, &slot) == DOMICILE_INVALID);
    CHECK(domicile_slot_create(slots, 1, DOMICILE_SLOT_SHARED, NULL) == DOMICILE_NULL);
    /* Handles of another kind, of nothing, and of what is no more. */
    CHECK(domicile_slot_destroy((domicile_slot *)slots) == DOMICILE_UNKNOWN_HANDLE);
    CHECK(domicile_slot_destroy((domicile_slot *)&attributes) == DOMICILE_UNKNOWN_HANDLE);
    slot = make_slot(slots, 64 * KB, DOMICILE_SLOT_SHARED);
    CHECK(domicile_slot_destroy(slot) == DOMICILE_OK && domicile_slot_destroy(slot) == DOMICILE_UNKNOWN_HANDLE);
    CHECK(domicile_data_set_create(slots, NULL, &set) == DOMICILE_OK);
    CHECK(domicile_data_set_allocate(set, slot, 0, NULL) == DOMICILE_UNKNOWN_HANDLE);
    slot = make_slot(slots, 64 * KB, DOMICILE_SLOT_SHARED);
    CHECK(domicile_data_set_allocate(set, slot, 7, NULL) == DOMICILE_INVALID);
    /* Nothing to allocate, nothing there, not all there, no memory of one's own. */
    CHECK(domicile_data_set_allocate(set, slot, 0, NULL) != DOMICILE_OK);
    CHECK(domicile_data_set_add(set, a, SIZE_MAX) == DOMICILE_INVALID);
    memset(a, 'a', 4 * PAGE);
    CHECK(munmap(a + PAGE, PAGE) == 0);
    CHECK(domicile_data_set_add(set, a, 4 * PAGE) == DOMICILE_OK);
    CHECK(domicile_data_set_allocate(set, slot, 0, NULL) == DOMICILE_UNFIT);
    for (size_t i = 0; i < PAGE; i++)
        CHECK(a[i] == 'a' && a[2 * PAGE + i] == 'a');
    CHECK(domicile_data_set_colors(set, NULL, 1, NULL) == DOMICILE_NULL);
    CHECK(domicile_data_set_census(set, NULL) == DOMICILE_NULL);
    CHECK(domicile_slots_close(slots) == DOMICILE_OK);
    CHECK(domicile_slots_close(slots) == DOMICILE_UNKNOWN_HANDLE);
    CHECK(domicile_data_set_allocate(set, slot, 0, NULL) == DOMICILE_UNKNOWN_HANDLE);
    says("no such domicile_data_set");
    munmap(a, 4 * PAGE);
}

int main(void)
{
    an_application();
    two_private_slots();
    shared_slots_and_no_slot();
    census_and_repair();
    memory_in_a_slot();
    threads_and_groups();
    forks();
    misuse();
    puts("done");
    return 0;
}
