/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* HTTP/1 framing over the bytes of a connection, for any back end. Both directions are followed byte-exactly: heads
 * are scanned for the few relevant lines, bodies are skipped by length. */
#pragma once
#include "cursor.h"
#include "exchange.h"
#include "http1.h"
#include "lock.h"
#include "segment.h"

/* A message is complete. */
static __always_inline int message_end(struct step *step, u32 kind, struct exchange *ex)
{
	struct conn *c = step->c;
	struct stream *s = &c->stream[kind & 1];
	u32 seq = s->seq;
	if (kind == REQUEST) {
		if (ex) {
			ex->record.request_bytes = s->bytes;
			ex->record.request_head = s->head;
		}
		stream_reset(s);
		if (c->ahead == 2 && seq == c->answered + 1) {
			struct stream *response = &c->stream[RESPONSE];
			c->ahead = 0;
			response->seq = seq;
			response->status = c->ahead_status;
			response->bytes = c->ahead_bytes;
			response->head = c->ahead_head;
			step->w->now = c->ahead_end;
			finish(step, ex, seq, false);
			step->w->now = 0;
			stream_reset(response);
		}
		return 0;
	}
	if (s->status < 200 && s->status != 101) { /* interim: the final response is still expected */
		stream_reset(s);
		return 0;
	}
	if (c->ahead == 1 && seq > c->asked) { /* ahead of its request */
		c->ahead = 2;
		c->ahead_end = now(step->w);
		c->ahead_bytes = s->bytes;
		c->ahead_head = s->head;
		c->ahead_status = s->status;
		stream_reset(s);
		return 0;
	}
	bool tunnel = s->status == 101 || (ex && ex->record.method == svc_method_connect && s->status < 300);
	finish(step, ex, seq, false);
	stream_reset(s);
	if (tunnel) {
		abandon_all(step);
		c->mode = OFF;
		step->w->left = 0;
	}
	return 0;
}

static __always_inline int message_end_found(struct step *step, u32 kind)
{
	struct conn *c = step->c;
	return message_end(step, kind & 1, exchange_of(step->sk, c, c->stream[kind & 1].seq));
}

/* Sets the side of the connection once known. False: it is not to be followed. */
static __always_inline bool become(struct step *step, bool server)
{
	struct sock *sk = step->sk;
	struct conn *c = step->c;
	c->mode = server ? SERVER : CLIENT;
	u32 port = server ? sk->__sk_common.skc_num : bpf_ntohs(sk->__sk_common.skc_dport);
	barrier_var(port); /* the compiler would remove the mask; to Linux 6.12 swapped bytes are any number */
	port &= 0xffff;
	c->port = port;
	if (!ports[port])
		return true;
	lose(step, svc_counter_excluded);
	return false;
}

