// All that this header gives is in cuda_host.h, which stands before every kernel.
#pragma once
