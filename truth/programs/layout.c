/* Particles: one field of eight is read. As an array of structs, and as a struct of arrays. */
#include "timed.h"

struct particle {
   double x, y, z, vx, vy, vz, mass, charge;
};

int main(int argc, char **argv)
{
   int arrays = variant(argc, argv, "structs", "arrays");
   size_t n = size_or(argc, argv, 1000000);
   struct particle *all = malloc(n * sizeof *all);
   double *mass = malloc(n * sizeof *mass), sum = 0;
   memset(all, 0, n * sizeof *all);
   for (size_t i = 0; i < n; i++)
      all[i].mass = mass[i] = (double)(i % 13);
   work_begins();
   for (int pass = 0; pass < 24; pass++) {
      if (arrays)
         for (size_t i = 0; i < n; i++)
            sum += mass[i];
      else
         for (size_t i = 0; i < n; i++)
            sum += all[i].mass;
   }
   work_ends();
   printf("%.0f\n", sum);
}
