/* The Barnes-Hut tree: built anew for each time step, one body in a leaf. Nodes come from a pool that
   is recycled from step to step, in the order in which they are made, as malloc would hand them out. */
#include "nbody.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POOL 4096  /* nodes in a piece of the pool */
#define DEEPEST 64 /* bodies that lie still closer together share a leaf */

struct piece {
   struct piece *next;
   struct node nodes[POOL];
};
static struct piece *first, *current;
static int used;

static struct node *new_node(struct system *system)
{
   if (!current || used == POOL) {
      struct piece **link = current ? &current->next : &first;
      if (!*link && !(*link = calloc(1, sizeof **link)))
         frame_fail("not enough memory for the tree");
      current = *link;
      used = 0;
   }
   system->nodes++;
   return &current->nodes[used++];
}

static struct node *new_leaf(struct system *system, const double position[3], double mass)
{
   struct node *leaf = new_node(system);
   memcpy(leaf->centre, position, sizeof leaf->centre);
   leaf->mass = mass;
   leaf->is_leaf = 1;
   return leaf;
}

static struct node *new_cell(struct system *system, const double middle[3], double side)
{
   struct node *cell = new_node(system);
   memcpy(cell->middle, middle, sizeof cell->middle);
   cell->side = side;
   cell->is_leaf = 0;
   memset(cell->child, 0, sizeof cell->child);
   return cell;
}

/* Which of a cell's eight cubes a position lies in. */
static int octant(const struct node *cell, const double position[3])
{
   return (position[0] >= cell->middle[0]) | (position[1] >= cell->middle[1]) << 1 |
          (position[2] >= cell->middle[2]) << 2;
}

static void middle_of(const struct node *cell, int which, double middle[3])
{
   int d;
   for (d = 0; d < 3; d++)
      middle[d] = cell->middle[d] + (which >> d & 1 ? 0.25 : -0.25) * cell->side;
}

/* Two bodies in one leaf, where no cube is small enough to part them. */
static void join(struct node *leaf, const double position[3], double mass)
{
   int d;
   for (d = 0; d < 3; d++)
      leaf->centre[d] = (leaf->centre[d] * leaf->mass + position[d] * mass) / (leaf->mass + mass);
   leaf->mass += mass;
}

static void insert(struct system *system, const double position[3], double mass)
{
   struct node *cell = system->root;
   int depth;
   for (depth = 0;; depth++) {
      int which = octant(cell, position);
      struct node *child = cell->child[which];
      if (!child) {
         cell->child[which] = new_leaf(system, position, mass);
         return;
      }
      if (child->is_leaf) {
         double middle[3];
         struct node *between;
         if (depth == DEEPEST) {
            join(child, position, mass);
            return;
         }
         middle_of(cell, which, middle);
         between = new_cell(system, middle, 0.5 * cell->side);
         between->child[octant(between, child->centre)] = child;
         cell->child[which] = between;
         child = between;
      }
      cell = child;
   }
}

/* Mass and centre of mass of every cell, from the leaves up. */
static void weigh(struct node *cell)
{
   double moment[3] = {0, 0, 0};
   int i, d;
   cell->mass = 0;
   for (i = 0; i < 8; i++) {
      struct node *child = cell->child[i];
      if (!child)
         continue;
      if (!child->is_leaf)
         weigh(child);
      cell->mass += child->mass;
      for (d = 0; d < 3; d++)
         moment[d] += child->mass * child->centre[d];
   }
   for (d = 0; d < 3; d++)
      cell->centre[d] = moment[d] / cell->mass;
}

void tree_build(struct system *system)
{
   double high[3], middle[3];
   int64_t i;
   int d;
   for (d = 0; d < 3; d++)
      system->low[d] = high[d] = system->bodies[0].position[d];
   for (i = 1; i < system->count; i++)
      for (d = 0; d < 3; d++) {
         system->low[d] = fmin(system->low[d], system->bodies[i].position[d]);
         high[d] = fmax(high[d], system->bodies[i].position[d]);
      }
   system->side = 0;
   for (d = 0; d < 3; d++)
      system->side = fmax(system->side, high[d] - system->low[d]);
   for (d = 0; d < 3; d++)
      middle[d] = system->low[d] + 0.5 * system->side;

   current = 0;
   system->nodes = 0;
   system->root = new_cell(system, middle, system->side);
   for (i = 0; i < system->count; i++)
      insert(system, system->bodies[i].position, system->bodies[i].mass);
   weigh(system->root);
}

struct pull {
   double position[3];
   double acceleration[3];
   double theta_squared;
};

static void walk(struct pull *pull, const struct node *node)
{
   double dx = node->centre[0] - pull->position[0];
   double dy = node->centre[1] - pull->position[1];
   double dz = node->centre[2] - pull->position[2];
   double squared = dx * dx + dy * dy + dz * dz;
   if (node->is_leaf || node->side * node->side < pull->theta_squared * squared) {
      double softened, factor;
      softened = squared + SOFTENING * SOFTENING;
      factor = node->mass / (softened * sqrt(softened));
      pull->acceleration[0] += factor * dx;
      pull->acceleration[1] += factor * dy;
      pull->acceleration[2] += factor * dz;
   } else {
      int i;
      for (i = 0; i < 8; i++)
         if (node->child[i])
            walk(pull, node->child[i]);
   }
}

void tree_move(const struct system *system, struct body *body)
{
   struct pull pull = {{body->position[0], body->position[1], body->position[2]}, {0, 0, 0}, 0};
   int d;
   pull.theta_squared = system->theta * system->theta;
   walk(&pull, system->root);
   for (d = 0; d < 3; d++) {
      body->velocity[d] += TIME_STEP * pull.acceleration[d];
      body->position[d] += TIME_STEP * body->velocity[d];
   }
}
