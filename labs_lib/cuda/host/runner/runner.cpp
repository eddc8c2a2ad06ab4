// The whole runner as one translation unit: it is built once for each machine, on first use.
#include "faults.cpp"

#include "bounds.cpp"
#include "block.cpp"
#include "fast.cpp"
#include "warp.cpp"
#include "shadow.cpp"
#include "lanes.cpp"
#include "seen.cpp"
#include "trace.cpp"
#include "async.cpp"
#include "orders.cpp"
#include "main.cpp"