/* A request starts at win[from]. */
static __always_inline struct exchange *begin_request(struct step *step, u32 from)
{
	struct sock *sk = step->sk;
	struct conn *c = step->c;
	struct work *w = step->w;
	if (c->mode == UNKNOWN && !become(step, w->direction == RX))
		return 0;
	struct stream *s = &c->stream[REQUEST], *response = &c->stream[RESPONSE];
	if (response->state == BODY_CLOSE && !c->ahead) { /* it was not the last response after all */
		finish_found(step, response->seq, false);
		stream_reset(response);
	}
	struct exchange *ex = exchange_new(sk, c, w);
	if (!ex)
		return 0;
	if (c->joined) {
		c->joined = 0;
		c->misses = 0;
		stream_reset(response);
	}
	s->seq = c->asked;
	ex->carry_len[0] = 0;
	ex->carry_len[1] = 0;
	struct svc_record *r = &ex->record;
	r->start_ns = now(w);
	r->response_ns = c->ahead ? r->start_ns : 0;
	if (c->ahead == 1)
		c->ahead = 0;
	r->request_bytes = 0;
	r->request_head = 0;
	struct task_struct *task = step->task;
	u32 pid = task->tgid;
	if (c->pid != pid) {
		c->pid = pid;
		c->cgroup = bpf_get_current_cgroup_id();
		c->owner = svc_owner();
		c->blocking = is_blocking(sk);
		/* name of the process, not of the thread */
		bpf_probe_read_kernel(c->comm, sizeof(c->comm), task->group_leader->comm);
	}
	r->pid = pid;
	r->tid = task->pid;
	r->cgroup = c->cgroup;
	__builtin_memcpy(r->comm, c->comm, sizeof(r->comm));
	r->captured = 0;
	r->side = c->mode == SERVER ? svc_side_server : svc_side_client;
	r->method = method_of(word_at(w, from));
	r->minor = 1;
	r->has_traceparent = 0;
	r->more_context = 0;
	r->told = 0;
	r->blocking = c->blocking;
	fill_ends(r, sk);
	/* The sequence number of the call's first byte is "position" less the call's length; carried bytes came
	 * before it. */
	struct tcp_sock *tp = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
	u32 position = w->direction == RX ? tp->copied_seq : tp->write_seq;
	if (w->direction == RX && sk->sk_shutdown & RCV_SHUTDOWN && position == tp->rcv_nxt)
		position--; /* the call also consumed the peer's FIN, which has a sequence number */
	r->sequence = position - (u32)w->left + from - CARRY;
	if (track_requests && r->side == svc_side_server) {
		r->sampled = 0;
		if (c->asked - c->answered == 1)
			step->serving = serve(step->serving, task, cookie_of(sk), r->start_ns, c->blocking);
		else
			serve_no_more(step->serving, sk);
	}
	return ex;
}

static __always_inline struct exchange *begin_response(struct step *step, struct stream *s)
{
	struct conn *c = step->c;
	s->seq = c->answered + 1;
	if (s->seq > c->asked) {
		c->ahead = 1;
		step->w->blank.carry_len[RESPONSE] = 0;
		return &step->w->blank;
	}
	struct exchange *ex = exchange_of(step->sk, c, s->seq);
	if (!ex)
		return 0;
	ex->carry_len[RESPONSE] = 0;
	if (!ex->record.response_ns)
		ex->record.response_ns = now(step->w);
	return ex;
}

