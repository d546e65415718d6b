/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Finds the socket of a TLS library's session by the hooks of the sockets. */
#pragma once
#include "stream.h"

/* A socket as seen in one of its calls. */
struct tls_sight {
	struct identity id; /* connection 0: none */
	u32 length;         /* of the TLS record that was sent or received */
	u8 type;            /* of the record */
	u8 role;            /* as in struct conn */
	u8 blocking;
	u8 pad;
};
#define SEEN(sight) (sight)->id.connection

#include "tls-call.h"

/* Whether anything is attached. Otherwise a socket call only checks this. */
u32 tls_attached __attribute__((aligned(64)));

struct tls_session {
	struct tls_binding binding;
	struct stream_state follow;
	u16 port;      /* of the server, once the protocol is known */
	u8 foreign;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tls_thread);
} tls_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct tls_key);
	__type(value, struct tls_session);
} tls_sessions SEC(".maps");
static const struct tls_session tls_session_zero;

struct tls_socket {
	struct tls_key key;
	u32 streamed; /* user space knows it */
	u32 pad;
};

/* Sockets of sessions, by cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct tls_socket);
} tls_sockets SEC(".maps");

/* Processes whose plaintext must not be read, by thread group id. Written by the agent. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u8);
} tls_denied SEC(".maps");

struct tls_slot {
	u32 busy;
	u32 pad;
	struct work work;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TLS_SLOTS);
	__type(key, u32);
	__type(value, struct tls_slot);
} tls_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TLS_SLOTS);
	__type(key, u32);
	__type(value, struct part);
} tls_parts SEC(".maps");

/* Registers of a thread in a system call. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pt_regs___stack {
	unsigned long sp;
};
#pragma clang attribute pop

/* A scratch slot that is free on this CPU: a program at a user function may be preempted by another. Returns its
 * number, or TLS_SLOTS for none. */
static __always_inline u32 take_slot(void)
{
	for (u32 i = 0; i < TLS_SLOTS; i++) {
		u32 number = i;
		struct tls_slot *slot = bpf_map_lookup_elem(&tls_slots, &number);
		if (slot && !__sync_lock_test_and_set(&slot->busy, 1))
			return i;
	}
	return TLS_SLOTS;
}

static __always_inline void give_slot(struct tls_slot *slot)
{
	__sync_lock_test_and_set(&slot->busy, 0);
}

/* Reports the end of a connection. */
static __noinline int tell_end(u64 connection, u16 error)
{
	u32 number = take_slot();
	struct tls_slot *slot = bpf_map_lookup_elem(&tls_slots, &number);
	struct part *p = bpf_map_lookup_elem(&tls_parts, &number);
	if (!slot || !p) {
		count(svc_counter_segments_lost);
		return 0;
	}
	struct identity id = { .connection = connection };
	struct stream_state state = {};
	follow_end(&state, &id, p, bpf_ktime_get_ns(), error);
	give_slot(slot);
	return 0;
}

static __always_inline bool same_socket(const struct tls_session *s, u64 cookie)
{
	return s->binding.known && (s->binding.socket.id.connection & ~DEEP_INSIDE) == (cookie | INSIDE);
}

/* Binds the socket to the session. */
static __noinline int bind(struct tls_key *key, struct tls_session *s)
{
	u64 cookie = s->binding.socket.id.connection & COOKIE;
	struct tls_socket socket = { .key = *key };
	struct tls_socket *bound = bpf_map_lookup_elem(&tls_sockets, &cookie);
	if (bound && bound->key.session != key->session && bpf_map_lookup_elem(&tls_sessions, &bound->key))
		s->binding.socket.id.connection |= DEEP_INSIDE;
	else
		bpf_map_update_elem(&tls_sockets, &cookie, &socket, BPF_ANY);
	s->binding.known = 1;
	return 0;
}

/* Binds a socket that the library called for the session, overriding earlier assumptions. */
static __noinline int adopt(struct tls_key *key, struct tls_session *s, struct tls_sight *sight)
{
	struct tls_binding *binding = &s->binding;
	if (binding->begun || binding->known) {
		if (s->follow.protocol)
			tell_end(binding->socket.id.connection, 0);
		*s = tls_session_zero;
	}
	binding->socket = *sight;
	binding->handshake |= sight->type == RECORD_HANDSHAKE;
	return bind(key, s);
}

/* Ciphertext contains no requests; data from before the start of TLS ends here. */
static __always_inline void leave_alone(struct conn *c, u64 cookie)
{
	if (!c)
		return;
	if (c->mode == STREAM)
		tell_end(cookie, 0);
	if (c->mode == STREAM || c->mode == UNKNOWN)
		c->mode = OFF;
}

