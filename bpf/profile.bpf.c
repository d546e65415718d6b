/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Stacks of the whole host: of CPU use, of page faults, and of waits. Each distinct stack is reported once, as offsets
 * in files, and then only counted. */
#include "include/profile/python.h"
#include "include/profile/sample.h"
#ifdef OLD_KERNEL
#define OWNER_SECTION SEC(".rodata.old")
#include "include/old-table.h"
#endif

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline void set_registers(struct walk *w, u64 pc, u64 sp, u64 fp)
{
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
}

static __always_inline void set_process(struct walk *w, struct mm_struct *mm)
{
	w->mm = (u64)mm;
	w->root = root_of(mm);
	w->runtime = false;
	w->process.v8_shared = 0;
	w->process.python_runtime = 0;
	struct svc_profile_process *process = bpf_map_lookup_elem(&processes, &w->key.pid);
	if (!process)
		return;
	if (process->mm == w->mm) {
		w->runtime = true;
		w->process = *process;
	} else {
		add(&other_memory, 1);
	}
}

/* THREAD_SIZE on x86-64, and on arm64 with pages of at most 16 KiB, unless built with KASAN. */
#define STACK_BYTES 16384

/* Registers that the task saved at its entry to the kernel. */
static __always_inline struct pt_regs *entry_registers(struct task_struct *task)
{
#ifdef OLD_KERNEL
	/* They are at the end of its stack; Linux 5.15 has a helper. Some kernels lack the types that define the
	 * size. */
	u64 size = bpf_core_type_size(union thread_union);
	if (!size)
		size = page_bytes > STACK_BYTES ? page_bytes : STACK_BYTES;
	return (struct pt_regs *)((u64)BPF_CORE_READ(task, stack) + size - bpf_core_type_size(struct pt_regs));
#else
	return (struct pt_regs *)bpf_task_pt_regs(task);
#endif
}

/* Takes the user stack of the current task. `in_kernel`: uses the registers saved at the entry to the kernel; otherwise
 * they are already set. */
