/* Data that processes share: all cases of the calls, and processes that read at the same address while others write. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <domicile/domicile.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 1500, READERS = 2, WRITES = 30 };

static const char *program;
/* Written last: readers end with it. */
static const uint64_t over = UINT64_MAX;

static void says(const char *words)
{
    if (strstr(domicile_replicated_message(), words) == NULL) {
        fprintf(stderr, "not among \"%s\": \"%s\"\n", domicile_replicated_message(), words);
        exit(1);
    }
}

/* A master and two replicas, on a node that every machine has; where memory may not be put on nodes there are none. */
static domicile_shared_replicas *make_data(const void *contents, size_t bytes)
{
    static const uint32_t nodes[3];
    domicile_shared_replicas *data = NULL;
    if (domicile_shared_replicas_create_on(contents, bytes, nodes, 3, &data) != DOMICILE_OK) {
        fprintf(stderr, "%s\n", domicile_replicated_message());
        exit(1);
    }
    return data;
}

static void succeeds(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) == -1)
        CHECK(errno == EINTR);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void one_process(void)
{
    domicile_shared_replicas *data = make_data("replicated", 11);
    const volatile char *bytes = domicile_shared_replicas_start(data);
    domicile_replicated_state state = {.size = sizeof state};
    CHECK(bytes != NULL && (uintptr_t)bytes % 4096 == 0 && strcmp((const char *)bytes, "replicated") == 0);
    CHECK(domicile_shared_replicas_bytes(data) == 11);
    CHECK(domicile_shared_replicas_ask(data, &state) == DOMICILE_OK);
    CHECK(state.bytes == 11 && state.copies >= 1 && state.memory == state.copies * UINT64_C(4096));
    CHECK(state.writes == 0 && state.readers_pay == 0);
    CHECK(domicile_shared_replicas_write(data, 2, "PL", 2) == DOMICILE_OK);
    CHECK(strcmp((const char *)bytes, "rePLicated") == 0);
    CHECK(domicile_shared_replicas_ask(data, &state) == DOMICILE_OK);
    CHECK(state.copies == 1 && state.extra == 0 && state.writes == 1 && state.mode == DOMICILE_REPLICATED_ONE);
    CHECK(domicile_shared_replicas_replicate(data) == DOMICILE_OK);
    CHECK(domicile_shared_replicas_follow(data) == DOMICILE_OK);
    CHECK(strcmp((const char *)bytes, "rePLicated") == 0);
    CHECK(domicile_shared_replicas_collapse(data) == DOMICILE_OK);
    CHECK(strcmp((const char *)bytes, "rePLicated") == 0);
    CHECK(strstr(domicile_shared_replicas_means(data), "one copy") != NULL);
    CHECK(domicile_shared_replicas_destroy(data) == DOMICILE_OK);
}

static void what_is_refused(void)
{
    domicile_shared_replicas *data = (domicile_shared_replicas *)&data;
    CHECK(domicile_shared_replicas_create("x", 0, &data) == DOMICILE_INVALID && data == NULL);
    says("0 bytes");
    CHECK(domicile_shared_replicas_create(NULL, 7, &data) == DOMICILE_NULL);
    CHECK(domicile_shared_replicas_create("x", 1, NULL) == DOMICILE_NULL);
    CHECK(domicile_shared_replicas_create_on("x", 1, NULL, 2, &data) == DOMICILE_NULL);
    CHECK(domicile_shared_replicas_attach(-1, &data) == DOMICILE_INVALID && data == NULL);
    CHECK(domicile_shared_replicas_attach(1000000, &data) == DOMICILE_INVALID);
    says("1000000");
    int other = open("/dev/null", O_RDONLY);
    CHECK(domicile_shared_replicas_attach(other, &data) == DOMICILE_INVALID && data == NULL);
    close(other);
    CHECK(domicile_shared_replicas_start(NULL) == NULL && domicile_shared_replicas_bytes(NULL) == 0);
    CHECK(domicile_shared_replicas_descriptor(NULL) == -1);
    CHECK(domicile_shared_replicas_write(NULL, 0, "x", 1) == DOMICILE_NULL);
    CHECK(domicile_shared_replicas_destroy(NULL) == DOMICILE_OK);
    data = make_data("abc", 3);
    /* This process has it at that address already. */
    domicile_shared_replicas *twice = NULL;
    CHECK(domicile_shared_replicas_attach(domicile_shared_replicas_descriptor(data), &twice) == DOMICILE_REFUSED);
    CHECK(twice == NULL);
    says("already");
    CHECK(domicile_shared_replicas_write(data, 2, "xy", 2) == DOMICILE_INVALID);
    CHECK(domicile_shared_replicas_write(data, SIZE_MAX, "x", 1) == DOMICILE_INVALID);
    CHECK(domicile_shared_replicas_write(data, 0, NULL, 1) == DOMICILE_NULL);
    CHECK(domicile_shared_replicas_ask(data, NULL) == DOMICILE_NULL);
    CHECK(strcmp(domicile_shared_replicas_start(data), "abc") == 0);
    CHECK(domicile_shared_replicas_destroy(data) == DOMICILE_OK);
}

