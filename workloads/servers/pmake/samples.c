/* Formulas and their derivatives, worked out by hand. */
#include "calc.h"

const struct sample samples[] = {
   {"3", "0"},
   {"x", "1"},
   {"2*x + 7", "2"},
   {"x^3 - 4*x", "3*x^2 - 4"},
   {"sin(x)*cos(x)", "cos(x)^2 - sin(x)^2"},
   {"exp(2*x)", "2*exp(2*x)"},
   {"1/(1 + x^2)", "(0 - 2*x)/(1 + x^2)^2"},
   {"(x + 1)^4/4", "(x + 1)^3"},
};
const size_t sample_count = sizeof samples / sizeof *samples;
