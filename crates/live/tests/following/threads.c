/* Two regions used in turn for a while, then a thread that uses both. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 1 << 20 };

static unsigned char *regions[2];

static long used(int of)
{
    long sum = 0;
    for (int i = 0; i < 100000; i++)
        sum += ++regions[of][(i * 4099L) % BYTES] > 0;
    return sum;
}

static void *thread(void *argument)
{
    long *sum = argument;
    *sum = used(0) + used(1);
    return NULL;
}

int main(void)
{
    for (int i = 0; i < 2; i++)
        regions[i] = calloc(BYTES, 1);
    for (int i = 0; i < 2000; i++)
        used(i & 1);
    for (int i = 0; i < BYTES; i++)
        regions[0][i] = regions[1][i] = 3;
    long sum = 0;
    pthread_t other;
    if (pthread_create(&other, NULL, thread, &sum) || pthread_join(other, NULL))
        return 1;
    printf("%ld %d\n", sum, regions[0][1] + regions[1][1]);
    return 0;
}
