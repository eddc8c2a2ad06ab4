// CUDA C++ on a CPU: the header that stands before a student's kernel.
#pragma once
// Before our macros: these name printf, memcpy and their like themselves.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "abi.h"
#include "atomics.h"
#include "mathfn.h"
#include "half.h"
#include "warp.h"
#include "wmma.h"
#include "memory.h"
#include "keywords.h"
