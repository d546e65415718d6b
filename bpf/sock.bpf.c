/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Back end "sock" (kernel 6.3 and later): the tracepoints at the end of sock_sendmsg and sock_recvmsg see every socket
 * call once, from any system call, and add no cost to calls on other files. */
#include "include/caller.h"
#include "include/stream.h"
#include "include/tls.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before load: each call runs two programs. Since Linux 7.0 one of them may be preempted, and the kernel then skips
 * its runs for other tasks on that CPU. The second one handles the skipped calls. */
const volatile bool calls_come_twice;

static __always_inline struct work *work_of(u32 slot)
{
	struct work *w = bpf_map_lookup_elem(&scratch, &slot);
	if (w) {
		w->slot = slot;
		w->now = 0;
		w->failed = 0;
		w->foreign = 0;
		w->segment = 0;
		w->iov_left = 0;
		w->iov = 0;
	}
	return w;
}

#define FOREIGN_MAX 4 /* calls without a known protocol before a connection is given up */

static __always_inline bool is_udp(const struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;
	return (family == AF_INET || family == AF_INET6) && sk->sk_protocol == IPPROTO_UDP;
}

static __always_inline bool is_tcp(const struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;
	return (family == AF_INET || family == AF_INET6) && sk->sk_protocol == IPPROTO_TCP;
}

static __always_inline struct part *part_of(u32 slot)
{
	return bpf_map_lookup_elem(&parts, &slot);
}

/* Whether the first program saw the call. Concurrent senders on one socket may be confused: the order of their bytes is
 * undefined anyway. */
static __always_inline bool has_seen(struct conn *c, struct sock *sk, u32 direction)
{
	struct tcp_sock *tp = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
	u32 position = direction == RX ? tp->copied_seq : tp->write_seq;
	bool seen = c->seen[direction] == position;
	c->seen[direction] = position;
	return seen;
}

/* TCP sequence number of a call's first byte. */
static __always_inline u32 sequence_of(struct sock *sk, u32 direction, u32 length)
{
	struct tcp_sock *tp = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
	u32 position = direction == RX ? tp->copied_seq : tp->write_seq;
	if (direction == RX && sk->sk_shutdown & RCV_SHUTDOWN && position == tp->rcv_nxt)
		position--; /* the call also consumed the peer's FIN, which has a sequence number */
	return position - length;
}

static __noinline int on_stream(struct sock *sk, struct conn *c, struct work *w, u32 sequence)
{
	struct identity id = {};
	struct part *p = part_of(w->slot);
	if (!p)
		return 0;
	if (ports[c->port]) { /* reported as a gap when the port is observed again */
		c->follow.position[w->direction & 1] += w->left;
		return 0;
	}
	identify(&id, sk);
	if (sk->sk_protocol == IPPROTO_UDP && !id.peer_port) {
		id.peer_port = c->udp_port;
		__builtin_memcpy(id.peer_address, c->udp_peer, 16);
	}
	svc_follow(w, &c->follow, &id, p, sequence);
	if (c->follow.off)
		c->mode = OFF;
	return 0;
}

/* The bytes are not HTTP/1: tries other protocols. */
static __noinline int on_foreign(struct sock *sk, struct conn *c, struct work *w, u32 length)
{
	struct stream_state *s = &c->follow;
	struct part *p = part_of(w->slot);
	struct identity id = {};
	if (!p)
		return 0;
	w->iov = 0;
	w->iov_left = 0;
	w->segment = 0;
	w->left = length;
	find_buffers(w, c, bpf_get_current_task_btf());
	identify(&id, sk);
	if (c->joined || c->foreign)
		s->flags |= SVC_SEGMENT_JOINED;
	c->stream[REQUEST].start_len = 0;
	if (!recognise(w, s, &id, p, c->role)) {
		w->left = 0;
		if (c->joined ? c->misses++ < 254 : c->foreign++ < FOREIGN_MAX)
			return 0;
		count(svc_counter_not_recognised);
		c->mode = OFF;
		return 0;
	}
	bool server = s->flags & SVC_SEGMENT_SERVER;
	/* The semantic conventions define spans of databases, brokers and resolvers only for clients. */
	if (server && s->protocol != svc_protocol_http2) {
		c->mode = OFF;
		return 0;
	}
	c->mode = STREAM;
	c->port = server ? id.local_port : id.peer_port;
	s->position[0] = 0;
	s->position[1] = 0;
	if (is_blocking(sk))
		s->flags |= SVC_SEGMENT_BLOCKING;
	count(svc_counter_streams);
	return on_stream(sk, c, w, sequence_of(sk, w->direction, length));
}

