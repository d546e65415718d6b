/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Program starts, process exits and OOM kills. Each is counted; up to `events_max` per second are reported
 * individually. Arguments and environments are never read. */
#include "include/kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PATH_MAX_BYTES 256
#define GROUP_NAME_BYTES 96 /* "cri-containerd-", 64 digits and ".scope" are 85 */

enum svc_process_kind { svc_process_kind_exec, svc_process_kind_exit, svc_process_kind_oom_kill };

struct svc_process_event {
	u64 time_ns;  /* CLOCK_MONOTONIC */
	u64 start_ns; /* start of the process, same clock; 0: unknown */
	u64 cgroup;   /* 0: unknown */
	u64 boot_ns;  /* start of the process since boot, as in /proc/PID/stat; 0: unknown */
	u32 kind;
	u32 pid;      /* thread group, initial pid namespace */
	u32 parent;
	u32 uid;
	u32 status;   /* exit status, as from wait(2) */
	u8 oom_killed; /* for an exit: chosen by the OOM killer */
	u8 pad;
	u16 path_length; /* length of the possibly truncated `path`; the record ends there */
	u8 comm[16];
	u8 path[PATH_MAX_BYTES]; /* for an exec: the file as named by the caller */
	/* Innermost control group whose name has room for a container id, and its parent; "": none. */
	u8 group[GROUP_NAME_BYTES];
	u8 above[GROUP_NAME_BYTES];
};
const struct svc_process_event *unused_event __attribute__((unused)); /* keeps the types in BTF */
const enum svc_process_kind *unused_kind __attribute__((unused));

u32 events_max; /* per second: set before the programs are attached, and lowered while svc uses too much CPU */

/* Counts since the load. Exits by cause: 0: returned zero, 1: returned another number, 2 and above: signal plus 1. */
#define EXITS 128
u64 execs;
u64 starts; /* processes, without threads */
u64 exits[EXITS];
u64 oom_kills;
u64 untold[3]; /* events that were only counted, by kind */

u64 second;
u32 told;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 512 << 10);
} ring SEC(".maps");

/* Processes whose end was counted: the last two threads may end at the same time. */
#ifdef OLD_KERNEL
struct ended_key {
	u64 start_ns;
	u64 pid;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096); /* must be distinct only for a moment */
	__type(key, struct ended_key);
	__type(value, u8);
} ended SEC(".maps");
#else
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} ended SEC(".maps");
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct atomic___process {
	int counter;
};

struct signal_struct___process {
	struct atomic___process live;
	int group_exit_code;
	unsigned int flags;
	struct mm_struct *oom_mm;
};

struct kernfs_node___process {
	const char *name;
};

struct cgroup_root;

struct cgroup___process {
	struct cgroup_subsys_state___process {
		struct cgroup___process *cgroup;
		struct cgroup_subsys_state___process *parent;
	} self;
	struct kernfs_node___process *kn;
	struct cgroup_root *root;
};

struct css_set___process {
	struct cgroup_subsys_state___process *subsys[1]; /* actually one per controller */
	struct cgroup___process *dfl_cgrp;
};

struct task_struct___process {
	struct css_set___process *cgroups;
	struct signal_struct___process *signal;
	struct task_struct___process *group_leader;
	struct task_struct___process *real_parent;
	int tgid;
	int exit_code;
	u64 start_time;
	u64 start_boottime;
};

struct linux_binprm___process {
	const char *filename;
};

#pragma clang attribute pop

enum cgroup_subsys_id___process { memory_cgrp_id___process };

#define EEXIST 17
#define SIGNAL_GROUP_EXIT 4 /* include/linux/sched/signal.h */

/* Whether one more event may be reported in this second. */
static __always_inline bool may_tell(u64 now)
{
	u64 this_second = now / MONOTONIC_SECOND, was = second;
#ifdef OLD_KERNEL
	/* CPUs in a race may report one more each. */
	if (was != this_second) {
		second = this_second;
		told = 0;
	}
	u32 before = *(volatile u32 *)&told;
	__sync_fetch_and_add(&told, 1);
	return before < events_max;
#else
	if (was != this_second && __sync_val_compare_and_swap(&second, was, this_second) == was)
		told = 0;
	return __sync_fetch_and_add(&told, 1) < events_max;
#endif
}

/* Whether the end of this process was counted before; marks it as counted. */
static __always_inline bool has_ended(struct task_struct *leader)
{
#ifdef OLD_KERNEL
	struct ended_key key = { .start_ns = ((struct task_struct___process *)leader)->start_time, .pid = leader->pid };
	u8 yes = 1;
	return bpf_map_update_elem(&ended, &key, &yes, BPF_NOEXIST) == -EEXIST;
#else
	u32 *once = bpf_task_storage_get(&ended, leader, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return once && __sync_lock_test_and_set(once, 1);
#endif
}

/* Room for one more event in this second, or none. */
static __always_inline struct svc_process_event *begin(u32 kind, u64 now)
{
	struct svc_process_event *event = 0;
	if (may_tell(now))
		event = bpf_ringbuf_reserve(&ring, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&untold[kind], 1);
		return 0;
	}
	event->time_ns = now;
	event->kind = kind;
	event->start_ns = event->boot_ns = event->cgroup = 0;
	event->group[0] = event->above[0] = 0;
	event->parent = event->uid = event->status = 0;
	event->oom_killed = event->pad = 0;
	event->path_length = 0;
	return event;
}

