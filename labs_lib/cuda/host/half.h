// half and bfloat16 as 16 bits with arithmetic in float: rounded to nearest even after each step.
#pragma once
#include <string.h>

#include "abi.h"

namespace lab {

LABS_FN uint32_t float_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

LABS_FN float bits_float(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}

LABS_FN uint16_t to_half(float x) {
    uint32_t u = float_bits(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    if (a > 0x7f800000) return sign | 0x7e00;
    if (a >= 0x47800000) return sign | 0x7c00;  // 65536 and above
    if (a < 0x38800000) {                       // below 2^-14: adding 0.5 rounds at 2^-24
        float shifted = bits_float(a) + 0.5f;
        return sign | (float_bits(shifted) - 0x3f000000);
    }
    a += 0xfff + (a >> 13 & 1);
    return sign | ((a - 0x38000000) >> 13);
}

LABS_FN float from_half(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, a = h & 0x7fff;
    if (a >= 0x7c00) return bits_float(sign | 0x7f800000 | (a & 0x3ff) << 13);
    if (a >= 0x400) return bits_float(sign | ((a << 13) + 0x38000000));
    float tiny = (float)a * 5.9604644775390625e-8f;
    return bits_float(sign | float_bits(tiny));
}

LABS_FN uint16_t to_bf16(float x) {
    uint32_t u = float_bits(x);
    if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 & 0x8000) | 0x7fc0;
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

LABS_FN float from_bf16(uint16_t h) { return bits_float((uint32_t)h << 16); }

LABS_FN double nearest_odd(double x, double y, double z) {
    // x * y is exact; of the sum only the last bit is made sticky, so that it rounds once.
    double p = x * y, s = p + z, t = s - p, lost = (p - (s - t)) + (z - t);
    uint64_t bits;
    memcpy(&bits, &s, 8);
    if (lost != 0 && !(bits & 1) && s - s == 0) bits += ((lost > 0) == (s > 0)) ? 1 : -1;
    memcpy(&s, &bits, 8);
    return s;
}

LABS_FN float odd_float(double x) {
    float f = (float)x;
    double back = f;
    uint32_t u = float_bits(f);
    if (back == x || x != x || (u & 0x7f800000) == 0x7f800000 || (u & 1)) return f;
    u += ((back < x) == (x > 0)) ? 1 : -1;
    return bits_float(u);
}

}  // namespace lab

#if defined(LABS_TRACE) && !defined(LABS_PLAIN)
#define LABS_MADE(T) LABS_COPIES(T)
#else
#define LABS_MADE(T) T() = default;
#endif

#define LABS_16(T, to, from)                                                                   \
    struct alignas(2) T {                                                                      \
        uint16_t bits;                                                                         \
        LABS_MADE(T)                                                                           \
        LABS_MEMBER T(float x) : bits(lab::to(x)) {}                                          \
        LABS_MEMBER T(double x) : bits(lab::to(lab::odd_float(x))) {}                        \
        LABS_MEMBER T(int x) : bits(lab::to(lab::odd_float(x))) {}                           \
        LABS_MEMBER T(unsigned x) : bits(lab::to(lab::odd_float(x))) {}                      \
        LABS_CONVERT operator float() const {                                                  \
            LABS_TOUCH(this, sizeof(T), lab::kRead);                                           \
            return lab::from(bits);                                                            \
        }                                                                                      \
        LABS_STORE(T)                                                                          \
    };                                                                                         \
    LABS_FN T operator+(T a, T b) { return T((float)a + (float)b); }                           \
    LABS_FN T operator-(T a, T b) { return T((float)a - (float)b); }                           \
    LABS_FN T operator*(T a, T b) { return T((float)a * (float)b); }                           \
    LABS_FN T operator/(T a, T b) { return T((float)a / (float)b); }                           \
    LABS_FN T operator-(T a) { return T(-(float)a); }                                          \
    LABS_FN bool operator<(T a, T b) { return (float)a < (float)b; }                           \
    LABS_FN bool operator>(T a, T b) { return (float)a > (float)b; }                           \
    LABS_FN bool operator<=(T a, T b) { return (float)a <= (float)b; }                         \
    LABS_FN bool operator>=(T a, T b) { return (float)a >= (float)b; }                         \
    LABS_FN bool operator==(T a, T b) { return (float)a == (float)b; }                         \
    LABS_FN bool operator!=(T a, T b) { return (float)a != (float)b; }                         \
    LABS_CHANGE(T, +) LABS_CHANGE(T, -) LABS_CHANGE(T, *) LABS_CHANGE(T, /)                     \
    LABS_FN T __hadd(T a, T b) { return a + b; }                                               \
    LABS_FN T __hsub(T a, T b) { return a - b; }                                               \
    LABS_FN T __hmul(T a, T b) { return a * b; }                                               \
    LABS_FN T __hdiv(T a, T b) { return a / b; }                                               \
    LABS_FN T __hneg(T a) { return -a; }                                                       \
    LABS_FN T __habs(T a) { return (float)a < 0 ? -a : a; }                                    \
    LABS_FN T __hfma(T a, T b, T c) {                                                          \
        return T(lab::nearest_odd((float)a, (float)b, (float)c));                             \
    }                                                                                          \
    LABS_FN T __hmax(T a, T b) { return T(fmaxf(a, b)); }                                      \
    LABS_FN T __hmin(T a, T b) { return T(fminf(a, b)); }                                      \
    LABS_FN bool __heq(T a, T b) { return a == b; }                                            \
    LABS_FN bool __hne(T a, T b) { return a != b; }                                            \
    LABS_FN bool __hlt(T a, T b) { return a < b; }                                             \
    LABS_FN bool __hle(T a, T b) { return a <= b; }                                            \
    LABS_FN bool __hgt(T a, T b) { return a > b; }                                             \
    LABS_FN bool __hge(T a, T b) { return a >= b; }                                            \
    LABS_FN bool __hisnan(T a) { return (float)a != (float)a; }                                \
    LABS_FN T hexp(T a) { return T(expf(a)); }                                                 \
    LABS_FN T hexp2(T a) { return T(exp2f(a)); }                                               \
    LABS_FN T hlog(T a) { return T(logf(a)); }                                                 \
    LABS_FN T hsqrt(T a) { return T(sqrtf(a)); }                                               \
    LABS_FN T hrsqrt(T a) { return T(1.0f / sqrtf(a)); }                                       \
    LABS_FN T hrcp(T a) { return T(1.0f / (float)a); }

// A change in place is a read and a write of the student's memory.
#define LABS_CHANGE(T, op)                              \
    LABS_FN T& operator op##=(T & a, T b) {             \
        LABS_TOUCH(&a, 2, lab::kRead);                 \
        LABS_TOUCH(&a, 2, lab::kWrite);                \
        a.bits = (a op b).bits;                         \
        return a;                                       \
    }

