/* Software prefetches of every form of address, each beside an instruction that computes the same one; the addresses
   go to the file that is named, one a line. Compiled without a red zone. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t at[4096];
static int count;
char data[1 << 16];

/* `form` may use any register: rdi and those made from it hold `base`, rsi and those made from it `index`. */
#define TRY_AS(instruction, form, sum)                                                           \
   do {                                                                                          \
      uint64_t result;                                                                           \
      __asm__ volatile("push %%rbp\n\t"                                                          \
                       "mov %%rdi, %%rbx\n\tmov %%rdi, %%rdx\n\tmov %%rdi, %%r8\n\t"             \
                       "mov %%rdi, %%r10\n\tmov %%rdi, %%r12\n\tmov %%rdi, %%r13\n\t"            \
                       "mov %%rdi, %%rbp\n\tmov %%rdi, %%rax\n\t"                                \
                       "mov %%rsi, %%rcx\n\tmov %%rsi, %%r9\n\tmov %%rsi, %%r11\n\t"             \
                       "mov %%rsi, %%r14\n\tmov %%rsi, %%r15\n\t"                                \
                       "lea " form ", %%rax\n\t" sum "\n\t" instruction " " form "\n\t"          \
                       "pop %%rbp\n\t"                                                           \
                       : "=a"(result)                                                            \
                       : "D"(base), "S"(index)                                                   \
                       : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14",     \
                         "r15", "memory", "cc");                                                 \
      at[count++] = result;                                                                      \
   } while (0)
#define TRY(instruction, form) TRY_AS(instruction, form, "")
#define ALL(form)                                                                                \
   TRY("prefetcht0", form);                                                                      \
   TRY("prefetcht1", form);                                                                      \
   TRY("prefetcht2", form);                                                                      \
   TRY("prefetchnta", form);                                                                     \
   TRY("prefetchw", form);                                                                       \
   TRY("prefetch", form)

__attribute__((noinline)) static void forms(uint64_t base, uint64_t index)
{
   ALL("(%%rdi)");
   ALL("8(%%rbx)");
   ALL("-128(%%rdx)");
   ALL("0x1234(%%rsi)");
   ALL("-0x12345(%%rdi)");
   ALL("(%%rbp)");
   ALL("(%%rsp)");
   ALL("24(%%rsp)");
   ALL("0x4000(%%rsp)");
   ALL("(%%r8)");
   ALL("(%%r12)");
   ALL("(%%r13)");
   ALL("5(%%r12)");
   ALL("-7(%%r13)");
   ALL("0x777777(%%r12)");
   ALL("(%%rax)");
   ALL("(%%rdi,%%rsi)");
   ALL("(%%rbx,%%rcx,2)");
   ALL("(%%rbp,%%r9,4)");
   ALL("(%%r13,%%r14,8)");
   ALL("(%%r12,%%r11)");
   ALL("(%%rsp,%%r15,8)");
   ALL("16(%%r10,%%r12,1)"); /* r12 is an index, rsp is none */
   ALL("-64(%%r13,%%rcx,8)");
   ALL("0x10000(%%r12,%%rbp,2)");
   ALL("data(,%%rsi,8)");
   ALL("64(,%%r9,4)");
   ALL("data(%%rip)");
   ALL("data+4000(%%rip)");
   ALL("0x12345678");
   ALL("(%%edi)");
   ALL("-4(%%r8d,%%ecx,4)");
   TRY_AS("prefetcht0 %%fs:", "0x40", "add %%fs:0, %%rax");
   TRY_AS("prefetcht0 %%fs:", "-8(%%rsi)", "add %%fs:0, %%rax");
   /* Registers that change within a stretch of code without a jump. */
   __asm__ volatile("mov %0, %%rdi\n\tadd $64, %%rdi\n\tprefetcht0 (%%rdi)\n\tadd $64, %%rdi\n\t"
                    "prefetcht0 (%%rdi)\n\txchg %%rdi, %%rsi\n\tprefetcht0 (%%rsi)\n\tlea 1(%%rsi), %%rdi\n\t"
                    "prefetcht0 7(%%rdi)\n\t"
                    :
                    : "r"(base)
                    : "rdi", "rsi", "cc");
   at[count++] = base + 64;
   at[count++] = base + 128;
   at[count++] = base + 128;
   at[count++] = base + 136;
   /* Nothing to fetch there: not recorded. Neither are instructions that are merely near in their code. */
   __asm__ volatile("prefetcht0 -16\n\tnopl (%%rax)\n\tnopw 0(%%rax,%%rax,1)\n\t" ::: "memory");
}

int main(int argc, char** argv)
{
   FILE* out = fopen(argv[1], "w");
   char* block = malloc(1 << 16);
   long i;
   forms((uint64_t)block + 4096, 160);
   forms((uint64_t)data + 1, (uint64_t)-24);
   for (i = 0; i < 100; i++) {
      __builtin_prefetch(block + i * 640, 0, 3);
      at[count++] = (uint64_t)(block + i * 640);
   }
   for (i = 0; i < count; i++)
      fprintf(out, "%llx\n", (unsigned long long)at[i]);
   return fclose(out);
}
