/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Host metrics that only the kernel can count: round-trip times, retransmissions, open files of processes. Nothing runs
 * per packet or system call: connections are read when they end, and by an iterator. */
#include "include/kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";


/* Upper bounds of the buckets in microseconds; one more bucket counts the rest. */
const volatile u64 rtt_bounds[14] = {}; /* set before the load, see src/signals/metrics/collectors/ebpf.ts */
u64 rtt_buckets[15];
u64 rtt_sum;
u64 retransmits;

/* Result of the process iterator. */
struct svc_process {
	u32 open_fds;
	char comm[16];
};
const struct svc_process *unused_process __attribute__((unused)); /* keeps the type in BTF */

static __always_inline void observe(struct tcp_sock *tp)
{
	u32 microseconds = tp->srtt_us >> 3; /* stored in eighths (include/linux/tcp.h) */
	if (!microseconds)
		return;
	u32 bucket = 0;
	for (; bucket < 14; bucket++)
		if (microseconds <= rtt_bounds[bucket])
			break;
	if (bucket < 15)
		__sync_fetch_and_add(&rtt_buckets[bucket], 1);
	__sync_fetch_and_add(&rtt_sum, microseconds);
}

SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(svc_host_destroy, struct sock *sk)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (tp)
		observe(tp);
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(svc_host_retransmit)
{
	__sync_fetch_and_add(&retransmits, 1);
	return 0;
}

SEC("iter/tcp")
int svc_host_connections(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	if (!skc || skc->skc_state != TCP_ESTABLISHED)
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(skc);
	if (tp)
		observe(tp);
	return 0;
}

/* Bits set in a word; BPF has no instruction for this. */
static __always_inline u32 ones(u64 word)
{
	word -= (word >> 1) & 0x5555555555555555ULL;
	word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (word * 0x0101010101010101ULL) >> 56;
}

#define WORDS 32
#define CHUNKS 32 /* 65,536 files; further ones of a process are not counted */

SEC("iter/task")
int svc_host_processes(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	if (!task || task->pid != task->tgid || (task->flags & PF_KTHREAD))
		return 0;
	struct files_struct *files = task->files;
	if (!files)
		return 0;
	struct fdtable *table = BPF_CORE_READ(files, fdt);
	u32 most = BPF_CORE_READ(table, max_fds);
	u64 *open_fds = (u64 *)BPF_CORE_READ(table, open_fds);
	struct svc_process process = {};
	u64 words[WORDS];
	for (u32 chunk = 0; chunk < CHUNKS; chunk++) {
		u32 first = chunk * WORDS * 64;
		if (first >= most)
			break;
		u32 here = (most - first + 63) / 64;
		if (here > WORDS)
			here = WORDS;
		__builtin_memset(words, 0, sizeof(words));
		if (bpf_probe_read_kernel(words, (here & 63) * 8, open_fds + chunk * WORDS))
			break;
		for (u32 i = 0; i < WORDS; i++)
			process.open_fds += ones(words[i]);
	}
	bpf_probe_read_kernel_str(process.comm, sizeof(process.comm), task->comm);
	bpf_seq_write(ctx->meta->seq, &process, sizeof(process));
	return 0;
}
