/* A program without main and without a C library: it begins at its entry. */
volatile long data[100];

void _start(void)
{
   long sum = 0;
   for (int i = 0; i < 100; i++)
      sum += data[i];
   __asm__ volatile("syscall" : : "a"(60), "D"(sum != 0) : "rcx", "r11", "memory");
   __builtin_unreachable();
}
