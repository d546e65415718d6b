/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Reads inside TLS: at the functions where programs exchange plaintext with their library, OpenSSL and GnuTLS. Keys
 * are neither needed nor read. */
#pragma once
#include "tls-socket.h"
#include "share.h"
#include "tls-share.h"

/* The session was freed, and its address may be reused soon. */
static __noinline int forget_session(struct tls_key *key)
{
	struct tls_session *s = bpf_map_lookup_elem(&tls_sessions, key);
	if (!s)
		return 0;
	u64 connection = s->binding.socket.id.connection, cookie = connection & COOKIE;
	if (s->follow.protocol)
		tell_end(connection, 0);
	if (s->binding.known && !(connection & (WITHOUT_SOCKET | DEEP_INSIDE)))
		bpf_map_delete_elem(&tls_sockets, &cookie);
	if (!bpf_map_delete_elem(&tls_sessions, key))
		session_ended(svc_owner());
	return 0;
}

/* Bytes that are not reported. */
static __always_inline void pass_over(struct tls_session *s, u32 direction, u32 bytes)
{
	s->follow.position[direction & 1] += bytes;
}

/* HTTP/1 is recognised by its first line, as elsewhere; inside TLS it is framed in user space. */
static __noinline int recognise_inside(struct work *w, struct tls_session *s, struct part *p)
{
	struct stream_state *f = &s->follow;
	u64 start = 0;
	u32 have = w->left < 8 ? w->left : 8;
	if (protocols_enabled & 1U << svc_protocol_http1 && w->segment &&
	    !bpf_probe_read_user(&start, bounded(have, 15) > 8 ? 8 : have, (void *)w->base)) {
		bool request = request_start(start, have) == YES && (start & BYTES(6)) != WORD('P', 'R', 'I', ' ', '*', ' ', 0, 0);
		if (request || response_start(start, have) == YES) {
			f->protocol = svc_protocol_http1;
			if (request == (w->direction == RX))
				f->flags |= SVC_SEGMENT_SERVER;
			return 1;
		}
	}
	return recognise(w, f, &s->binding.socket.id, p, s->binding.socket.role);
}

/* Plaintext of a session with a known protocol, or to be recognised. */
static __noinline int on_inside(struct work *w, struct tls_session *s, struct part *p)
{
	struct stream_state *f = &s->follow;
	u32 direction = w->direction & 1;
	if (!f->protocol) {
		if (!recognise_inside(w, s, p)) {
			pass_over(s, direction, w->left);
			if (++s->foreign >= (f->flags & SVC_SEGMENT_JOINED ? TLS_FOREIGN_JOINED : TLS_FOREIGN_MAX)) {
				count(svc_counter_not_recognised);
				f->off = true;
			}
			return 0;
		}
		struct identity *id = &s->binding.socket.id;
		bool server = f->flags & SVC_SEGMENT_SERVER;
		if (server && f->protocol != svc_protocol_http1 && f->protocol != svc_protocol_http2) {
			/* as without TLS: conventions for other protocols cover only clients */
			f->off = true;
			return 0;
		}
		s->port = server ? id->local_port : id->peer_port;
		if (f->position[RX] | f->position[TX]) /* bytes were skipped before */
			f->flags |= SVC_SEGMENT_JOINED;
		f->position[RX] = 0;
		f->position[TX] = 0;
		count(svc_counter_streams);
		u64 cookie = id->connection & COOKIE;
		struct tls_socket *socket = bpf_map_lookup_elem(&tls_sockets, &cookie);
		if (socket)
			socket->streamed = 1;
	}
	if (ports[s->port]) {
		pass_over(s, direction, w->left);
		return 0;
	}
	u32 sequence = f->flags & SVC_SEGMENT_JOINED ? 0 : f->position[direction] + 1;
	return svc_follow(w, f, &s->binding.socket.id, p, sequence);
}

