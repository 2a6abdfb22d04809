typedef int domicile_sync;
