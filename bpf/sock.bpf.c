/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Back end "sock" (kernel 6.3 and newer): the tracepoints at the end of sock_sendmsg and sock_recvmsg see every socket
 * call once, whatever system call it came by, and cost nothing to calls on other files. */
#include "include/stream.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline struct work *work_of(u32 slot)
{
	struct work *w = bpf_map_lookup_elem(&scratch, &slot);
	if (w) {
		w->now = 0;
		w->failed = 0;
		w->segment = 0;
		w->iov_left = 0;
		w->iov = 0;
	}
	return w;
}

static __always_inline bool is_tcp(const struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;
	return (family == AF_INET || family == AF_INET6) && sk->sk_protocol == IPPROTO_TCP;
}

/* Describes the caller's buffers. They keep their place until the system call returns. */
static __always_inline void find_buffers(struct work *w, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if (task->flags & PF_IO_WORKER) {
		count(svc_counter_io_uring);
		return;
	}
#if defined(__TARGET_ARCH_x86)
	if (task->thread_info.status & TS_COMPAT) {
		count(svc_counter_compat32);
		return;
	}
#endif
	u64 vector[2];
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
	case NR_recvmsg: /* struct user_msghdr: msg_iov at 16, msg_iovlen at 24 */
		if (bpf_probe_read_user(vector, sizeof(vector), (void *)(SYSCALL_ARG1(regs) + 16))) {
			count(svc_counter_fault);
			break;
		}
		w->iov = vector[0];
		w->iov_left = vector[1];
		break;
	case NR_io_uring_enter:
		count(svc_counter_io_uring);
		break;
	}
}

static __always_inline int on_call(struct sock *sk, int ret, int flags, int direction)
{
	if (ret < 0 || !is_tcp(sk))
		return 0;
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (c && (c->mode == OFF || (c->joined && ports[c->port])))
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	if (task->flags & PF_KTHREAD)
		return 0;
	if (!c) { /* opened before the agent started, and not found by the iterator */
		c = bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
		if (!c) {
			count(svc_counter_storage_full);
			return 0;
		}
		c->joined = 1;
	}
	/* The agent never traces itself, nor what the kernel sends in a caller's name (network file systems). */
	if (task->tgid == self_pid || (c->mode == UNKNOWN && BPF_CORE_READ_BITFIELD(sk, sk_kern_sock))) {
		c->mode = OFF;
		return 0;
	}
	struct work *w = work_of(direction);
	if (!w)
		return 0;
	if (!ret) { /* end of the peer's stream */
		if (direction == RX && c->mode == CLIENT && c->stream[RESPONSE].state == BODY_CLOSE)
			on_close(sk, c, w);
		return 0;
	}
	w->direction = direction;
	w->left = ret;
	if (!(flags & MSG_TRUNC)) /* such bytes are discarded, not copied */
		find_buffers(w, task);
	if (!lock(c)) {
		c->lost = 1;
		return 0;
	}
	on_data(sk, c, w);
	leave(sk, c, w);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(svc_sock_send, struct sock *sk, int ret, int flags)
{
	return on_call(sk, ret, 0, TX);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(svc_sock_recv, struct sock *sk, int ret, int flags)
{
	if (flags & (MSG_PEEK | MSG_ERRQUEUE))
		return 0;
	return on_call(sk, ret, flags, RX);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(svc_sock_state, struct sock *sk, int from, int to)
{
	if (sk->sk_protocol != IPPROTO_TCP)
		return 0;
	if (to == TCP_SYN_SENT || (from == TCP_SYN_RECV && to == TCP_ESTABLISHED)) {
		/* seen from its first byte on */
		if (!bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE))
			count(svc_counter_storage_full);
		return 0;
	}
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (!c || c->mode < SERVER || c->answered >= c->asked)
		return 0;
	bool sent_all = to == TCP_FIN_WAIT1 || to == TCP_LAST_ACK, ended;
	if (c->mode == SERVER) { /* who shuts its side answers no more */
		ended = sent_all || to == TCP_CLOSE;
	} else { /* a client may still read: what it has not read yet, or what comes after it shut its own side only */
		struct tcp_sock *tp = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
		u32 unread = tp->rcv_nxt - tp->copied_seq; /* the peer's FIN counts as one */
		ended = unread <= 1 && (to == TCP_CLOSE || (sent_all && sk->sk_shutdown == SHUTDOWN_BOTH));
	}
	struct work *w = ended ? work_of(2) : 0;
	if (w)
		on_close(sk, c, w);
	return 0;
}

/* The last moment of a socket, for what the states did not end. */
SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(svc_sock_destroy, struct sock *sk)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (!c || c->mode < SERVER || c->answered >= c->asked)
		return 0;
	struct work *w = work_of(3);
	if (w)
		on_close(sk, c, w);
	return 0;
}

/* Sockets that exist already. Runs in the agent's own context, which is how the agent learns its pid in the initial
 * namespace. Writes one svc_socket for each TCP socket of a process. */
SEC("iter/task_file")
int svc_sock_bootstrap(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	self_pid = bpf_get_current_pid_tgid() >> 32;
	if (!task || !file || task->tgid != task->pid)
		return 0;
	struct socket *socket = bpf_sock_from_file(file);
	if (!socket || !socket->sk || !is_tcp(socket->sk))
		return 0;
	struct sock *sk = socket->sk;
	struct svc_socket row = {
		.pid = task->tgid,
		.port = sk->__sk_common.skc_num,
		.state = sk->__sk_common.skc_state,
		.family = sk->__sk_common.skc_family,
	};
	bpf_seq_write(ctx->meta->seq, &row, sizeof(row));
	if (row.state == TCP_LISTEN || row.state == TCP_CLOSE)
		return 0;
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (c)
		return 0;
	c = bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!c)
		return 0;
	c->joined = 1;
	if (task->tgid == self_pid)
		c->mode = OFF;
	count(svc_counter_sockets_found);
	return 0;
}
