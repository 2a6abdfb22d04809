/* Branches on bits that repeat, and on bits of chance; a load follows each way. */
#include <stdio.h>

enum { COUNT = 1 << 15, ROUNDS = 4 };
unsigned char regular[COUNT], chance[COUNT];
long after_regular[2], after_chance[2];

__attribute__((noinline)) long by(const unsigned char *bits, const volatile long *ones, const volatile long *zeros)
{
    long sum = 0;
    for (int i = 0; i < COUNT; i++) {
        if (bits[i])
            sum += *ones;
        else
            sum ^= *zeros;
    }
    return sum;
}

__attribute__((noinline)) long by_chance(const unsigned char *bits, const volatile long *ones, const volatile long *zeros)
{
    long sum = 0;
    for (int i = 0; i < COUNT; i++) {
        if (bits[i])
            sum += *ones;
        else
            sum ^= *zeros;
    }
    return sum;
}

int main(void)
{
    unsigned long state = 1;
    long sum = 0;
    for (int i = 0; i < COUNT; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        regular[i] = i % 3 == 0;
        chance[i] = state >> 62 & 1;
    }
    for (int round = 0; round < ROUNDS; round++) {
        sum += by(regular, &after_regular[0], &after_regular[1]);
        sum += by_chance(chance, &after_chance[0], &after_chance[1]);
    }
    printf("%ld\n", sum);
}