/* START and HEAD: a head is expected or in progress. */
static __always_inline int on_head(struct step *step)
{
	struct conn *c = step->c;
	struct work *w = step->w;
	u32 kind = w->kind & 1;
	struct stream *s = &c->stream[kind];
	struct exchange *ex = 0;
	u32 from = CARRY;
	u32 n = read_window(w, WINDOW);
	if (!n)
		return 0;
	w->end = CARRY + n;

	if (s->state == START) {
		u32 carried = s->start_len & 7;
		if (carried) {
			*word(&w->win[CARRY - 8]) = s->start << (8 * (8 - carried));
			from = CARRY - carried;
		} else if (kind == REQUEST) { /* line ends before a request are ignored (RFC 9112, 2.2) */
			for (int i = 0; i < 4 && from < w->end; i++) {
				u8 ch = w->win[from & WIN_MASK];
				if (ch != '\r' && ch != '\n')
					break;
				from++;
			}
			if (from == w->end) {
				consume(w, n);
				return 0;
			}
		}
		/* From memory, it is any number to the verifier, which would otherwise check all following code for
		 * each. */
		w->scan = from;
		barrier();
		from = w->scan;
		u64 x = word_at(w, from);
		u32 have = w->end - from;
		int verdict = kind == REQUEST ? request_start(x, have) : response_start(x, have);
		if (verdict == MORE && have < 8) {
			s->start = x;
			s->start_len = have;
			c->direction = w->direction;
			consume(w, n);
			return 0;
		}
		s->start_len = 0;
		if (verdict == NO && c->mode == UNKNOWN && w->direction == RX && response_start(x, have) == YES) {
			/* response to a request that is not seen yet, or was missed */
			if (c->joined)
				w->left = 0;
			else if (become(step, false))
				w->kind = RESPONSE;
			return 0;
		}
		bool orphan = kind == RESPONSE && c->answered >= c->asked;
		bool ahead = orphan && verdict == YES && c->mode == CLIENT && !c->joined && !c->ahead;
		if (verdict == NO || (orphan && !ahead)) {
			if (verdict != NO)
				count(svc_counter_orphan_response);
			if (c->joined && c->mode != UNKNOWN && c->misses < 255) {
				c->misses++;
				w->left = 0;
				return 0;
			}
			if (c->mode == UNKNOWN) {
				w->foreign = 1;
			} else if (c->joined) {
				abandon_all(step);
				give_up(step, svc_counter_not_recognised);
			} else {
				lose(step, svc_counter_desync);
			}
			return 0;
		}
		if (kind == REQUEST) {
			ex = begin_request(step, from);
			if (!ex) {
				if (w->left) /* nothing is left on an excluded port */
					lose(step, svc_counter_desync);
				return 0;
			}
		} else {
			ex = begin_response(step, s);
		}
		s->state = HEAD;
		s->flags = F_FIRST;
		s->bytes = 0;
		s->head = 0;
		s->status = 0;
		s->content = 0;
		s->head += CARRY - (from < CARRY ? from : CARRY);
		s->bytes = s->head;
	} else {
		ex = exchange_of(step->sk, c, s->seq);
	}
	if (!ex) {
		lose(step, svc_counter_desync);
		return 0;
	}
	u32 kept = ex->carry_len[kind];
	if (kept && kept <= CARRY) {
		bpf_probe_read_kernel(&w->win[bounded(CARRY - kept, 127)], bounded(kept, 127), ex->carry[kind]);
		w->line = CARRY - kept;
	} else {
		w->line = from;
	}
	ex->carry_len[kind] = 0;

	w->scan = from;
	w->head_end = 0;
	w->failed = 0;
	svc_scan(w, s, &ex->record);
	if (w->failed) { /* the first line is not HTTP/1 */
		w->failed = 0;
		if (kind == REQUEST && c->asked == 1) { /* nor is the connection: HTTP/2 with prior knowledge starts like this */
			exchange_free(step->sk, c, 1);
			c->answered = 0;
			c->asked = 0;
			stream_reset(s);
			c->mode = UNKNOWN;
			c->port = 0;
			w->foreign = 1;
		} else {
			lose(step, svc_counter_desync);
		}
		return 0;
	}
	u32 stop = w->head_end ? w->head_end : w->end;
	if (stop > CARRY + WINDOW || stop < from) { /* impossible; bounds it for the verifier and the loop */
		w->left = 0;
		return 0;
	}
	if (kind == REQUEST) {
		if (!ex->record.captured && stop - from <= 256 && capture_bytes >= 256)
			svc_capture_short(w, ex, from, stop - from);
		else
			capture(w, ex, from, stop);
	}
	u32 consumed = stop - CARRY;
	if (stop < CARRY)
		consumed = 0;
	s->head += consumed;
	s->bytes += consumed;
	consume(w, consumed);
	if (w->head_end) {
		if (kind == REQUEST) {
			if (c->asked == 1)
				count(svc_counter_connections);
			tell_begin(step, ex);
		}
		bool body = body_follows(c, s, kind, ex->record.method);
		if (body && s->state == BODY && s->remaining == w->left) { /* complete: the common case in one step */
			s->bytes += s->remaining;
			w->left = 0;
			body = false;
		}
		if (!body)
			message_end(step, kind, ex);
		return 0;
	}
	if (c->ahead && s->seq > c->asked) { /* the rest of its head cannot be stored */
		lose(step, svc_counter_desync);
		return 0;
	}
	u32 line = w->line, length = w->end - line;
	if (length > CARRY) {
		if (!(s->flags & F_FIRST)) {
			s->flags |= F_LONG;
			return 0;
		}
		/* A request's first line ends with the version, a response's starts with it and the status. */
		length = 16;
		if (kind == REQUEST)
			line = w->end - length;
	}
	if (length && length <= CARRY && line <= CARRY + WINDOW) {
		bpf_probe_read_kernel(ex->carry[kind], length, &w->win[bounded(line, WIN_MASK)]);
		ex->carry_len[kind] = length;
	}
	return 0;
}

