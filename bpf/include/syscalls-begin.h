/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Start of a connection: listen, accept, connect, and the ends from the state of its socket. */
#pragma once
#include "syscalls-exit.h"

static __always_inline int on_accept(struct exit *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct svc_syscall_call call;
	if (!recall(&call, id, ctx->nr) || ctx->result < 0 || ctx->result >= FDS)
		return 0;
	struct svc_syscall_key key = key_of(id, ctx->result), listener = key_of(id, call.fd);
	struct svc_syscall_connection made = { .role = svc_syscall_role_server };
	made.id = number_of(key);
	made.blocking = !(call.count & O_NONBLOCK);
	u32 family = read_peer(&made, call.address);
	struct svc_syscall_connection *from = bpf_map_lookup_elem(&connections, &listener);
	if (from && from->state == svc_syscall_state_listening) {
		made.local_port = from->local_port;
		__builtin_memcpy(made.local_address, from->local_address, 16);
	} else if (from) { /* not a TCP socket */
		made.state = svc_syscall_state_off;
	}
	if (family && family != AF_INET && family != AF_INET6)
		made.state = svc_syscall_state_off;
	made.known = made.local_port && made.peer_port;
	bpf_map_update_elem(&connections, &key, &made, BPF_ANY);
	return 0;
}

ON_EXIT_TWICE(accept, on_accept)
ON_EXIT_TWICE(accept4, on_accept)

static __always_inline int on_exit_connect(struct exit *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct svc_syscall_call call;
	if (!recall(&call, id, ctx->nr))
		return 0;
	struct svc_syscall_key key = key_of(id, call.fd);
	if (call.told) {
		if (!ctx->result)
			set_blocking(id, call.fd, true);
		else if (ctx->result != -EINPROGRESS && ctx->result != -EINTR)
			bpf_map_delete_elem(&connections, &key);
		return 0;
	}
	if (!ctx->result) /* datagrams; glibc connects and disconnects such a socket to compare addresses */
		make_resolver(key, call.address, true);
	return 0;
}

ON_EXIT_TWICE(connect, on_exit_connect)

SEC("tracepoint/syscalls/sys_exit_listen")
int svc_exit_listen(struct exit *ctx)
{
	struct svc_syscall_call call;
	recall(&call, bpf_get_current_pid_tgid(), ctx->nr);
	return 0;
}

/* Both addresses; IPv4 as ::ffff:a.b.c.d. They follow the protocol number and the short forms of IPv4. */
static __always_inline bool read_ends(struct state_change *ctx, u8 ends[32])
{
	struct svc_syscall_settings *s = settings_of();
	if (!s)
		return false;
	if (s->wide)
		return !read_kernel(ends, 32, (void *)ctx + 40);
	return !read_kernel(ends, 32, (void *)ctx + 39);
}

/* A descriptor's own call changes the state of its socket: it is a TCP socket with these ends. */
static __always_inline void on_own_state(struct state_change *ctx, struct svc_syscall_call *call, u64 id,
					 const u8 ends[32])
{
	struct svc_syscall_key key = key_of(id, call->fd);
	struct svc_syscall_connection made = {};
	made.id = number_of(key);
	made.local_port = ctx->local_port;
	__builtin_memcpy(made.local_address, ends, 16);
	if (call->kind == svc_syscall_call_kind_listen) {
		made.state = svc_syscall_state_listening;
		made.known = 1;
	} else {
		made.role = svc_syscall_role_client;
		made.peer_port = ctx->peer_port;
		__builtin_memcpy(made.peer_address, ends + 16, 16);
		struct owner owner = { .key = key, .id = made.id };
		u64 sock = ctx->sock;
		bpf_map_update_elem(&connecting, &sock, &owner, BPF_ANY);
		call->told = 1;
	}
	bpf_map_update_elem(&connections, &key, &made, BPF_ANY);
	bpf_map_delete_elem(&others, &key);
}

/* A client's socket is connected and has its port, or the connect failed. */
static __always_inline void on_connected(struct state_change *ctx, bool failed, const u8 ends[32])
{
	u64 sock = ctx->sock;
	struct owner *owner = bpf_map_lookup_elem(&connecting, &sock);
	if (!owner)
		return;
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &owner->key);
	if (c && c->id == owner->id && !failed) {
		c->local_port = ctx->local_port;
		__builtin_memcpy(c->local_address, ends, 16);
		c->known = 1;
	}
	bpf_map_delete_elem(&connecting, &sock);
}

/* A thread shuts a socket, during the call or at its end. Its FIN or RST is sent after this, so the other side,
 * which the same thread may shut too, comes later. */
static __always_inline void on_shut(struct state_change *ctx, u64 id, const u8 ends[32])
{
	struct closing *closing = bpf_map_lookup_elem(&closings, &id);
	u64 now = bpf_ktime_get_ns();
	if (!closing || !closing->id || now - closing->time > CLOSE_NS)
		return;
	if (closing->local_port && closing->local_port != ctx->local_port)
		return;
	struct svc_syscall_address record = {
		.kind = svc_syscall_kind_address,
		.pid = id >> 32,
		.connection = closing->id,
		.time_ns = now,
		.local_port = ctx->local_port,
		.peer_port = ctx->peer_port,
	};
	closing->id = 0;
	__builtin_memcpy(record.local_address, ends, 16);
	__builtin_memcpy(record.peer_address, ends + 16, 16);
	put(ctx, &record, sizeof(record));
}

SEC("tracepoint/sock/inet_sock_set_state")
int svc_state(struct state_change *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	u8 ends[32];
	if (ctx->protocol != IPPROTO_TCP || is_self(id))
		return 0;
	s32 from = ctx->from, to = ctx->to;
	bool shut = to == TCP_FIN_WAIT1 || to == TCP_LAST_ACK ||
		    (to == TCP_CLOSE && (from == TCP_ESTABLISHED || from == TCP_CLOSE_WAIT));
	if (from != TCP_SYN_SENT && to != TCP_SYN_SENT && to != TCP_LISTEN && !shut)
		return 0;
	if (!read_ends(ctx, ends))
		return 0;
	if (from == TCP_SYN_SENT) {
		on_connected(ctx, to != TCP_ESTABLISHED, ends);
	} else if (to == TCP_SYN_SENT || to == TCP_LISTEN) {
		struct svc_syscall_call *call = bpf_map_lookup_elem(&calls, &id);
		if (call && call->kind == (to == TCP_LISTEN ? svc_syscall_call_kind_listen : svc_syscall_call_kind_connect))
			on_own_state(ctx, call, id, ends);
	} else {
		on_shut(ctx, id, ends);
	}
	return 0;
}

/* A thread started for a request works on it. */
SEC("tracepoint/task/task_newtask")
int svc_thread(struct new_task *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	if (!(ctx->flags & CLONE_THREAD) || is_self(id))
		return 0;
	struct svc_thread record = {
		.kind = svc_kind_thread,
		.pid = id >> 32,
		.parent = id,
		.tid = ctx->pid,
	};
	put(ctx, &record, sizeof(record));
	return 0;
}
