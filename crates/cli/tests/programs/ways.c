/* The paper's functions, on a machine whose slots are ways. It runs in the tree of resctrl. */
#include <domicile/domicile.h>
#include <domicile/ulcc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 1 << 16 };

int main(void)
{
    if (ULCC_Init(0) != 0) {
        printf("no: %s\n", ULCC_Error());
        return 1;
    }
    printf("%s\n%ld KB\n", ULCC_Error(), ULCC_Available_Space_App());
    fflush(stdout);
    char *block = aligned_alloc(4096, BYTES);
    memset(block, 7, BYTES);
    ULCC_Slot slot = ULCC_Cache_Slot(2500, ULCC_PRIVATE);
    ULCC_Data data = ULCC_Data_Set(NULL);
    if (ULCC_More_Data(data, block, block + BYTES) != 0 || ULCC_Allocate(data, slot) != 0) {
        printf("no: %s\n", ULCC_Error());
        return 1;
    }
    if (system("cat domicile.*/schemata schemata domicile.*/tasks") != 0)
        return 1;
    printf("%d\n", (int)getpid());
    for (int i = 0; i < BYTES; i++)
        if (block[i] != 7)
            return 1;
    return ULCC_Exit();
}
