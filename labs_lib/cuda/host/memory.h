// Loads and stores by name (cache hints change nothing here), copies, and address spaces.
#pragma once
#include <string.h>

#include "abi.h"

namespace lab {

template <class T>
LABS_FN T load(const T* p) {
    LABS_TOUCH(p, sizeof(T), kRead);
    return *p;
}

template <class T>
LABS_FN void store(T* p, typename Same<T>::type v) {
    LABS_TOUCH(p, sizeof(T), kWrite);
    __builtin_memcpy((void*)p, (const void*)&v, sizeof(T));
}

LABS_FN void* copy(void* to, const void* from, size_t n) {
    LABS_TOUCH(from, (unsigned)n, kRead);
    LABS_TOUCH(to, (unsigned)n, kWrite);
    return __builtin_memcpy(to, from, n);
}

LABS_FN void* fill(void* to, int value, size_t n) {
    LABS_TOUCH(to, (unsigned)n, kWrite);
    return __builtin_memset(to, value, n);
}

}  // namespace lab

#define __ldg(p) lab::load(p)
#define __ldca(p) lab::load(p)
#define __ldcg(p) lab::load(p)
#define __ldcs(p) lab::load(p)
#define __stcg(p, v) lab::store(p, v)
#define __stcs(p, v) lab::store(p, v)
#define __stwt(p, v) lab::store(p, v)
#define memcpy lab::copy
#define memset lab::fill
