/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The kernel types that the programs read, for CO-RE: names and members as in the kernel, offsets by relocation. */
#pragma once
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "old-kernel.h"

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

typedef struct {
	s64 counter;
} atomic64_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
};

struct socket;

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
	u8 sk_shutdown;
	unsigned int sk_kern_sock : 1;
	int sk_err;
	struct socket *sk_socket;
};

struct inet_sock {
	u16 inet_sport; /* network order; kept when a closing socket returns its port, unlike skc_num */
};

struct tcp_sock {
	u32 rcv_nxt;
	u32 copied_seq;
	u32 write_seq;
	u32 srtt_us; /* eighths of a microsecond */
};

struct file {
	unsigned int f_flags;
};

struct fdtable {
	unsigned int max_fds;
	unsigned long *open_fds;
};

struct files_struct {
	struct fdtable *fdt;
};

struct socket {
	struct sock *sk;
	struct file *file;
};

struct thread_info {
	u32 status; /* x86: TS_COMPAT */
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	char comm[16];
	struct files_struct *files;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

/* Registers of a system call: the arguments keep their values until the task returns to user space. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long di, si, dx, r8, orig_ax;
};
#define SYSCALL_NR(regs) ((u32)(regs)->orig_ax)
#define SYSCALL_ARG1(regs) ((regs)->si) /* the second argument */
#define SYSCALL_ARG2(regs) ((regs)->dx)
#define SYSCALL_ARG4(regs) ((regs)->r8)
enum { NR_read = 0, NR_write = 1, NR_readv = 19, NR_writev = 20, NR_sendto = 44, NR_recvfrom = 45,
       NR_sendmsg = 46, NR_recvmsg = 47, NR_preadv2 = 327, NR_pwritev2 = 328,
       NR_recvmmsg = 299, NR_sendmmsg = 307, NR_io_uring_enter = 426 };
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31];
	s32 syscallno;
};
#define SYSCALL_NR(r) ((u32)(r)->syscallno)
#define SYSCALL_ARG1(r) ((r)->regs[1])
#define SYSCALL_ARG2(r) ((r)->regs[2])
#define SYSCALL_ARG4(r) ((r)->regs[4])
enum { NR_read = 63, NR_write = 64, NR_readv = 65, NR_writev = 66, NR_sendto = 206,
       NR_recvfrom = 207, NR_sendmsg = 211, NR_recvmsg = 212, NR_preadv2 = 286, NR_pwritev2 = 287,
       NR_recvmmsg = 243, NR_sendmmsg = 269, NR_io_uring_enter = 426 };
#endif

#pragma clang attribute pop

extern void *bpf_rdonly_cast(const void *object, __u32 btf_id) __ksym; /* 6.2; no cost at run time */

enum { TCP_ESTABLISHED = 1, TCP_SYN_SENT, TCP_SYN_RECV, TCP_FIN_WAIT1, TCP_FIN_WAIT2, TCP_TIME_WAIT, TCP_CLOSE,
       TCP_CLOSE_WAIT, TCP_LAST_ACK, TCP_LISTEN };
enum { AF_INET = 2, AF_INET6 = 10, IPPROTO_TCP = 6, IPPROTO_UDP = 17 };
enum { O_NONBLOCK = 04000, CLONE_THREAD = 0x10000 };
enum { MSG_PEEK = 0x2, MSG_TRUNC = 0x20, MSG_ERRQUEUE = 0x2000 };
enum { PF_IO_WORKER = 0x10, PF_KTHREAD = 0x200000, TS_COMPAT = 0x2, RCV_SHUTDOWN = 1, SHUTDOWN_BOTH = 3 };
enum { MONOTONIC_SECOND = 1000000000 };
