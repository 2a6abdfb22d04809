/* The blocks of the lower and of the upper triangular system, for one plane. */
#include "lu.h"

#define C34 (C3 * C4)
#define C1345 (C1 * C3 * C4 * C5)

/* Diffusion, as in the operator. */
static const double SECOND[3] = {0.75, 0.75, 1.0};

/* Viscosity's factor of momentum m in a direction. */
static double factor(int m, int way) { return m == way ? 4.0 / 3.0 * C34 : C34; }

/* The derivative of a direction's stresses, times `scale`, added to a block. */
static inline void add_viscous(double *block, const double *v, int way, double scale)
{
   const double t1 = 1 / v[0], t2 = t1 * t1, t3 = t1 * t2;
   double energy = -C1345 * t2 * v[4];
   int m;
   for (m = 0; m < 3; m++) {
      const double k = factor(m, way);
      block[(1 + m) * 5] += scale * (-k * t2 * v[1 + m]);
      block[(1 + m) * 5 + 1 + m] += scale * (k * t1);
      energy -= (k - C1345) * t3 * v[1 + m] * v[1 + m];
      block[20 + 1 + m] += scale * ((k - C1345) * t2 * v[1 + m]);
   }
   block[20] += scale * energy;
   block[24] += scale * (C1345 * t1);
}

/* The derivative of a direction's inviscid fluxes, times `scale`: a block of its own. */
static inline void set_inviscid(double *block, const double *v, int way, double scale)
{
   const double t1 = 1 / v[0], t2 = t1 * t1, speed = v[1 + way] * t1;
   const double q = 0.5 * (v[1] * v[1] + v[2] * v[2] + v[3] * v[3]) * t2;
   int m, l;
   for (l = 0; l < 5; l++)
      block[l] = 0;
   block[1 + way] = scale;
   for (m = 0; m < 3; m++) {
      double *row = block + (1 + m) * 5;
      for (l = 0; l < 5; l++)
         row[l] = 0;
      if (m == way) {
         row[0] = scale * (-speed * speed + C2 * q);
         for (l = 0; l < 3; l++)
            row[1 + l] = scale * (-C2 * v[1 + l] * t1);
         row[1 + m] = scale * ((2 - C2) * speed);
         row[4] = scale * C2;
      } else {
         row[0] = scale * (-v[1 + m] * v[1 + way] * t2);
         row[1 + way] = scale * (v[1 + m] * t1);
         row[1 + m] = scale * speed;
      }
   }
   block[20] = scale * (2 * C2 * q - C1 * v[4] * t1) * speed;
   for (m = 0; m < 3; m++)
      block[20 + 1 + m] = scale * (-C2 * v[1 + m] * v[1 + way] * t2);
   block[20 + 1 + way] += scale * (C1 * v[4] * t1 - C2 * q);
   block[24] = scale * C1 * speed;
}

/* A neighbour's block: -1 below, 1 above. */
static inline void neighbour(double *block, const double *v, int way, int side)
{
   int m;
   set_inviscid(block, v, way, side * grid.dt * grid.t2);
   add_viscous(block, v, way, -grid.dt * grid.t1);
   for (m = 0; m < 5; m++)
      block[m * 6] -= grid.dt * grid.t1 * SECOND[way];
}

static inline void diagonal(double *block, const double *v)
{
   int m, way;
   for (m = 0; m < 25; m++)
      block[m] = 0;
   for (way = 0; way < 3; way++)
      add_viscous(block, v, way, 2 * grid.dt * grid.t1);
   for (m = 0; m < 5; m++)
      block[m * 6] += 1 + 2 * grid.dt * grid.t1 * (SECOND[0] + SECOND[1] + SECOND[2]);
}

void jacobians_lower(struct range rows, int64_t k)
{
   int i, j;
   for (i = rows.begin; i < rows.end; i++)
      for (j = 1; j < grid.n - 1; j++) {
         diagonal(block_at(d, i, j), at(u, i, j, k));
         neighbour(block_at(a, i, j), at(u, i, j, k - 1), 2, -1);
         neighbour(block_at(b, i, j), at(u, i, j - 1, k), 1, -1);
         neighbour(block_at(c, i, j), at(u, i - 1, j, k), 0, -1);
      }
}

void jacobians_upper(struct range rows, int64_t k)
{
   int i, j;
   for (i = rows.begin; i < rows.end; i++)
      for (j = 1; j < grid.n - 1; j++) {
         diagonal(block_at(d, i, j), at(u, i, j, k));
         neighbour(block_at(a, i, j), at(u, i + 1, j, k), 0, 1);
         neighbour(block_at(b, i, j), at(u, i, j + 1, k), 1, 1);
         neighbour(block_at(c, i, j), at(u, i, j, k + 1), 2, 1);
      }
}
