/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How owners share the ring, as in share.h. The budget of spans is shared in user space, which reads all calls of
 * this back end. Only with a ring (Linux 5.8): the fill level of a perf buffer is unknown. */
#pragma once
#include "syscalls-maps.h"
#include "fair.h"

/* Set before load: this kernel reports the ancestors of a process's group (Linux 5.15). */
const volatile bool tells_ancestors;

/* Recent use by owners, then by groups. */
MAP(shares, BPF_MAP_TYPE_ARRAY, OWNERS + GROUPS, u32, struct had);

/* Number of the current process's owner, as svc_owner() in owner.h. Without kernel types, pods are only parts of one
 * group, and users of a namespace are not attributed to its creator. If only a process's own group is reported,
 * which users can create, all of a user's processes are one group; root's groups are units and containers. */
static __always_inline u32 ring_owner(void)
{
	u64 user = (u32)bpf_get_current_uid_gid(), group, within;
	if (tells_ancestors) {
		within = bpf_get_current_ancestor_cgroup_id(3);
		group = bpf_get_current_ancestor_cgroup_id(2);
		if (!group)
			group = bpf_get_current_ancestor_cgroup_id(1);
	} else {
		within = bpf_get_current_cgroup_id();
		group = user ? 0 : within;
	}
	return owner_number(group ? group : group_of_user(user), within + (user << 32));
}

/* Whether the current process may write a record to the ring, which has `waiting` unread bytes: more than a quarter
 * of it. */
static __always_inline bool has_room(u64 wakeup_bytes, u64 bytes, u64 waiting)
{
	u64 half = 2 * wakeup_bytes, left = waiting < 2 * half ? 2 * half - waiting : 0;
	u32 owner = ring_owner(), group = OWNERS + (owner >> OWNER_BITS);
	struct had *own = bpf_map_lookup_elem(&shares, &owner), *all = bpf_map_lookup_elem(&shares, &group);
	if (!own || !all || !half)
		return false;
	u32 tick = bpf_ringbuf_query(&ring, BPF_RB_CONS_POS) / half;
	if (!may_have(had_lately(own, tick), had_lately(all, tick), left, half, FAIR_RING))
		return false;
	__sync_fetch_and_add(&own->amount, bytes);
	__sync_fetch_and_add(&all->amount, bytes);
	return true;
}
