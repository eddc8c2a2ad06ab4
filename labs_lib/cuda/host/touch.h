// How our own code tells the trace of a load or store that it does for the student.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <type_traits>

extern "C" void labs_touch(const void* address, unsigned size, int flags, const void* origin);

namespace lab {
enum Touch { kRead = 0, kWrite = 1, kAtomic = 2, kVolatile = 4 };
}

#if defined(LABS_TRACE)
#define LABS_TOUCH(p, size, flags) labs_touch(p, size, flags, __builtin_return_address(0))
#else
#define LABS_TOUCH(p, size, flags) ((void)0)
#endif

// A struct that a function returns is stored by the call itself, which no compiler instruments: in
// the traced mode each struct is stored by an assignment of ours.
#if defined(LABS_TRACE)
#define LABS_STORE(T)                                                                \
    __attribute__((noinline, no_sanitize("thread"))) T& operator=(const T& other) {  \
        LABS_TOUCH(&other, sizeof(T), lab::kRead);                                   \
        LABS_TOUCH(this, sizeof(T), lab::kWrite);                                    \
        __builtin_memcpy((void*)this, (const void*)&other, sizeof(T));               \
        return *this;                                                                \
    }
#else
#define LABS_STORE(T)
#endif

// Nor does a compiler instrument what a call reads when it takes a struct by value: a copy of ours
// is made of it. A struct with such a copy is no aggregate any more, so a constructor takes what the
// braces held. A number alone is no struct there (two conversions would be needed): what an
// aggregate takes and this does not, as numbers for a struct in a struct without braces of its own,
// ends in an error, and the cell is compiled again with LABS_PLAIN, without such copies.
#if defined(LABS_TRACE) && !defined(LABS_PLAIN)
#define LABS_COPIES(T, ...)                                                          \
    T() = default;                                                                   \
    __attribute__((noinline, no_sanitize("thread"))) T(const T& other) {             \
        LABS_TOUCH(&other, sizeof(T), lab::kRead);                                   \
        LABS_TOUCH(this, sizeof(T), lab::kWrite);                                    \
        __builtin_memcpy((void*)this, (const void*)&other, sizeof(T));               \
    }                                                                                \
    __VA_ARGS__
#define LABS_FIELDS __attribute__((no_sanitize("thread")))

namespace lab {
template <class T>
struct Number {
    T value;
    LABS_FIELDS constexpr Number(T v = T()) : value(v) {}
    LABS_FIELDS constexpr operator T() const { return value; }
};
template <class T, bool scalar = std::is_scalar<T>::value> struct FieldOf { typedef Number<T> type; };
template <class T> struct FieldOf<T, false> { typedef T type; };
template <class T> using Field = typename FieldOf<T>::type;
}  // namespace lab
#else
#define LABS_COPIES(T, ...)
#endif

// A conversion reads the number that it is a member of, which no compiler sees from outside.
#if defined(LABS_TRACE)
#define LABS_CONVERT __attribute__((noinline, no_sanitize("thread")))
#else
#define LABS_CONVERT
#endif