/* TLS record at the start of the socket call's bytes: its type, and its length from bit 8 on. 0: none. */
static __noinline u32 record_at(u32 bytes)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 vector[2] = { SYSCALL_ARG1(regs), bytes };
	u64 iov = 0;
	switch (SYSCALL_NR(regs)) {
	case NR_read:
	case NR_write:
	case NR_sendto:
	case NR_recvfrom:
		break;
	case NR_sendmsg:
	case NR_recvmsg: /* struct user_msghdr: msg_iov at 16 */
		if (bpf_probe_read_user(&iov, sizeof(iov), (void *)(vector[0] + 16)))
			return 0;
		break;
	case NR_readv:
	case NR_writev:
	case NR_preadv2:
	case NR_pwritev2:
		iov = vector[0];
		break;
	default:
		return 0;
	}
	if (iov && bpf_probe_read_user(vector, sizeof(vector), (void *)iov))
		return 0;
	u8 head[8] = {};
	if (bytes < 5 || vector[1] < 5 || bpf_probe_read_user(head, 5, (void *)vector[0]))
		return 0;
	return record_of(head);
}

static __noinline int fill_sight(struct tls_sight *sight, struct sock *sk, struct conn *c, u32 record)
{
	identify(&sight->id, sk);
	sight->id.connection |= INSIDE;
	sight->type = record;
	sight->length = record >> 8;
	sight->role = c ? c->role : 0;
	sight->blocking = is_blocking(sk);
	return 0;
}

/* A socket call inside a library call. */
static __noinline int on_nested(struct sock *sk, struct conn *c, struct tls_thread *t, u32 bytes)
{
	struct tls_key key = { .session = t->session, .tgid = bpf_get_current_pid_tgid() >> 32 };
	struct tls_session *s = bpf_map_lookup_elem(&tls_sessions, &key);
	u64 cookie = bpf_get_socket_cookie(sk);
	if (!s)
		return 0;
	if (!same_socket(s, cookie)) {
		/* The library may call other sockets: to check a certificate's revocation, or in a callback that
		 * logs. */
		u32 record = record_at(bytes);
		if (!record)
			return 0;
		struct tls_sight sight = {};
		fill_sight(&sight, sk, c, record);
		adopt(&key, s, &sight);
	}
	t->nested = 1;
	s->binding.confirmed = 2;
	leave_alone(c, cookie);
	return 0;
}

/* A socket call of a thread that uses TLS, outside the library. */
static __noinline int on_carried(struct sock *sk, struct conn *c, struct tls_thread *t, u32 direction, u32 bytes)
{
	u64 wrote = t->wrote;
	u32 wrote_bytes = t->wrote_bytes;
	struct tls_key key = { .tgid = bpf_get_current_pid_tgid() >> 32 };
	if (direction == RX) {
		t->received.id.connection = 0;
	} else {
		t->wrote = 0;
		t->wrote_bytes = 0;
	}
	if (c && (c->mode == SERVER || c->mode == CLIENT))
		return 0;
	u64 cookie = bpf_get_socket_cookie(sk);
	struct tls_socket *bound = bpf_map_lookup_elem(&tls_sockets, &cookie);
	if (bound) {
		leave_alone(c, cookie);
		struct tls_session *s = bpf_map_lookup_elem(&tls_sessions, &bound->key);
		if (s && s->binding.confirmed >= 2 && same_socket(s, cookie))
			return 0;
	}
	if (direction == TX && wrote <= AMBIGUOUS)
		return 0;
	u32 record = record_at(bytes);
	if (!record)
		return 0;
	if (direction == RX)
		return fill_sight(&t->received, sk, c, record);
	key.session = wrote;
	struct tls_session *s = bpf_map_lookup_elem(&tls_sessions, &key);
	if (!s)
		return 0;
	struct tls_sight sight = {};
	fill_sight(&sight, sk, c, record);
	if (observe(&s->binding, &sight, wrote_bytes))
		bind(&key, s);
	return 0;
}

/* Must be called for each call that moved bytes over a TCP socket, before any other return: `c` if there is one. */
static __always_inline void tls_nested(struct sock *sk, struct conn *c, struct task_struct *task, int direction, int bytes)
{
	if (!threads_tls[task->pid & (THREADS - 1)] || !tls_attached || bytes <= 0)
		return;
	struct tls_thread *t = bpf_task_storage_get(&tls_threads, task, 0, 0);
	if (!t)
		return;
	struct pt_regs___stack *regs = (void *)bpf_task_pt_regs(task);
	if (t->session && regs->sp > t->frame) /* the call was left without a return: longjmp, an exception */
		t->session = 0;
	if (t->session)
		on_nested(sk, c, t, bytes);
	else
		on_carried(sk, c, t, direction, bytes);
}

/* Must be called at the end of a socket. */
static __always_inline void tls_closed(struct sock *sk)
{
	if (!tls_attached)
		return;
	u64 cookie = bpf_get_socket_cookie(sk);
	struct tls_socket *socket = bpf_map_lookup_elem(&tls_sockets, &cookie);
	if (!socket)
		return;
	if (socket->streamed)
		tell_end(cookie | INSIDE, sk->sk_err);
	bpf_map_delete_elem(&tls_sockets, &cookie);
}
