/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Exchanges in flight of a connection: where they are stored, how they end, how lost framing is handled. */
#pragma once
#include "emit.h"
#include "serving.h"

struct step {
	struct sock *sk;
	struct conn *c;
	struct work *w;
	struct task_struct *task; /* current; not of ends */
	struct serving *serving;  /* of it */
};

static __always_inline struct exchange *exchange_of(struct sock *sk, struct conn *c, u32 seq)
{
	if (c->slot_seq == seq)
		return bpf_sk_storage_get(&slots, sk, 0, 0);
	struct exchange_key key = { .sk = (u64)sk, .seq = seq };
	return bpf_map_lookup_elem(&pipelined, &key);
}

static __always_inline void exchange_free(struct sock *sk, struct conn *c, u32 seq)
{
	if (c->slot_seq == seq) {
		c->slot_seq = 0;
		return;
	}
	struct exchange_key key = { .sk = (u64)sk, .seq = seq };
	bpf_map_delete_elem(&pipelined, &key);
}

static __always_inline struct exchange *exchange_new(struct sock *sk, struct conn *c, struct work *w)
{
	if (c->asked - c->answered >= IN_FLIGHT_MAX) {
		count(svc_counter_pipeline_full);
		return 0;
	}
	u32 seq = ++c->asked;
	if (!c->slot_seq) {
		struct exchange *ex = bpf_sk_storage_get(&slots, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
		if (ex) {
			c->slot_seq = seq;
		} else {
			count(svc_counter_pipeline_full);
			c->asked--;
		}
		return ex;
	}
	struct exchange_key key = { .sk = (u64)sk, .seq = seq };
	bpf_map_update_elem(&pipelined, &key, &w->blank, BPF_ANY);
	struct exchange *ex = bpf_map_lookup_elem(&pipelined, &key);
	if (!ex) {
		count(svc_counter_pipeline_full);
		c->asked--;
	}
	return ex;
}

static __always_inline void stream_reset(struct stream *s)
{
	s->state = START;
	s->start_len = 0;
	s->bytes = 0;
	s->head = 0;
	s->flags = 0;
}

static long abandon_one(u32 i, struct step *step)
{
	struct conn *c = step->c;
	if (c->answered >= c->asked)
		return 1;
	c->answered++;
	exchange_free(step->sk, c, c->answered);
	if (!ports[c->port])
		count(svc_counter_abandoned);
	return 0;
}

static __noinline int abandon_all(struct step *step)
{
	struct conn *c = step->c;
	bpf_loop(IN_FLIGHT_MAX, abandon_one, step, 0);
	c->answered = c->asked;
	serve_no_more(step->serving, step->sk);
	return 0;
}

/* Framing is lost: abandons exchanges in flight and searches for the next request head. */
static __noinline int lose(struct step *step, u32 reason)
{
	struct conn *c = step->c;
	count(reason);
	abandon_all(step);
	c->ahead = 0;
	stream_reset(&c->stream[REQUEST]);
	stream_reset(&c->stream[RESPONSE]);
	c->joined = 1;
	step->w->left = 0;
	return 0;
}

static __always_inline void give_up(struct step *step, u32 reason)
{
	count(reason);
	step->c->mode = OFF;
	step->w->left = 0;
}

static __always_inline void finish(struct step *step, struct exchange *ex, u32 seq, bool aborted)
{
	struct conn *c = step->c;
	struct sock *sk = step->sk;
	struct stream *request = &c->stream[REQUEST], *response = &c->stream[RESPONSE];
	if (ex && !ports[c->port]) {
		struct svc_record *r = &ex->record;
		bool answering = response->seq == seq;
		r->status = answering ? response->status : 0;
		r->response_bytes = answering ? response->bytes : 0;
		r->response_head = answering ? response->head : 0;
		if (request->seq == seq && request->state != START) { /* answered before it was complete */
			r->request_bytes = request->bytes;
			r->request_head = request->head;
		}
		r->aborted = aborted;
		r->error = aborted ? sk->sk_err : 0;
		if (track_requests && r->side == svc_side_server)
			r->sampled = answered(step->serving, request_number(r->tid, r->start_ns));
		emit(step->w, ex, c->owner, now(step->w));
	}
	exchange_free(sk, c, seq);
	c->answered = seq;
}

static __noinline int finish_found(struct step *step, u32 seq, bool aborted)
{
	finish(step, exchange_of(step->sk, step->c, seq), seq, aborted);
	return 0;
}

/* Whether calls on the socket block. False if unknown. */
static __always_inline bool is_blocking(const struct sock *sk)
{
	struct file *file = BPF_CORE_READ(sk, sk_socket, file);
	return file && !(BPF_CORE_READ(file, f_flags) & O_NONBLOCK);
}

/* Reports a request with a complete head: further actions of its process may be part of it. Its span is taken from
 * the budget here, as consumers of a begin wait for the end. */
static __always_inline int tell_begin(struct step *step, struct exchange *ex)
{
	struct svc_record *r = &ex->record;
	struct work *w = step->w;
	u32 owner = step->c->owner;
	if (ports[step->c->port])
		return 0;
	if (!within_budget(owner, r->start_ns, false)) {
		if (r->side == svc_side_server)
			budget.untold_at = r->start_ns;
		return 0;
	}
	r->kind = svc_kind_begin;
	r->doubt = budget.untold_at && r->start_ns - budget.untold_at < DOUBT_NS;
	u32 captured = r->more_context ? r->captured : 0;
	if (captured > CAPTURE)
		captured = CAPTURE;
	r->told = !put(w, owner, r, sizeof(*r) + captured);
	if (!r->told && r->side == svc_side_server)
		budget.untold_at = r->start_ns;
	return 0;
}
