/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The bytes of a call, in parts. Loops are unrolled with their state in memory, so the verifier of 4.18 sees equal
 * states at each iteration and checks the rest once. */
#pragma once
#include "syscalls-record.h"

/* The next buffer with bytes. False: there is none, or it is not readable. */
static __always_inline bool next_buffer(struct work *w)
{
	u64 pair[2];
	if (!w->vectors)
		return false;
	if (read_user(pair, sizeof(pair), (void *)w->vector)) {
		count(svc_counter_fault);
		w->vectors = 0;
		return false;
	}
	w->vector += sizeof(pair);
	w->vectors--;
	w->base = pair[0];
	w->size = pair[1];
	return true;
}

static __always_inline bool gather_one(struct work *w)
{
	forget();
	if (w->taken >= w->want)
		return false;
	if (!w->size)
		return next_buffer(w);
	u64 n = w->want - w->taken;
	if (n > w->size)
		n = w->size;
	forget();
	if (read_user(&w->data[bounded(w->taken, PART_MASK)], bounded(n, PART_MASK), (void *)w->base)) {
		count(svc_counter_fault);
		w->size = 0;
		w->vectors = 0;
		return false;
	}
	w->base += n;
	w->size -= n;
	w->taken += n;
	return true;
}

/* Continues to copy to w->data, from at most eight buffers. True: there may be more to copy. */
static __always_inline bool gather(struct work *w)
{
#pragma unroll
	for (int i = 0; i < 16; i++) /* two steps each */
		if (!gather_one(w))
			break;
	forget();
	return w->taken < w->want && (w->size || w->vectors);
}

static __always_inline void rewind_to_first(struct work *w)
{
	w->vector = w->first[0];
	w->vectors = w->first[1];
	w->base = w->first[2];
	w->size = w->first[3];
}

static __always_inline void put_part(void *ctx, struct work *w, u64 captured, u64 length)
{
	struct svc_segment *segment = &w->segment;
	segment->captured = captured;
	segment->length = length;
	put(ctx, segment, sizeof(*segment) + bounded(captured, PART_MASK));
	segment->position += length;
	if (segment->sequence)
		segment->sequence += length;
	w->left -= length;
}