/* A child of fork has what its parent shares only in name. */
static void a_child_of_fork_does_not_have_it(void)
{
    domicile_shared_replicas *data = make_data("parent's", 9);
    pid_t child = fork();
    CHECK(child != -1);
    if (child == 0) {
        CHECK(domicile_shared_replicas_write(data, 0, "C", 1) == DOMICILE_UNKNOWN_HANDLE);
        CHECK(domicile_shared_replicas_collapse(data) == DOMICILE_UNKNOWN_HANDLE);
        CHECK(domicile_shared_replicas_follow(data) == DOMICILE_UNKNOWN_HANDLE);
        CHECK(domicile_shared_replicas_destroy(data) == DOMICILE_OK);
        _exit(0);
    }
    succeeds(child);
    child = fork();
    CHECK(child != -1);
    if (child == 0) {
        /* Nothing is mapped there: a sanitizer has no say in how this ends. */
        signal(SIGSEGV, SIG_DFL);
        _exit(*(const volatile char *)domicile_shared_replicas_start(data) == 'p');
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(domicile_shared_replicas_write(data, 0, "P", 1) == DOMICILE_OK);
    CHECK(strcmp(domicile_shared_replicas_start(data), "Parent's") == 0);
    CHECK(domicile_shared_replicas_destroy(data) == DOMICILE_OK);
}

/* This program once more, as a process of its own. */
static pid_t start(const char *what, int descriptor, const void *address)
{
    char number[32], place[32];
    snprintf(number, sizeof number, "%d", descriptor);
    snprintf(place, sizeof place, "%p", address);
    pid_t child = fork();
    CHECK(child != -1);
    if (child == 0) {
        CHECK(fcntl(descriptor, F_SETFD, 0) == 0);
        execl(program, program, what, number, place, (char *)NULL);
        _exit(127);
    }
    return child;
}

static int another_process(char **arguments)
{
    domicile_shared_replicas *data = NULL;
    int descriptor = atoi(arguments[2]);
    if (domicile_shared_replicas_attach(descriptor, &data) != DOMICILE_OK) {
        fprintf(stderr, "%s\n", domicile_replicated_message());
        return 1;
    }
    /* The library has a copy of it. */
    CHECK(close(descriptor) == 0);
    const volatile uint64_t *words = domicile_shared_replicas_start(data);
    char place[32];
    snprintf(place, sizeof place, "%p", (const void *)words);
    CHECK(strcmp(place, arguments[3]) == 0);
    CHECK(domicile_shared_replicas_bytes(data) == WORDS * sizeof *words);
    if (strcmp(arguments[1], "writes") == 0) {
        static uint64_t contents[WORDS];
        for (uint64_t write = 1; write <= WRITES; write++) {
            for (int i = 0; i < WORDS; i++)
                contents[i] = write;
            CHECK(domicile_shared_replicas_write(data, 0, contents, sizeof contents) == DOMICILE_OK);
            CHECK(words[0] == write && words[WORDS - 1] == write);
            CHECK(domicile_shared_replicas_replicate(data) == DOMICILE_OK);
        }
    } else {
        uint64_t last = 0;
        while (last != over) {
            uint64_t now = words[0];
            CHECK(now >= last);
            last = now;
        }
    }
    CHECK(domicile_shared_replicas_destroy(data) == DOMICILE_OK);
    return 0;
}

static void several_processes(void)
{
    static uint64_t contents[WORDS];
    domicile_shared_replicas *data = make_data(contents, sizeof contents);
    const volatile uint64_t *words = domicile_shared_replicas_start(data);
    int descriptor = domicile_shared_replicas_descriptor(data);
    pid_t readers[READERS];
    for (int i = 0; i < READERS; i++)
        readers[i] = start("reads", descriptor, (const void *)words);
    succeeds(start("writes", descriptor, (const void *)words));
    for (int i = 0; i < WORDS; i++)
        CHECK(words[i] == WRITES);
    CHECK(domicile_shared_replicas_write(data, 0, &over, sizeof over) == DOMICILE_OK);
    for (int i = 0; i < READERS; i++)
        succeeds(readers[i]);
    domicile_replicated_state state = {.size = sizeof state};
    CHECK(domicile_shared_replicas_ask(data, &state) == DOMICILE_OK && state.writes == WRITES + 1);
    CHECK(domicile_shared_replicas_destroy(data) == DOMICILE_OK);
}

int main(int count, char **arguments)
{
    if (count == 4)
        return another_process(arguments);
    program = arguments[0];
    one_process();
    what_is_refused();
    a_child_of_fork_does_not_have_it();
    several_processes();
    puts("done");
    return 0;
}
