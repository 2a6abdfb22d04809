/* What a program of Go looks like from outside: an allocator of its own, by the name and with the registers of Go's,
   within memory that it mapped once. Compiled with -mno-red-zone, since calls are made in inline assembly. */
#include <stdio.h>
#include <sys/mman.h>

static char *arena, *next;

void *carve(unsigned long bytes)
{
    void *block = next;
    next += (bytes + 15) / 16 * 16;
    return block;
}

__asm__(".text\n"
        ".globl \"runtime.rt0_go\"\n"
        ".type \"runtime.rt0_go\", @function\n"
        "\"runtime.rt0_go\":\n"
        "  ret\n"
        ".size \"runtime.rt0_go\", .-\"runtime.rt0_go\"\n"
        ".globl \"runtime.mallocgc\"\n"
        ".type \"runtime.mallocgc\", @function\n"
        "\"runtime.mallocgc\":\n"
        "  push %rbp\n"
        "  mov %rsp, %rbp\n"
        "  and $-16, %rsp\n"
        "  mov %rax, %rdi\n"
        "  call carve\n"
        "  mov %rbp, %rsp\n"
        "  pop %rbp\n"
        "  ret\n"
        ".size \"runtime.mallocgc\", .-\"runtime.mallocgc\"\n");

struct node {
    struct node *next;
    long value[7];
};

__attribute__((noinline)) struct node *build(int count)
{
    struct node *list = 0;
    for (int i = 0; i < count; i++) {
        struct node *made;
        __asm__ volatile("call \"runtime.mallocgc\""
                         : "=a"(made)
                         : "0"(sizeof *made)
                         : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
        made->next = list;
        made->value[0] = i;
        list = made;
    }
    return list;
}

int main(void)
{
    long sum = 0;
    __asm__ volatile("call \"runtime.rt0_go\"" : : : "memory");
    arena = next = mmap(0, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct node *list = build(20000);
    for (int round = 0; round < 3; round++)
        for (struct node *at = list; at; at = at->next)
            sum += at->value[0];
    printf("%ld\n", sum);
    return 0;
}
