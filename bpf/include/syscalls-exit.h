/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The end of a system call that moved bytes. */
#pragma once
#include "syscalls-context.h"
#include "syscalls-record.h"

/* The call that this thread comes back from, to be used once. */
static __always_inline bool recall(struct svc_syscall_call *call, u64 id, s32 nr)
{
	struct svc_syscall_call *slot = bpf_map_lookup_elem(&calls, &id);
	if (!slot || !slot->kind || slot->nr != nr)
		return false;
	*call = *slot;
	slot->kind = svc_syscall_call_kind_none;
	return true;
}

/* The cursor at a call's first byte. */
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
	case svc_syscall_call_kind_messages: { /* struct mmsghdr: 64 bytes, msg_len at 56 */
		u32 length = 0;
		message = call->address;
		read_user(&length, sizeof(length), (void *)message + 56);
		w->left = length;
		if (result > 1)
			w->message = message + 64;
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

/* Fills in the other side's end from a struct sockaddr of the caller. Its family; 0: it cannot be read. */
static __always_inline u32 read_peer(struct svc_syscall_connection *c, u64 name)
{
	u8 address[28]; /* struct sockaddr_in6; the port of sockaddr_in stands in the same place, its address at 4 */
	__builtin_memset(address, 0, sizeof(address));
	if (!name || read_user(address, 16, (void *)name))
		return 0;
	u32 family = address[0] | address[1] << 8;
	if (family == AF_INET6) {
		if (read_user(address, sizeof(address), (void *)name))
			return 0;
		__builtin_memcpy(c->peer_address, address + 8, 16);
	} else if (family == AF_INET) {
		__builtin_memset(c->peer_address, 0, 10);
		c->peer_address[10] = 0xff;
		c->peer_address[11] = 0xff;
		__builtin_memcpy(c->peer_address + 12, address + 4, 4);
	} else {
		return family;
	}
	c->peer_port = BE16(address + 2);
	return family;
}

/* Lookups of names: datagrams to port 53 are a connection of their own protocol from the first. */
static __always_inline bool make_resolver(struct svc_syscall_key key, u64 name, bool blocking)
{
	struct svc_syscall_settings *s = settings_of();
	if (!s || !(s->enabled & 1U << svc_protocol_dns))
		return false;
	struct svc_syscall_connection c = {};
	if (!read_peer(&c, name) || c.peer_port != DNS_PORT)
		return false;
	c.id = number_of(key);
	c.state = svc_syscall_state_followed;
	c.role = svc_syscall_role_client;
	c.protocol = svc_protocol_dns;
	c.known = 1;
	c.datagrams = 1;
	c.blocking = blocking;
	bpf_map_update_elem(&connections, &key, &c, BPF_ANY);
	bpf_map_update_elem(&owners, &key.pid, &key.fd, BPF_ANY);
	count(svc_counter_streams);
	return true;
}

/* Protocols that answer before they are asked again, as a rule; of others each call is captured as a turn is. */
static __always_inline bool takes_turns(u8 protocol)
{
	return IS_COUNTED(protocol) || protocol == svc_protocol_http1;
}

/* Where the bytes of `w` go next. */
static __always_inline void dispatch(void *ctx, struct work *w, struct svc_syscall_connection *c)
{
	w->taken = 0;
	w->rounds = 0;
	if (!c || c->state == svc_syscall_state_unknown) {
		__builtin_memset(w->data, 0, HEAD_BYTES);
		w->want = w->left < HEAD_BYTES ? w->left : HEAD_BYTES;
		bpf_tail_call(ctx, &stages, STAGE_LOOK);
		return;
	}
	u32 direction = w->direction & 1;
	if (c->direction != direction || !takes_turns(c->protocol)) {
		c->direction = direction;
		c->turn = 0;
	}
	describe(w, c, direction, w->time);
	c->position[direction] += w->left;
	/* What goes by while its port is excluded is told as a gap when it is observed again. */
	if (excluded(c->role == svc_syscall_role_server ? c->local_port : c->peer_port))
		return;
	count(svc_counter_segments);
	u64 room = TURN_HTTP2; /* its headers depend on all that came before */
	if (c->protocol != svc_protocol_http2)
		room = c->turn < TURN ? TURN - c->turn : 0;
	w->room = w->left < room ? w->left : room;
	c->turn += w->room;
	w->want = w->room < PART ? w->room : PART;
	bpf_tail_call(ctx, &stages, STAGE_PART);
}

static __always_inline int on_exit(struct exit *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct svc_syscall_call call;
	if (!recall(&call, id, ctx->nr))
		return 0;
	s64 result = ctx->result;
	struct work *w = work_of();
	if (!w)
		return 0;
	struct svc_syscall_key key = key_of(id, call.fd);
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &key);
	if (c && (c->state == svc_syscall_state_off || c->state == svc_syscall_state_listening))
		return 0;
	if (result <= 0) {
		if (!c || c->state != svc_syscall_state_followed)
			return 0;
		if (result == -ECONNRESET || result == -EPIPE || result == -ETIMEDOUT) {
			c->error = -result;
			put_closed(ctx, w, c);
		} else if (!result && call.direction == RECEIVED && c->role == svc_syscall_role_client && !c->datagrams &&
			   (call.count || call.kind != svc_syscall_call_kind_buffer)) {
			put_closed(ctx, w, c); /* the server says no more */
		}
		return 0;
	}
	w->key = key;
	w->direction = call.direction;
	w->is_socket = call.is_socket;
	w->time = bpf_ktime_get_ns();
	if (call.time && w->time - call.time < ORDER_NS)
		w->time = call.time;
	aim(w, &call, result);
	if (!c && call.name && call.direction == SENT && make_resolver(key, call.name, false))
		c = bpf_map_lookup_elem(&connections, &key);
	if (c && c->state == svc_syscall_state_unknown && call.kind == svc_syscall_call_kind_unseen) {
		c->position[call.direction & 1] += result;
		c->misses += c->misses < 255;
		return 0;
	}
	if (!c && call.kind == svc_syscall_call_kind_unseen)
		return 0;
	dispatch(ctx, w, c);
	return 0;
}

#define ON_EXIT_TWICE(syscall, body)                                                                                  \
	SEC("tracepoint/syscalls/sys_exit_" #syscall)                                                                 \
	int svc_exit_##syscall(struct exit *ctx)                                                                      \
	{                                                                                                             \
		return ended(body(ctx));                                                                              \
	}                                                                                                             \
	SEC("tracepoint/syscalls/sys_exit_" #syscall)                                                                 \
	int svc_again_exit_##syscall(struct exit *ctx)                                                                \
	{                                                                                                             \
		return ended(body(ctx));                                                                              \
	}
#define ON_EXIT(syscall) ON_EXIT_TWICE(syscall, on_exit)

ON_EXIT(read)
ON_EXIT(readv)
ON_EXIT(preadv2)
ON_EXIT(recvfrom)
ON_EXIT(recvmsg)
ON_EXIT(recvmmsg)
ON_EXIT(write)
ON_EXIT(writev)
ON_EXIT(pwritev2)
ON_EXIT(sendto)
ON_EXIT(sendmsg)
ON_EXIT(sendmmsg)
ON_EXIT(sendfile64)
ON_EXIT(splice)
