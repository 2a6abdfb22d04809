// Owners, exceptions, and containers that live in a slot.
#include "check.h"
#include <domicile/slots.hpp>
#include <domicile/stream.h>
#include <domicile/ulcc.h>

#include <array>
#include <cstring>
#include <list>
#include <numeric>
#include <thread>

#include "frames.h"

namespace {

std::uint32_t mask(const domicile::data_set &set)
{
    std::uint32_t mask = 0;
    for (std::uint32_t color : set.colors())
        mask |= std::uint32_t(1) << color;
    return mask;
}

template <class T> void look(const T *from, std::size_t count, std::uint32_t allowed)
{
    if (!frames_are_shown())
        return;
    const char *at = reinterpret_cast<const char *>(from), *end = at + count * sizeof(T);
    at += (PAGE - reinterpret_cast<std::uintptr_t>(at) % PAGE) % PAGE;
    for (; at + PAGE <= end; at += PAGE) {
        int color = color_of(at);
        CHECK(color >= 0 && (allowed >> color & 1));
    }
}

void containers(domicile::slots &application)
{
    domicile::slot slot(application, 128 << 10, DOMICILE_SLOT_PRIVATE);
    // Two pages that tell which colors the slot has.
    std::vector<char> room(4 * PAGE);
    domicile::data_set set(application);
    set.add(room);
    CHECK(set.allocate(slot).left == 0);
    std::uint32_t allowed = mask(set);

    std::vector<double, domicile::slot_allocator<double>> numbers(slot.allocator<double>());
    for (int i = 0; i < 50000; i++) // grows several times
        numbers.push_back(i);
    CHECK(std::accumulate(numbers.begin(), numbers.end(), 0.0) == 50000.0 * 49999 / 2);
    look(numbers.data(), numbers.size(), allowed);
    auto copy = numbers;
    CHECK(copy == numbers && copy.get_allocator() == numbers.get_allocator());
    look(copy.data(), copy.size(), allowed);
    auto moved = std::move(copy);
    CHECK(moved == numbers);
    domicile::thread_group threads(application, {0});
    std::vector<int, domicile::slot_allocator<int>> grouped(1000, 7, slot.allocator<int>(threads));
    CHECK(grouped.get_allocator() != slot.allocator<int>());
    look(grouped.data(), grouped.size(), allowed);
    std::list<int, domicile::slot_allocator<int>> list({1, 2, 3}, slot.allocator<int>());
    list.push_back(4);
    CHECK(std::accumulate(list.begin(), list.end(), 0) == 10);

    // Without a slot it is memory as any other.
    std::vector<double, domicile::slot_allocator<double>> plain(100, 1.0);
    plain = numbers;
    CHECK(plain == numbers);
    struct alignas(64) line {
        std::array<char, 64> bytes;
    };
    std::vector<line, domicile::slot_allocator<line>> lines(3), in_slot(3, slot.allocator<line>());
    CHECK(reinterpret_cast<std::uintptr_t>(lines.data()) % 64 == 0);
    lines.swap(in_slot);

    bool thrown = false;
    try {
        numbers.reserve(numbers.max_size() / 2);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown && numbers.size() == 50000);
}

void owners(domicile::slots &application)
{
    std::uint64_t before = application.available();
    {
        domicile::slot one(application, 256 << 10, DOMICILE_SLOT_PRIVATE);
        domicile::slot two(std::move(one));
        CHECK(one.get() == nullptr && two.get() != nullptr);
        one = std::move(two);
        std::vector<int> data(100000, 3);
        domicile::data_set set(application, domicile::thread_group(application, {5, 6}));
        set.add(data);
        domicile_allocation done = set.allocate(one);
        CHECK(done.pages >= data.size() * sizeof(int) / PAGE - 1 && done.colors == 4 && done.left == 0);
        look(data.data(), data.size(), mask(set));
        domicile_census census = frames_are_shown() ? set.repair() : set.census();
        CHECK(census.other == 0 && census.pages == done.pages && set.census().allowed == census.allowed);
        CHECK(application.available() < before);
        for (int number : data)
            CHECK(number == 3);
        std::vector<int> stream(50000);
        domicile::data_set once(application);
        once.add(stream);
        CHECK(once.do_not_cache().colors == 1);
    }
    CHECK(application.available() == before);
}

void errors(domicile::slots &application)
{
    bool thrown = false;
    try {
        domicile::slot slot(application, 0, DOMICILE_SLOT_PRIVATE);
    } catch (const domicile::failure &failure) {
        thrown = failure.code() == DOMICILE_INVALID && std::strlen(failure.what()) > 0;
    }
    CHECK(thrown);
    std::vector<int, domicile::slot_allocator<int>> outlives;
    {
        domicile::slots other(1);
        domicile::slot slot(other, 64 << 10, DOMICILE_SLOT_SHARED);
        outlives = std::vector<int, domicile::slot_allocator<int>>(5000, 9, slot.allocator<int>());
    }
    for (int number : outlives)
        CHECK(number == 9);
}

void streams()
{
    std::vector<char> from(10000), to(10000);
    std::iota(from.begin(), from.end(), char(1));
    for (std::size_t start : {0, 1, 15, 16, 17})
        for (std::size_t bytes : {0, 1, 15, 16, 31, 32, 1000, 9000}) {
            std::fill(to.begin(), to.end(), char(0));
            domicile_stream_copy(&to[start], &from[start + 3], bytes);
            for (std::size_t i = 0; i < to.size(); i++)
                CHECK(to[i] == (i >= start && i < start + bytes ? from[i + 3] : 0));
        }
    domicile_prefetch_once(from.data());
    domicile_prefetch_once(nullptr);
}

} // namespace

int main()
{
    try {
        domicile::slots application;
        CHECK(application.state().colors == COLORS && !application.means().empty());
        containers(application);
        owners(application);
        errors(application);
        streams();
        // Threads place data at the same time.
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; i++)
            threads.emplace_back([&application, i] {
                application.bind(i);
                domicile::slot slot(application, 64 << 10, DOMICILE_SLOT_PRIVATE);
                for (int round = 0; round < 20; round++) {
                    std::vector<int, domicile::slot_allocator<int>> data(5000, i, slot.allocator<int>());
                    for (int number : data)
                        CHECK(number == i);
                }
            });
        for (std::thread &thread : threads)
            thread.join();
        CHECK(ULCC_Init(1) == 0 && ULCC_Cache_Slot(64, ULCC_PRIVATE) != ULCC_NO_SLOT && ULCC_Exit() == 0);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    std::puts("done");
}
