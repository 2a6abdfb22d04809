/* A matrix stored by rows, walked by columns; with -DALONG by rows. */
#include <stdio.h>

#ifndef ROWS
#define ROWS 700
#endif
#define COLUMNS 531

static double grid[ROWS][COLUMNS];

int main(void) {
    double sum = 0;
    for (int at = 0; at < ROWS * COLUMNS; at++)
        (&grid[0][0])[at] = at;
#ifdef ALONG
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            sum += grid[row][column];
#else
    for (int column = 0; column < COLUMNS; column++)
        for (int row = 0; row < ROWS; row++)
            sum += grid[row][column]; /* here */
#endif
    printf("%f\n", sum);
    return 0;
}
