/* The Barnes-Hut tree: built anew for each time step, one body in a leaf. Nodes come from a pool that
   is recycled from step to step, in the order in which they are made, as malloc would hand them out. */
#include "nbody.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POOL 512   /* times eight nodes in a piece of the pool */
#define DEEPEST 64 /* bodies that lie still closer together share a leaf */

struct piece {
   struct piece *next;
   struct node nodes[POOL][8];
};
static struct piece *first, *current;
static int used;

static struct node *eight_nodes(struct system *system)
{
   if (!current || used == POOL) {
      struct piece **link = current ? &current->next : &first;
      if (!*link && !(*link = calloc(1, sizeof **link)))
         frame_fail("not enough memory for the tree");
      current = *link;
      used = 0;
   }
   system->nodes += 8;
   return current->nodes[used++];
}

static void make_empty(struct node *node, const double middle[3], double side)
{
   node->mass = 0;
   node->side = side;
   node->parts = 0;
   memcpy(node->middle, middle, sizeof node->middle);
}

static void make_leaf(struct node *node, const double position[3], double mass)
{
   memcpy(node->centre, position, sizeof node->centre);
   node->mass = mass;
}

/* Which of a cube's parts a position lies in. */
static struct node *part_of(const struct node *node, const double position[3])
{
   return &node->parts[(position[0] >= node->middle[0]) | (position[1] >= node->middle[1]) << 1 |
                       (position[2] >= node->middle[2]) << 2];
}

/* A leaf becomes a cell: its body moves to the part that it lies in. */
static void split(struct system *system, struct node *leaf)
{
   int part, d;
   leaf->parts = eight_nodes(system);
   for (part = 0; part < 8; part++) {
      double middle[3];
      for (d = 0; d < 3; d++)
         middle[d] = leaf->middle[d] + (part >> d & 1 ? 0.25 : -0.25) * leaf->side;
      make_empty(&leaf->parts[part], middle, 0.5 * leaf->side);
   }
   make_leaf(part_of(leaf, leaf->centre), leaf->centre, leaf->mass);
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
   struct node *node = &system->root;
   int depth;
   for (depth = 0;; depth++) {
      if (!node->parts) {
         if (node->mass == 0) {
            make_leaf(node, position, mass);
            return;
         }
         if (depth == DEEPEST) {
            join(node, position, mass);
            return;
         }
         split(system, node);
      }
      node = part_of(node, position);
   }
}

/* Mass and centre of mass of every cell, from the leaves up. */
static void weigh(struct node *cell)
{
   double moment[3] = {0, 0, 0}, mass = 0;
   int i, d;
   for (i = 0; i < 8; i++) {
      struct node *part = &cell->parts[i];
      if (part->mass == 0)
         continue;
      if (part->parts)
         weigh(part);
      mass += part->mass;
      for (d = 0; d < 3; d++)
         moment[d] += part->mass * part->centre[d];
   }
   cell->mass = mass;
   for (d = 0; d < 3; d++)
      cell->centre[d] = moment[d] / mass;
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
   system->nodes = 1;
   make_empty(&system->root, middle, system->side);
   for (i = 0; i < system->count; i++)
      insert(system, system->bodies[i].position, system->bodies[i].mass);
   if (system->root.parts)
      weigh(&system->root);
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
   if (!node->parts || node->side * node->side < pull->theta_squared * squared) {
      double softened, factor;
      softened = squared + SOFTENING * SOFTENING;
      factor = node->mass / (softened * sqrt(softened));
      pull->acceleration[0] += factor * dx;
      pull->acceleration[1] += factor * dy;
      pull->acceleration[2] += factor * dz;
   } else {
      int i;
      for (i = 0; i < 8; i++)
         if (node->parts[i].mass != 0)
            walk(pull, &node->parts[i]);
   }
}

void tree_move(const struct system *system, struct body *body)
{
   struct pull pull = {{body->position[0], body->position[1], body->position[2]}, {0, 0, 0}, 0};
   int d;
   pull.theta_squared = system->theta * system->theta;
   walk(&pull, &system->root);
   for (d = 0; d < 3; d++) {
      body->velocity[d] += TIME_STEP * pull.acceleration[d];
      body->position[d] += TIME_STEP * body->velocity[d];
   }
}
