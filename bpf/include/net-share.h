/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How owners share the pairs of bpf/net.bpf.c. */
#pragma once
#include "kernel.h"

#define PAIRS_MAX 16384
#define GROUP_BITS 7
#define OWNER_BITS 5 /* of owners within a group */
#define OWNERS (1 << (GROUP_BITS + OWNER_BITS))

const volatile u32 pairs_max = PAIRS_MAX;

/* How many pairs there are: all of them, by group, by owner. User space takes off those that it deletes. */
u32 pairs_used;
u32 group_pairs[1 << GROUP_BITS];
u32 owner_pairs[OWNERS];

/* Number of an owner within a group, as groups and owners are told apart here: some share a number by chance. */
static __always_inline u32 owner_number(u64 group, u64 owner)
{
	const u64 spread = 0x9e3779b97f4a7c15; /* multiplying by it moves what differs to the top (Knuth 6.4) */
	return (group * spread) >> (64 - GROUP_BITS) << OWNER_BITS | (owner * spread) >> (64 - OWNER_BITS);
}

static __always_inline u32 owner_of_user(u64 user)
{
	return owner_number(user << 32, user << 32);
}

/* Who answers for the process that runs now. Its group is a unit, a container or all that a user has (user.slice): control
 * groups at a level where only root makes some. Those of pods are one group, and told apart within it. */
static __always_inline u32 current_owner(void)
{
	u64 user = (u32)bpf_get_current_uid_gid(), group = bpf_get_current_ancestor_cgroup_id(2);
	if (!group)
		group = bpf_get_current_ancestor_cgroup_id(1);
	return owner_number(group ? group : user << 32, bpf_get_current_ancestor_cgroup_id(3) + (user << 32));
}

/* Whether an owner may have one more pair. As no pair can be taken back, its bound falls with what is free (dynamic
 * thresholds, Choudhury and Hahne 1998): one that is alone may have half, a group two thirds, and so whoever comes next
 * finds room. */
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
