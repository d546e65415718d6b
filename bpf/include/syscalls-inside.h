/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Plaintext of TLS as the bytes of its connection. */
#pragma once
#include "syscalls-parts.h"
#include "syscalls-tls-socket.h"
#include "tls-share.h"

#define PARTS_MAX (TURN_HTTP2 / PART + 1)

struct tls_slot {
	u32 busy;
	u32 pad;
	struct work work;
};
MAP(tls_slots, BPF_MAP_TYPE_PERCPU_ARRAY, TLS_SLOTS, u32, struct tls_slot);

/* Scratch that is free on this CPU: a program at a user function may be preempted by another. A program that finds a
 * slot in use takes the next, which needs no atomic operation with a result (Linux 5.12). */
static __always_inline struct tls_slot *take_slot(void)
{
#pragma unroll
	for (u32 i = 0; i < TLS_SLOTS; i++) {
		u32 number = i;
		struct tls_slot *slot = bpf_map_lookup_elem(&tls_slots, &number);
		if (!slot)
			return 0;
		__sync_fetch_and_add(&slot->busy, 1);
		if (*(volatile u32 *)&slot->busy == 1)
			return slot;
		__sync_fetch_and_add(&slot->busy, -1);
	}
	count(svc_counter_storage_full);
	return 0;
}

static __always_inline void give_slot(struct tls_slot *slot)
{
	__sync_fetch_and_add(&slot->busy, -1);
}

/* Protocol of a call's first bytes, and from bit 8 on who sends such bytes: in the order of the stages of other
 * calls. */
static __noinline int opening_of(struct head *h, u32 enabled)
{
	u32 others = enabled & ~BIT(http1);
	struct opening found = classify(h, others & BY_PREFACE);
	if (!found.opens && enabled & BIT(http1)) {
		found.opens = opens_http1(h);
		found.protocol = svc_protocol_http1;
	}
	if (!found.opens)
		found = classify(h, others & ~BY_PREFACE);
	if (!found.opens && enabled & BIT(http1)) {
		found.opens = may_open_http1(h);
		found.protocol = svc_protocol_http1;
	}
	return found.protocol | found.opens << 8;
}

/* Recognises the protocol inside TLS. False: unknown, or not followed. */
static __noinline int recognise_inside(struct work *w, struct svc_syscall_connection *c)
{
	struct svc_syscall_settings *settings = settings_of();
	u64 have = w->left < HEAD_BYTES ? w->left : HEAD_BYTES;
	if (!settings)
		return 0;
	__builtin_memset(w->data, 0, HEAD_BYTES);
	if (!w->base || read_user(w->data, bounded(have, PART_MASK), (void *)w->base))
		have = 0;
	w->taken = have;
	look(w, c);
	u32 told = opening_of(&w->head, settings->enabled);
	u8 role = told >> 8 ? role_by(w, c, told >> 8) : svc_syscall_role_unknown;
	if (role)
		return follows(w, c, role, told);
	c->position[w->direction & 1] += w->left;
	if (c->misses++ < (c->joined ? TLS_FOREIGN_JOINED : TLS_FOREIGN_MAX) - 1)
		return 0;
	c->state = svc_syscall_state_off;
	count(svc_counter_not_recognised);
	return 0;
}

/* Reports the plaintext in `w`. */
static __noinline int on_inside(void *ctx, struct work *w, struct svc_syscall_connection *c)
{
	if (c->state == svc_syscall_state_unknown && !recognise_inside(w, c))
		return 0;
	if (!begin(w, c))
		return 0;
	if (!w->base) /* GnuTLS continues with data kept from an interrupted call */
		w->room = 0;
#pragma unroll
	for (int i = 0; i < PARTS_MAX; i++) {
		u64 n = w->room < PART ? w->room : PART;
		if (!n)
			break;
		if (read_user(w->data, bounded(n, PART_MASK), (void *)w->base)) {
			count(svc_counter_fault);
			break;
		}
		w->room -= n;
		w->base += n;
		put_part(ctx, w, n, n);
		forget();
	}
	if (!w->left)
		return 0;
	u64 tail = w->left < TAIL ? w->left : TAIL;
	if (!w->base || read_user(w->data, bounded(tail, PART_MASK), (void *)(w->base + w->left - tail)))
		tail = 0;
	w->segment.tail = tail;
	put_part(ctx, w, tail, w->left);
	return 0;
}

/* No related TCP socket: a pipe, a Unix socket, or a separate thread for the ciphertext. */
static __always_inline void do_without_socket(void *ctx, const struct tls_key *of, struct tls_binding *s)
{
	struct svc_syscall_key key = { .pid = of->tgid };
	key.fd = FDS | ((of->session * 0x9e3779b97f4a7c15ULL) >> 48 & SESSION_MASK);
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &key);
	if (!c)
		c = make_joined(key);
	if (c)
		bind(ctx, of->session, s, key, c);
}

/* Binds the connection from which the thread received data for the session often enough. */
static __noinline int on_found(void *ctx, struct tls_key *of, struct tls_binding *s)
{
	struct svc_syscall_key key = { .pid = of->tgid, .fd = s->socket.fd };
	bind_carried(ctx, of->session, s, key);
	return 0;
}

/* A library call moved `bytes` of plaintext. */
static __noinline int on_plaintext(void *ctx, struct tls_key *of, struct tls_binding *s, struct tls_thread *t, u32 bytes)
{
	if (s->off)
		return 0;
	if (!s->known && ++s->dark < TLS_DARK_MAX)
		return 0;
	if (!s->known)
		do_without_socket(ctx, of, s);
	struct svc_syscall_key key = { .pid = of->tgid, .fd = s->socket.fd };
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &key);
	if (!c || !s->known || c->id != s->socket.connection || c->state == svc_syscall_state_off)
		return 0;
	if (!s->begun) {
		s->begun = 1;
		c->joined = !s->handshake || s->dark;
	}
	u32 direction = direction_of(t, RECEIVED, SENT);
	struct tls_slot *slot = take_slot();
	if (!slot) {
		pass_over(c, direction, bytes);
		return 0;
	}
	struct work *w = &slot->work;
	w->key = key;
	w->direction = direction;
	w->time = time_of(direction == SENT ? t->time : 0);
	w->left = bytes;
	w->base = t->buffer;
	w->first[2] = t->buffer; /* resets look() */
	on_inside(ctx, w, c);
	give_slot(slot);
	return 0;
}

/* The session was freed, and its address may be reused soon. Its connection ends with its descriptor. */
static __noinline int forget_session(void *ctx, struct tls_key *of)
{
	struct tls_binding *s = bpf_map_lookup_elem(&tls_sessions, of);
	if (!s)
		return 0;
	struct svc_syscall_key key = { .pid = of->tgid, .fd = s->socket.fd };
	struct svc_syscall_connection *c = s->known && key.fd >= FDS ? bpf_map_lookup_elem(&connections, &key) : 0;
	if (c && c->id == s->socket.connection) {
		if (c->state == svc_syscall_state_followed)
			put_closed(ctx, c);
		bpf_map_delete_elem(&connections, &key);
	}
	if (!bpf_map_delete_elem(&tls_sessions, of))
		session_ended(ring_owner());
	return 0;
}
