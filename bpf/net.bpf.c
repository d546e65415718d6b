/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counts TCP connections by process and peer: duration and failures of connects, bytes, round trips, retransmissions,
 * resets. Nothing runs per packet or call: the kernel keeps totals per connection, which are read when it ends and,
 * before that, by an iterator. */
#include "include/kernel.h"
#include "include/net-conn.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Keeps the types in BTF. */
const enum svc_net_side *unused_side __attribute__((unused));
const enum svc_net_failure *unused_failure __attribute__((unused));

#define EPHEMERAL 32768 /* usual start of net.ipv4.ip_local_port_range */
#define DONE 2UL        /* 1 << SOCK_DONE: the peer's FIN was received (include/net/sock.h) */

enum { ECONNRESET = 104, ETIMEDOUT = 110, ECONNREFUSED = 111, EHOSTUNREACH = 113, ENETUNREACH = 101, ECANCELED = 125 };

/* Set before load: upper bounds of the buckets; one more bucket counts the rest. See src/signals/capture/network.ts. */
const volatile u64 connect_bounds_ns[SVC_NET_BUCKETS - 1] = {};
const volatile u64 rtt_bounds_us[SVC_NET_BUCKETS - 1] = {};
static const struct svc_net_pair zero_pair;

u32 self_pid;    /* set by the iterator, which runs in the agent's own context */
u32 watching;    /* 1: all listening ports are known, so older connections can be joined */
u64 overflowed;  /* events that were counted in `overflow` */
u64 storage_full; /* connections that are not watched: no memory for their state */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PAIRS_MAX);
	__type(key, struct svc_net_key);
	__type(value, struct svc_net_pair);
} pairs SEC(".maps");

/* Counts whatever has no pair, so that totals stay exact. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct svc_net_pair);
} overflow SEC(".maps");

static __always_inline struct svc_net_pair *pair_of(struct conn *c)
{
	struct svc_net_pair *pair = bpf_map_lookup_elem(&pairs, &c->key);
	if (pair)
		return pair;
	u32 owner = c->owner & (OWNERS - 1);
	bool made = may_have_pair(owner) && !bpf_map_update_elem(&pairs, &c->key, &zero_pair, BPF_NOEXIST);
	if (made)
		has_pair(owner);
	pair = bpf_map_lookup_elem(&pairs, &c->key);
	if (pair) {
		if (made)
			pair->owner = owner;
		__builtin_memcpy(pair->comm, c->comm, sizeof(pair->comm));
		return pair;
	}
	u32 zero = 0;
	__sync_fetch_and_add(&overflowed, 1);
	return bpf_map_lookup_elem(&overflow, &zero);
}

static __always_inline void observe(u64 *buckets, const volatile u64 *bounds, u64 value)
{
	u32 bucket = 0;
	for (; bucket < SVC_NET_BUCKETS - 1; bucket++)
		if (value <= bounds[bucket])
			break;
	if (bucket < SVC_NET_BUCKETS)
		__sync_fetch_and_add(&buckets[bucket], 1);
}

static __always_inline void addresses(struct svc_net_key *key, struct sock *sk)
{
	struct sock_common *skc = &sk->__sk_common;
	u32 *local = (u32 *)key->local_address, *peer = (u32 *)key->peer_address;
	if (OF(skc, skc_family) == AF_INET6) {
		for (int i = 0; i < 4; i++) {
			local[i] = OF(skc, skc_v6_rcv_saddr.in6_u.u6_addr32[i]);
			peer[i] = OF(skc, skc_v6_daddr.in6_u.u6_addr32[i]);
		}
		return;
	}
	local[0] = local[1] = peer[0] = peer[1] = 0;
	local[2] = peer[2] = bpf_htonl(0xffff);
	local[3] = OF(skc, skc_rcv_saddr);
	peer[3] = OF(skc, skc_daddr);
}

/* The current process has the socket. */
static __always_inline void own(struct conn *c)
{
	struct task_struct *task = current_task();
	if (OF(task, flags) & PF_KTHREAD)
		return;
	c->key.pid = OF(task, tgid);
	bpf_probe_read_kernel_str(c->comm, sizeof(c->comm), OF(task, group_leader)->comm);
	c->owner = svc_owner();
	c->owned = 1;
}

