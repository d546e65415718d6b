/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Data that bpf/net.bpf.c shares with user space, and kernel type members that only it reads. */
#pragma once
#include "kernel.h"

#define SVC_NET_BUCKETS 15

enum svc_net_side { svc_net_side_client, svc_net_side_server };

/* Failure of a connect. Rare ones are `other`, so that a pair has a fixed size. */
enum svc_net_failure {
	svc_net_failure_refused,
	svc_net_failure_timed_out,
	svc_net_failure_host_unreachable,
	svc_net_failure_network_unreachable,
	svc_net_failure_reset,
	svc_net_failure_cancelled, /* the process closed the socket before it was connected */
	svc_net_failure_local,     /* connect(2) itself failed: no route, no free port */
	svc_net_failure_other,
	svc_net_failure_count,
};

/* A process and its peer, without ephemeral ports. */
struct svc_net_key {
	u8 local_address[16]; /* IPv4 as ::ffff:a.b.c.d */
	u8 peer_address[16];
	u32 netns;
	u32 pid;  /* thread group, initial PID namespace; 0: unknown */
	u16 port; /* of the server */
	u8 side;
	u8 pad;
};

/* All are counters except `open`. */
struct svc_net_pair {
	u64 opened;       /* connections established while watched */
	s64 open;         /* connections established now */
	u64 sent;         /* bytes of payload, without retransmissions */
	u64 received;
	u64 retransmits;  /* segments */
	u64 resets_sent;
	u64 resets_received;
	u64 connect_ns;   /* sum over `connect_buckets`, for clients */
	u64 rtt_us;       /* sum over `rtt_buckets` */
	u64 connect_buckets[SVC_NET_BUCKETS];
	u64 rtt_buckets[SVC_NET_BUCKETS];
	u64 failures[svc_net_failure_count];
	u8 comm[16];
	u32 owner; /* whose share it uses: index in `owner_pairs` */
	u32 pad;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common___net {
	unsigned int inum;
};

struct net___net {
	struct ns_common___net ns;
};

struct possible_net___net {
	struct net___net *net;
};

struct sock_common___net {
	struct possible_net___net skc_net;
	unsigned long skc_flags;
};

struct tcp_sock___net {
	u64 bytes_sent; /* including retransmissions */
	u64 bytes_retrans;
	u64 bytes_received; /* the peer's FIN counts as one */
	u32 total_retrans;
	u32 srtt_us; /* eighths of a microsecond */
};

#pragma clang attribute pop
