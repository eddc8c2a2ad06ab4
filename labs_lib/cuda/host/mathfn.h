// Mathematics by CUDA's names. The fast forms (`__expf`) are as exact here as the plain ones.
#pragma once
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmath>

#include "abi.h"

#define LABS_F1(name, expression) \
    LABS_FN float name(float x) { return expression; }
#define LABS_F2(name, expression) \
    LABS_FN float name(float x, float y) { return expression; }

LABS_F1(rsqrtf, 1.0f / sqrtf(x))
LABS_F1(rcbrtf, 1.0f / cbrtf(x))
LABS_F1(labs_expf, expf(x))
LABS_F1(labs_exp10f, powf(10.0f, x))
LABS_F1(labs_logf, logf(x))
LABS_F1(labs_log2f, log2f(x))
LABS_F1(labs_log10f, log10f(x))
LABS_F1(labs_sinf, sinf(x))
LABS_F1(labs_cosf, cosf(x))
LABS_F1(labs_tanf, tanf(x))
LABS_F1(__frcp_rn, 1.0f / x)
LABS_F1(__fsqrt_rn, sqrtf(x))
LABS_F1(__frsqrt_rn, 1.0f / sqrtf(x))
LABS_F1(__saturatef, x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f)
LABS_F1(normcdff, 0.5f * erfcf(-x * 0.70710678f))
LABS_F2(labs_powf, powf(x, y))
LABS_F2(__fdividef, x / y)
LABS_F2(fdividef, x / y)
LABS_F2(__fdiv_rn, x / y)
#define exp10f labs_exp10f
// glibc declares functions of these names itself.
#define __expf labs_expf
#define __exp10f labs_exp10f
#define __logf labs_logf
#define __log2f labs_log2f
#define __log10f labs_log10f
#define __sinf labs_sinf
#define __cosf labs_cosf
#define __tanf labs_tanf
#define __powf labs_powf
#undef LABS_F1
#undef LABS_F2

// Each of these rounds by itself: the compiler may not merge it with its neighbours.
#define LABS_ROUNDED(name, op)               \
    LABS_FN float name(float x, float y) {   \
        float r = x op y;                    \
        __asm__("" : "+m"(r));               \
        return r;                            \
    }
LABS_ROUNDED(__fadd_rn, +)
LABS_ROUNDED(__fsub_rn, -)
LABS_ROUNDED(__fmul_rn, *)
#undef LABS_ROUNDED

LABS_FN double rsqrt(double x) { return 1.0 / sqrt(x); }
LABS_FN float rsqrt(float x) { return rsqrtf(x); }
LABS_FN float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
LABS_FN double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
LABS_FN void labs_sincosf(float x, float* s, float* c) {
    *s = sinf(x);
    *c = cosf(x);
    LABS_TOUCH(s, 4, lab::kWrite);
    LABS_TOUCH(c, 4, lab::kWrite);
}
#define sincosf labs_sincosf
#define __sincosf labs_sincosf
// The host's own would store where nobody counts it.
#define LABS_PARTS(T, frexp_name, modf_name)                                            \
    LABS_FN T frexp_name(T x, int* exponent) {                                          \
        bool plain = __builtin_isfinite(x) && x != 0;                                   \
        *exponent = plain ? ilogb((double)x) + 1 : 0;                                   \
        LABS_TOUCH(exponent, sizeof(int), lab::kWrite);                                 \
        return plain ? (T)scalbn((double)x, -*exponent) : x;                            \
    }                                                                                   \
    LABS_FN T modf_name(T x, T* whole) {                                                \
        *whole = (T)trunc((double)x);                                                   \
        LABS_TOUCH(whole, sizeof(T), lab::kWrite);                                      \
        return (T)copysign(x != x ? x : __builtin_isfinite(x) ? x - *whole : 0.0, x);   \
    }
