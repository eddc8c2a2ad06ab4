// The host's own would come back each time and take assert from us; ours is in keywords.h.
