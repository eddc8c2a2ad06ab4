// Atomic operations on global and shared memory: each returns the value before it.
#pragma once
#include <string.h>

#include "abi.h"

namespace lab {

template <int size> struct Word;
template <> struct Word<2> { typedef uint16_t type; };
template <> struct Word<4> { typedef uint32_t type; };
template <> struct Word<8> { typedef uint64_t type; };

template <class T> struct Same { typedef T type; };  // keeps an argument out of deduction

// One word changed by `change(old)`, whole, whatever its type.
template <class T, class F>
LABS_FN T exchange_word(T* p, F change) {
    typedef typename Word<sizeof(T)>::type W;
    W* word = reinterpret_cast<W*>(p);
    if ((++labs_now->atomics & 63) == 0) labs_spin();
    W before = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (;;) {
        T old, now;
        W after;
        memcpy(&old, &before, sizeof(T));
        now = change(old);
        memcpy(&after, &now, sizeof(T));
        if (__atomic_compare_exchange_n(word, &before, after, true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
            return old;
    }
}

}  // namespace lab

template <class T>
LABS_FN T atomicAdd(T* p, typename lab::Same<T>::type v) {
    LABS_TOUCH(p, sizeof(T), lab::kWrite | lab::kAtomic);
    return lab::exchange_word(p, [v](T old) LABS_MEMBER { return static_cast<T>(old + v); });
}

template <class T>
LABS_FN T atomicSub(T* p, typename lab::Same<T>::type v) {
    LABS_TOUCH(p, sizeof(T), lab::kWrite | lab::kAtomic);
    return lab::exchange_word(p, [v](T old) LABS_MEMBER { return static_cast<T>(old - v); });
}

template <class T>
LABS_FN T atomicExch(T* p, typename lab::Same<T>::type v) {
    LABS_TOUCH(p, sizeof(T), lab::kWrite | lab::kAtomic);
    return lab::exchange_word(p, [v](T old) LABS_MEMBER { return static_cast<T>(v); });
}

template <class T>
LABS_FN T atomicMin(T* p, typename lab::Same<T>::type v) {
    LABS_TOUCH(p, sizeof(T), lab::kWrite | lab::kAtomic);
    return lab::exchange_word(p, [v](T old) LABS_MEMBER { return static_cast<T>(v < old ? v : old); });
}

template <class T>
LABS_FN T atomicMax(T* p, typename lab::Same<T>::type v) {
    LABS_TOUCH(p, sizeof(T), lab::kWrite | lab::kAtomic);
    return lab::exchange_word(p, [v](T old) LABS_MEMBER { return static_cast<T>(old < v ? v : old); });
}

template <class T>
LABS_FN T atomicAnd(T* p, typename lab::Same<T>::type v) {
    LABS_TOUCH(p, sizeof(T), lab::kWrite | lab::kAtomic);
    return lab::exchange_word(p, [v](T old) LABS_MEMBER { return static_cast<T>(old & v); });
}

template <class T>
LABS_FN T atomicOr(T* p, typename lab::Same<T>::type v) {
    LABS_TOUCH(p, sizeof(T), lab::kWrite | lab::kAtomic);
    return lab::exchange_word(p, [v](T old) LABS_MEMBER { return static_cast<T>(old | v); });
}

template <class T>
LABS_FN T atomicXor(T* p, typename lab::Same<T>::type v) {
    LABS_TOUCH(p, sizeof(T), lab::kWrite | lab::kAtomic);
    return lab::exchange_word(p, [v](T old) LABS_MEMBER { return static_cast<T>(old ^ v); });
}

// Counts up to `v`, then starts again at 0.
LABS_FN unsigned atomicInc(unsigned* p, unsigned v) {
    LABS_TOUCH(p, 4, lab::kWrite | lab::kAtomic);
    return lab::exchange_word(p, [v](unsigned old) LABS_MEMBER { return old >= v ? 0u : old + 1; });
}

// Counts down to 0, then starts again at `v`.
LABS_FN unsigned atomicDec(unsigned* p, unsigned v) {
    LABS_TOUCH(p, 4, lab::kWrite | lab::kAtomic);
    return lab::exchange_word(
        p, [v](unsigned old) LABS_MEMBER { return old == 0 || old > v ? v : old - 1; });
}

template <class T>
LABS_FN T atomicCAS(T* p, typename lab::Same<T>::type expected, typename lab::Same<T>::type v) {
    LABS_TOUCH(p, sizeof(T), lab::kWrite | lab::kAtomic);
    T old = lab::exchange_word(
        p, [expected, v](T was) LABS_MEMBER { return was == expected ? v : was; });
    if (!(old == expected)) labs_spin();  // whoever holds the lock must get a turn
    return old;
}