LABS_PARTS(float, labs_frexpf, labs_modff)
LABS_PARTS(float, labs_frexp, labs_modf)
LABS_PARTS(double, labs_frexp, labs_modf)
#undef LABS_PARTS
#define frexpf labs_frexpf
#define frexp labs_frexp
#define modff labs_modff
#define modf labs_modf

// max and min for each pair of arithmetic types, with C's rules for the type of the result; of a
// number and a NaN, the number, as fmaxf has it.
#define LABS_PAIR(T)                                                                  \
    LABS_FN T max(T a, T b) { return a < b ? b : a; }                                 \
    LABS_FN T min(T a, T b) { return b < a ? b : a; }
LABS_PAIR(int)
LABS_PAIR(unsigned)
LABS_PAIR(long)
LABS_PAIR(unsigned long)
LABS_PAIR(long long)
LABS_PAIR(unsigned long long)
#undef LABS_PAIR
LABS_FN float max(float a, float b) { return fmaxf(a, b); }
LABS_FN float min(float a, float b) { return fminf(a, b); }
LABS_FN double max(double a, double b) { return fmax(a, b); }
LABS_FN double min(double a, double b) { return fmin(a, b); }
LABS_FN double max(float a, double b) { return fmax(a, b); }
LABS_FN double max(double a, float b) { return fmax(a, b); }
LABS_FN double min(float a, double b) { return fmin(a, b); }
LABS_FN double min(double a, float b) { return fmin(a, b); }
LABS_FN unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
LABS_FN unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
LABS_FN unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
LABS_FN unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
LABS_FN long max(int a, long b) { return max((long)a, b); }
LABS_FN long max(long a, int b) { return max(a, (long)b); }
LABS_FN long min(int a, long b) { return min((long)a, b); }
LABS_FN long min(long a, int b) { return min(a, (long)b); }

template <class To, class From>
LABS_FN To labs_bits(From from) {
    To to;
    memcpy(&to, &from, sizeof(To));
    return to;
}
LABS_FN int __float_as_int(float x) { return labs_bits<int>(x); }
LABS_FN unsigned __float_as_uint(float x) { return labs_bits<unsigned>(x); }
LABS_FN float __int_as_float(int x) { return labs_bits<float>(x); }
LABS_FN float __uint_as_float(unsigned x) { return labs_bits<float>(x); }
LABS_FN long long __double_as_longlong(double x) { return labs_bits<long long>(x); }
LABS_FN double __longlong_as_double(long long x) { return labs_bits<double>(x); }
LABS_FN int __float2int_rn(float x) { return (int)nearbyintf(x); }
LABS_FN int __float2int_rz(float x) { return (int)x; }
LABS_FN int __float2int_rd(float x) { return (int)floorf(x); }
LABS_FN int __float2int_ru(float x) { return (int)ceilf(x); }
LABS_FN unsigned __float2uint_rn(float x) { return (unsigned)nearbyintf(x); }
LABS_FN float __int2float_rn(int x) { return (float)x; }
LABS_FN float __uint2float_rn(unsigned x) { return (float)x; }

LABS_FN int __popc(unsigned x) { return __builtin_popcount(x); }
LABS_FN int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
LABS_FN int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
LABS_FN int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
LABS_FN int __ffs(int x) { return __builtin_ffs(x); }
LABS_FN int __ffsll(long long x) { return __builtin_ffsll(x); }
LABS_FN unsigned __brev(unsigned x) {
    unsigned r = 0;
    for (int i = 0; i < 32; ++i) r |= (x >> i & 1u) << (31 - i);
    return r;
}
LABS_FN int __mul24(int x, int y) { return x * y; }
LABS_FN unsigned __umulhi(unsigned x, unsigned y) { return (uint64_t)x * y >> 32; }
LABS_FN int __mulhi(int x, int y) { return (int)((int64_t)x * y >> 32); }

#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_PI_F 3.141592654f
#define CUDART_INF __builtin_inf()
