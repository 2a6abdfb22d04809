/* Replicated data in all cases of its calls, and under threads that read while others write. */
#include "check.h"
#include <domicile/domicile.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

enum { WORDS = 3000, READERS = 3, WRITERS = 2, WRITES = 40 };

static domicile_replicated *table;
static uint64_t returned;
static int done;

static void says(const char *words)
{
    if (strstr(domicile_replicated_message(), words) == NULL) {
        fprintf(stderr, "not among \"%s\": \"%s\"\n", domicile_replicated_message(), words);
        exit(1);
    }
}

static domicile_replicated *make_data(const void *contents, size_t bytes)
{
    domicile_replicated *data = NULL;
    if (domicile_replicated_create(contents, bytes, &data) != DOMICILE_OK) {
        fprintf(stderr, "%s\n", domicile_replicated_message());
        exit(1);
    }
    return data;
}

static domicile_replicated_reader *make_reader(const domicile_replicated *data)
{
    domicile_replicated_reader *reader = NULL;
    CHECK(domicile_replicated_reader_create(data, &reader) == DOMICILE_OK && reader != NULL);
    return reader;
}

static void one_thread(void)
{
    domicile_replicated *data = make_data("replicated", 11);
    domicile_replicated_reader *reader = make_reader(data);
    const char *copy = domicile_replicated_enter(reader);
    CHECK(copy != NULL && (uintptr_t)copy % 4096 == 0 && strcmp(copy, "replicated") == 0);
    CHECK(domicile_replicated_enter(reader) == NULL);
    CHECK(domicile_replicated_write(data, 0, "R", 1) == DOMICILE_IN_USE);
    says("inside a region");
    CHECK(domicile_replicated_collapse(data) == DOMICILE_IN_USE);
    CHECK(strcmp(copy, "replicated") == 0);
    domicile_replicated_leave(reader);
    domicile_replicated_leave(reader);
    CHECK(domicile_replicated_write(data, 2, "PL", 2) == DOMICILE_OK);
    CHECK(strcmp(domicile_replicated_enter(reader), "rePLicated") == 0);
    domicile_replicated_leave(reader);
    CHECK(domicile_replicated_collapse(data) == DOMICILE_OK);
    CHECK(strcmp(domicile_replicated_enter(reader), "rePLicated") == 0);
    domicile_replicated_leave(reader);
    CHECK(domicile_replicated_replicate(data) == DOMICILE_OK);
    /* The reader keeps the copies. */
    CHECK(domicile_replicated_destroy(data) == DOMICILE_OK);
    CHECK(strcmp(domicile_replicated_enter(reader), "rePLicated") == 0);
    CHECK(domicile_replicated_reader_destroy(reader) == DOMICILE_OK);
}

static void a_copy_is_kept(void)
{
    domicile_replicated *data = make_data("replicated", 11);
    domicile_replicated_kept *kept = NULL;
    CHECK(domicile_replicated_keep(data, &kept) == DOMICILE_OK && kept != NULL);
    const char *before = domicile_replicated_kept_start(kept);
    CHECK(domicile_replicated_write(data, 0, "R", 1) == DOMICILE_OK);
    CHECK(domicile_replicated_collapse(data) == DOMICILE_OK);
    CHECK(strcmp(before, "replicated") == 0);
    domicile_replicated_kept *after = NULL;
    CHECK(domicile_replicated_keep(data, &after) == DOMICILE_OK);
    CHECK(strcmp(domicile_replicated_kept_start(after), "Replicated") == 0);
    CHECK(domicile_replicated_destroy(data) == DOMICILE_OK);
    CHECK(strcmp(before, "replicated") == 0 && strcmp(domicile_replicated_kept_start(after), "Replicated") == 0);
    CHECK(domicile_replicated_kept_destroy(kept) == DOMICILE_OK);
    CHECK(domicile_replicated_kept_destroy(after) == DOMICILE_OK);
    CHECK(domicile_replicated_keep(NULL, &kept) == DOMICILE_NULL && kept == NULL);
    CHECK(domicile_replicated_kept_start(NULL) == NULL && domicile_replicated_kept_destroy(NULL) == DOMICILE_OK);
}

static void what_it_is(void)
{
    static const char contents[5000];
    domicile_replicated *data = make_data(contents, sizeof contents);
    domicile_replicated_state state = {.size = sizeof state};
    CHECK(domicile_replicated_ask(data, &state) == DOMICILE_OK);
    CHECK(state.bytes == 5000 && state.copies >= 1 && state.memory == state.copies * UINT64_C(8192));
    CHECK(state.extra == state.memory - 8192 && state.writes == 0);
    CHECK(state.mode == (state.copies > 1 ? DOMICILE_REPLICATED_NODES : DOMICILE_REPLICATED_ONE));
    CHECK(strstr(domicile_replicated_means(data), "handles: ") != NULL);
    CHECK(domicile_replicated_collapse(data) == DOMICILE_OK);
    CHECK(domicile_replicated_write(data, 4999, "!", 1) == DOMICILE_OK);
    CHECK(domicile_replicated_ask(data, &state) == DOMICILE_OK);
    CHECK(state.mode == DOMICILE_REPLICATED_ONE && state.copies == 1 && state.extra == 0 && state.writes == 1);
    CHECK(strstr(domicile_replicated_means(data), "one copy") != NULL);
    CHECK(domicile_replicated_destroy(data) == DOMICILE_OK);
}

