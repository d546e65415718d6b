/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Connection state of bpf/net.bpf.c: stored with the socket, and before Linux 5.12, where tracing programs cannot do
 * that, in a table. */
#pragma once
#include "net.h"
#include "net-share.h"

/* State of one socket. A child starts with a copy of its listener's (BPF_F_CLONE), from which it has a process. */
struct conn {
	struct svc_net_key key;
	u32 counted; /* 1: in `opened` and `open` of its pair */
	u64 start_ns; /* start of the client's connect; 0: not connecting */
	u64 sent;    /* as counted in the pair */
	u64 received;
	u64 retransmits;
	u64 observed; /* `sent` at the last count of a round trip, plus 1 */
	u32 resets[2]; /* received, sent; not yet in the pair */
	u8 comm[16];
	u8 active; /* the key is valid, and the end was not counted */
	u8 owned;  /* the key's process owns the socket, not only its listener */
	u8 joined; /* established before it was watched */
	u8 pad;
	u32 owner; /* of the process */
#ifdef OLD_KERNEL
	u32 share;   /* whose share of the table it uses */
	u32 told[2]; /* part of `resets` that the pair has */
	u32 ends;    /* how it ended: see below */
#endif
};

#define PORTS_MAX 4096
#define TRIES 8

struct endpoint {
	u32 netns;
	u32 port;
};

static __always_inline u32 netns_of(struct sock *sk)
{
	return BPF_CORE_READ((struct sock_common___net *)sk, skc_net.net, ns.inum);
}

#ifndef OLD_KERNEL

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct conn);
} conns SEC(".maps");

/* Listening ports: they determine the side of connections older than the agent. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PORTS_MAX);
	__type(key, struct endpoint);
	__type(value, u8);
} listening SEC(".maps");

static __always_inline struct conn *conn_of(struct sock *sk)
{
	return bpf_sk_storage_get(&conns, sk, 0, 0);
}

/* State of a socket, created if missing. */
#define CONN_MADE(sk, share) bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE)

/* The kernel initialises it with a copy of the listener's. */
static __always_inline struct conn *conn_accepted(struct sock *sk)
{
	return CONN_MADE(sk, 0);
}

static __always_inline void let_go(struct conn *c, struct sock *sk) {}

static __always_inline bool is_tcp(struct sock *sk)
{
	return sk->sk_protocol == IPPROTO_TCP;
}

static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
	return bpf_skc_to_tcp_sock(sk);
}

static __always_inline struct socket *socket_of(struct file *file)
{
	return bpf_sock_from_file(file);
}

/* Raises `*known` to `total` and returns the difference. The iterator and the connection's end may run concurrently. */
static __always_inline u64 grown(u64 *known, u64 total)
{
	u64 seen = *(volatile u64 *)known;
	for (int i = 0; i < TRIES && (s64)(total - seen) > 0; i++) {
		u64 was = __sync_val_compare_and_swap(known, seen, total);
		if (was == seen)
			return total - seen;
		seen = was;
	}
	return 0;
}

/* Whether it becomes counted now, and was not before. */
static __always_inline bool is_opened(struct conn *c)
{
	return !__sync_val_compare_and_swap(&c->counted, 0, 1);
}

/* Resets that the pair does not have yet. */
static __always_inline u64 new_resets(struct conn *c, u32 direction)
{
	return __sync_lock_test_and_set(&c->resets[direction], 0);
}

/* Whether the mark differs from the last one. */
static __always_inline bool is_marked(struct conn *c, u64 mark)
{
	return __sync_lock_test_and_set(&c->observed, mark) != mark;
}

#else /* OLD_KERNEL */
#include "old-table.h"

#define CONNS_MAX 65536
#define CLAIMS_MAX 4096 /* maximum of concurrent programs */
#define SOCKFS_MAGIC 0x534f434b
#define SOCK_STREAM 1

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct super_block___net {
	unsigned long s_magic;
};

struct inode___net {
	struct super_block___net *i_sb;
};

struct file___net {
	struct inode___net *f_inode;
	void *private_data;
};

