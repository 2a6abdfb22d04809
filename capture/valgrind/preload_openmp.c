typedef int domicile_openmp;