static void what_is_refused(void)
{
    domicile_replicated *data = (domicile_replicated *)&data;
    domicile_replicated_reader *reader = (domicile_replicated_reader *)&data;
    CHECK(domicile_replicated_create("x", 0, &data) == DOMICILE_INVALID && data == NULL);
    says("0 bytes");
    CHECK(domicile_replicated_create(NULL, 7, &data) == DOMICILE_NULL);
    CHECK(domicile_replicated_create("x", 1, NULL) == DOMICILE_NULL);
    CHECK(domicile_replicated_create("x", SIZE_MAX, &data) != DOMICILE_OK);
    CHECK(domicile_replicated_reader_create(NULL, &reader) == DOMICILE_NULL && reader == NULL);
    CHECK(domicile_replicated_enter(NULL) == NULL);
    domicile_replicated_leave(NULL);
    CHECK(domicile_replicated_write(NULL, 0, "x", 1) == DOMICILE_NULL);
    CHECK(domicile_replicated_destroy(NULL) == DOMICILE_OK);
    CHECK(domicile_replicated_reader_destroy(NULL) == DOMICILE_OK);
    data = make_data("abc", 3);
    CHECK(domicile_replicated_reader_create(data, NULL) == DOMICILE_NULL);
    CHECK(domicile_replicated_write(data, 2, "xy", 2) == DOMICILE_INVALID);
    says("2 to 4");
    CHECK(domicile_replicated_write(data, SIZE_MAX, "x", 1) == DOMICILE_INVALID);
    CHECK(domicile_replicated_write(data, 0, NULL, 1) == DOMICILE_NULL);
    CHECK(domicile_replicated_write(data, 3, NULL, 0) == DOMICILE_OK);
    CHECK(domicile_replicated_ask(data, NULL) == DOMICILE_NULL);
    domicile_replicated_state state = {.size = 3};
    CHECK(domicile_replicated_ask(data, &state) == DOMICILE_INVALID);
    CHECK(domicile_replicated_destroy(data) == DOMICILE_OK);
}

static void *reads(void *unused)
{
    uint64_t last = 0;
    do {
        domicile_replicated_reader *reader = make_reader(table);
        for (int region = 0; region < 10; region++) {
            uint64_t known = __atomic_load_n(&returned, __ATOMIC_SEQ_CST);
            const uint64_t *words = domicile_replicated_enter(reader);
            CHECK(words[0] >= known && words[0] >= last);
            last = words[0];
            for (int i = 0; i < WORDS; i++)
                CHECK(words[i] == last);
            sched_yield();
            CHECK(words[WORDS - 1] == last);
            domicile_replicated_leave(reader);
        }
        CHECK(domicile_replicated_reader_destroy(reader) == DOMICILE_OK);
    } while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST));
    return unused;
}

static pthread_mutex_t next = PTHREAD_MUTEX_INITIALIZER;

static void *writes(void *unused)
{
    static uint64_t words[WORDS];
    for (int i = 0; i < WRITES; i++) {
        pthread_mutex_lock(&next);
        for (int j = 0; j < WORDS; j++)
            words[j]++;
        CHECK(domicile_replicated_write(table, 0, words, sizeof words) == DOMICILE_OK);
        __atomic_store_n(&returned, words[0], __ATOMIC_SEQ_CST);
        pthread_mutex_unlock(&next);
    }
    return unused;
}

static void *spreads(void *unused)
{
    do {
        CHECK(domicile_replicated_collapse(table) == DOMICILE_OK);
        CHECK(domicile_replicated_replicate(table) == DOMICILE_OK);
    } while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST));
    return unused;
}

static void many_threads(void)
{
    static const uint64_t zeros[WORDS];
    pthread_t readers[READERS], writers[WRITERS], spreader;
    table = make_data(zeros, sizeof zeros);
    for (int i = 0; i < READERS; i++)
        CHECK(pthread_create(&readers[i], NULL, reads, NULL) == 0);
    for (int i = 0; i < WRITERS; i++)
        CHECK(pthread_create(&writers[i], NULL, writes, NULL) == 0);
    CHECK(pthread_create(&spreader, NULL, spreads, NULL) == 0);
    for (int i = 0; i < WRITERS; i++)
        CHECK(pthread_join(writers[i], NULL) == 0);
    __atomic_store_n(&done, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < READERS; i++)
        CHECK(pthread_join(readers[i], NULL) == 0);
    CHECK(pthread_join(spreader, NULL) == 0);
    domicile_replicated_reader *reader = make_reader(table);
    const uint64_t *words = domicile_replicated_enter(reader);
    CHECK(words[WORDS - 1] == WRITERS * WRITES);
    CHECK(domicile_replicated_reader_destroy(reader) == DOMICILE_OK);
    CHECK(domicile_replicated_destroy(table) == DOMICILE_OK);
}

int main(void)
{
    one_thread();
    a_copy_is_kept();
    what_it_is();
    what_is_refused();
    many_threads();
    puts("done");
    return 0;
}
