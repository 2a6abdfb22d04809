/* The kernel's part of resctrl, for a program that is started with this library: the tree is a folder, of which
 * /proc/mounts says that it is mounted; a group that is made has its files, and one that is removed gives its tasks back.
 * FAKE is the folder that stands for / as far as it has mounts and caches of cpus. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST = 4096 };

/* The path as the fake has it, where it is one that the fake has. */
static const char *faked(const char *path, char *room)
{
    const char *fake = getenv("FAKE");
    int concerns = strcmp(path, "/proc/mounts") == 0 ||
                   (strncmp(path, "/sys/devices/system/cpu/cpu", 27) == 0 && strstr(path, "/cache") != NULL);
    if (fake == NULL || !concerns)
        return path;
    snprintf(room, LONGEST, "%s%s", fake, path);
    return room;
}

static int is_group(const char *path)
{
    char tree[LONGEST];
    const char *fake = getenv("FAKE");
    if (fake == NULL)
        return 0;
    int length = snprintf(tree, sizeof tree, "%s/sys/fs/resctrl/", fake);
    return strncmp(path, tree, (size_t)length) == 0 && strchr(path + length, '/') == NULL;
}

static void copy(const char *from, const char *to, const char *mode)
{
    FILE *source = fopen(from, "r"), *target = fopen(to, mode);
    for (int c; source != NULL && target != NULL && (c = fgetc(source)) != EOF;)
        fputc(c, target);
    if (source != NULL)
        fclose(source);
    if (target != NULL)
        fclose(target);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPENS(name)                                             \
    int name(const char *path, int flags, ...)                  \
    {                                                           \
        char room[LONGEST];                                     \
        va_list rest;                                           \
        va_start(rest, flags);                                  \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                           \
        return NEXT(name)(faked(path, room), flags, mode);      \
    }

OPENS(open)
OPENS(open64)

DIR *opendir(const char *path)
{
    char room[LONGEST];
    return NEXT(opendir)(faked(path, room));
}

int mkdir(const char *path, mode_t mode)
{
    int made = NEXT(mkdir)(path, mode);
    if (made == 0 && is_group(path)) {
        char from[LONGEST], to[LONGEST];
        snprintf(from, sizeof from, "%s/fresh", getenv("FAKE"));
        snprintf(to, sizeof to, "%s/schemata", path);
        copy(from, to, "w");
        snprintf(to, sizeof to, "%s/tasks", path);
        copy("/dev/null", to, "w");
    }
    return made;
}

int rmdir(const char *path)
{
    if (is_group(path)) {
        char file[LONGEST], tasks[LONGEST];
        snprintf(file, sizeof file, "%s/tasks", path);
        snprintf(tasks, sizeof tasks, "%s/sys/fs/resctrl/tasks", getenv("FAKE"));
        copy(file, tasks, "a");
        unlink(file);
        snprintf(file, sizeof file, "%s/schemata", path);
        unlink(file);
    }
    return NEXT(rmdir)(path);
}