struct sock___net {
	u16 sk_type;
};
#pragma clang attribute pop

/* Not preallocated: freed entries stay unchanged while a program reads them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, CONNS_MAX);
	__type(key, u64);
	__type(value, struct conn);
} conns SEC(".maps");

/* Listening ports: owners of their connections until the accepting process is known. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PORTS_MAX);
	__type(key, struct endpoint);
	__type(value, struct conn);
} listening SEC(".maps");

/* Connections that a program is counting now. Before Linux 5.12 this is the only way for a program to know that it
 * was first. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CLAIMS_MAX);
	__type(key, u64);
	__type(value, u8);
} claims SEC(".maps");

static __always_inline struct conn *conn_of(struct sock *sk)
{
	return entry_of(&conns, sk);
}

static __always_inline struct conn *conn_made(struct sock *sk, u32 share)
{
	struct conn *c = conn_of(sk);
	if (c)
		return c;
	struct conn fresh = { .share = share };
	return entry_made(&conns, CONNS_MAX, sk, &fresh, share);
}
#define CONN_MADE(sk, share) conn_made(sk, share)

static __always_inline void let_go(struct conn *c, struct sock *sk)
{
	entry_ends(&conns, sk, c->share);
}

static __always_inline void keep_listener(struct sock *sk, struct conn *listener, u64 flags)
{
	struct endpoint here = { .netns = netns_of(sk), .port = OF(sk, __sk_common.skc_num) };
	bpf_map_update_elem(&listening, &here, listener, flags);
}

static __always_inline struct conn *conn_accepted(struct sock *sk)
{
	struct endpoint here = { .netns = netns_of(sk), .port = OF(sk, __sk_common.skc_num) };
	struct conn *listener = bpf_map_lookup_elem(&listening, &here);
	struct conn *c = conn_made(sk, listener ? listener->owner : 0);
	if (c && listener) {
		c->key.pid = listener->key.pid;
		c->owner = listener->owner;
		__builtin_memcpy(c->comm, listener->comm, sizeof(c->comm));
	}
	return c;
}

/* Netlink and raw sockets have protocol numbers too. */
static __always_inline bool is_tcp(struct sock *sk)
{
	u16 family = OF(sk, __sk_common.skc_family);
	return (family == AF_INET || family == AF_INET6) && OF(sk, sk_protocol) == IPPROTO_TCP &&
	       OF((struct sock___net *)sk, sk_type) == SOCK_STREAM;
}

static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

/* 0: not a socket, or a file that only names one (O_PATH). */
static __always_inline struct socket *socket_of(struct file *file)
{
	struct file___net *f = (void *)file;
	return BPF_CORE_READ(f, f_inode, i_sb, s_magic) == SOCKFS_MAGIC ? BPF_CORE_READ(f, private_data) : 0;
}

/* `ends` of a connection that has ended but is not counted yet. */
enum { ENDS_OPEN = 1, ENDS_CONNECTING };

static __always_inline bool claim(struct sock *sk)
{
	u64 key = (u64)sk;
	u8 yes = 1;
	return !bpf_map_update_elem(&claims, &key, &yes, BPF_NOEXIST);
}

static __always_inline void release(struct sock *sk)
{
	u64 key = (u64)sk;
	bpf_map_delete_elem(&claims, &key);
}

/* Callers of the following have claimed the connection, or run before others can see it. */

static __always_inline u64 grown(u64 *known, u64 total)
{
	u64 more = total - *known;
	if ((s64)more <= 0)
		return 0;
	*known = total;
	return more;
}

static __always_inline bool is_opened(struct conn *c)
{
	bool was = c->counted;
	c->counted = 1;
	return !was;
}

/* The counter may rise concurrently, so it is never reset. */
static __always_inline u64 new_resets(struct conn *c, u32 direction)
{
	u32 all = *(volatile u32 *)&c->resets[direction], more = all - c->told[direction];
	c->told[direction] = all;
	return more;
}

static __always_inline bool is_marked(struct conn *c, u64 mark)
{
	u64 was = c->observed;
	c->observed = mark;
	return was != mark;
}
#endif
