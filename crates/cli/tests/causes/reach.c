// Every third line of pages that come in no order: more pages than a TLB knows, and a good part of each.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGES 620

static int order[PAGES];

int main(void) {
    unsigned char *all = aligned_alloc(4096, PAGES * 4096);
    memset(all, 1, PAGES * 4096);
    for (int i = 0; i < PAGES; i++)
        order[i] = (i * 389) % PAGES;
    long sum = 0;
    for (int round = 0; round < 40; round++)
        for (int i = 0; i < PAGES; i++)
            for (int at = 0; at < 4096; at += 192)
                sum += all[order[i] * 4096 + at]; // here
    printf("%ld\n", sum);
}
