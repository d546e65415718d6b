/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How owners share the pairs of bpf/net.bpf.c. */
#pragma once
#include "owner.h"

#define PAIRS_MAX 16384

const volatile u32 pairs_max = PAIRS_MAX;

/* Number of pairs: total, by group, by owner. User space subtracts those that it deletes. */
u32 pairs_used;
u32 group_pairs[GROUPS];
u32 owner_pairs[OWNERS];

/* Whether an owner may have one more pair. As pairs cannot be evicted, its limit falls with the free room (dynamic
 * thresholds, Choudhury and Hahne 1998): a single owner may have half, a group two thirds, so newcomers find room. */
static __always_inline bool may_have_pair(u32 owner)
{
	u32 used = pairs_used, bound = used < pairs_max ? 2 * (pairs_max - used) : 0;
	u32 group = group_pairs[owner >> OWNER_BITS];
	return group < bound && owner_pairs[owner] < bound - group;
}

static __always_inline void has_pair(u32 owner)
{
	owner &= OWNERS - 1;
	__sync_fetch_and_add(&pairs_used, 1);
	__sync_fetch_and_add(&group_pairs[owner >> OWNER_BITS], 1);
	__sync_fetch_and_add(&owner_pairs[owner], 1);
}
