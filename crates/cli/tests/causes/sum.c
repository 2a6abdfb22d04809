/* No defect: all of an array, in order, once. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    long count = 1000000, total = 0;
    int *numbers = calloc(count, sizeof *numbers);
    for (long i = 0; i < count; i++)
        total += numbers[i]; /* here */
    printf("%ld\n", total);
    free(numbers);
    return 0;
}
