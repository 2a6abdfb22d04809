typedef int domicile_heap;
