/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes records of the back end "syscalls" to the ring. */
#pragma once
#ifdef PERF
#include "syscalls-maps.h"
#else
#include "bell.h"
#include "syscalls-share.h"
#endif

enum { ENOSPC = 28 };

/* `size` is bounded by the caller. */
static __always_inline void put(void *ctx, void *record, u64 size)
{
#ifdef PERF
	long failed = bpf_perf_event_output(ctx, &ring, BPF_F_CURRENT_CPU, record, size);
	if (failed == -ENOSPC) /* the buffer reports it, also before Linux 5.1, where this is not an error */
		failed = 0;
#else
	u64 flags = BPF_RB_NO_WAKEUP;
	struct svc_syscall_settings *s = settings_of();
	u64 waiting = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
	if (s && waiting > s->wakeup_bytes) {
		if (!has_room(s->wakeup_bytes, size, waiting)) {
			count(svc_counter_segments_lost);
			return;
		}
		u32 zero = 0;
		u64 now = bpf_ktime_get_ns(), *last = bpf_map_lookup_elem(&woken, &zero);
		if (last && now - *last > 1000000) {
			*last = now;
			flags = BPF_RB_FORCE_WAKEUP;
		}
	}
	long failed = bpf_ringbuf_output(&ring, record, size, flags);
	ring_bell(bpf_ktime_get_ns());
#endif
	if (failed)
		count(svc_counter_segments_lost);
}

/* Fields shared by all segments of a call. */
static __always_inline void describe(struct svc_segment *segment, const struct svc_syscall_connection *c, u8 direction,
				     u64 time)
{
	u64 id = bpf_get_current_pid_tgid();
	segment->kind = svc_kind_segment;
	segment->pid = id >> 32;
	segment->tid = id;
	segment->time_ns = time;
	segment->connection = c->id;
	segment->cgroup = bpf_get_current_cgroup_id();
	segment->position = c->position[direction & 1] - c->from[direction & 1];
	/* Both sides count equally if both saw the first byte. */
	segment->sequence = c->joined || c->datagrams ? 0 : c->position[direction & 1] + 1;
	segment->length = 0;
	segment->captured = 0;
	segment->tail = 0;
	segment->local_port = c->local_port;
	segment->peer_port = c->peer_port;
	__builtin_memcpy(segment->local_address, c->local_address, 16);
	__builtin_memcpy(segment->peer_address, c->peer_address, 16);
	bpf_get_current_comm(segment->comm, sizeof(segment->comm));
	segment->error = c->error;
	segment->flags = (direction == RECEIVED ? SVC_SEGMENT_RECEIVED : 0) | (c->joined ? SVC_SEGMENT_JOINED : 0) |
			 (c->blocking ? SVC_SEGMENT_BLOCKING : 0) | (c->inside ? SVC_SEGMENT_TLS : 0) |
			 (c->role == svc_syscall_role_server ? SVC_SEGMENT_SERVER : 0);
	segment->protocol = c->protocol;
}

/* The connection ended: no bytes follow. Needs no scratch, so it is reported even without any. */
static __always_inline void put_closed(void *ctx, struct svc_syscall_connection *c)
{
	struct svc_segment end = {};
	describe(&end, c, SENT, bpf_ktime_get_ns());
	end.flags |= SVC_SEGMENT_CLOSED;
	end.position = 0;
	end.sequence = 0;
	put(ctx, &end, sizeof(end));
	c->state = svc_syscall_state_off;
}

/* A number that the predecessor on this descriptor did not have: others were assigned since. */
static __always_inline u64 number_of(struct svc_syscall_key key)
{
	u64 turn = 0;
	struct svc_syscall_settings *s = settings_of();
	if (s) {
		__sync_fetch_and_add(&s->turns, 1);
		turn = s->turns;
	}
	return (u64)key.pid << 31 | (u64)key.fd << 11 | (turn & 2047);
}