LABS_16(__half, to_half, from_half)
LABS_16(__nv_bfloat16, to_bf16, from_bf16)
typedef __half half;
typedef __nv_bfloat16 nv_bfloat16;

#define LABS_16X2(T2, T, low, high, make)                                                       \
    struct alignas(4) T2 {                                                                      \
        T x, y;                                                                                 \
        LABS_STORE(T2)                                                                          \
        LABS_COPIES(T2, LABS_FIELDS T2(T a, T b = {}) : x(a), y(b) {})                          \
    };                                                                                          \
    LABS_FN T2 make(T x, T y) { return {x, y}; }                                                \
    LABS_FN T2 __hadd2(T2 a, T2 b) { return {a.x + b.x, a.y + b.y}; }                           \
    LABS_FN T2 __hsub2(T2 a, T2 b) { return {a.x - b.x, a.y - b.y}; }                           \
    LABS_FN T2 __hmul2(T2 a, T2 b) { return {a.x * b.x, a.y * b.y}; }                           \
    LABS_FN T2 __hfma2(T2 a, T2 b, T2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
    LABS_FN T2 __hmax2(T2 a, T2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }             \
    LABS_FN float __low2float(T2 a) { return a.x; }                                             \
    LABS_FN float __high2float(T2 a) { return a.y; }                                            \
    LABS_FN T low(T2 a) { return a.x; }                                                         \
    LABS_FN T high(T2 a) { return a.y; }

LABS_16X2(__half2, __half, __low2half, __high2half, make_half2)
LABS_16X2(__nv_bfloat162, __nv_bfloat16, __low2bfloat16, __high2bfloat16, make_bfloat162)
typedef __half2 half2;
typedef __nv_bfloat162 nv_bfloat162;

LABS_FN __half __float2half(float x) { return __half(x); }
LABS_FN __half __float2half_rn(float x) { return __half(x); }
LABS_FN __half __double2half(double x) { return __half(x); }
LABS_FN __half __int2half_rn(int x) { return __half(x); }
LABS_FN float __half2float(__half h) { return h; }
LABS_FN int __half2int_rn(__half h) { return (int)nearbyintf(h); }
LABS_FN unsigned short __half_as_ushort(__half h) { return h.bits; }
LABS_FN __half __ushort_as_half(unsigned short u) {
    __half h;
    h.bits = u;
    return h;
}
LABS_FN __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
LABS_FN __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
LABS_FN __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
LABS_FN __half2 __half2half2(__half x) { return {x, x}; }
LABS_FN __half2 __halves2half2(__half x, __half y) { return {x, y}; }
LABS_FN float2 __half22float2(__half2 h) { return {(float)h.x, (float)h.y}; }
LABS_FN __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
LABS_FN __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
LABS_FN __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }
LABS_FN float __bfloat162float(__nv_bfloat16 h) { return h; }
LABS_FN __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
    return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
LABS_FN __nv_bfloat162 __float2bfloat162_rn(float x) { return {__nv_bfloat16(x), __nv_bfloat16(x)}; }
LABS_FN float2 __bfloat1622float2(__nv_bfloat162 h) { return {(float)h.x, (float)h.y}; }
