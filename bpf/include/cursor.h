/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A cursor over the user buffers of one call. */
#pragma once
#include "maps.h"

/* Moves to the next segment of the caller's buffers. False: there is none. */
static __always_inline bool next_segment(struct work *w)
{
	u64 vector[2];
	if (!w->iov_left)
		return false;
	if (bpf_probe_read_user(vector, sizeof(vector), (void *)w->iov)) {
		w->failed = svc_counter_fault;
		return false;
	}
	w->iov += sizeof(vector);
	w->iov_left--;
	w->base = vector[0];
	w->segment = vector[1] < w->left ? vector[1] : w->left;
	return true;
}

/* Reads up to `most` (at most WINDOW) bytes of the current segment to win[CARRY]. */
static __always_inline u32 read_window(struct work *w, u32 most)
{
	u32 n = w->segment < most ? w->segment : most;
	if (n > WINDOW)
		n = WINDOW;
	if (!n || bpf_probe_read_user(&w->win[CARRY], n, (void *)w->base)) {
		w->failed = svc_counter_fault;
		return 0;
	}
	return n;
}

static __always_inline void consume(struct work *w, u64 n)
{
	if (n > w->segment)
		n = w->segment;
	w->base += n;
	w->segment -= n;
	w->left -= n;
}

/* Consumes up to n bytes without reading them. */
static __always_inline u64 skip(struct work *w, u64 n)
{
	if (n >= w->left) {
		n = w->left;
		w->left = 0;
		return n;
	}
	if (n > w->segment)
		n = w->segment;
	consume(w, n);
	return n;
}
