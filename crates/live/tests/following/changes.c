/*
 * Random uses of memory in several regions, each for a while, with all that programs do to their mappings, signals and children.
 * changes SEED STEPS prints one number, the same whatever becomes of pages and threads meanwhile.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REGIONS = 6, PAGES = 64, PAGE = 4096 };

static uint64_t state;
static uint64_t sum = 1469598103934665603u;
static unsigned char *region[REGIONS];
static size_t pages[REGIONS];
static sigjmp_buf back;
static volatile sig_atomic_t handled, rung;
static int ends[2], file;
extern char **environ;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void mix(uint64_t value) { sum = (sum ^ value) * 1099511628211u; }

static void fail(const char *what)
{
    printf("%s: %s\n", what, strerror(errno));
    exit(1);
}

static unsigned char *mapped(size_t count)
{
    void *at = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        fail("mmap");
    return at;
}

/* Reads and writes in one region for a while. */
static void stay(int of)
{
    unsigned char *at = region[of];
    size_t bytes = pages[of] * PAGE;
    uint64_t seen = 0, place = next();
    for (int i = 0; i < 20000; i++) {
        place = place * 6364136223846793005u + 1442695040888963407u;
        size_t byte = (place >> 20) % bytes;
        seen = seen * 31 + at[byte];
        if (i % 7 == 0)
            at[byte] += (unsigned char)i;
    }
    mix(seen);
}

/* Its frame lies in region 0; it touches another one, with all signals blocked. */
static void on_user(int signal)
{
    (void)signal;
    handled += region[1][0] >= region[2][PAGE];
    region[1][3]++;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    const greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)signal;
    mix((uintptr_t)info->si_addr % PAGE);
    mix((uint64_t)info->si_code);
    /* Of a fault without an address the processor says no more. */
    if (info->si_code != SI_KERNEL)
        mix((uint64_t)registers[REG_TRAPNO] * 64 + (uint64_t)registers[REG_ERR]);
    siglongjmp(back, 1);
}

static void on_queued(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    mix((uint64_t)info->si_code);
    mix((uint64_t)info->si_value.sival_int);
}

static void on_alarm(int signal)
{
    (void)signal;
    rung = 1;
    handled++;
}

static void queued(void)
{
    union sigval value = {.sival_int = (int)(next() % 1000)};
    if (sigqueue(getpid(), SIGUSR2, value))
        fail("sigqueue");
}

/* The alarm comes by the signals that the call blocks, and by no others. */
static void suspended(void)
{
    sigset_t alarms, before;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarms, &before);
    rung = 0;
    struct itimerval soon = {.it_value = {.tv_usec = 300}};
    if (setitimer(ITIMER_REAL, &soon, NULL))
        fail("setitimer");
    while (!rung)
        sigsuspend(&before);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Faults that are none of a page. */
static void other_fault(void)
{
    volatile int zero = 0;
    volatile uintptr_t nowhere = (uintptr_t)1 << 63;
    if (!sigsetjmp(back, 1))
        mix((uint64_t)(7 / zero));
    if (!sigsetjmp(back, 1))
        mix(*(volatile unsigned char *)nowhere);
}

/* Stopped and continued by another process. */
static void stopped(int of)
{
    pid_t parent = getpid(), child;
    fflush(stdout);
    child = fork();
    if (child < 0)
        fail("fork");
    if (!child) {
        kill(parent, SIGSTOP);
        usleep(1000);
        kill(parent, SIGCONT);
        _exit(0);
    }
    stay(of);
    int status;
    while (waitpid(child, &status, 0) != child)
        if (errno != EINTR)
            fail("waitpid");
    mix((uint64_t)status);
}

/* A page that may not be touched, touched all the same: the program's own handler sees it. */
static void own_fault(int of)
{
    volatile unsigned char *page = region[of] + PAGE * (next() % pages[of]);
    if (mprotect((void *)page, PAGE, PROT_NONE))
        fail("mprotect");
    if (!sigsetjmp(back, 1))
        page[77] = 1;
    else
        mix(77);
    if (mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE))
        fail("mprotect");
}

static void grown(int of)
{
    size_t more = PAGES + next() % PAGES;
    unsigned char *at = mremap(region[of], pages[of] * PAGE, more * PAGE, MREMAP_MAYMOVE);
    if (at == MAP_FAILED)
        fail("mremap");
    region[of] = at;
    pages[of] = more;
}

