/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Lock of a connection: the hooks run without the socket's own. */
#pragma once
#include "maps.h"

struct attempt {
	struct conn *c;
	bool held;
};

static long try_lock(u32 i, struct attempt *attempt)
{
	attempt->held = !__sync_lock_test_and_set(&attempt->c->busy, 1);
	return attempt->held;
}

/* The hooks run without the socket's own lock: two threads may send and receive at once, and a reset may come in
 * between. False: the lock was held for very long, which only a bug could cause. */
static __always_inline bool lock(struct conn *c)
{
	struct attempt attempt = { .c = c };
	if (try_lock(0, &attempt))
		return true;
	bpf_loop(LOCK_TRIES, try_lock, &attempt, 0);
	return attempt.held;
}

static __always_inline void unlock(struct conn *c)
{
	__sync_lock_test_and_set(&c->busy, 0);
}
