/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Notes which request a thread works on: from its first bytes until its response is complete. A thread with blocking
 * calls (the socket is in blocking mode) does one thing at a time. Any other may run an event loop: its work is
 * certain only until it sleeps for more than moments, or receives from another socket. Docs: profiling.md, "Span
 * links". */
#pragma once
#include "maps.h"
#include "request.h"

static __always_inline struct serving *serving_now(void)
{
	return bpf_task_storage_get(&requests, bpf_get_current_task_btf(), 0, 0);
}

static __always_inline void is_certain(volatile struct serving *s, struct task_struct *task)
{
	s->switches = switches_of(task);
	s->at_ns = bpf_ktime_get_ns();
	s->awake_ns = awake_of(task);
}

/* The thread received the first bytes of a request. */
static __noinline int serve(u64 connection, u64 at, bool blocking)
{
	struct task_struct *task = bpf_get_current_task_btf();
	volatile struct serving *s = bpf_task_storage_get(&requests, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!s) {
		count(svc_counter_storage_full);
		return 0;
	}
	s->number = 0; /* the sampler may interrupt this */
	s->connection = connection;
	s->sampled = 0;
	if (blocking)
		s->switches = HOLDS;
	else
		is_certain(s, task);
	s->number = request_number(task->pid, at);
	return 0;
}

/* The connection is no longer followed, or has several requests at once. */
static __noinline int serve_no_more(u64 connection)
{
	struct serving *s = serving_now();
	if (s && s->connection == connection)
		s->number = 0;
	return 0;
}

/* The thread received from a socket. */
static __noinline int heard_from(struct sock *sk)
{
	struct serving *s = serving_now();
	if (!s || !s->number || s->switches == HOLDS)
		return 0;
	if (s->connection == bpf_get_socket_cookie(sk))
		is_certain(s, bpf_get_current_task_btf()); /* more of the request: it is being worked on */
	else
		s->number = 0;
	return 0;
}

/* The thread responds on a server connection: if it is another one, it works for that. */
static __noinline int answers_on(u64 connection)
{
	struct serving *s = serving_now();
	if (s && s->switches != HOLDS && s->connection != connection)
		s->number = 0;
	return 0;
}

/* A request is answered. Returns 1 if its receiving thread responds and was sampled during it. */
static __noinline int answered(u64 number)
{
	struct serving *s = serving_now();
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