/* Starts counting a connection in any state: a socket can be connected again. */
static __always_inline void begin(struct conn *c, struct sock *sk, u8 side)
{
	addresses(&c->key, sk);
	c->key.netns = netns_of(sk);
	c->key.side = side;
	c->key.port = side == svc_net_side_client ? bpf_ntohs(OF(sk, __sk_common.skc_dport)) : OF(sk, __sk_common.skc_num);
	c->counted = 0;
	c->start_ns = 0;
	c->sent = c->received = c->retransmits = c->observed = 0;
	c->resets[0] = c->resets[1] = 0;
#ifdef OLD_KERNEL
	c->told[0] = c->told[1] = c->ends = 0;
#endif
	c->owned = c->joined = 0;
	c->active = 1;
}

static __always_inline u64 received_of(struct tcp_sock___net *tp, struct sock *sk)
{
	u64 bytes = OF(tp, bytes_received);
	bool fin = OF((struct sock_common___net *)sk, skc_flags) & DONE;
	return bytes && fin ? bytes - 1 : bytes;
}

/* Adds the new counts of a connection to its pair. */
static __always_inline struct svc_net_pair *account(struct conn *c, struct sock *sk, struct tcp_sock *tcp,
						     bool established, bool last)
{
	struct tcp_sock___net *tp = (struct tcp_sock___net *)tcp;
	struct svc_net_pair *pair = pair_of(c);
	if (!pair)
		return 0;
	if (established && is_opened(c)) {
		__sync_fetch_and_add(&pair->open, 1);
		if (!c->joined)
			__sync_fetch_and_add(&pair->opened, 1);
	}
	u64 more = grown(&c->sent, OF(tp, bytes_sent) - OF(tp, bytes_retrans));
	if (more)
		__sync_fetch_and_add(&pair->sent, more);
	more = grown(&c->received, received_of(tp, sk));
	if (more)
		__sync_fetch_and_add(&pair->received, more);
	more = grown(&c->retransmits, OF(tp, total_retrans));
	if (more)
		__sync_fetch_and_add(&pair->retransmits, more);
	if (c->resets[0])
		__sync_fetch_and_add(&pair->resets_received, new_resets(c, 0));
	if (c->resets[1])
		__sync_fetch_and_add(&pair->resets_sent, new_resets(c, 1));
	/* A round trip is counted once, and again after further bytes. */
	u32 rtt = OF(tp, srtt_us) >> 3;
	u64 mark = c->sent + 1;
	if (established && rtt && (last || mark > 1) && is_marked(c, mark)) {
		observe(pair->rtt_buckets, rtt_bounds_us, rtt);
		__sync_fetch_and_add(&pair->rtt_us, rtt);
	}
	return pair;
}

static __always_inline u32 failure_of(struct sock *sk)
{
	switch (OF(sk, sk_err)) {
	case ECONNREFUSED:
		return svc_net_failure_refused;
	case ETIMEDOUT:
		return svc_net_failure_timed_out;
	case EHOSTUNREACH:
		return svc_net_failure_host_unreachable;
	case ENETUNREACH:
		return svc_net_failure_network_unreachable;
	case ECONNRESET:
		return svc_net_failure_reset;
	case ECANCELED:
		return svc_net_failure_cancelled;
	case 0: /* close(2) has shut both sides by now, a failed connect(2) has not */
		return OF(sk, sk_shutdown) == SHUTDOWN_BOTH ? svc_net_failure_cancelled : svc_net_failure_local;
	default:
		return svc_net_failure_other;
	}
}

static __always_inline void on_connecting(struct sock *sk)
{
	struct conn *c = CONN_MADE(sk, svc_owner());
	if (!c) {
		__sync_fetch_and_add(&storage_full, 1);
		return;
	}
	begin(c, sk, svc_net_side_client);
	own(c);
	c->start_ns = bpf_ktime_get_ns();
	if (c->key.pid == self_pid || !c->owned)
		c->active = 0;
}

static __always_inline void on_connected(struct conn *c, struct sock *sk, struct tcp_sock *tp)
{
	u64 took = bpf_ktime_get_ns() - c->start_ns;
	c->start_ns = 0;
	/* The port may have been chosen with the route. */
	addresses(&c->key, sk);
	struct svc_net_pair *pair = account(c, sk, tp, true, false);
	if (!pair)
		return;
	observe(pair->connect_buckets, connect_bounds_ns, took);
	__sync_fetch_and_add(&pair->connect_ns, took);
}

static __always_inline void on_accepted(struct sock *sk)
{
	struct conn *c = conn_accepted(sk);
	if (!c) {
		__sync_fetch_and_add(&storage_full, 1);
		return;
	}
	begin(c, sk, svc_net_side_server);
	if (self_pid && c->key.pid == self_pid)
		c->active = 0;
}

