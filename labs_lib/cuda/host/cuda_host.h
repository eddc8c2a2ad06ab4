// CUDA C++ on a CPU: the header that stands before a student's kernel.
#pragma once
#include "abi.h"
#include "atomics.h"
#include "mathfn.h"
#include "half.h"
#include "warp.h"
#include "wmma.h"
#include "memory.h"
#include "keywords.h"