/* No more bytes follow on a connection that is read in user space. Called by the holder of its lock. */
static __noinline int end_stream(struct sock *sk, struct conn *c, u32 slot)
{
	struct identity id = {};
	struct part *p = part_of(slot);
	if (!p || c->mode != STREAM)
		return 0;
	c->mode = OFF;
	identify(&id, sk);
	return follow_end(&c->follow, &id, p, bpf_ktime_get_ns(), sk->sk_err);
}

/* The same for other callers. May run in an interrupt of the holder, or while the last bytes are being sent, so it does
 * not wait: the holder completes it. */
static __always_inline void on_stream_end(struct sock *sk, struct conn *c, u32 slot)
{
	struct attempt attempt = { .c = c };
	if (!try_lock(0, &attempt)) {
		c->closing = 1;
		return;
	}
	end_stream(sk, c, slot);
	unlock(c);
}

/* Whether nothing is left to read; false if a call only requested zero bytes. */
static __always_inline bool at_end(const struct sock *sk)
{
	struct tcp_sock *tp = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
	return sk->sk_shutdown & RCV_SHUTDOWN && tp->rcv_nxt - tp->copied_seq <= 1;
}

/* Name lookups: only the client side of port 53 is followed. */
static __noinline int on_datagram(struct sock *sk, int ret, int flags, u32 direction)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (c && c->mode == OFF)
		return 0;
	if (!c && (direction == RX || !(protocols_enabled & 1U << svc_protocol_dns)))
		return 0;
	u16 peer_port = bpf_ntohs(sk->__sk_common.skc_dport);
	if (!c && peer_port && peer_port != DNS_PORT)
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	if (task->flags & PF_KTHREAD)
		return 0;
	if (!c) {
		c = bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
		if (!c)
			return 0;
		c->mode = STREAM;
		c->follow.protocol = svc_protocol_dns;
		c->port = DNS_PORT;
	}
	if (task->tgid == self_pid) {
		c->mode = OFF;
		return 0;
	}
	struct work *w = work_of(direction);
	if (!w)
		return 0;
	w->direction = direction;
	w->left = ret;
	if (!lock(c))
		return 0; /* a single message: nothing else depends on it */
	if (!(flags & MSG_TRUNC)) /* its length may exceed the buffer */
		find_buffers(w, c, task);
	if (direction == TX && !peer_port && !find_peer(c, task))
		c->mode = OFF;
	else
		on_stream(sk, c, w, 0);
	unlock(c);
	return 0;
}