/* The memory controller's group if that is in a version 1 hierarchy, because runtimes ignore the unified group on
 * hybrid hosts; otherwise the unified one. */
static __always_inline struct cgroup___process *group_of(struct task_struct___process *task)
{
	struct css_set___process *set = BPF_CORE_READ(task, cgroups);
	struct cgroup___process *unified = BPF_CORE_READ(set, dfl_cgrp), *group;
	struct cgroup_subsys_state___process *memory;
	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id___process, memory_cgrp_id___process))
		return unified;
	u64 id = bpf_core_enum_value(enum cgroup_subsys_id___process, memory_cgrp_id___process);
	u64 at = bpf_core_field_offset(struct css_set___process, subsys) + id * sizeof(void *);
	if (bpf_probe_read_kernel(&memory, sizeof(memory), (void *)set + at) || !memory)
		return unified;
	group = BPF_CORE_READ(memory, cgroup);
	return BPF_CORE_READ(group, root) == BPF_CORE_READ(unified, root) ? unified : group;
}

#define CONTAINER_ID 64
#define GROUP_DEPTH 8

/* A container may have its own groups below the one that its runtime named. */
static __always_inline void name_group(struct svc_process_event *event, struct task_struct___process *task)
{
	struct cgroup___process *group = group_of(task);
	for (int depth = 0; depth < GROUP_DEPTH; depth++) {
		if (!group)
			break;
		long length = bpf_probe_read_kernel_str(event->group, sizeof(event->group), BPF_CORE_READ(group, kn, name));
		/* `self`, the first member, leads to that of the parent group. */
		group = BPF_CORE_READ(group, self.parent, cgroup);
		if (length <= CONTAINER_ID)
			continue;
		if (group)
			bpf_probe_read_kernel_str(event->above, sizeof(event->above), BPF_CORE_READ(group, kn, name));
		return;
	}
	event->group[0] = 0;
}

/* Describes the current process. */
static __always_inline void describe(struct svc_process_event *event, struct task_struct *task)
{
	struct task_struct___process *leader = ((struct task_struct___process *)task)->group_leader;
	event->pid = task->tgid;
	event->parent = BPF_CORE_READ(leader, real_parent, tgid);
	event->start_ns = BPF_CORE_READ(leader, start_time);
	event->boot_ns = BPF_CORE_READ(leader, start_boottime);
	event->cgroup = bpf_get_current_cgroup_id();
	name_group(event, (struct task_struct___process *)task);
	event->uid = bpf_get_current_uid_gid();
	bpf_probe_read_kernel_str(event->comm, sizeof(event->comm), task->group_leader->comm);
}

/* The consumer polls: a wake-up per event would cost more than the event itself. */
static __always_inline void tell(struct svc_process_event *event)
{
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(svc_process_exec, struct task_struct *task, int old_pid, struct linux_binprm___process *bprm)
{
	__sync_fetch_and_add(&execs, 1);
	struct svc_process_event *event = begin(svc_process_kind_exec, bpf_ktime_get_ns());
	if (!event)
		return 0;
	describe(event, task);
	long length = bpf_probe_read_kernel_str(event->path, sizeof(event->path), BPF_CORE_READ(bprm, filename));
	event->path_length = length > 0 ? length - 1 : 0;
	tell(event);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(svc_process_fork, struct task_struct *parent, struct task_struct *child)
{
	if (child->pid == child->tgid)
		__sync_fetch_and_add(&starts, 1);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(svc_process_exit, struct task_struct *task)
{
	struct task_struct___process *ending = (struct task_struct___process *)task;
	struct signal_struct___process *signal = ending->signal;
	if (signal->live.counter) /* other threads continue */
		return 0;
	if (task->flags & PF_KTHREAD)
		return 0;
	if (has_ended(task->group_leader))
		return 0;
	u32 status = signal->flags & SIGNAL_GROUP_EXIT ? signal->group_exit_code
						       : BPF_CORE_READ(ending, group_leader, exit_code);
	u32 by = status & 0x7f;
	by = by ? by + 1 : !!(status & 0xff00);
	if (by < EXITS)
		__sync_fetch_and_add(&exits[by], 1);
	struct svc_process_event *event = begin(svc_process_kind_exit, bpf_ktime_get_ns());
	if (!event)
		return 0;
	describe(event, task);
	event->status = status;
	event->oom_killed = signal->oom_mm != 0;
	tell(event);
	return 0;
}

/* OOM kill. Runs in the context of the process that requested memory, so only `pid` identifies the victim. */
static __always_inline struct svc_process_event *on_victim(u32 pid)
{
	__sync_fetch_and_add(&oom_kills, 1);
	struct svc_process_event *event = begin(svc_process_kind_oom_kill, bpf_ktime_get_ns());
	if (!event)
		return 0;
	event->pid = pid;
	__builtin_memset(event->comm, 0, sizeof(event->comm));
	return event;
}

SEC("tp_btf/mark_victim")
int BPF_PROG(svc_process_oom, struct task_struct *task)
{
	struct svc_process_event *event = on_victim(task->tgid);
	if (!event)
		return 0;
	bpf_probe_read_kernel_str(event->comm, sizeof(event->comm), task->comm);
	tell(event);
	return 0;
}

/* Before Linux 6.9 the tracepoint has only the process number. */
SEC("tp_btf/mark_victim")
int BPF_PROG(svc_process_oom_pid, int pid)
{
	struct svc_process_event *event = on_victim(pid);
	if (event)
		tell(event);
	return 0;
}