static __always_inline void take_user_stack(struct walk *w, struct task_struct *task, bool in_kernel)
{
	struct mm_struct *mm = OF(task, mm);
	if (!mm || OF(task, flags) & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return;
	if (in_kernel) {
		struct pt_regs *regs = entry_registers(task);
		set_registers(w, OF(regs, PC_MEMBER), OF(regs, SP_MEMBER), OF(regs, FP_MEMBER));
	}
	set_process(w, mm);
	w->hash = 0;
	w->user.frames = w->user.inner = 0;
	walk_stack(w);
	walk_python(w, task);
	finish_user_stack(w);
}

static __always_inline struct walk *walk_of(u32 kind)
{
	return bpf_map_lookup_elem(&walks, &kind);
}

/* Takes the stacks at the moment of an event. */
static __always_inline void take_stacks(struct walk *w, struct sample_context *context)
{
	bool in_kernel = IN_KERNEL(&context->regs);
	set_registers(w, PC(&context->regs), SP(&context->regs), FP(&context->regs));
	if (in_kernel)
		take_kernel_stack(w, context, 0);
	take_user_stack(w, current_task(), in_kernel);
}

/* The same for kernels that cannot unwind by tables: by frame pointers, as addresses. */
static __always_inline void take_plain_stacks(struct walk *w, struct sample_context *context)
{
	if (IN_KERNEL(&context->regs))
		take_kernel_stack(w, context, 0);
	long bytes = bpf_get_stack(context, w->user.frame, 8 * FRAMES, BPF_F_USER_STACK);
	if (bytes <= 0)
		return;
	u32 count = bytes / 8;
	w->hash = 0;
	for (u32 i = 0; i < FRAMES; i++) {
		if (i >= count)
			break;
		u64 frame = (w->user.frame[i] - !!i) & ADDRESS_MASK;
		w->user.frame[i] = frame;
		w->hash = mixed(w->hash, frame);
	}
	w->user.frames = count;
	w->user.inner = 0;
	/* Programs at fixed addresses may follow each other in one process. */
	w->mm = (u64)OF(current_task(), mm);
	w->is_private = true;
	w->stack_end = count < FRAMES ? svc_stack_end_frame_pointer_end : svc_stack_end_truncated;
	finish_user_stack(w);
}

/* Nanoseconds that a sample represents: the time since the last one on this CPU, so that neither delays nor changes of
 * the period distort the sum. The system may have stopped this CPU, though. `period`: for its first sample. */
static __always_inline u64 sampled_ns(struct walk *w, u64 period)
{
	u64 now = bpf_ktime_get_ns(), last = w->last_ns, most = 2 * period_ns;
	w->last_ns = now;
	if (w->turn != cpu_turn) {
		w->turn = cpu_turn;
		return period;
	}
	return now - last < most ? now - last : most;
}

/* Starts a CPU sample. 0: idle, or excluded. */
static __always_inline u64 begin_cpu(struct walk *w, u64 period)
{
	u64 ns = sampled_ns(w, period);
	if (!(u32)bpf_get_current_pid_tgid()) {
		add(&idle, 1);
		add(&idle_ns, ns);
		return 0;
	}
	if (!begin_sample(w, svc_sample_kind_cpu))
		return 0;
	add(&samples_ns, ns);
	return ns;
}

SEC("perf_event")
int svc_profile_cpu(struct sample_context *context)
{
	u64 period = context->sample_period;
	struct walk *w = walk_of(svc_sample_kind_cpu);
	u64 ns = w ? begin_cpu(w, period) : 0;
	if (!ns)
		return 0;
	take_stacks(w, context);
	count_sample(&w->key, 1, ns);
	return 0;
}

SEC("perf_event")
int svc_profile_cpu_plain(struct sample_context *context)
{
	u64 period = context->sample_period;
	struct walk *w = walk_of(svc_sample_kind_cpu);
	u64 ns = w ? begin_cpu(w, period) : 0;
	if (!ns)
		return 0;
	take_plain_stacks(w, context);
	count_sample(&w->key, 1, ns);
	return 0;
}

/* Page faults: memory becomes resident at its first use. */
SEC("perf_event")
int svc_profile_memory(struct sample_context *context)
{
	u64 faults = context->sample_period;
	struct walk *w = walk_of(svc_sample_kind_memory);
	if (!w || !begin_sample(w, svc_sample_kind_memory))
		return 0;
	take_stacks(w, context);
	count_sample(&w->key, 1, faults * page_bytes);
	return 0;
}

SEC("perf_event")
int svc_profile_memory_plain(struct sample_context *context)
{
	u64 faults = context->sample_period;
	struct walk *w = walk_of(svc_sample_kind_memory);
	if (!w || !begin_sample(w, svc_sample_kind_memory))
		return 0;
	take_plain_stacks(w, context);
	count_sample(&w->key, 1, faults * page_bytes);
	return 0;
}

/* Shorter waits are not reported. */
#define WAIT_LEAST_NS 1000000ull
/* Approximate maximum of stacks per second and CPU. */
#define WAITS_PER_SECOND 1000

struct waiting {
	u64 since; /* 0: not waiting, or without a stack */
	u32 share; /* number of waits that it represents */
	u32 turn;
	struct svc_count_key key;
#ifdef OLD_KERNEL
	u64 owner;
#endif
};

#ifdef OLD_KERNEL
#define WAITS_MAX 16384

/* State of waiting tasks, created at the start of a wait and deleted at its end. Preallocated: this runs inside the
 * scheduler, which must not allocate. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WAITS_MAX);
	__type(key, u64);
	__type(value, struct waiting);
} waits SEC(".maps");

static __always_inline struct waiting *wait_of(struct task_struct *task)
{
	return entry_of(&waits, task);
}

static __always_inline struct waiting *wait_made(struct task_struct *task)
{
	struct waiting none = { .owner = svc_owner() };
	return entry_made(&waits, WAITS_MAX, task, &none, none.owner);
}

static __always_inline void forget_wait(struct task_struct *task, struct waiting *waiting)
{
	entry_ends(&waits, task, waiting->owner);
}
#else
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct waiting);
} waits SEC(".maps");

static __always_inline struct waiting *wait_of(struct task_struct *task)
{
	return bpf_task_storage_get(&waits, task, 0, 0);
}

static __always_inline struct waiting *wait_made(struct task_struct *task)
{
	return bpf_task_storage_get(&waits, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline void forget_wait(struct task_struct *task, struct waiting *waiting) {}
#endif

/* Of one CPU: waits that started in this second; one in `share` has its stack taken. */
struct wait_rate {
	u64 second;
	u64 begun;
	u64 share;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wait_rate);
} wait_rates SEC(".maps");

