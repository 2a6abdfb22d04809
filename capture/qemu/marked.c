// marked PROGRAM [ARGUMENT...]: runs a program between the two marks that libdomicile_qemu.so looks for, and ends as it ends.
//
// A mark is an eight-byte NOP with a word of ours (crates/qemu/src/marker.rs). Anywhere else it does nothing.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK(word) __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00\n.long " #word ::: "memory")

int main(int count, char **words) {
    if (count < 2) {
        fputs("usage: marked PROGRAM [ARGUMENT...]\n", stderr);
        return 2;
    }
    MARK(0x444f4d01);
    pid_t child = fork();
    if (child == 0) {
        execvp(words[1], words + 1);
        fprintf(stderr, "marked: %s: %s\n", words[1], strerror(errno));
        _exit(127);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    MARK(0x444f4d02);
    if (child < 0) {
        perror("marked: fork");
        return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
