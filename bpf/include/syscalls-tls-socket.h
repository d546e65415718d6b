/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Finds the connection of a TLS library's session by the system calls of its thread. From then on plaintext replaces
 * the connection's bytes: `inside` is the session. */
#pragma once
#include "syscalls-call.h"
#include "syscalls-opening.h"

MAP(tls_sessions, BPF_MAP_TYPE_LRU_HASH, 16384, struct tls_key, struct tls_binding);

/* Registers of a thread in a system call. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pt_regs___stack {
	unsigned long sp;
};
#pragma clang attribute pop

/* Whether the thread left its library call without a return (longjmp, an exception), as far as known: before Linux
 * 5.15 only at its next library call. */
static __always_inline bool has_left(const struct tls_thread *t)
{
	unsigned long sp = 0;
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return false;
	struct pt_regs___stack *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	bpf_probe_read_kernel(&sp, sizeof(sp), &regs->sp);
	return sp > t->frame;
}

/* TLS record at the start of the call's bytes, as from record_of(). */
static __always_inline u32 record_at(struct exit *ctx, struct work *w)
{
	u64 buffer[2];
	u8 head[8] = {};
	struct svc_syscall_call call = w->call;
	aim(w, &call, ctx->result);
	buffer[0] = w->base;
	buffer[1] = w->size;
	if (w->vectors && read_user(buffer, sizeof(buffer), (void *)w->vector))
		return 0;
	if (w->left < 5 || buffer[1] < 5 || read_user(head, 5, (void *)buffer[0]))
		return 0;
	return record_of(head);
}

/* Binds the connection to the session. Data from before the start of TLS ends here. */
static __always_inline void bind(void *ctx, u64 session, struct tls_binding *s, struct svc_syscall_key key,
				 struct svc_syscall_connection *c)
{
	if (c->state == svc_syscall_state_followed)
		put_closed(ctx, c);
	if (c->protocol) /* user space knows its number with the previous protocol */
		c->id = number_of(key);
	c->inside = session;
	c->state = svc_syscall_state_unknown;
	c->protocol = svc_protocol_none;
	c->position[0] = 0;
	c->position[1] = 0;
	c->turn = 0;
	c->misses = 0;
	c->missed = 0;
	c->error = 0;
	s->socket.connection = c->id;
	s->socket.fd = key.fd;
	s->known = 1;
}

/* Session of the connection, if it still exists. */
static __always_inline struct tls_binding *inside_of(const struct svc_syscall_connection *c, u32 pid)
{
	struct tls_key key = { .session = c->inside, .tgid = pid };
	return c->inside ? bpf_map_lookup_elem(&tls_sessions, &key) : 0;
}

/* The program carries the ciphertext itself, and its calls agree on this connection. Not taken from another session:
 * that may be TLS inside TLS. */
static __always_inline void bind_carried(void *ctx, u64 session, struct tls_binding *s, struct svc_syscall_key key)
{
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &key);
	if (c && c->id == s->socket.connection && (c->inside == session || !inside_of(c, key.pid)))
		bind(ctx, session, s, key, c);
	else
		s->votes = 0;
}

/* A call on a descriptor inside a library call. True: with ciphertext. */
static __always_inline bool on_nested(struct exit *ctx, struct work *w, struct tls_thread *t, struct svc_syscall_key key)
{
	struct tls_key of = { .session = t->session, .tgid = key.pid };
	struct tls_binding *s = bpf_map_lookup_elem(&tls_sessions, &of);
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &key);
	if (!s)
		return false;
	if (!c || !s->known || c->inside != of.session || c->id != s->socket.connection) {
		/* The library may call other sockets: to check a certificate's revocation, or in a callback that
		 * logs. */
		u32 record = record_at(ctx, w);
		if (!record)
			return false;
		if (c && c->inside && s->off && s->socket.fd == key.fd)
			return true; /* the connection was taken over */
		if (!c)
			c = make_joined(key);
		if (!c)
			return false;
		struct tls_binding *outer = inside_of(c, key.pid);
		if (outer && c->inside != of.session) /* TLS inside TLS, to a proxy: only the inner one is read */
			outer->off = 1;
		if (s->begun || s->known)
			__builtin_memset(s, 0, sizeof(*s));
		s->handshake |= (u8)record == RECORD_HANDSHAKE;
		bind(ctx, of.session, s, key, c);
	}
	t->nested = 1;
	s->confirmed = 2;
	return true;
}

/* A call of a thread that uses TLS, outside the library. True: with ciphertext. */
static __always_inline bool on_carried(struct exit *ctx, struct work *w, struct tls_thread *t, struct svc_syscall_key key)
{
	bool receives = w->call.direction == RECEIVED;
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &key);
	u32 record = 0;
	if (c && c->datagrams)
		return false;
	if (!c && !(record = record_at(ctx, w))) /* it may be a file */
		return false;
	struct tls_key of = { .session = t->wrote, .tgid = key.pid };
	u32 wrote_bytes = t->wrote_bytes;
	if (receives) {
		t->received.connection = 0;
	} else {
		t->wrote = 0;
		t->wrote_bytes = 0;
	}
	if (c && c->inside) {
		struct tls_binding *bound = inside_of(c, key.pid);
		if (bound && bound->confirmed >= 2 && bound->socket.connection == c->id)
			return true;
	} else if (c && c->state == svc_syscall_state_followed) {
		return false;
	}
	if (!receives && of.session <= AMBIGUOUS)
		return false;
	if (c)
		record = record_at(ctx, w);
	else if (record)
		c = make_joined(key);
	if (!c || !record)
		return false;
	struct tls_sight sight = { .connection = c->id, .fd = key.fd, .length = record >> 8, .type = record };
	if (receives) {
		t->received = sight;
		return true;
	}
	struct tls_binding *s = bpf_map_lookup_elem(&tls_sessions, &of);
	if (s && observe(s, &sight, wrote_bytes))
		bind_carried(ctx, of.session, s, key);
	return true;
}
