/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Notes which request a thread works on: from its first bytes until its response is complete. A thread with blocking
 * calls (the socket is in blocking mode) does one thing at a time. Any other may run an event loop: its work is
 * certain only until it sleeps for more than moments, or receives from another socket. Docs: profiling.md, "Span
 * links". */
#pragma once
#include "maps.h"
#include "request.h"

/* What the thread works on; 0: nothing so far. */
static __always_inline struct serving *serving_of(struct task_struct *task)
{
	if (!track_requests || !threads_serving[task->pid & (THREADS - 1)])
		return 0;
	return bpf_task_storage_get(&requests, task, 0, 0);
}

static __always_inline struct serving *serving_now(void)
{
	return serving_of(bpf_get_current_task_btf());
}

static __always_inline void is_certain(volatile struct serving *s, struct task_struct *task, u64 at)
{
	s->switches = switches_of(task);
	s->at_ns = at;
	s->awake_ns = awake_of(task);
}

/* The thread received the first bytes of a request. `known`: serving_of() it; returns the same afterwards. */
static __always_inline struct serving *serve(struct serving *known, struct task_struct *task, u64 connection, u64 at, bool blocking)
{
	if (!known) {
		known = bpf_task_storage_get(&requests, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!known) {
			count(svc_counter_storage_full);
			return 0;
		}
		threads_serving[task->pid & (THREADS - 1)] = 1;
	}
	volatile struct serving *s = known;
	s->number = 0; /* the sampler may interrupt this */
	s->connection = connection;
	s->sampled = 0;
	if (blocking)
		s->switches = HOLDS;
	else
		is_certain(s, task, at);
	s->number = request_number(task->pid, at);
	return known;
}

/* The connection is no longer followed, or has several requests at once. */
static __always_inline void serve_no_more(struct serving *s, struct sock *sk)
{
	if (s && s->number && s->connection == cookie_of(sk))
		s->number = 0;
}

/* The thread received from a socket. */
static __always_inline void heard_from(struct serving *s, struct task_struct *task, struct sock *sk)
{
	if (!s || !s->number || s->switches == HOLDS)
		return;
	if (s->connection == cookie_of(sk))
		is_certain(s, task, bpf_ktime_get_ns()); /* more of the request: it is being worked on */
	else
		s->number = 0;
}

/* The thread responds on a server connection: if it is another one, it works for that. */
static __always_inline void answers_on(struct serving *s, struct sock *sk)
{
	if (s && s->number && s->switches != HOLDS && s->connection != cookie_of(sk))
		s->number = 0;
}

/* A request is answered. Returns 1 if its receiving thread responds and was sampled during it. */
static __always_inline int answered(struct serving *s, u64 number)
{
	if (!s || s->number != number)
		return 0;
	s->number = 0;
	return s->sampled;
}

/* Start of a response on a connection that is framed in user space: later work is unknown. Returns the time bits of
 * the request's number if it was sampled; otherwise 0. */
static __noinline int answer_begins(u64 connection)
{
	struct serving *s = serving_now();
	if (!s || !s->number)
		return 0;
	u64 number = s->number;
	if (s->connection == connection) {
		s->number = 0;
		return s->sampled ? number & MOMENT_MASK : 0;
	}
	if (s->switches != HOLDS)
		s->number = 0;
	return 0;
}
