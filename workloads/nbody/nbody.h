/* A gravitational N-body simulation by Barnes and Hut's method (Philbin et al. 1996, section 4.4). */
#ifndef WORKLOADS_NBODY_H
#define WORKLOADS_NBODY_H

#include "frame.h"

struct body {
   double position[3];
   double velocity[3];
   double mass;
};

/* A cube of space. Its eight parts lie side by side. A cube with one body has no parts: it keeps a copy of
   the body's position and mass, so that bodies may move while the tree is in use. */
struct node {
   double centre[3]; /* of mass */
   double mass;      /* 0: empty */
   double side;
   struct node *parts;
   double middle[3]; /* of the cube */
};

struct system {
   struct body *bodies;
   int64_t count;
   double theta; /* a cube seen under a smaller angle than this counts as one mass */
   double low[3], side; /* the cube that holds all bodies */
   struct node root;
   int64_t nodes;
};

/* One time step of one body, and the softening of close encounters. */
#define TIME_STEP 0.025
#define SOFTENING 0.05

/* tree.c */
void tree_build(struct system *system);
/* The new velocity and position of one body; reads the tree and this body only. */
void tree_move(const struct system *system, struct body *body);

/* What a version supplies: all bodies' new velocities and positions, by whatever order. */
void move_all(struct system *system, const struct options *options, struct outcome *outcome);

/* nbody.c: a body's place in the scheduling cube, as three hints, none of them 0. */
void place(const struct system *system, const struct options *options, const struct body *body,
           const void *hints[3]);

#endif
