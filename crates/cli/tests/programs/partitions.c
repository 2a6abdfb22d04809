/* Arrays that threads divide in several ways, each in the same way through the whole program. */
#include <stdio.h>

enum { N = 600, M = 1100 };
static double from[N][M], to[N][M], ring[N][M], dealt[N][M], columns[N][M], table[4 * M];

int main(void)
{
   for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++)
         from[i][j] = ring[i][j] = i + j;
   for (int step = 0; step < 2; step++) {
#pragma omp parallel for schedule(static)
      for (int i = 1; i < N - 1; i++)
         for (int j = 0; j < M; j++)
            to[i][j] = from[i - 1][j] + from[i + 1][j];
#pragma omp parallel for schedule(static, 7)
      for (int i = 0; i < N; i++)
         for (int j = 0; j < M; j++)
            dealt[i][j] = i * step + j;
#pragma omp parallel for schedule(static)
      for (int i = 0; i < N; i++)
         for (int j = 0; j < M; j++)
            ring[(i + N - 1) % N][j] += 1;
#pragma omp parallel for schedule(static)
      for (int j = 0; j < M; j++)
         for (int i = 0; i < N; i++)
            columns[i][j] = j;
#pragma omp parallel
      {
         double sum = 0;
         for (int k = 0; k < 4 * M; k++)
            sum += table[k];
         if (sum > 1)
            puts("never");
      }
   }
   printf("%g %g %g %g\n", to[5][5], dealt[9][9], ring[3][3], columns[2][7]);
   return 0;
}
