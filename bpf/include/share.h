/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How owners share common resources: the budget of spans, and the room in the ring.
 *
 * An owner may have more while its recent use is below a limit that falls with what is left (dynamic thresholds, Choudhury
 * and Hahne 1998). Only the heaviest owners reach the limit, and the rest stays free: what is left settles where all of them
 * get the same, and an owner that wants less gets all of it. The number of owners need not be known. */
#pragma once
#include "bell.h"
#include "maps.h"
#include "owner.h"

#define LATELY_SHIFT 28 /* half of an owner's recent spans is forgotten every 2^28 ns, a quarter of a second */
#define REFILL_NS 1000000

enum { SPANS, FIRST_SPANS, RING_BYTES, SHARED };

/* Recent use by owners and groups; one slot per owner number and shared resource. CPUs that write concurrently may
 * forget twice or lose a write, which is harmless. */
struct had owners_had[SHARED * OWNERS] __attribute__((aligned(64)));
struct had groups_had[SHARED * GROUPS];

/* Spans that CPUs took from the budget for an owner and have not used yet: a number written by all CPUs is slow. */
struct prepaid {
	u8 spans[2 * OWNERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct prepaid);
} prepaid SEC(".maps");

/* Whether the owner of `slot` may have more of `size`, of which `left` is left. Returns 0, or how much it may take
 * at once so that it stays small compared to its use: half of it before each tick. */
static __always_inline int may_take(u32 slot, u64 left, u64 size, u32 tick, u32 fair)
{
	if (slot >= SHARED * OWNERS)
		return 0;
	u64 owner = had_lately(&owners_had[slot], tick), group = had_lately(&groups_had[slot >> OWNER_BITS], tick);
	return may_have(owner, group, left, size, fair) ? 1 + (owner >> 4) : 0;
}

static __always_inline void has(u32 slot, u32 amount)
{
	if (slot >= SHARED * OWNERS)
		return;
	__sync_fetch_and_add(&owners_had[slot].amount, amount);
	__sync_fetch_and_add(&groups_had[slot >> OWNER_BITS].amount, amount);
}

/* Takes spans from the budget for the owner of `slot`. Returns their number: 0 for none. */
__noinline int svc_take_spans(u32 slot, u64 at)
{
	u64 since = budget.at, each = budget_ns, passed = at - since, size = budget_burst;
	u32 first = slot >= OWNERS;
	if ((s64)passed >= REFILL_NS && passed >= each) { /* a CPU may be slightly behind */
		u64 more = passed / each, until = since + more * each;
		if (more >= size) {
			more = size;
			until = at;
		}
		if (__sync_val_compare_and_swap(&budget.at, since, until) == since) {
			for (int i = 0; i < 2; i++) {
				s64 room = size - budget.left[i];
				__sync_fetch_and_add(&budget.left[i], (s64)more < room ? (s64)more : room);
			}
		}
	}
	s64 left = budget.left[first];
	if (left <= 0)
		return 0;
	u32 taken = may_take(slot, left, size, at >> LATELY_SHIFT, FAIR);
	if (taken > budget_share)
		taken = budget_share;
	if (!taken)
		return 0;
	__sync_fetch_and_add(&budget.left[first], -(s64)taken);
	has(slot, taken);
	return taken;
}

/* Whether the budget has a span for the owner. Exchanges with priority have a separate budget of the same size: a
 * storm of errors must not take the whole machine either. */
static __always_inline bool within_budget(u32 owner, u64 at, bool first)
{
	if (!budget_ns)
		return true;
	u32 zero = 0, slot = bounded((first ? OWNERS : 0) + owner, 2 * OWNERS - 1);
	struct prepaid *cpu = bpf_map_lookup_elem(&prepaid, &zero);
	if (!cpu)
		return false;
	u32 spans = cpu->spans[slot];
	if (!spans)
		spans = svc_take_spans(slot, at);
	if (!spans)
		return false;
	cpu->spans[slot] = spans - 1;
	return true;
}

/* Whether the owner, 0 for none, may write a record to the ring, which has `waiting` unread bytes. Shares apply once
 * half of the ring is unread. Use is forgotten at the pace of reading: without a reader for seconds, a flood gets no
 * more room. */
__noinline int svc_has_room(u32 owner, u32 bytes, u64 waiting)
{
	u64 half = 2 * ring_wakeup_bytes, left = waiting < 2 * half ? 2 * half - waiting : 0;
	u32 slot = RING_BYTES * OWNERS + (owner & OWNER_MASK);
	if (waiting <= ring_wakeup_bytes || !owner)
		return 1;
	u32 tick = bpf_ringbuf_query(&ring, BPF_RB_CONS_POS) / half;
	if (!may_take(slot, left, half, tick, FAIR_RING))
		return 0;
	has(slot, bytes);
	return 1;
}

/* Writes an owner's record to the ring. Not 0: no room. Above the wake-up level the consumer is woken repeatedly, as
 * the wake-up of a record without room is lost. */
static __always_inline long put(struct work *w, u32 owner, void *record, u64 bytes)
{
	u64 flags = BPF_RB_NO_WAKEUP, waiting = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
	if (waiting > ring_wakeup_bytes) {
		if (!svc_has_room(owner, bytes, waiting))
			return -1;
		if (now(w) - w->woken >= WAKEUP_NS) {
			w->woken = now(w);
			flags = BPF_RB_FORCE_WAKEUP;
		}
	}
	long failed = bpf_ringbuf_output(&ring, record, bytes, flags);
	ring_bell(now(w));
	return failed;
}
