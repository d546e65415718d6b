/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Stacks of what uses the CPUs, of what makes memory resident, and of what waits, of the whole host. Each distinct stack
 * is told once, as places in files; then it is only counted. */
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

/* THREAD_SIZE of x86-64, and of arm64 with pages that are not larger, unless built with KASAN. */
#define STACK_BYTES 16384

/* What the task left at its entry to the kernel. */
static __always_inline struct pt_regs *entry_registers(struct task_struct *task)
{
#ifdef OLD_KERNEL
	/* At the end of its stack; Linux 5.15 has a helper. The types that tell its size are not known everywhere. */
	u64 size = bpf_core_type_size(union thread_union);
	if (!size)
		size = page_bytes > STACK_BYTES ? page_bytes : STACK_BYTES;
	return (struct pt_regs *)((u64)BPF_CORE_READ(task, stack) + size - bpf_core_type_size(struct pt_regs));
#else
	return (struct pt_regs *)bpf_task_pt_regs(task);
#endif
}

/* The stack of user space, of the current task. `in_kernel`: it left its registers at the entry to the kernel, else they
 * are set. */
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

/* Takes the stacks of an event's moment. */
static __always_inline void take_stacks(struct walk *w, struct sample_context *context)
{
	bool in_kernel = IN_KERNEL(&context->regs);
	set_registers(w, PC(&context->regs), SP(&context->regs), FP(&context->regs));
	if (in_kernel)
		take_kernel_stack(w, context, 0);
	take_user_stack(w, current_task(), in_kernel);
}

/* As above, for kernels that cannot walk: by frame pointers, and as addresses. */
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
	/* Programs that are loaded at fixed addresses may follow each other in one process. */
	w->mm = (u64)OF(current_task(), mm);
	w->is_private = true;
	w->is_urgent = false;
	w->stack_end = count < FRAMES ? svc_stack_end_frame_pointer_end : svc_stack_end_truncated;
	finish_user_stack(w);
}

/* Nanoseconds that a sample stands for: those since the one before on this CPU, so that neither a late one nor a change
 * of the period makes the sum wrong. The system may have stopped this CPU, though. `period`: of its first sample. */
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

/* Begins a sample of the CPU. 0: it is idle, or the sample is left out. */
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

/* Page faults: memory becomes resident when it is first touched. */
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

/* Waits that are shorter are not told. */
#define WAIT_LEAST_NS 1000000ull
/* Stacks that a CPU takes in a second, about. */
#define WAITS_PER_SECOND 1000

struct waiting {
	u64 since; /* 0: it does not wait, or its stack was not taken */
	u32 share; /* it stands for so many waits */
	u32 turn;
	struct svc_count_key key;
#ifdef OLD_KERNEL
	u64 owner;
#endif
};

#ifdef OLD_KERNEL
#define WAITS_MAX 16384

/* Of those who wait: made at the beginning of a wait and gone with its end. Memory is not asked for in between, as the
 * scheduler is at work here. */
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

/* Of one CPU: waits that began in this second, and one of how many has its stack taken. */
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

/* One of how many waits is told now; 0: not this one. */
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
	/* Within the second it may become much more than before. */
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

/* Frames of the tracepoint itself stand on top of the kernel's stack: the program, bpf_trace_run4, __schedule, and the
 * tracepoint's iterator between the two where others are attached to it: then __schedule stays. */
#define TRACEPOINT_FRAMES 3

#ifdef OLD_KERNEL
#define STATE_ARGUMENT
/* Linux 5.14 gave it another name, and half of its size. */
static __always_inline u64 state_of(struct task_struct *task)
{
	struct task_struct___state *newer = (void *)task;
	struct task_struct___old_state *older = (void *)task;
	return bpf_core_field_exists(newer->__state) ? BPF_CORE_READ(newer, __state) : BPF_CORE_READ(older, state);
}
#else
#define STATE_ARGUMENT , unsigned int prev_state
#endif

/* Since Linux 5.19 with these arguments, before without the last. `prev_state` is not 0 where the task goes to sleep,
 * unless it was preempted on the way. */
SEC("tp_btf/sched_switch")
int BPF_PROG(svc_profile_off_cpu, bool preempt, struct task_struct *prev, struct task_struct *next STATE_ARGUMENT)
{
#ifdef OLD_KERNEL
	u64 prev_state = state_of(prev);
#endif
	u64 now = bpf_ktime_get_ns();
	end_wait(next, now);
	/* A thread that ends has no memory any more, and does not come back. */
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