/* Current `share`; 0: skip this wait. */
static __always_inline u64 share_of_wait(u64 now)
{
	u32 zero = 0;
	struct wait_rate *rate = bpf_map_lookup_elem(&wait_rates, &zero);
	if (!rate)
		return 0;
	u64 second = now / 1000000000;
	if (rate->second != second) {
		rate->share = 1 + rate->begun / WAITS_PER_SECOND;
		rate->second = second;
		rate->begun = 0;
	}
	rate->begun++;
	/* The number may grow strongly within the second. */
	u64 share = rate->share;
	if (rate->begun / WAITS_PER_SECOND > share)
		share = rate->share = 2 * share;
	return bpf_get_prandom_u32() % (share ? share : 1) ? 0 : share;
}

static __always_inline void end_wait(struct task_struct *task, u64 now)
{
	struct waiting *waiting = wait_of(task);
	if (!waiting || !waiting->since)
		return;
	u64 ns = now - waiting->since;
	waiting->since = 0;
	if (waiting->turn == waits_turn && ns >= WAIT_LEAST_NS)
		count_sample(&waiting->key, waiting->share, ns * waiting->share);
	forget_wait(task, waiting);
}

/* Top of the kernel stack: frames of the tracepoint itself, which are the program, bpf_trace_run4 and __schedule, plus
 * the tracepoint's iterator if other programs are attached; in that case __schedule stays. */
#define TRACEPOINT_FRAMES 3

#ifdef OLD_KERNEL
#define STATE_ARGUMENT
/* Linux 5.14 renamed it and halved its size. */
static __always_inline u64 state_of(struct task_struct *task)
{
	struct task_struct___state *newer = (void *)task;
	struct task_struct___old_state *older = (void *)task;
	return bpf_core_field_exists(newer->__state) ? BPF_CORE_READ(newer, __state) : BPF_CORE_READ(older, state);
}
#else
#define STATE_ARGUMENT , unsigned int prev_state
#endif

/* Arguments since Linux 5.19; before, without the last. `prev_state` is not 0 if the task goes to sleep, unless it was
 * preempted on the way. */
SEC("tp_btf/sched_switch")
int BPF_PROG(svc_profile_off_cpu, bool preempt, struct task_struct *prev, struct task_struct *next STATE_ARGUMENT)
{
#ifdef OLD_KERNEL
	u64 prev_state = state_of(prev);
#endif
	u64 now = bpf_ktime_get_ns();
	end_wait(next, now);
	/* An exiting thread has no memory any more, and does not return. */
	if (preempt || !prev_state || !OF(prev, mm) || OF(prev, flags) & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return 0;
	u64 share = share_of_wait(now);
	struct walk *w = share ? walk_of(svc_sample_kind_off_cpu) : 0;
	if (!w || !begin_sample(w, svc_sample_kind_off_cpu))
		return 0;
	struct waiting *waiting = wait_made(prev);
	if (!waiting) {
		add(&counts_full[svc_sample_kind_off_cpu], share);
		return 0;
	}
	take_kernel_stack(w, ctx, TRACEPOINT_FRAMES);
	take_user_stack(w, prev, true);
	waiting->since = now;
	waiting->share = share;
	waiting->turn = waits_turn;
	waiting->key = w->key;
	return 0;
}
