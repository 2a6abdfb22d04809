/* The paper's calls in all their cases. With the argument "refused": where there are no colors. */
#define _GNU_SOURCE
#include "frames.h"
#include <domicile/ulcc.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGES = 40 };

static char *data;

static int intact(void)
{
    for (int i = 0; i < PAGES * PAGE; i++)
        if (data[i] != 'a')
            return 0;
    return 1;
}

/* Every call fails, says why, and does nothing. */
static void nothing_works(void)
{
    ULCC_Slot slot;
    CHECK(ULCC_Application() == NULL);
    CHECK(ULCC_Available_Space_App() == 0 && strlen(ULCC_Error()) > 0);
    slot = ULCC_Cache_Slot(64, private);
    CHECK(slot == ULCC_NO_SLOT && slot != NULL);
    CHECK(ULCC_Thread_Group(NULL, 1) == NULL);
    CHECK(ULCC_Data_Set(NULL) == NULL);
    CHECK(ULCC_More_Data(NULL, data, data + PAGES * PAGE) == -1);
    CHECK(ULCC_Allocate(NULL, slot) == -1 && ULCC_Allocate(NULL, NULL) == -1);
    CHECK(ULCC_Allocate_Running(NULL, slot) == -1);
    CHECK(ULCC_Free_Data_Set(NULL) == -1 && ULCC_Free_Slot(slot) == -1);
    CHECK(ULCC_Bind_Thread(1) == -1);
    CHECK(ULCC_Exit() == -1);
    CHECK(intact());
}

static void *other(void *unused)
{
    (void)unused;
    /* Errors are each thread's own. */
    CHECK(strlen(ULCC_Error()) == 0);
    CHECK(ULCC_More_Data(NULL, data, data) == -1 && strlen(ULCC_Error()) > 0);
    CHECK(ULCC_Bind_Thread(2) == 0);
    return NULL;
}

static void everything_works(void)
{
    pthread_t thread;
    int status = 1;
    CHECK(ULCC_Init(0) == 0);
    CHECK(strlen(ULCC_Error()) > 0 /* from before */ && ULCC_Application() != NULL);
    CHECK(ULCC_Init(0) == -1 && strstr(ULCC_Error(), "before") != NULL);
    long space = ULCC_Available_Space_App();
    CHECK(space >= COLORS * KB_OF_COLOR);
    CHECK(pthread_create(&thread, NULL, other, NULL) == 0 && pthread_join(thread, NULL) == 0);

    ULCC_Slot slot = ULCC_Cache_Slot(2 * KB_OF_COLOR, ULCC_PRIVATE);
    ULCC_Threads threads = ULCC_Thread_Group(NULL, 1);
    CHECK(slot != NULL && slot != ULCC_NO_SLOT && threads != NULL);
    CHECK(ULCC_Thread_Group(threads, 2) == threads);
    ULCC_Data set = ULCC_Data_Set(threads);
    CHECK(set != NULL);
    CHECK(ULCC_More_Data(set, data + PAGE, data) == -1 && strstr(ULCC_Error(), "before it begins") != NULL);
    CHECK(ULCC_More_Data(set, data, data + PAGES * PAGE) == 0);
    CHECK(ULCC_Allocate(set, ULCC_NO_SLOT) == -1);
    CHECK(ULCC_Allocate(set, (ULCC_Slot)(void *)set) == -1);
    CHECK(ULCC_Allocate(set, slot) == 0 && intact());
    CHECK(ULCC_Available_Space_App() < space);
    CHECK(ULCC_Free_Slot(slot) == 0 && ULCC_Available_Space_App() < space);
    CHECK(ULCC_Free_Slot(slot) == -1 && ULCC_Free_Data_Set(set) == 0 && ULCC_Free_Data_Set(set) == -1);
    CHECK(ULCC_Available_Space_App() == space);

    /* Not worth caching. */
    set = ULCC_Data_Set(NULL);
    CHECK(ULCC_More_Data(set, data, data + PAGES * PAGE) == 0 && ULCC_Allocate(set, NULL) == 0 && intact());

    CHECK(ULCC_Cache_Slot(-1, private) == ULCC_NO_SLOT && ULCC_Cache_Slot(0, shared) == ULCC_NO_SLOT);
    CHECK(ULCC_Cache_Slot(64, 0) == ULCC_NO_SLOT && ULCC_Cache_Slot(64, 9) == ULCC_NO_SLOT);

    /* A child begins anew. */
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(ULCC_Cache_Slot(64, private) == ULCC_NO_SLOT && strstr(ULCC_Error(), "forked") != NULL);
        CHECK(ULCC_Init(1) == 0);
        CHECK(ULCC_Cache_Slot(64, private) != ULCC_NO_SLOT);
        CHECK(ULCC_Exit() == 0 && intact());
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(ULCC_Exit() == 0);
    CHECK(ULCC_Free_Data_Set(set) == -1);
}

int main(int count, char **arguments)
{
    data = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(data != MAP_FAILED);
    memset(data, 'a', PAGES * PAGE);
    CHECK(strlen(ULCC_Error()) == 0);
    CHECK(ULCC_Init(-1) == -1 && strstr(ULCC_Error(), "num_processors is -1") != NULL);
    nothing_works();
    if (count > 1 && strcmp(arguments[1], "refused") == 0) {
        CHECK(ULCC_Init(1) == -1);
        printf("%s\n", ULCC_Error());
        nothing_works();
    } else {
        everything_works();
        nothing_works();
        CHECK(ULCC_Init(1) == 0 && ULCC_Exit() == 0);
        nothing_works();
    }
    munmap(data, PAGES * PAGE);
    puts("done");
    return 0;
}
