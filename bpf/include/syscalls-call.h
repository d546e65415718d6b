/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The bytes of a call: their location, and how many are captured. */
#pragma once
#include "syscalls-context.h"
#include "syscalls-record.h"

/* Size of struct mmsghdr, and offset of its msg_len. */
enum { MESSAGE = 64, MESSAGE_LENGTH = 56 };

/* Sets the cursor to a call's first byte. */
static __always_inline void aim(struct work *w, const struct svc_syscall_call *call, s64 result)
{
	u64 pair[2];
	u64 message = 0;
	w->message = 0;
	w->vector = 0;
	w->vectors = 0;
	w->base = 0;
	w->size = 0;
	w->left = result;
	switch (call->kind) {
	case svc_syscall_call_kind_buffer:
		w->base = call->address;
		w->size = result;
		break;
	case svc_syscall_call_kind_vector:
		w->vector = call->address;
		w->vectors = call->count;
		break;
	case svc_syscall_call_kind_messages: {
		u32 length = 0;
		message = call->address;
		read_user(&length, sizeof(length), (void *)message + MESSAGE_LENGTH);
		w->left = length;
		if (result > 1)
			w->message = message + MESSAGE;
		break;
	}
	case svc_syscall_call_kind_message:
		message = call->address;
		break;
	}
	if (message) { /* struct msghdr: msg_iov at 16, msg_iovlen at 24 */
		if (read_user(pair, sizeof(pair), (void *)message + 16)) {
			count(svc_counter_fault);
		} else {
			w->vector = pair[0];
			w->vectors = pair[1];
		}
	}
	w->first[0] = w->vector;
	w->first[1] = w->vectors;
	w->first[2] = w->base;
	w->first[3] = w->size;
}

/* Time of a call: its start if it sent bytes, so that causes come first, otherwise its end. */
static __always_inline u64 time_of(u64 began)
{
	u64 now = bpf_ktime_get_ns();
	return began && now - began < ORDER_NS ? began : now;
}

/* Protocols that usually respond before the next request; for others, each call is captured like a turn. */
static __always_inline bool takes_turns(u8 protocol)
{
	return IS_COUNTED(protocol) || protocol == svc_protocol_http1;
}

/* Skipped bytes: the bytes after them no longer directly follow. On a followed connection, these had no scratch. */
static __always_inline void pass_over(struct svc_syscall_connection *c, u32 direction, u64 bytes)
{
	direction &= 1;
	c->position[direction] += bytes;
	if (c->state == svc_syscall_state_unknown)
		c->misses += c->misses < 255;
	else
		c->missed |= 1U << direction;
}

/* The same for all bytes of a call: the result of one with several messages is their number. */
static __always_inline void pass_call(struct svc_syscall_connection *c, const struct svc_syscall_call *call, u64 result)
{
	u64 bytes = result;
	if (call->kind == svc_syscall_call_kind_messages) {
		bytes = 0;
#pragma unroll
		for (u32 i = 0; i < MESSAGES; i++) {
			u32 length = 0;
			if (i >= result)
				break;
			read_user(&length, sizeof(length), (void *)call->address + i * MESSAGE + MESSAGE_LENGTH);
			bytes += length;
		}
		if (result > MESSAGES) /* the byte counts of further messages are unknown */
			c->joined = 1;
	}
	pass_over(c, call->direction, bytes);
}

/* The call's bytes are the next of a followed connection. False: they must not be captured. */
static __always_inline bool begin(struct work *w, struct svc_syscall_connection *c)
{
	u32 direction = w->direction & 1;
	if (c->direction != direction || !takes_turns(c->protocol)) {
		c->direction = direction;
		c->turn = 0;
	}
	describe(&w->segment, c, direction, w->time);
	c->position[direction] += w->left;
	/* Bytes on an excluded port are reported as a gap when it is observed again. */
	if (excluded(c->role == svc_syscall_role_server ? c->local_port : c->peer_port))
		return false;
	if (c->missed & 1U << direction) {
		w->segment.flags |= SVC_SEGMENT_MISSED;
		c->missed &= ~(1U << direction);
	}
	count(svc_counter_segments);
	u64 room = TURN_HTTP2; /* its headers depend on all previous ones */
	if (c->protocol != svc_protocol_http2)
		room = c->turn < TURN ? TURN - c->turn : 0;
	w->room = w->left < room ? w->left : room;
	c->turn += w->room;
	return true;
}