/* Whether the handshake was missed: only its listener's state is known. */
static __always_inline bool was_missed(struct conn *c)
{
	return !c->active && !c->key.port && c->key.pid != self_pid;
}

static __always_inline void on_listening(struct sock *sk)
{
#ifdef OLD_KERNEL
	struct conn listener = {};
	own(&listener);
	keep_listener(sk, &listener, BPF_ANY);
#else
	struct conn *c = CONN_MADE(sk, 0);
	if (c)
		own(c);
#endif
}

static __always_inline void on_closed(struct conn *c, struct sock *sk, struct tcp_sock *tp, bool connecting)
{
	struct svc_net_pair *pair = account(c, sk, tp, !connecting, true);
	c->active = 0;
	if (!pair)
		return;
	if (!connecting) {
		__sync_fetch_and_add(&pair->open, -1);
		return;
	}
	u32 failure = failure_of(sk);
	if (failure < svc_net_failure_count)
		__sync_fetch_and_add(&pair->failures[failure], 1);
}

#ifdef OLD_KERNEL
static __always_inline void count_end(struct conn *c, struct sock *sk)
{
	if (!claim(sk))
		return; /* its owner counts the end too */
	if (c->active)
		on_closed(c, sk, tcp_of(sk), c->ends == ENDS_CONNECTING);
	release(sk);
}

static __always_inline void end(struct conn *c, struct sock *sk, struct tcp_sock *tp, bool connecting)
{
	c->ends = connecting ? ENDS_CONNECTING : ENDS_OPEN;
	count_end(c, sk);
}

static __always_inline void look(struct conn *c, struct sock *sk, struct tcp_sock *tp)
{
	if (!claim(sk))
		return;
	if (c->active)
		account(c, sk, tp, true, false);
	release(sk);
	if (c->ends)
		count_end(c, sk);
}
#else
static __always_inline void end(struct conn *c, struct sock *sk, struct tcp_sock *tp, bool connecting)
{
	on_closed(c, sk, tp, connecting);
}

static __always_inline void look(struct conn *c, struct sock *sk, struct tcp_sock *tp)
{
	account(c, sk, tp, true, false);
}
#endif

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(svc_net_state, struct sock *sk, int from, int to)
{
	if (sk->sk_protocol != IPPROTO_TCP)
		return 0;
	if (to == TCP_SYN_SENT) {
		if (!BPF_CORE_READ_BITFIELD(sk, sk_kern_sock))
			on_connecting(sk);
		return 0;
	}
	if (to == TCP_LISTEN) {
		if (!BPF_CORE_READ_BITFIELD(sk, sk_kern_sock))
			on_listening(sk);
		return 0;
	}
	struct conn *c = conn_of(sk);
	if (to == TCP_ESTABLISHED) {
		struct tcp_sock *tp = c && c->start_ns ? tcp_of(sk) : 0;
		if (tp) { /* also from SYN_RECV: both sides may open at once */
			if (c->active)
				on_connected(c, sk, tp);
		} else if (from == TCP_SYN_RECV && !BPF_CORE_READ_BITFIELD(sk, sk_kern_sock)) {
			on_accepted(sk);
		}
		return 0;
	}
	if (!c || from == TCP_LISTEN)
		return 0;
	if (was_missed(c) && from != TCP_SYN_RECV)
		begin(c, sk, svc_net_side_server);
	if (!c->active)
		return 0;
	/* These, and a close with both sides shut, occur only in the process that has the socket. */
	bool by_owner = to == TCP_FIN_WAIT1 || to == TCP_LAST_ACK ||
			(to == TCP_CLOSE && sk->sk_shutdown == SHUTDOWN_BOTH);
	if (by_owner && !c->owned)
		own(c);
	if (to != TCP_CLOSE)
		return 0;
	struct tcp_sock *tp = tcp_of(sk);
	if (tp)
		end(c, sk, tp, c->start_ns && (from == TCP_SYN_SENT || from == TCP_SYN_RECV));
	return 0;
}

/* A program does not run inside itself: a state change in an interrupt of another one is missed, about once in a
 * million. The destruction of the socket makes up for a missed end. */
SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(svc_net_destroy, struct sock *sk)
{
	struct conn *c = conn_of(sk);
	struct tcp_sock *tp = c && c->active ? tcp_of(sk) : 0;
	if (tp)
		end(c, sk, tp, c->start_ns && !OF(tp, srtt_us));
	if (c)
		let_go(c, sk);
	return 0;
}

