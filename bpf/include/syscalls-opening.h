/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Recognises the protocol of a connection by the first bytes of a call; in stages, as a program may have at most
 * 4,096 instructions. */
#pragma once
#include "syscalls-parts.h"

#define BIT(name) (1U << svc_protocol_##name)

/* HTTP/1 (RFC 9112, 3 and 4): a method in capitals, a space and a target in one of its forms; or a status line. */
static __always_inline int opens_http1(const struct head *h)
{
	const u8 *b = h->bytes;
	if (b[0] == 'H' && b[1] == 'T' && b[2] == 'T' && b[3] == 'P' && b[4] == '/' && b[5] == '1' && b[6] == '.')
		return OPENS_SERVER;
	u8 target = 0;
#pragma unroll
	for (int i = 0; i < 24; i++) { /* no method is longer */
		if (target)
			continue;
		if (b[i] == ' ' && i > 2)
			target = b[i + 1] ? b[i + 1] : 1;
		else if ((b[i] < 'A' || b[i] > 'Z') && b[i] != '-' && b[i] != '_')
			return OPENS_NOT;
	}
	if (target == '/' || target == '*' || (target | 0x20) == 'h')
		return OPENS_CLIENT;
	return target > ' ' && b[0] == 'C' && b[1] == 'O' && b[7] == ' ' ? OPENS_CLIENT : OPENS_NOT; /* CONNECT, 3.2.3 */
}

/* First bytes of a possible request line: clients may send it byte by byte. */
static __always_inline int may_open_http1(const struct head *h)
{
	if (h->joined || h->have > 4)
		return OPENS_NOT;
#pragma unroll
	for (int i = 0; i < 4; i++)
		if (h->bytes[i] && (h->bytes[i] < 'A' || h->bytes[i] > 'Z') && (h->bytes[i] != ' ' || i < 3))
			return OPENS_NOT;
	return h->bytes[0] ? OPENS_CLIENT : OPENS_NOT;
}

/* Fills w->head with the first bytes of the call, which are in w->data. Resets the cursor to the first of them. */
static __always_inline void look(struct work *w, const struct svc_syscall_connection *c)
{
	struct head *h = &w->head;
	__builtin_memcpy(h->bytes, w->data, HEAD_BYTES);
	h->have = w->taken;
	h->length = w->left;
	h->local_port = c ? c->local_port : 0;
	h->peer_port = c ? c->peer_port : 0;
	h->received = w->direction == RECEIVED;
	h->joined = !c || c->joined || c->misses;
	rewind_to_first(w);
}

/* A connection without a known accept, connect or socket at the start. */
static __always_inline struct svc_syscall_connection *make_joined(struct svc_syscall_key key)
{
	struct svc_syscall_connection made = { .joined = 1 };
	made.id = number_of(key);
	bpf_map_update_elem(&connections, &key, &made, BPF_ANY);
	bpf_map_delete_elem(&others, &key);
	return bpf_map_lookup_elem(&connections, &key);
}

/* Role of this side, by the sender of the call's first bytes. 0: unknown, or in conflict with the known role. */
static __always_inline u8 role_by(const struct work *w, const struct svc_syscall_connection *c, u8 opens)
{
	u8 known = c ? c->role : svc_syscall_role_unknown;
	bool of_client = opens == OPENS_CLIENT;
	u8 role = of_client == (w->direction == SENT) ? svc_syscall_role_client : svc_syscall_role_server;
	if (opens == OPENS_EITHER)
		role = known;
	return known && known != role ? svc_syscall_role_unknown : role;
}

/* The protocol was recognised. Returns whether the connection is followed. */
static __always_inline bool follows(struct work *w, struct svc_syscall_connection *c, u8 role, u8 protocol)
{
	c->role = role;
	c->protocol = protocol;
	/* The semantic conventions define spans of databases, brokers and resolvers only for clients. */
	if (role == svc_syscall_role_server && protocol != svc_protocol_http1 && protocol != svc_protocol_http2) {
		c->state = svc_syscall_state_off;
		return false;
	}
	c->state = svc_syscall_state_followed;
	if (c->misses)
		c->joined = 1;
	c->from[0] = c->position[0];
	c->from[1] = c->position[1];
	bpf_map_update_elem(&owners, &w->key.pid, &w->key.fd, BPF_ANY);
	count(svc_counter_streams);
	if (protocol == svc_protocol_http1)
		count(svc_counter_connections);
	return true;
}
