/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How owners share what there is for all: the budget of spans, and the room in the ring.
 *
 * An owner may have more as long as it has had less of late than a bound that falls with what is left (dynamic thresholds,
 * Choudhury and Hahne 1998). Those who want most meet it, and so leave the rest: what is left settles where all of them get
 * the same, and whoever wants less than that gets it all. Nobody has to know how many owners there are. */
#pragma once
#include "maps.h"
#include "owner.h"

#define LATELY_SHIFT 28 /* half of the spans that an owner has had is forgotten in 2^28 ns, a quarter of a second */
#define REFILL_NS 1000000

enum { SPANS, FIRST_SPANS, RING_BYTES, SHARED };

/* What owners, and their groups, have had of late; slots of an owner's number in each of what is shared. CPUs that
 * write at once may forget something twice, or not note it, which is harmless. */
struct had owners_had[SHARED * OWNERS] __attribute__((aligned(64)));
struct had groups_had[SHARED * GROUPS];

/* What CPUs took from the budget for an owner and have not used yet: a number that all of them write is dear. */
struct prepaid {
	u8 spans[2 * OWNERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct prepaid);
} prepaid SEC(".maps");

/* Whether the owner of `slot` may have more of `size`, of which `left` is left. 0, or how much it may take at once, if that
 * is to stay little beside what it has had: half of it before each tick. */
__noinline int svc_may_have(u32 slot, u64 left, u64 size, u32 tick, u32 fair)
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

/* Takes spans from the budget for the owner of `slot`. Returns how many: 0 for none. */
__noinline int svc_take_spans(u32 slot, u64 at)
{
	u64 since = budget_at, each = budget_ns, passed = at - since, size = budget_burst;
	u32 first = slot >= OWNERS;
	if ((s64)passed >= REFILL_NS && passed >= each) { /* a CPU may be a little behind */
		u64 more = passed / each, until = since + more * each;
		if (more >= size) {
			more = size;
			until = at;
		}
		if (__sync_val_compare_and_swap(&budget_at, since, until) == since) {
			for (int i = 0; i < 2; i++) {
				s64 room = size - budget_left[i];
				__sync_fetch_and_add(&budget_left[i], (s64)more < room ? (s64)more : room);
			}
		}
	}
	s64 left = budget_left[first];
	if (left <= 0)
		return 0;
	u32 taken = svc_may_have(slot, left, size, at >> LATELY_SHIFT, FAIR);
	if (taken > budget_share)
		taken = budget_share;
	if (!taken)
		return 0;
	__sync_fetch_and_add(&budget_left[first], -(s64)taken);
	has(slot, taken);
	return taken;
}

/* Whether the budget has a span for the owner. Exchanges that are to be kept first have a budget of their own, of the same
 * size: a storm of errors must not take the whole machine either. */
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

/* Whether the owner, 0 for nobody, may put a record into the ring, in which so much waits. There is nothing to share until
 * half of it does. What is forgotten goes by what has been read: if nobody reads for seconds, a flood gets no more for it. */
__noinline int svc_has_room(u32 owner, u32 bytes, u64 waiting)
{
	u64 half = 2 * ring_wakeup_bytes, left = waiting < 2 * half ? 2 * half - waiting : 0;
	u32 slot = RING_BYTES * OWNERS + (owner & OWNER_MASK);
	if (waiting <= ring_wakeup_bytes || !owner)
		return 1;
	u32 tick = bpf_ringbuf_query(&ring, BPF_RB_CONS_POS) / half;
	if (!svc_may_have(slot, left, half, tick, FAIR_RING))
		return 0;
	has(slot, bytes);
	return 1;
}

/* Puts an owner's record into the ring. Anything but 0: there is no room for it. While much waits the consumer is woken
 * again and again, for a wake-up is lost with a record that finds no room. */
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
	return bpf_ringbuf_output(&ring, record, bytes, flags);
}
