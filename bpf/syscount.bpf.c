/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counts system calls by process, number and error, with their durations. Runs at the start and end of every system
 * call of the host, so the object is loaded only on request. */
#include "include/kernel.h"
#ifdef OLD_KERNEL
#define OWNER_SECTION SEC(".rodata.old")
#include "include/old-table.h"
#endif

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SERIES_MAX 8192
#define NUMBERS 512 /* exceeds the numbers on x86-64 and arm64, with room for growth */
#define SVC_SYSCALL_BUCKETS 24
#define FIRST_BUCKET 10 /* its bound is 2^10 ns; each next one is twice that, the last has none */

struct svc_syscall_key {
	u32 pid; /* thread group, initial pid namespace */
	u16 nr;
	u16 error; /* errno; 0: success */
};

struct svc_syscall {
	u64 count;
	u64 sum_ns;
	u32 buckets[SVC_SYSCALL_BUCKETS];
	u8 comm[16];
};

/* Keeps the type in BTF. */
const struct svc_syscall *unused_syscall __attribute__((unused));
static const struct svc_syscall zero_syscall;

/* Set before load. */
const volatile u32 self_pid = 0; /* thread group of the agent, initial PID namespace */

/* Written by the agent at run time: a bit for each counted number. */
u64 wanted[NUMBERS / 64];
/* Calls that are not counted for lack of room. Not per CPU, as this is rare. */
u64 lost;

struct under_way {
	u64 start_ns;
	u32 nr; /* plus 1; 0: none */
	u32 owner; /* of the thread, if it has a share of a table */
};

#ifdef OLD_KERNEL
#define THREADS_MAX 65536

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, THREADS_MAX);
	__type(key, u64);
	__type(value, struct under_way);
} under_ways SEC(".maps");

static __always_inline struct under_way *call_of(struct task_struct *task)
{
	return entry_of(&under_ways, task);
}

static __always_inline struct under_way *call_made(struct task_struct *task)
{
	struct under_way *call = call_of(task);
	if (call)
		return call;
	struct under_way none = { .owner = svc_owner() };
	return entry_made(&under_ways, THREADS_MAX, task, &none, none.owner);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(svc_syscall_gone, struct task_struct *task)
{
	struct under_way *call = call_of(task);
	if (call)
		entry_ends(&under_ways, task, call->owner);
	return 0;
}
#else
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct under_way);
} under_ways SEC(".maps");

static __always_inline struct under_way *call_of(struct task_struct *task)
{
	return bpf_task_storage_get(&under_ways, task, 0, 0);
}

static __always_inline struct under_way *call_made(struct task_struct *task)
{
	return bpf_task_storage_get(&under_ways, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}
#endif

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SERIES_MAX);
	__type(key, struct svc_syscall_key);
	__type(value, struct svc_syscall);
} syscalls SEC(".maps");

#if defined(__TARGET_ARCH_arm64)
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct thread_info___arm64 {
	unsigned long flags;
};
#pragma clang attribute pop
#define TIF_32BIT 22
#endif

/* 32-bit programs use other numbers. */
static __always_inline bool is_compat(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return OF(task, thread_info.status) & TS_COMPAT;
#else
	return OF((struct thread_info___arm64 *)&task->thread_info, flags) & (1UL << TIF_32BIT);
#endif
}

SEC("tp_btf/sys_enter")
int BPF_PROG(svc_syscall_enter, struct pt_regs *regs, long id)
{
	u64 nr = id;
	if (nr >= NUMBERS || !(wanted[(nr / 64) & (NUMBERS / 64 - 1)] & (1ULL << (nr & 63))))
		return 0;
	struct task_struct *task = current_task();
	if (OF(task, tgid) == self_pid || is_compat(task))
		return 0;
	struct under_way *call = call_made(task);
	if (!call) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	call->nr = nr + 1;
	call->start_ns = bpf_ktime_get_ns();
	return 0;
}

/* Index of the highest bit that is set, in six steps. */
static __always_inline u32 log2_of(u64 value)
{
	u32 bits = 0;
	if (value >> 32) { bits += 32; value >>= 32; }
	if (value >> 16) { bits += 16; value >>= 16; }
	if (value >> 8) { bits += 8; value >>= 8; }
	if (value >> 4) { bits += 4; value >>= 4; }
	if (value >> 2) { bits += 2; value >>= 2; }
	return bits + (value >> 1 ? 1 : 0);
}

/* Error of a call. Codes above 511 never leave the kernel (include/linux/errno.h): interrupted and restarted calls. */
static __always_inline u16 error_of(long ret)
{
	enum { EINTR = 4, ERESTARTSYS = 512, ERESTART_RESTARTBLOCK = 516, ERRNO_MAX = 4095 };
	if (ret >= 0 || ret < -ERRNO_MAX)
		return 0;
	return -ret >= ERESTARTSYS && -ret <= ERESTART_RESTARTBLOCK ? EINTR : -ret;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(svc_syscall_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task = current_task();
	struct under_way *call = call_of(task);
	if (!call || !call->nr)
		return 0;
	u64 took = bpf_ktime_get_ns() - call->start_ns;
	struct svc_syscall_key key = { .pid = OF(task, tgid), .nr = call->nr - 1, .error = error_of(ret) };
	call->nr = 0;
	struct svc_syscall *counted = bpf_map_lookup_elem(&syscalls, &key);
	if (!counted) {
		bpf_map_update_elem(&syscalls, &key, &zero_syscall, BPF_NOEXIST);
		counted = bpf_map_lookup_elem(&syscalls, &key);
		if (!counted) {
			__sync_fetch_and_add(&lost, 1);
			return 0;
		}
	}
	if (!counted->count)
		bpf_probe_read_kernel_str(counted->comm, sizeof(counted->comm), OF(task, group_leader)->comm);
	/* A bound belongs to the bucket below it. */
	u32 power = took > 1 ? log2_of(took - 1) + 1 : 0;
	u32 bucket = power <= FIRST_BUCKET ? 0 : power - FIRST_BUCKET;
	if (bucket >= SVC_SYSCALL_BUCKETS)
		bucket = SVC_SYSCALL_BUCKETS - 1;
	counted->count++;
	counted->sum_ns += took;
	counted->buckets[bucket]++;
	return 0;
}
