/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Request that a server thread works on: noted by the socket programs (serving.h), read by the sampler. Both objects
 * share one map. Include after the kernel types. */
#pragma once

#define HOLDS (~0ULL)
#define SLEEP_MOST_NS 16000000ULL

struct serving {
	u64 number;     /* 0: none, or uncertain */
	u64 connection; /* cookie of the socket that received it */
	u64 sampled;    /* the sampler has seen it */
	/* When this was last certain: */
	u64 switches;   /* number of the thread's voluntary sleeps by then; HOLDS: sleeping is part of the work */
	u64 at_ns;
	u64 awake_ns;   /* time that it had run, or waited for a CPU */
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
	unsigned long nvcsw; /* voluntary switches: it had to wait */
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

/* Number of the request whose first bytes a thread received at `at`. User space computes the same number from a
 * record (src/foundation/model/request-number.ts), so it fits a double: 22 bits of the thread (PID_MAX_LIMIT), and
 * 31 of the time in units of 1,024 ns, in which no thread receives two requests; they wrap after 36 minutes. */
static __always_inline u64 request_number(u32 tid, u64 at)
{
	return (u64)tid << 31 | (at >> 10 & MOMENT_MASK);
}

/* Whether an event loop still works on its last receipt: it has not slept since, or only for moments, as for a lock
 * or for garbage collector threads. The kernel accounts run time up to one clock tick late (10 ms at most). */
static __always_inline bool is_at_work(struct serving *s, struct task_struct *task)
{
	if (s->switches == switches_of(task))
		return true;
	u64 passed = bpf_ktime_get_ns() - s->at_ns, awake = awake_of(task) - s->awake_ns;
	return (s64)(passed - awake) < (s64)SLEEP_MOST_NS;
}

/* Request that a thread works on, 0 if uncertain. `sleeps`: it goes to sleep now. */
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
