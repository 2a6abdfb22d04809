/* Numbers that were rounded along different ways. */
#include "calc.h"
#include <math.h>

int same(double a, double b)
{
   const double size = fmax(1, fmax(fabs(a), fabs(b)));
   return fabs(a - b) <= 1e-6 * size;
}
