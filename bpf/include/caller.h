/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Arguments of a socket call's caller: its buffers and its destination, from the system call. */
#pragma once
#include "maps.h"

#define DNS_PORT 53

/* The messages of one sendmmsg or recvmmsg come one by one, in order: returns the current one. */
static __always_inline u64 message_of(struct conn *c, u64 messages, u64 count)
{
	c->message = c->messages == messages && c->message + 1 < count ? c->message + 1 : 0;
	c->messages = messages;
	return messages + 64 * (u64)c->message; /* struct mmsghdr: 64 bytes on 64 bits */
}

static __always_inline void find_vectors(struct work *w, u64 message)
{
	u64 vector[2]; /* struct user_msghdr: msg_iov at 16, msg_iovlen at 24 */
	if (bpf_probe_read_user(vector, sizeof(vector), (void *)(message + 16))) {
		count(svc_counter_fault);
		return;
	}
	w->iov = vector[0];
	w->iov_left = vector[1];
}

/* Describes the caller's buffers. They are valid until the system call returns. */
static __always_inline int find_buffers(struct work *w, struct conn *c, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if (task->flags & PF_IO_WORKER) {
		count(svc_counter_io_uring);
		return 0;
	}
#if defined(__TARGET_ARCH_x86)
	if (task->thread_info.status & TS_COMPAT) {
		count(svc_counter_compat32);
		return 0;
	}
#endif
	switch (SYSCALL_NR(regs)) {
	case NR_read:
	case NR_write:
	case NR_sendto:
	case NR_recvfrom:
		w->base = SYSCALL_ARG1(regs);
		w->segment = w->left;
		break;
	case NR_readv:
	case NR_writev:
	case NR_preadv2:
	case NR_pwritev2:
		w->iov = SYSCALL_ARG1(regs);
		w->iov_left = SYSCALL_ARG2(regs);
		break;
	case NR_sendmsg:
	case NR_recvmsg:
		find_vectors(w, SYSCALL_ARG1(regs));
		break;
	case NR_sendmmsg:
	case NR_recvmmsg:
		find_vectors(w, message_of(c, SYSCALL_ARG1(regs), SYSCALL_ARG2(regs)));
		break;
	case NR_io_uring_enter:
		count(svc_counter_io_uring);
		break;
	}
	return 0;
}

/* Destination of an unconnected socket; false: not a name server. */
static __noinline int find_peer(struct conn *c, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 name = 0;
	u8 address[28]; /* struct sockaddr_in6; in sockaddr_in the port is at the same offset */
	switch (SYSCALL_NR(regs)) {
	case NR_sendto:
		name = SYSCALL_ARG4(regs);
		break;
	case NR_sendmsg:
		bpf_probe_read_user(&name, sizeof(name), (void *)SYSCALL_ARG1(regs));
		break;
	case NR_sendmmsg:
		bpf_probe_read_user(&name, sizeof(name), (void *)(c->messages + 64 * (u64)c->message));
		break;
	}
	if (!name || bpf_probe_read_user(address, 16, (void *)name))
		return 0;
	u16 family = address[0] | address[1] << 8;
	c->udp_port = BE16(address + 2);
	if (c->udp_port != DNS_PORT)
		return 0;
	if (family == AF_INET6) {
		if (bpf_probe_read_user(c->udp_peer, 16, (void *)(name + 8)))
			return 0;
		return 1;
	}
	__builtin_memset(c->udp_peer, 0, 10);
	c->udp_peer[10] = 0xff;
	c->udp_peer[11] = 0xff;
	__builtin_memcpy(c->udp_peer + 12, address + 4, 4);
	return 1;
}
