/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which request to a server a thread works on: the socket programs note it (serving.h), the sampler reads it. The map is
 * one for both objects. To be included behind the kernel's types. */
#pragma once

#define HOLDS (~0ULL)
#define SLEEP_MOST_NS 16000000ULL

struct serving {
	u64 number;     /* 0: nothing, or it is not certain what */
	u64 connection; /* cookie of the socket that it came by */
	u64 sampled;    /* the sampler has met it */
	/* When this was last certain: */
	u64 switches;   /* how often the thread had gone to sleep by then; HOLDS: sleeping is part of the work */
	u64 at_ns;
	u64 awake_ns;   /* how long it had run, or waited for a CPU */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct serving);
} requests SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct entity___request {
	u64 sum_exec_runtime;
};

struct sched_info___request {
	unsigned long long run_delay; /* ns in a queue of a CPU */
};

struct task_struct___request {
	unsigned long nvcsw; /* switches because it had to wait for something */
	struct entity___request se;
	struct sched_info___request sched_info;
};
#pragma clang attribute pop

static __always_inline u64 switches_of(struct task_struct *task)
{
	return ((struct task_struct___request *)task)->nvcsw;
}

static __always_inline u64 awake_of(struct task_struct *task)
{
	struct task_struct___request *t = (void *)task;
	return t->se.sum_exec_runtime + (bpf_core_field_exists(t->sched_info.run_delay) ? t->sched_info.run_delay : 0);
}

#define MOMENT_MASK 0x7fffffff

/* Names the request that a thread received the first bytes of at `at`. User space makes the same number of a record
 * (src/foundation/model/request-number.ts), so it fits a double: 22 bits of the thread (PID_MAX_LIMIT), and 31 of the time in
 * 1,024 ns, in which no thread receives two requests and which is 36 minutes long. */
static __always_inline u64 request_number(u32 tid, u64 at)
{
	return (u64)tid << 31 | (at >> 10 & MOMENT_MASK);
}

/* Whether an event loop still works on what it received: it did not sleep since, or for moments only, as for a lock or
 * for those who collect garbage with it. The time that it ran is told late, by a tick of the clock (10 ms at most). */
static __always_inline bool is_at_work(struct serving *s, struct task_struct *task)
{
	if (s->switches == switches_of(task))
		return true;
	u64 passed = bpf_ktime_get_ns() - s->at_ns, awake = awake_of(task) - s->awake_ns;
	return (s64)(passed - awake) < (s64)SLEEP_MOST_NS;
}

/* The request that a thread works on, 0 where that is not certain. `sleeps`: it goes to sleep now. */
static __always_inline u64 request_served(struct task_struct *task, bool sleeps)
{
	struct serving *s = bpf_task_storage_get(&requests, task, 0, 0);
	if (!s || !s->number)
		return 0;
	if (s->switches != HOLDS && (sleeps || !is_at_work(s, task)))
		return 0;
	s->sampled = 1;
	return s->number;
}