static __always_inline void on_reset(const struct sock *sk, u32 direction)
{
	if (!sk)
		return;
	struct conn *c = conn_of((struct sock *)sk);
	/* A refused connection is a failure, not a reset; a listener has no pair. */
	if (!c || !c->key.port || c->start_ns)
		return;
	if (c->active) {
		__sync_fetch_and_add(&c->resets[direction & 1], 1);
		return;
	}
	if (!c->counted)
		return;
	struct svc_net_pair *pair = pair_of(c);
	if (pair)
		__sync_fetch_and_add(direction ? &pair->resets_sent : &pair->resets_received, 1);
}

SEC("tp_btf/tcp_receive_reset")
int BPF_PROG(svc_net_reset_received, struct sock *sk)
{
	on_reset(sk, 0);
	return 0;
}

SEC("tp_btf/tcp_send_reset")
int BPF_PROG(svc_net_reset_sent, const struct sock *sk)
{
	on_reset(sk, 1);
	return 0;
}

/* Joins a connection that existed before: its previous bytes are not counted. */
static __always_inline void join(struct conn *c, struct sock *sk, struct tcp_sock *tcp)
{
	struct endpoint here = { .netns = netns_of(sk), .port = OF(sk, __sk_common.skc_num) };
	u16 there = bpf_ntohs(OF(sk, __sk_common.skc_dport));
	bool server = bpf_map_lookup_elem(&listening, &here) || (there >= EPHEMERAL && here.port < EPHEMERAL);
	struct tcp_sock___net *tp = (struct tcp_sock___net *)tcp;
	begin(c, sk, server ? svc_net_side_server : svc_net_side_client);
	c->joined = 1;
	c->sent = OF(tp, bytes_sent) - OF(tp, bytes_retrans);
	c->received = received_of(tp, sk);
	c->retransmits = OF(tp, total_retrans);
	c->observed = c->sent + 1;
}

/* Helpers report groups only for the current process. */
static __always_inline u32 owner_of(struct task_struct *task)
{
	u32 user = user_of(task);
	return owner_number(group_of_user(user), (u64)user << 32);
}

static __always_inline void take_owner(struct conn *c, struct task_struct *task)
{
	c->key.pid = task->tgid;
	bpf_probe_read_kernel_str(c->comm, sizeof(c->comm), task->comm);
	c->owner = owner_of(task);
	c->owned = 1;
}

/* A process listens on a port. `c`: state of the socket, if any. */
static __always_inline void on_listener(struct conn *c, struct sock *sk, struct task_struct *task)
{
#ifdef OLD_KERNEL
	struct conn listener = {};
	take_owner(&listener, task);
	keep_listener(sk, &listener, BPF_NOEXIST);
#else
	struct endpoint here = { .netns = netns_of(sk), .port = sk->__sk_common.skc_num };
	u8 yes = 1;
	bpf_map_update_elem(&listening, &here, &yes, BPF_ANY);
	if (!c && (c = CONN_MADE(sk, 0)))
		take_owner(c, task);
#endif
}

/* Visits every file of every process: finds owners of connections, and counts the bytes of open ones. */
SEC("iter/task_file")
int svc_net_files(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	self_pid = bpf_get_current_pid_tgid() >> 32;
	if (!task || !file || task->tgid != task->pid)
		return 0;
	struct socket *socket = socket_of(file);
	struct sock *sk = socket ? OF(socket, sk) : 0;
	if (!sk || !is_tcp(sk))
		return 0;
	struct tcp_sock *tp = tcp_of(sk);
	if (!tp)
		return 0;
	u8 state = OF(sk, __sk_common.skc_state);
	if (state == TCP_CLOSE || state == TCP_SYN_SENT || state == TCP_SYN_RECV)
		return 0;
	struct conn *c = conn_of(sk);
	if (state == TCP_LISTEN) {
		on_listener(c, sk, task);
		return 0;
	}
	if (!c) {
		c = watching ? CONN_MADE(sk, owner_of(task)) : 0;
		if (!c)
			return 0;
		join(c, sk, tp);
	} else if (was_missed(c)) {
		begin(c, sk, svc_net_side_server);
	}
	c->start_ns = 0;
	if (!c->owned)
		take_owner(c, task);
	if (c->key.pid == self_pid)
		c->active = 0;
	if (c->active)
		look(c, sk, tp);
	return 0;
}
