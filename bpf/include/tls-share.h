/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How owners share the tables of TLS sessions. The kernel evicts the least recently used: without a limit on new
 * ones, an owner that keeps creating sessions would evict those of others while they wait for a response. */
#pragma once
#include "fair.h"

#define TLS_SESSIONS 16384
#define TLS_NEW (TLS_SESSIONS / 2) /* half of the new, open ones is forgotten every 2^32 ns: a table lasts for 17 seconds */
#define TLS_TICK_SHIFT 32

/* Recent new sessions: by owner, by group, total. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OWNERS + GROUPS + 1);
	__type(key, u32);
	__type(value, struct had);
} tls_shares SEC(".maps");

/* CPUs that concurrently returned the last one subtracted one too many. */
static __always_inline void forgive(struct had *had)
{
	if ((s32)had->amount < 0)
		had->amount = 0;
}

static __always_inline void give_place(u32 of)
{
	struct had *had = bpf_map_lookup_elem(&tls_shares, &of);
	if (!had)
		return;
	if ((s32)had->amount > 0)
		__sync_fetch_and_add(&had->amount, -1);
	forgive(had);
}

/* A session of the owner left the table and frees its place. */
static __always_inline void session_ended(u32 owner)
{
	owner &= OWNER_MASK;
	give_place(owner);
	give_place(OWNERS + (owner >> OWNER_BITS));
	give_place(OWNERS + GROUPS);
}

/* Whether the owner may have one more now. */
static __always_inline bool may_have_session(u32 owner)
{
	u32 group = OWNERS + ((owner & OWNER_MASK) >> OWNER_BITS), total = OWNERS + GROUPS;
	struct had *own = bpf_map_lookup_elem(&tls_shares, &owner);
	struct had *others = bpf_map_lookup_elem(&tls_shares, &group);
	struct had *all = bpf_map_lookup_elem(&tls_shares, &total);
	if (!own || !others || !all)
		return false;
	forgive(own);
	forgive(others);
	forgive(all);
	u32 tick = bpf_ktime_get_ns() >> TLS_TICK_SHIFT, used = had_lately(all, tick);
	u64 left = used < TLS_NEW ? TLS_NEW - used : 0;
	if (!may_have(had_lately(own, tick), had_lately(others, tick), left, TLS_NEW, FAIR))
		return false;
	__sync_fetch_and_add(&own->amount, 1);
	__sync_fetch_and_add(&others->amount, 1);
	__sync_fetch_and_add(&all->amount, 1);
	return true;
}
