// Rows of a power of two that are visited in no order: no loop can be interchanged, but rows can be padded.
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int ROWS = 400;
#ifndef COLUMNS
#define COLUMNS 1024
#endif

static float table[ROWS][COLUMNS] __attribute__((aligned(4096)));

int main() {
    std::vector<int> order;
    for (int i = 0; i < ROWS; i++) order.push_back(i);
    srand(11);
    for (int i = ROWS - 1; i > 0; i--) std::swap(order[i], order[rand() % (i + 1)]);
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < 1000; column++) table[row][column] = rand();
    float sum = 0;
    for (int column = 0; column < 1000; column++)
        for (int row : order)
            sum += table[row][column]; // here
    printf("%g\n", sum);
}
