// dim3 and the short vectors, sized and aligned as CUDA has them.
#pragma once
#include <stdint.h>

#include "touch.h"

#define LABS_1(T, name) \
    LABS_STORE(name) LABS_COPIES(name, LABS_FIELDS constexpr name(lab::Field<T> a) : x(a) {})
#define LABS_2(T, name)                                                                 \
    LABS_STORE(name)                                                                    \
    LABS_COPIES(name, LABS_FIELDS constexpr name(lab::Field<T> a, lab::Field<T> b = {}) \
                : x(a), y(b) {})
#define LABS_3(T, name)                                                                 \
    LABS_STORE(name)                                                                    \
    LABS_COPIES(name, LABS_FIELDS constexpr name(lab::Field<T> a, lab::Field<T> b = {}, \
                                                 lab::Field<T> c = {})                  \
                : x(a), y(b), z(c) {})
#define LABS_4(T, name)                                                                 \
    LABS_STORE(name)                                                                    \
    LABS_COPIES(name, LABS_FIELDS constexpr name(lab::Field<T> a, lab::Field<T> b = {}, \
                                                 lab::Field<T> c = {},                  \
                                                 lab::Field<T> d = {})                  \
                : x(a), y(b), z(c), w(d) {})

#define LABS_VECTORS(T, name, a2, a4)                                                   \
    struct name##1 { T x; LABS_1(T, name##1) };                                         \
    struct alignas(a2) name##2 { T x, y; LABS_2(T, name##2) };                          \
    struct name##3 { T x, y, z; LABS_3(T, name##3) };                                   \
    struct alignas(a4) name##4 { T x, y, z, w; LABS_4(T, name##4) };                    \
    static inline __attribute__((unused)) name##1 make_##name##1(T x) { return {x}; }   \
    static inline __attribute__((unused)) name##2 make_##name##2(T x, T y) {            \
        return {x, y};                                                                  \
    }                                                                                   \
    static inline __attribute__((unused)) name##3 make_##name##3(T x, T y, T z) {       \
        return {x, y, z};                                                               \
    }                                                                                   \
    static inline __attribute__((unused)) name##4 make_##name##4(T x, T y, T z, T w) {  \
        return {x, y, z, w};                                                            \
    }

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef long long longlong;
typedef unsigned long long ulonglong;

LABS_VECTORS(signed char, char, 2, 4)
LABS_VECTORS(unsigned char, uchar, 2, 4)
LABS_VECTORS(short, short, 4, 8)
LABS_VECTORS(unsigned short, ushort, 4, 8)
LABS_VECTORS(int, int, 8, 16)
LABS_VECTORS(unsigned int, uint, 8, 16)
LABS_VECTORS(float, float, 8, 16)
LABS_VECTORS(long long, longlong, 16, 16)
LABS_VECTORS(unsigned long long, ulonglong, 16, 16)
LABS_VECTORS(double, double, 16, 16)
#undef LABS_VECTORS

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    operator uint3() const { return {x, y, z}; }
};
