/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Tables that replace socket and task storage in the build for kernels before 5.12 (OLD_KERNEL): by kernel address,
 * bounded, and shared by owners as pairs are (net-share.h). The owner of an entry removes it when the socket or task
 * ends. */
#pragma once
#include "owner.h"

/* Number of entries: total, by group, by owner. */
struct shares {
	u32 used;
	u32 group[GROUPS];
	u32 owner[OWNERS];
} shares SEC(".bss.old");

static __always_inline bool may_have_entry(u32 owner, u32 max)
{
	u32 used = shares.used, bound = used < max ? 2 * (max - used) : 0;
	u32 group = shares.group[owner >> OWNER_BITS];
	return group < bound && shares.owner[owner] < bound - group;
}

static __always_inline void change_entries(u32 owner, s32 by)
{
	__sync_fetch_and_add(&shares.used, by);
	__sync_fetch_and_add(&shares.group[owner >> OWNER_BITS], by);
	__sync_fetch_and_add(&shares.owner[owner], by);
}

static __always_inline void *entry_of(void *table, const void *of)
{
	u64 key = (u64)of;
	return bpf_map_lookup_elem(table, &key);
}

/* Creates the entry with this value. 0: it exists, there is no room, or its owner has its share. */
static __always_inline void *entry_made(void *table, u32 max, const void *of, const void *value, u32 owner)
{
	u64 key = (u64)of;
	barrier_var(owner); /* keeps the bound where the verifier expects it */
	owner &= OWNERS - 1;
	if (!may_have_entry(owner, max) || bpf_map_update_elem(table, &key, value, BPF_NOEXIST))
		return 0;
	change_entries(owner, 1);
	return bpf_map_lookup_elem(table, &key);
}

/* `owner`: as at its creation. */
static __always_inline void entry_ends(void *table, const void *of, u32 owner)
{
	u64 key = (u64)of;
	if (!bpf_map_delete_elem(table, &key))
		change_entries(owner & (OWNERS - 1), -1);
}