static __always_inline int on_call(struct sock *sk, int ret, int flags, int direction, bool again)
{
	if (ret < 0 || (again && (!ret || !is_tcp(sk))))
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	struct serving *serving = serving_of(task);
	if (direction == RX && !again)
		heard_from(serving, task, sk);
	if (!is_tcp(sk))
		return is_udp(sk) && ret > 0 ? on_datagram(sk, ret, flags, direction) : 0;
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (c && calls_come_twice && ret && has_seen(c, sk, direction) && again)
		return 0;
	tls_nested(sk, c, task, direction, ret);
	if (direction == TX && c && c->mode == SERVER)
		answers_on(serving, sk);
	if (c && (c->mode == OFF || (c->joined && c->mode != STREAM && ports[c->port])))
		return 0;
	if (task->flags & PF_KTHREAD)
		return 0;
	if (!c) { /* opened before the agent started, and not found by the iterator */
		c = bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
		if (!c) {
			count(svc_counter_storage_full);
			return 0;
		}
		c->joined = 1;
		if (calls_come_twice && ret)
			has_seen(c, sk, direction);
	}
	/* Ignores the agent's own calls, and the kernel's on behalf of a caller (network file systems). */
	if (task->tgid == self_pid || (c->mode == UNKNOWN && BPF_CORE_READ_BITFIELD(sk, sk_kern_sock))) {
		c->mode = OFF;
		return 0;
	}
	struct work *w = work_of(again ? 4 + direction : direction);
	if (!w)
		return 0;
	if (!ret) { /* end of the peer's stream */
		if (direction == TX || !at_end(sk))
			return 0;
		if (c->mode == STREAM && !(c->follow.flags & SVC_SEGMENT_SERVER))
			on_stream_end(sk, c, 0);
		if (c->mode == CLIENT && c->stream[RESPONSE].state == BODY_CLOSE)
			on_close(sk, c, w);
		return 0;
	}
	w->direction = direction;
	w->left = ret;
	if (!(flags & MSG_TRUNC)) /* such bytes are discarded, not copied */
		find_buffers(w, c, task);
	if (!lock(c)) {
		c->lost = 1;
		/* For a stream this is reported as a gap; the holder usually handles the other direction. */
		__sync_fetch_and_add(&c->follow.position[direction], ret);
		return 0;
	}
	if (c->mode == STREAM) {
		on_stream(sk, c, w, sequence_of(sk, direction, ret));
		if (c->closing)
			end_stream(sk, c, w->slot);
		unlock(c);
		return 0;
	}
	struct step step = { .sk = sk, .c = c, .w = w, .task = task, .serving = serving };
	if (c->mode == UNKNOWN && !(protocols_enabled & 1U << svc_protocol_http1))
		w->foreign = 1;
	else
		on_data(&step);
	if (w->foreign)
		on_foreign(sk, c, w, ret);
	leave(&step);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(svc_sock_send, struct sock *sk, int ret, int flags)
{
	return on_call(sk, ret, 0, TX, false);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(svc_sock_again_send, struct sock *sk, int ret, int flags)
{
	return on_call(sk, ret, 0, TX, true);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(svc_sock_recv, struct sock *sk, int ret, int flags)
{
	if (flags & (MSG_PEEK | MSG_ERRQUEUE))
		return 0;
	return on_call(sk, ret, flags, RX, false);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(svc_sock_again_recv, struct sock *sk, int ret, int flags)
{
	if (flags & (MSG_PEEK | MSG_ERRQUEUE))
		return 0;
	return on_call(sk, ret, flags, RX, true);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(svc_sock_state, struct sock *sk, int from, int to)
{
	if (sk->sk_protocol != IPPROTO_TCP)
		return 0;
	if (to == TCP_SYN_SENT || (from == TCP_SYN_RECV && to == TCP_ESTABLISHED)) {
		/* observed from the first byte */
		struct conn *made = bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
		if (made)
			made->role = to == TCP_SYN_SENT ? OPENS_CLIENT : OPENS_SERVER;
		else
			count(svc_counter_storage_full);
		return 0;
	}
	if (to == TCP_CLOSE)
		tls_closed(sk);
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (c && c->mode == STREAM && to == TCP_CLOSE) {
		struct tcp_sock *tp = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
		if (tp->rcv_nxt - tp->copied_seq <= 1)
			on_stream_end(sk, c, 2);
		return 0;
	}
	if (!c || (c->mode != SERVER && c->mode != CLIENT) || c->answered >= c->asked)
		return 0;
	bool sent_all = to == TCP_FIN_WAIT1 || to == TCP_LAST_ACK, ended;
	if (c->mode == SERVER) { /* a server that shuts its side sends no more responses */
		ended = sent_all || to == TCP_CLOSE;
	} else { /* a client may still read unread data, or data that arrives after it shut only its own side */
		struct tcp_sock *tp = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
		u32 unread = tp->rcv_nxt - tp->copied_seq; /* the peer's FIN counts as one */
		ended = unread <= 1 && (to == TCP_CLOSE || (sent_all && sk->sk_shutdown == SHUTDOWN_BOTH));
	}
	struct work *w = ended ? work_of(2) : 0;
	if (w)
		on_close(sk, c, w);
	return 0;
}

/* Destruction of a socket, for exchanges that no state change ended. */
SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(svc_sock_destroy, struct sock *sk)
{
	tls_closed(sk);
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (!c)
		return 0;
	if (c->mode == STREAM) {
		on_stream_end(sk, c, 3);
		return 0;
	}
	if ((c->mode != SERVER && c->mode != CLIENT) || c->answered >= c->asked)
		return 0;
	struct work *w = work_of(3);
	if (w)
		on_close(sk, c, w);
	return 0;
}

/* A thread started for a request works on it. */
SEC("tp_btf/task_newtask")
int BPF_PROG(svc_sock_thread, struct task_struct *task, u64 flags)
{
	if (!(flags & CLONE_THREAD) || task->tgid == self_pid)
		return 0;
	u64 waiting = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
	if (waiting > ring_wakeup_bytes && !svc_has_room(svc_owner(), sizeof(struct svc_thread), waiting))
		return 0;
	struct svc_thread record = {
		.kind = svc_kind_thread,
		.pid = task->tgid,
		.parent = (u32)bpf_get_current_pid_tgid(),
		.tid = task->pid,
	};
	bpf_ringbuf_output(&ring, &record, sizeof(record), BPF_RB_NO_WAKEUP);
	return 0;
}

/* Existing sockets. Runs in the agent's own context, which shows the agent its pid in the initial namespace. Writes one
 * svc_socket per TCP socket of a process. */
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
