// The headers from C++, with a lambda as a thread's function.
#include "check.h"
#include <domicile/domicile.h>
#include <domicile/th.h>
#include <domicile/trace.h>
#include <vector>

int main()
{
    std::vector<int> ran;
    DOMICILE_PHASE("fork");
    th_init(64, 0);
    for (int i = 0; i < 4; i++)
        th_fork([](void *ran, void *) { static_cast<std::vector<int> *>(ran)->push_back(1); }, &ran, nullptr, &ran,
                nullptr, nullptr);
    th_run(0);
    CHECK(ran.size() == 4);

    domicile_order_attributes attributes = {};
    attributes.size = sizeof attributes;
    attributes.hints = 1;
    attributes.block[0] = 64;
    domicile_order *order = nullptr;
    CHECK(domicile_order_create(&attributes, &order) == DOMICILE_OK);
    uint64_t hint = 0;
    CHECK(domicile_order_fork(order, [](void *ran, void *) { static_cast<std::vector<int> *>(ran)->clear(); }, &ran,
                              nullptr, &hint, nullptr) == DOMICILE_OK);
    CHECK(domicile_order_run(order, 0, nullptr) == DOMICILE_OK);
    CHECK(ran.empty());
    CHECK(domicile_order_destroy(order) == DOMICILE_OK);
    puts("done");
}
