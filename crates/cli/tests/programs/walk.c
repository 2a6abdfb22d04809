/* Sums a matrix by its rows (`walk rows`) or by its columns (`walk columns`); fails if it is asked for neither. */
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 700, TIMES = 2 };
static double grid[SIZE][SIZE];

int main(int count, char **words) {
    if (count != 2)
        return 7;
    int by_rows = words[1][0] == 'r';
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++)
            grid[i][j] = i + j;
    double sum = 0;
    for (int times = 0; times < TIMES; times++)
        for (int i = 0; i < SIZE; i++)
            for (int j = 0; j < SIZE; j++)
                sum += by_rows ? grid[i][j] : grid[j][i];
    printf("%g\n", sum);
    return 0;
}
