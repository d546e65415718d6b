/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* End of a system call that moved bytes. */
#pragma once
#include "syscalls-call.h"
#include "syscalls-programs.h"

/* The call that this thread returns from; can be read once. */
static __always_inline bool recall(struct svc_syscall_call *call, u64 id, s32 nr)
{
	struct svc_syscall_call *slot = bpf_map_lookup_elem(&calls, &id);
	if (!slot || !slot->kind || slot->nr != nr)
		return false;
	*call = *slot;
	slot->kind = svc_syscall_call_kind_none;
	return true;
}

/* Reads the peer's end from the caller's struct sockaddr. Returns its family; 0: not readable. */
static __always_inline u32 read_peer(struct svc_syscall_connection *c, u64 name)
{
	u8 address[28]; /* struct sockaddr_in6; in sockaddr_in the port is at the same offset, the address at 4 */
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

/* Name lookups: datagrams to port 53 are a connection with a known protocol from the start. */
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

/* Next program for the bytes of `w`. */
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
	if (!begin(w, c))
		return;
	w->want = w->room < PART ? w->room : PART;
	bpf_tail_call(ctx, &stages, STAGE_PART);
}

/* Handles a call whose bytes are not TLS, as far as that is checked, and returns whether its bytes must be read.
 * `known`: connection of its descriptor, if any. */
static __always_inline bool has_bytes(struct exit *ctx, const struct svc_syscall_call *call, struct svc_syscall_key key,
				      struct svc_syscall_connection **known)
{
	s64 result = ctx->result;
	struct svc_syscall_connection *c = *known;
	if (call->for_tls || (c && (c->state == svc_syscall_state_off || c->state == svc_syscall_state_listening)))
		return false;
	if (result <= 0) {
		if (!c || c->state != svc_syscall_state_followed)
			return false;
		bool failed = result == -ECONNRESET || result == -EPIPE || result == -ETIMEDOUT;
		bool over = !result && call->direction == RECEIVED && c->role == svc_syscall_role_client && !c->datagrams &&
			    !c->inside && (call->count || call->kind != svc_syscall_call_kind_buffer);
		if (failed)
			c->error = -result;
		if (failed || over) /* the server sends no more */
			put_closed(ctx, c);
		return false;
	}
	if (c && c->inside) /* it is read before it is encrypted */
		return false;
	if (call->kind == svc_syscall_call_kind_unseen && (!c || c->state == svc_syscall_state_unknown)) {
		if (c)
			pass_over(c, call->direction, result);
		return false;
	}
	if (!c && call->name && call->direction == SENT && make_resolver(key, call->name, false))
		*known = bpf_map_lookup_elem(&connections, &key);
	return true;
}

static __always_inline void read_bytes(struct exit *ctx, struct work *w, const struct svc_syscall_call *call,
				       struct svc_syscall_key key, struct svc_syscall_connection *c)
{
	w->key = key;
	w->direction = call->direction;
	w->is_socket = call->is_socket;
	w->time = time_of(call->time);
	aim(w, call, ctx->result);
	dispatch(ctx, w, c);
}

static __always_inline void on_moved(struct exit *ctx, const struct svc_syscall_call *call, u64 id)
{
	struct svc_syscall_key key = key_of(id, call->fd);
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &key);
	bool may_be_tls = ctx->result > 0 && uses_tls(id);
	if (!may_be_tls && !has_bytes(ctx, call, key, &c))
		return;
	struct work *w = work_of();
	if (!w) {
		if (c && !c->inside)
			pass_call(c, call, ctx->result);
	} else if (may_be_tls) {
		w->call = *call;
		bpf_tail_call(ctx, &stages, STAGE_TLS); /* which continues with STAGE_REST */
		bpf_tail_call(ctx, &stages, STAGE_REST);
	} else {
		read_bytes(ctx, w, call, key, c);
	}
}

static __always_inline int on_exit(struct exit *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct svc_syscall_call call;
	if (!recall(&call, id, ctx->nr))
		return 0;
	on_moved(ctx, &call, id);
	return ended(0);
}

#define ON_EXIT_TWICE(syscall, body)                                                                                  \
	SEC("tracepoint/syscalls/sys_exit_" #syscall)                                                                 \
	int svc_exit_##syscall(struct exit *ctx)                                                                      \
	{                                                                                                             \
		return body(ctx);                                                                                     \
	}                                                                                                             \
	SEC("tracepoint/syscalls/sys_exit_" #syscall)                                                                 \
	int svc_again_exit_##syscall(struct exit *ctx)                                                                \
	{                                                                                                             \
		return body(ctx);                                                                                     \
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
