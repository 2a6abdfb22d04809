// domicile/slots.hpp: cache slots for C++17.
//
// The objects of domicile/domicile.h with owners, errors as exceptions, and an allocator by which a
// standard container lives in a slot. Link with `pkg-config --cflags --libs domicile`.
//
//     domicile::slots application;                            // throws domicile::failure: what() says why
//     domicile::slot slot(application, 512 << 10, DOMICILE_SLOT_PRIVATE);
//     std::vector<double, domicile::slot_allocator<double>> x(n, slot.allocator<double>());
//
//     domicile::data_set set(application);                    // what is there already
//     set.add(a.data(), a.size());
//     set.allocate(slot);
//
// Owners can be moved, not copied. An application that ends takes its slots, groups and data sets
// with it; memory from a slot stays, and is freed as any other.
#ifndef DOMICILE_SLOTS_HPP
#define DOMICILE_SLOTS_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <domicile/domicile.h>

namespace domicile {

// What a call that failed came to: what() has the words, code() the number.
class failure : public std::runtime_error {
public:
    explicit failure(domicile_error code) : std::runtime_error(domicile_slots_message()), code_(code) {}
    domicile_error code() const noexcept { return code_; }

private:
    domicile_error code_;
};

namespace detail {

inline void check(domicile_error error)
{
    if (error != DOMICILE_OK)
        throw failure(error);
}

// Owns what C made; `destroy` ends it.
template <class C, domicile_error (*destroy)(C *)> class owner {
public:
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    owner(owner &&other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
    owner &operator=(owner &&other) noexcept
    {
        C *had = std::exchange(held_, std::exchange(other.held_, nullptr));
        if (had)
            destroy(had);
        return *this;
    }
    // C's handle; null after it was moved away.
    C *get() const noexcept { return held_; }

protected:
    owner() noexcept = default;
    ~owner()
    {
        if (held_)
            destroy(held_);
    }
    C *held_ = nullptr;
};

} // namespace detail

template <class T> class slot_allocator;

// An application: what cache there is for it, by which means data sets get it.
class slots : public detail::owner<domicile_slots, domicile_slots_close> {
public:
    // For an application that runs on so many processors; 0: on those that this process may use.
    explicit slots(std::uint32_t processors = 0)
    {
        domicile_slots_attributes attributes = {};
        attributes.size = sizeof attributes;
        attributes.processors = processors;
        detail::check(domicile_slots_open(&attributes, &held_));
    }
    explicit slots(const domicile_slots_attributes &attributes)
    {
        detail::check(domicile_slots_open(&attributes, &held_));
    }
    // Bytes of cache that can still be had.
    std::uint64_t available() const noexcept { return domicile_slots_available(held_); }
    // The calling thread is the one that groups know by this number.
    void bind(std::int64_t thread) { detail::check(domicile_slots_bind(held_, thread)); }
    domicile_slots_state state() const
    {
        domicile_slots_state state = {};
        state.size = sizeof state;
        detail::check(domicile_slots_ask(held_, &state));
        return state;
    }
    // Which facilities are in use, and why.
    std::string means() const { return domicile_slots_means(held_); }
};

// Threads that use a data set.
class thread_group : public detail::owner<domicile_thread_group, domicile_thread_group_destroy> {
public:
    explicit thread_group(const slots &application, std::initializer_list<std::int64_t> threads = {})
    {
        detail::check(domicile_thread_group_create(application.get(), &held_));
        for (std::int64_t thread : threads)
            add(thread);
    }
    void add(std::int64_t thread) { detail::check(domicile_thread_group_add(held_, thread)); }
    void add_cpu(std::uint32_t cpu) { detail::check(domicile_thread_group_add_cpu(held_, cpu)); }
};

// Some room in the shared caches.
class slot : public detail::owner<domicile_slot, domicile_slot_destroy> {
public:
    slot(const slots &application, std::uint64_t bytes, domicile_slot_kind kind) : application_(application.get())
    {
        detail::check(domicile_slot_create(application_, bytes, kind, &held_));
    }
    // Places containers in the slot, for the threads of a group or for all.
    template <class T> slot_allocator<T> allocator() const;
    template <class T> slot_allocator<T> allocator(const thread_group &threads) const;
    domicile_slots *application() const noexcept { return application_; }

private:
    domicile_slots *application_;
};

// Ranges of memory that get a slot together.
class data_set : public detail::owner<domicile_data_set, domicile_data_set_destroy> {
public:
    explicit data_set(const slots &application)
    {
        detail::check(domicile_data_set_create(application.get(), nullptr, &held_));
    }
    data_set(const slots &application, const thread_group &threads)
    {
        detail::check(domicile_data_set_create(application.get(), threads.get(), &held_));
    }
    // `count` objects, one after another.
    template <class T> void add(const T *first, std::size_t count)
    {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
            throw std::length_error("domicile::data_set::add: more than there is memory");
        detail::check(domicile_data_set_add(held_, first, count * sizeof(T)));
    }
    // A container with data() and size().
    template <class Container> auto add(const Container &elements) -> decltype(elements.data(), void())
    {
        add(elements.data(), elements.size());
    }
    // Gives it the slot's colors. With DOMICILE_OTHERS_ABSENT nobody else uses the ranges meanwhile.
    domicile_allocation allocate(const slot &place, domicile_others others = DOMICILE_OTHERS_ABSENT)
    {
        return allocated(place.get(), others);
    }
    // Confines it to the smallest number of colors.
    domicile_allocation do_not_cache(domicile_others others = DOMICILE_OTHERS_ABSENT)
    {
        return allocated(nullptr, others);
    }
    std::vector<std::uint32_t> colors() const
    {
        std::size_t count = 0;
        detail::check(domicile_data_set_colors(held_, nullptr, 0, &count));
        std::vector<std::uint32_t> colors(count);
        detail::check(domicile_data_set_colors(held_, colors.data(), colors.size(), &count));
        colors.resize(count < colors.size() ? count : colors.size());
        return colors;
    }
    domicile_census census() const
    {
        domicile_census census = {};
        census.size = sizeof census;
        detail::check(domicile_data_set_census(held_, &census));
        return census;
    }
    // Finds frames that the kernel exchanged, and puts frames of the right colors in their place.
    domicile_census repair(domicile_others others = DOMICILE_OTHERS_ABSENT)
    {
        domicile_census census = {};
        census.size = sizeof census;
        detail::check(domicile_data_set_repair(held_, others, &census));
        return census;
    }

private:
    domicile_allocation allocated(domicile_slot *place, domicile_others others)
    {
        domicile_allocation done = {};
        done.size = sizeof done;
        detail::check(domicile_data_set_allocate(held_, place, others, &done));
        return done;
    }
};

// A standard allocator: every allocation is whole pages whose frames have the slot's colors before
// they are first touched. Made for containers with few large pieces, such as std::vector: a piece
// takes at least a page. One that was made without a slot takes memory as std::allocator does.
//
// Copies share the slot, which must live as long as memory is to be allocated; what was allocated
// stays, and is freed, whenever.
template <class T> class slot_allocator {
public:
    using value_type = T;
    using propagate_on_container_copy_assignment = std::false_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using is_always_equal = std::false_type;

    slot_allocator() noexcept = default;
    slot_allocator(domicile_slots *application, domicile_slot *place, domicile_thread_group *threads = nullptr) noexcept
        : application_(application), place_(place), threads_(threads)
    {
    }
    template <class U>
    slot_allocator(const slot_allocator<U> &other) noexcept
        : application_(other.application()), place_(other.place()), threads_(other.threads())
    {
    }

    T *allocate(std::size_t count)
    {
        static_assert(alignof(T) <= 4096, "a slot's memory begins with a page");
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
            throw std::bad_array_new_length();
        if (!place_)
            return static_cast<T *>(plain(count * sizeof(T)));
        void *memory = nullptr;
        domicile_error error = domicile_slot_memory(application_, place_, threads_, count * sizeof(T), &memory);
        if (error == DOMICILE_OUT_OF_MEMORY)
            throw std::bad_alloc();
        detail::check(error);
        return static_cast<T *>(memory);
    }
    void deallocate(T *memory, std::size_t) noexcept
    {
        if (place_)
            domicile_slot_memory_free(memory);
        else if constexpr (over_aligned)
            ::operator delete(memory, std::align_val_t(alignof(T)));
        else
            ::operator delete(memory);
    }

    domicile_slots *application() const noexcept { return application_; }
    domicile_slot *place() const noexcept { return place_; }
    domicile_thread_group *threads() const noexcept { return threads_; }

private:
    static constexpr bool over_aligned = alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__;
    static void *plain(std::size_t bytes)
    {
        if constexpr (over_aligned)
            return ::operator new(bytes, std::align_val_t(alignof(T)));
        else
            return ::operator new(bytes);
    }

    domicile_slots *application_ = nullptr;
    domicile_slot *place_ = nullptr;
    domicile_thread_group *threads_ = nullptr;
};

// Memory of the one can be freed by the other; two slots' memory differs in where it lies, so that a
// container that is moved between them moves its elements.
template <class T, class U> bool operator==(const slot_allocator<T> &a, const slot_allocator<U> &b) noexcept
{
    return a.place() == b.place() && a.threads() == b.threads();
}
template <class T, class U> bool operator!=(const slot_allocator<T> &a, const slot_allocator<U> &b) noexcept
{
    return !(a == b);
}

template <class T> slot_allocator<T> slot::allocator() const { return {application_, held_}; }
template <class T> slot_allocator<T> slot::allocator(const thread_group &threads) const
{
    return {application_, held_, threads.get()};
}

} // namespace domicile

#endif