/* CHUNK_SIZE and TRAILER: a short line is in progress. */
static __always_inline int on_chunk_line(struct step *step)
{
	struct work *w = step->w;
	u32 kind = w->kind & 1;
	struct stream *s = &step->c->stream[kind];
	u32 n = read_window(w, CHUNK_LINE);
	if (!n)
		return 0;
	w->end = CARRY + n;
	w->head_end = 0;
	u32 used = svc_chunk_line(w, s);
	if (used > n)
		return 0;
	s->bytes += used;
	consume(w, used);
	if (w->head_end)
		message_end_found(step, kind);
	return 0;
}

static __noinline long on_step(u32 i, struct step *step)
{
	struct work *w = step->w;
	struct conn *c = step->c;
	if (!w->left)
		return 1;
	struct stream *s = &c->stream[w->kind & 1];
	u8 state = s->state;
	if (state == BODY || state == CHUNK_DATA || state == BODY_CLOSE) {
		u64 want = state == BODY_CLOSE ? w->left : s->remaining;
		if (want < w->left && !w->segment && !next_segment(w)) {
			lose(step, w->failed ? svc_counter_fault : svc_counter_unreadable);
			return 1;
		}
		u64 done = skip(w, want);
		s->bytes += done;
		if (state == BODY_CLOSE)
			return 0;
		s->remaining -= done;
		if (s->remaining)
			return 0;
		if (state == BODY) {
			message_end_found(step, w->kind);
		} else {
			s->state = CHUNK_SIZE;
			s->flags &= ~F_EXTENSION;
		}
		return 0;
	}
	if (!w->segment) {
		if (!next_segment(w)) {
			if (c->mode == UNKNOWN && !c->joined)
				give_up(step, svc_counter_not_recognised);
			else
				lose(step, w->failed ? svc_counter_fault : svc_counter_unreadable);
			return 1;
		}
		if (!w->segment)
			return 0;
	}
	if (state == START || state == HEAD)
		on_head(step);
	else
		on_chunk_line(step);
	if (w->foreign)
		return 1;
	if (w->failed) {
		lose(step, w->failed);
		return 1;
	}
	return c->mode == OFF || !w->left; /* without another round, which would cost a call */
}

/* Common part of all back ends: `w` describes the bytes of one call over `sk`. */
static __always_inline int on_data(struct step *step)
{
	struct conn *c = step->c;
	struct work *w = step->w;
	if (c->mode == UNKNOWN) {
		w->kind = REQUEST;
		if (c->stream[REQUEST].start_len && c->direction != w->direction) {
			c->stream[REQUEST].start_len = 0;
		}
	} else {
		w->kind = (c->mode == SERVER) == (w->direction == RX) ? REQUEST : RESPONSE;
	}
	if (ports[c->port]) { /* it was excluded since */
		lose(step, svc_counter_excluded);
		return 0;
	}
	bpf_loop(MESSAGES_MAX, on_step, step, 0);
	if (w->left && !w->foreign && c->mode != OFF)
		lose(step, svc_counter_messages_bound);
	return 0;
}

static long close_one(u32 i, struct step *step)
{
	struct conn *c = step->c;
	if (c->answered >= c->asked)
		return 1;
	struct stream *response = &c->stream[RESPONSE];
	u32 seq = c->answered + 1;
	bool complete = response->seq == seq && response->state == BODY_CLOSE && !step->sk->sk_err;
	finish_found(step, seq, !complete);
	return 0;
}

/* No more bytes follow: exchanges in flight end here. */
static __noinline int end_all(struct step *step)
{
	bpf_loop(IN_FLIGHT_MAX, close_one, step, 0);
	step->c->mode = OFF;
	return 0;
}

/* The connection ended. May run in an interrupt of the lock's holder, so it does not wait: the holder completes it. */
static __always_inline void on_close(struct sock *sk, struct conn *c, struct work *w)
{
	struct step step = { .sk = sk, .c = c, .w = w, .serving = serving_now() };
	struct attempt attempt = { .c = c };
	if (!try_lock(0, &attempt)) {
		c->closing = 1;
		return;
	}
	end_all(&step);
	unlock(c);
}

/* Releases the lock, and completes requests made since. */
static __always_inline void leave(struct step *step)
{
	struct conn *c = step->c;
	if (c->lost) {
		c->lost = 0;
		lose(step, svc_counter_desync);
	}
	if (c->closing)
		end_all(step);
	unlock(c);
}
