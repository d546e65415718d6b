/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Output of a finished exchange: a record in the ring, or a count in `red`. */
#pragma once
#include "share.h"

static __always_inline void fill_address(u8 *to, const struct sock *sk, u16 family, bool local)
{
	u32 *words = (u32 *)to;
	if (family == AF_INET) {
		words[0] = 0;
		words[1] = 0;
		words[2] = bpf_htonl(0xffff);
		words[3] = local ? sk->__sk_common.skc_rcv_saddr : sk->__sk_common.skc_daddr;
		return;
	}
	for (int i = 0; i < 4; i++)
		words[i] = local ? sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[i]
				 : sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[i];
}

__noinline int svc_count(struct svc_red_key *key, u64 duration)
{
	if (!key)
		return 0;
	struct svc_red *red_value = bpf_map_lookup_elem(&red, key);
	if (!red_value) {
		bpf_map_update_elem(&red, key, &red_zero, BPF_NOEXIST);
		red_value = bpf_map_lookup_elem(&red, key);
		if (!red_value) {
			count(svc_counter_red_full);
			return 0;
		}
	}
	u32 bucket = 0;
#pragma unroll
	for (int i = 0; i < SVC_BUCKETS - 1; i++)
		bucket += duration > svc_bounds_ns[i];
	red_value->count++;
	red_value->sum_ns += duration;
	if (bucket < SVC_BUCKETS)
		red_value->buckets[bucket]++;
	return 0;
}

static __always_inline int aggregate(struct svc_record *r, u64 duration)
{
	struct svc_red_key key = { .protocol = svc_protocol_http1 };
	key.pid = r->pid;
	key.status = r->status;
	key.side = r->side;
	key.method = r->method;
	key.minor = r->minor;
	key.aborted = r->aborted;
	key.error = r->error;
	__builtin_memcpy(key.comm, r->comm, sizeof(key.comm));
	if (r->side == svc_side_server) {
		key.port = r->local_port;
	} else {
		key.port = r->peer_port;
		__builtin_memcpy(key.peer_address, r->peer_address, 16);
	}
	return svc_count(&key, duration);
}

static __always_inline void fill_ends(struct svc_record *r, const struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;
	struct inet_sock *inet = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct inet_sock));
	r->family = family;
	fill_address(r->peer_address, sk, family, false);
	fill_address(r->local_address, sk, family, true);
	r->local_port = bpf_ntohs(inet->inet_sport);
	r->peer_port = bpf_ntohs(sk->__sk_common.skc_dport);
}

/* Reports a finished exchange, whose request and response figures are filled in. */
static __always_inline void emit(struct work *w, struct exchange *ex, u32 owner, u64 end)
{
	struct svc_record *r = &ex->record;
	r->end_ns = end < r->start_ns ? r->start_ns : end;
	u64 duration = r->end_ns - r->start_ns;
	r->kind = svc_kind_exchange;
	struct svc_counters *c = counted();
	if (!c)
		return;
	c->values[svc_counter_finished]++;

	bool error = r->aborted || r->status >= 500 || (r->side == svc_side_client && r->status >= 400);
	bool first = (always_errors && error) || (always_slow && duration > slow_ns);
	if (!r->told && !within_budget(owner, end, first)) {
		c->values[svc_counter_over_budget]++;
	} else {
		u32 captured = r->captured;
		if (captured > CAPTURE)
			captured = CAPTURE;
		if (!put(w, owner, r, sizeof(*r) + captured)) {
			c->values[svc_counter_records]++;
			return;
		}
		c->values[svc_counter_ring_full]++;
	}
	aggregate(r, duration);
}
