/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Wakes the agent for the first record after a quiet time, in which it rarely looks at the ring. A ring of its own:
 * a wake-up of the ring itself is for the thread that makes room in it. */
#pragma once
#include "kernel.h"

/* Less than the time after which the agent takes a host as quiet (drain-turns.ts). */
#define BELL_NS 2000000000ULL

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} bell SEC(".maps");

u64 rung_at; /* CPUs in a race ring twice */

/* Call after a record was written to the ring. */
static __always_inline void ring_bell(u64 now)
{
	if (now - rung_at < BELL_NS)
		return;
	rung_at = now;
	bpf_ringbuf_output(&bell, &now, sizeof(now), BPF_RB_FORCE_WAKEUP);
}
