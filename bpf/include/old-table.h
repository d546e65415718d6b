/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Tables in place of what newer kernels keep with a socket or a task, of the build for those before 5.12 (OLD_KERNEL):
 * by its address in the kernel, bounded, and shared by owners as pairs are (net-share.h). Whoever has an entry takes it
 * away when the socket, or the task, ends. */
#pragma once
#include "owner.h"

/* Entries: of all, by group, by owner. */
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

/* Makes the entry with this value. 0: there is one, or no room, or its owner has its share. */
static __always_inline void *entry_made(void *table, u32 max, const void *of, const void *value, u32 owner)
{
	u64 key = (u64)of;
	barrier_var(owner); /* so that the bound is where the verifier looks for it */
	owner &= OWNERS - 1;
	if (!may_have_entry(owner, max) || bpf_map_update_elem(table, &key, value, BPF_NOEXIST))
		return 0;
	change_entries(owner, 1);
	return bpf_map_lookup_elem(table, &key);
}

/* `owner`: whom it was made for. */
static __always_inline void entry_ends(void *table, const void *of, u32 owner)
{
	u64 key = (u64)of;
	if (!bpf_map_delete_elem(table, &key))
		change_entries(owner & (OWNERS - 1), -1);
}