/* A library call moved `bytes` of plaintext. */
static __noinline int on_plaintext(struct tls_key *key, struct tls_session *s, u64 buffer, u32 bytes, u32 direction)
{
	struct stream_state *f = &s->follow;
	struct tls_binding *binding = &s->binding;
	if (f->off || binding->off)
		return 0;
	if (!binding->known) {
		if (++binding->dark < TLS_DARK_MAX) {
			pass_over(s, direction, bytes);
			return 0;
		}
		/* No related TCP socket: a pipe, a Unix socket, or a separate thread for the ciphertext. */
		binding->socket = tls_session_zero.binding.socket;
		binding->socket.id.connection = INSIDE | WITHOUT_SOCKET | (((u64)key->tgid << 32 ^ key->session) & (WITHOUT_SOCKET - 1));
		binding->known = 1;
	}
	if (!binding->begun) {
		binding->begun = 1;
		f->flags = SVC_SEGMENT_TLS | (binding->handshake && !binding->dark ? 0 : SVC_SEGMENT_JOINED) |
			   (binding->socket.blocking ? SVC_SEGMENT_BLOCKING : 0);
	}
	u32 number = take_slot();
	struct tls_slot *slot = bpf_map_lookup_elem(&tls_slots, &number);
	struct part *p = bpf_map_lookup_elem(&tls_parts, &number);
	if (!slot || !p) {
		count(svc_counter_segments_lost);
		pass_over(s, direction, bytes);
		return 0;
	}
	struct work *w = &slot->work;
	w->direction = direction;
	w->left = bytes;
	w->base = buffer;
	w->segment = buffer ? bytes : 0; /* GnuTLS continues with data kept from an interrupted call */
	w->iov = 0;
	w->iov_left = 0;
	w->now = 0;
	w->failed = 0;
	on_inside(w, s, p);
	give_slot(slot);
	return 0;
}

SEC("uprobe")
int svc_tls_enter(struct pt_regs *ctx)
{
	struct call_registers *regs = (void *)ctx;
	struct tls_key key = { .session = CALL_ARG0(regs), .tgid = bpf_get_current_pid_tgid() >> 32 };
	u64 function = bpf_get_attach_cookie(ctx);
	if (key.tgid == self_pid || bpf_map_lookup_elem(&tls_denied, &key.tgid) || key.session <= AMBIGUOUS)
		return 0;
	if (function == svc_tls_function_free) {
		forget_session(&key);
		return 0;
	}
	struct task_struct *task = bpf_get_current_task_btf();
	struct tls_thread *t = bpf_task_storage_get(&tls_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t) {
		count(svc_counter_storage_full);
		return 0;
	}
	threads_tls[task->pid & (THREADS - 1)] = 1;
	if (!call_begins(t, regs, function))
		return 0;
	if (bpf_map_lookup_elem(&tls_sessions, &key))
		return 0;
	if (may_have_session(svc_owner()))
		bpf_map_update_elem(&tls_sessions, &key, &tls_session_zero, BPF_NOEXIST);
	else
		count(svc_counter_storage_full);
	return 0;
}

SEC("uretprobe")
int svc_tls_return(struct pt_regs *ctx)
{
	struct call_registers *regs = (void *)ctx;
	struct tls_thread *t = bpf_task_storage_get(&tls_threads, bpf_get_current_task_btf(), 0, 0);
	if (!t || !call_returns(t, regs))
		return 0;
	struct tls_key key = { .session = t->session, .tgid = bpf_get_current_pid_tgid() >> 32 };
	t->session = 0;
	t->deeper = 0;
	u32 direction = direction_of(t, RX, TX), bytes = call_moved(t, regs);
	struct tls_session *s = bpf_map_lookup_elem(&tls_sessions, &key);
	if (!s)
		return 0;
	if (!t->nested && s->binding.confirmed < 2 && call_carried(t, &s->binding, key.session, direction == TX, bytes))
		bind(&key, s);
	if (bytes)
		on_plaintext(&key, s, t->buffer, bytes, direction);
	return 0;
}