static void in_child(int of)
{
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (!child) {
        uint64_t before = sum;
        stay(of);
        stay((of + 1) % REGIONS);
        raise(SIGUSR1);
        for (int each = 0; each < REGIONS; each++)
            grown(each);
        stay(of);
        _exit((int)((sum ^ before) % 199));
    }
    int status;
    if (waitpid(child, &status, 0) != child)
        fail("waitpid");
    mix((uint64_t)status);
}

static void in_other_program(void)
{
    char *arguments[] = {"sh", "-c", "exit 7", NULL};
    pid_t child;
    if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ))
        fail("posix_spawn");
    int status;
    if (waitpid(child, &status, 0) != child)
        fail("waitpid");
    mix((uint64_t)status);
}

/* What the kernel reads and writes for the program. */
static void through_kernel(int from, int to)
{
    struct iovec out[2] = {{region[from] + 5, 1000}, {region[to] + 9, 1000}};
    struct iovec in[2] = {{region[to] + 2 * PAGE - 500, 1000}, {region[from] + 3 * PAGE - 3, 1000}};
    if (writev(ends[1], out, 2) != 2000 || readv(ends[0], in, 2) != 2000)
        fail("a pipe");
    if (pwrite(file, region[to], PAGE, 0) != PAGE || pread(file, region[from] + PAGE, PAGE, 0) != PAGE)
        fail("a file");
    mix(region[from][PAGE + 9]);
}

static void anew(int of)
{
    if (munmap(region[of], pages[of] * PAGE))
        fail("munmap");
    pages[of] = PAGES;
    region[of] = mapped(PAGES);
    /* Its pages, most likely at the address of those before, are known to be used and have no frames. */
    if (of % 2)
        stay((of + 1) % REGIONS);
    memset(region[of], of + 1, PAGES * PAGE);
}

int main(int count, char **arguments)
{
    state = count > 1 ? strtoull(arguments[1], NULL, 10) * 2654435761u + 88172645463325252u : 88172645463325252u;
    long steps = count > 2 ? atol(arguments[2]) : 1000;
    for (int i = 0; i < REGIONS; i++) {
        pages[i] = PAGES;
        region[i] = mapped(PAGES);
        memset(region[i], i, PAGES * PAGE);
    }
    char name[] = "/tmp/changes.XXXXXX";
    file = mkstemp(name);
    if (file < 0 || unlink(name) || pipe(ends))
        fail("files");
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &fault, NULL);
    sigaction(SIGFPE, &fault, NULL);
    struct sigaction queue = {.sa_sigaction = on_queued, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR2, &queue, NULL);
    struct sigaction alarm = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &alarm, NULL);
    unsigned char *frames = mapped(32);
    stack_t stack = {.ss_sp = frames, .ss_size = 32 * PAGE};
    sigaltstack(&stack, NULL);
    struct sigaction user = {.sa_handler = on_user, .sa_flags = SA_ONSTACK};
    sigfillset(&user.sa_mask);
    sigaction(SIGUSR1, &user, NULL);
    for (long step = 0; step < steps; step++) {
        uint64_t what = next() % 64;
        int of = (int)(next() % REGIONS), other = (int)(next() % REGIONS);
        if (what < 36)
            stay(of);
        else if (what < 37)
            queued();
        else if (what < 38)
            suspended();
        else if (what < 39)
            other_fault();
        else if (what < 40)
            stopped(of);
        else if (what < 46)
            memcpy(region[of] + PAGE, region[other], 7 * PAGE + 13 - (of == other) * 7 * PAGE);
        else if (what < 49)
            raise(SIGUSR1);
        else if (what < 52)
            own_fault(of);
        else if (what < 55)
            through_kernel(of, other);
        else if (what < 57)
            grown(of);
        else if (what < 59)
            anew(of);
        else if (what < 60)
            in_child(of);
        else if (what < 61)
            in_other_program();
        else if (what < 63) {
            sigset_t all, before;
            sigfillset(&all);
            sigprocmask(SIG_SETMASK, &all, &before);
            stay(of);
            stay(other);
            sigprocmask(SIG_SETMASK, &before, NULL);
        } else {
            void *block = malloc(PAGE * (1 + next() % 40));
            memset(block, (int)step, PAGE);
            mix(((unsigned char *)block)[99]);
            free(block);
        }
    }
    for (int i = 0; i < REGIONS; i++)
        for (size_t byte = 0; byte < pages[i] * PAGE; byte += 61)
            mix(region[i][byte]);
    printf("%016llx %d\n", (unsigned long long)sum, (int)handled);
    return 0;
}
