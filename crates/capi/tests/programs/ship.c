/* Shipped work: values, nesting, several callers, counts, cancellation, fork and exit. */
#define _GNU_SOURCE
#include "check.h"
#include <domicile/domicile.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static domicile_caches *caches;
static domicile_home *homes[2];

/* More than one second-level cache, and less than two: shipping is not refused by size on machines that have two. */
enum { BYTES = 300 << 10, NUMBERS = BYTES / sizeof(long) };
static long data[2][NUMBERS];

static void *sum(void *of) {
    const long *numbers = of;
    long all = 0;
    for (int turn = 0; turn < 20; turn++)
        for (int at = 0; at < NUMBERS; at++)
            all += numbers[at];
    return (void *)(all / 20);
}

/* Work that ships work, whose value it returns. */
static void *nested(void *unused) {
    void *value = NULL;
    (void)unused;
    CHECK(domicile_ship(homes[1], sum, data[1], &value) == DOMICILE_OK);
    return value;
}

static void *caller(void *unused) {
    (void)unused;
    for (int call = 0; call < 20; call++) {
        void *value = NULL;
        CHECK(domicile_ship(homes[call % 2], sum, data[call % 2], &value) == DOMICILE_OK);
        CHECK((long)value == (call % 2 + 1) * NUMBERS);
    }
    return NULL;
}

static int returned;

static void *asks_to_end(void *of) {
    CHECK(pthread_cancel(*(pthread_t *)of) == 0);
    return NULL;
}

/* Is cancelled by the work that it ships, and only after the call. */
static void *cancelled(void *unused) {
    pthread_t self = pthread_self();
    (void)unused;
    CHECK(domicile_ship(homes[1], asks_to_end, &self, NULL) == DOMICILE_OK);
    returned = 1;
    pthread_testcancel();
    return NULL;
}

static volatile sig_atomic_t faults;

static void mend(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    faults++;
    mprotect((void *)((uintptr_t)info->si_addr & ~(uintptr_t)4095), 4096, PROT_READ | PROT_WRITE);
}

/* The program handles its own faults, wherever work runs. */
static void *touches(void *page) {
    *(volatile char *)page = 1;
    return NULL;
}

static void with_faults(void) {
    struct sigaction action = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO}, before;
    CHECK(sigaction(SIGSEGV, &action, &before) == 0);
    for (int of = 0; of < 2; of++) {
        void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(page != MAP_FAILED && domicile_ship(homes[of], touches, page, NULL) == DOMICILE_OK);
        CHECK(faults == of + 1 && munmap(page, 4096) == 0);
    }
    CHECK(sigaction(SIGSEGV, &before, NULL) == 0);
}

/* Work has as much of a stack as the program's first thread. */
static void *deep(void *unused) {
    volatile char room[6 << 20];
    (void)unused;
    for (size_t at = 0; at < sizeof room; at += 4096)
        room[at] = 1;
    return (void *)(intptr_t)room[0];
}

static void *leaves(void *status) {
    exit(*(int *)status);
}

static domicile_caches_state asked(void) {
    domicile_caches_state state = {.size = sizeof state};
    CHECK(domicile_caches_ask(caches, &state) == DOMICILE_OK);
    return state;
}

static unsigned long all_calls(void) {
    domicile_caches_state of = asked();
    return of.shipped + of.here + of.one_cache + of.forked + of.fits_one_cache + of.fits_no_caches + of.too_short + of.nested + of.no_gain;
}

/* A child has no workers, and its work runs all the same; one whose work ends the program ends. */
static void in_children(void) {
    for (int exits = 0; exits < 2; exits++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            void *value = NULL;
            int status = 7;
            unsigned long before = asked().forked;
            if (exits)
                domicile_ship(homes[1], leaves, &status, NULL);
            CHECK(domicile_ship(homes[1], sum, data[1], &value) == DOMICILE_OK && (long)value == 2 * NUMBERS);
            CHECK(asked().caches == 1 || asked().forked == before + 1);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == (exits ? 7 : 0));
    }
}

int main(int count, char **arguments) {
    for (int of = 0; of < 2; of++)
        for (int at = 0; at < NUMBERS; at++)
            data[of][at] = of + 1;

    CHECK(domicile_caches_start(NULL) == DOMICILE_NULL && strlen(domicile_ship_message()) > 0);
    CHECK(domicile_caches_start(&caches) == DOMICILE_OK);
    CHECK(domicile_home_create(caches, UINT64_MAX, &homes[0]) == DOMICILE_INVALID && homes[0] == NULL);
    CHECK(domicile_home_create(NULL, BYTES, &homes[0]) == DOMICILE_NULL && homes[0] == NULL);
    for (int of = 0; of < 2; of++)
        CHECK(domicile_home_create(caches, BYTES, &homes[of]) == DOMICILE_OK);
    domicile_caches_state state = asked();
    CHECK(state.caches >= 1 && (state.caches == 1 || state.hand_over_ns > 0));
    CHECK(domicile_home_cache(homes[0]) != domicile_home_cache(homes[1]) || state.caches == 1);
    CHECK(domicile_home_cache(NULL) == UINT32_MAX);
    CHECK(domicile_ship(NULL, sum, data[0], NULL) == DOMICILE_NULL);
    CHECK(domicile_ship(homes[0], NULL, data[0], NULL) == DOMICILE_NULL);

    void *value = NULL;
    CHECK(domicile_ship(homes[0], nested, NULL, &value) == DOMICILE_OK && (long)value == 2 * NUMBERS);
    pthread_t threads[3];
    for (int at = 0; at < 3; at++)
        CHECK(pthread_create(&threads[at], NULL, caller, NULL) == 0);
    for (int at = 0; at < 3; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    /* Each call is counted once. */
    CHECK(all_calls() == 62);

    void *ended = NULL;
    CHECK(pthread_create(&threads[0], NULL, cancelled, NULL) == 0);
    CHECK(pthread_join(threads[0], &ended) == 0 && ended == PTHREAD_CANCELED && returned);
    with_faults();
    for (int of = 0; of < 2; of++)
        CHECK(domicile_ship(homes[of], deep, NULL, &value) == DOMICILE_OK && (long)value == 1);
    if (count > 1 && strcmp(arguments[1], "forks") == 0)
        in_children();

    /* A home keeps the workers. */
    CHECK(domicile_caches_end(caches) == DOMICILE_OK);
    CHECK(domicile_ship(homes[1], sum, data[1], &value) == DOMICILE_OK && (long)value == 2 * NUMBERS);
    for (int of = 0; of < 2; of++)
        CHECK(domicile_home_destroy(homes[of]) == DOMICILE_OK);
    CHECK(domicile_home_destroy(NULL) == DOMICILE_OK && domicile_caches_end(NULL) == DOMICILE_OK);
    puts("done");
    return 0;
}
