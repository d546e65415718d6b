/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* State, maps and counters shared by all capture back ends. */
#pragma once
#include "layout.h"

/* Maximum bytes of a message head in one record. Objects are built for several sizes. */
#ifndef CAPTURE
#define CAPTURE 1024
#endif

#define CARRY 96  /* an unfinished header line is kept up to this length: traceparent needs 70 */
#define WINDOW 1024
#define WIN_SIZE 2048 /* power of two above CARRY + WINDOW, so that a mask bounds every index */
#define WIN_MASK (WIN_SIZE - 1)
#define MESSAGES_MAX 8192 /* steps for one call's bytes: segments, heads, chunks */
#define IN_FLIGHT_MAX 256 /* requests of one connection without a response */
#define DOUBT_NS (30ULL * 1000000000) /* an unreported request may be in progress for this long */
#define PIPELINE_MAX 4096
#define WAKEUP_NS 1000000 /* between two wake-ups by one CPU */
#define THREADS 16384     /* a power of two */
#define LOCK_TRIES 4096   /* for a connection that another CPU works on: usually a microsecond */

/* Set before load. */
const volatile u32 capture_bytes = CAPTURE;
const volatile u64 ring_wakeup_bytes = 512 << 10;
const volatile u64 svc_bounds_ns[SVC_BUCKETS - 1] = { 1000000, 5000000, 10000000, 25000000, 50000000, 75000000, 100000000,
	250000000, 500000000, 750000000, 1000000000, 2500000000, 5000000000, 7500000000, 10000000000 };
static const struct svc_red red_zero;

/* Written while running. */
u32 self_pid __attribute__((aligned(64))); /* set by the iterator, which runs in the agent's own context */
u64 budget_ns;                             /* budget time per span; 0: no limit */
u64 slow_ns;
u32 budget_share;                          /* maximum taken by a CPU at once */
bool always_errors;                        /* failed exchanges have a separate budget */
bool always_slow;                          /* so do exchanges slower than slow_ns */
bool track_requests;                       /* whether to note the request that a thread works on */
s64 budget_burst;                          /* maximum accumulated budget */
u32 protocols_enabled;                     /* a bit per svc_protocol */
u8 ports[65536];                           /* 1: excluded. The first stays 0, for unknown ports */
/* 1: a thread with this number, modulo THREADS, has an entry in `requests`, in `tls_threads`. Most have none, and a
 * lookup costs more than this. */
u8 threads_serving[THREADS];
u8 threads_tls[THREADS];
/* Variables written by all CPUs have a cache line of their own, so that reading the others stays cheap. */
struct budget {
	u64 at; /* time of the last refill */
	s64 left[2];
	u64 untold_at; /* last unreported begin of a server request */
	u64 pad[4];
} budget __attribute__((aligned(64)));

enum { REQUEST, RESPONSE };
enum { RX, TX };
enum mode { UNKNOWN, OFF, SERVER, CLIENT, STREAM };
enum state {
	START,      /* a message head is expected */
	HEAD,       /* inside a head */
	BODY,       /* `remaining` bytes of a body of known length */
	BODY_CLOSE, /* a body that ends with the connection */
	CHUNK_SIZE, /* in the line with a chunk size */
	CHUNK_DATA, /* `remaining` bytes of a chunk and its line end */
	TRAILER,    /* after the last chunk */
};
enum { F_FIRST = 1, F_LONG = 2, F_CHUNKED = 4, F_LENGTH = 8, F_EXTENSION = 16, F_CODED = 32 };

struct stream {
	u64 remaining;
	u64 bytes;   /* of the message so far */
	u64 content; /* Content-Length */
	u64 start;   /* first bytes of a message, until there are enough to decide */
	u32 seq;     /* number of the message's exchange on this connection, from 1 */
	u32 head;    /* bytes of the head so far */
	u16 status;
	u8 start_len;
	u8 state;
	u8 flags;
	u8 line; /* bytes in the current trailer line, saturated */
	u8 pad[2];
};

/* State of a connection whose bytes are read in user space. */
struct stream_state {
	u32 position[2]; /* bytes so far, by RX and TX */
	u32 captured;    /* captured bytes of this turn */
	u8 turn;         /* direction of the last call, plus 1 */
	u8 protocol;
	u8 flags;        /* SVC_SEGMENT_..., shared by all of its segments */
	u8 calls;
	bool off;
	u32 pid;         /* of the newest bytes */
	u8 counted;      /* the current exchange is only counted, for this reason (enum svc_counter); 0: it is reported */
	u16 owner;       /* of the process (share.h) */
	u64 asked_ns;    /* time of the request, and of the last response bytes; 0: not yet */
	u64 answered_ns;
};

struct conn {
	struct stream stream[2];
	u32 asked;    /* number of the last request */
	u32 answered; /* number of the last finished exchange */
	u32 slot_seq; /* exchange stored in `slots`, 0: none */
	u32 pid;      /* process that the next two and `owner` describe */
	u64 cgroup;
	u8 comm[16];
	/* A response seen before its request: two threads share the socket, and the sender's hook runs last. */
	u64 ahead_end;
	u64 ahead_bytes;
	u32 ahead_head;
	u16 ahead_status;
	u8 ahead; /* 0: none, 1: in progress, 2: complete */
	u8 lost;  /* bytes were missed while another CPU held the lock */
	u32 busy; /* lock: the hooks run without the socket's own */
	u8 closing; /* the connection ended while it was busy */
	u8 mode;
	u8 joined;    /* the streams' positions are unknown: a head may be found later */
	u8 misses;    /* chunks without a head, while joined */
	u8 direction; /* of the bytes in `start`, while the mode is unknown */
	u16 port;     /* of the server; 0 while the mode is unknown */
	u8 role;      /* OPENS_CLIENT or OPENS_SERVER if the handshake was seen: role of this side */
	u8 blocking;  /* the socket was in blocking mode when its process got it */
	u8 foreign;   /* unrecognised calls */
	u16 owner;    /* of the process (share.h) */
	u32 seen[2]; /* position after the newest call, by RX and TX, if calls run two programs */
	struct stream_state follow;
	/* For UDP: destination of an unconnected socket, and position in the messages of one call. */
	u8 udp_peer[16];
	u16 udp_port;
	u16 message;
	u64 messages;
};

struct exchange {
	u8 carry_len[2];
	u8 carry[2][CARRY];
	u8 pad[6];
	struct svc_record record;
	u8 data[CAPTURE]; /* directly follows the record */
};

struct exchange_key {
	u64 sk;
	u64 seq;
};

/* Scratch of one call. A slot per program: one may interrupt another. */
struct work {
	u64 iov;
	u64 base;
	u64 segment; /* bytes left at base */
	u64 left;    /* bytes of the call that are not consumed yet */
	u64 now;
	u32 iov_left;
	u32 line; /* index of the current line's first byte */
	u32 scan;
	u32 end;
	u32 head_end;
	u32 kind; /* REQUEST or RESPONSE */
	u32 direction;
	u32 failed;
	u32 gathered;
	u32 missing; /* bytes left to gather or skip */
	u32 foreign; /* these bytes are not HTTP/1 */
	u32 slot;    /* of this scratch, and of that for parts */
	u64 woken;   /* last wake-up of the consumer */
	u8 win[WIN_SIZE + 64] __attribute__((aligned(8)));
	struct exchange blank;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct conn);
} conns SEC(".maps");

/* The exchange in flight of a connection; created with the first one and freed with the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct exchange);
} slots SEC(".maps");

/* Further exchanges in flight of a connection (pipelining). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PIPELINE_MAX);
	__type(key, struct exchange_key);
	__type(value, struct exchange);
} pipelined SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 6);
	__type(key, u32);
	__type(value, struct work);
} scratch SEC(".maps");

struct svc_counters {
	u64 values[svc_counter_count];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct svc_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, struct svc_red_key);
	__type(value, struct svc_red);
} red SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 2 << 20);
} ring SEC(".maps");

static __always_inline struct svc_counters *counted(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&counters, &zero);
}

static __always_inline void count(u32 counter)
{
	struct svc_counters *c = counted();
	if (c && counter < svc_counter_count)
		c->values[counter]++;
}

/* Bounds a number in its register, where the verifier sees it and the compiler cannot remove it. */
#ifdef __bpf__
#define bounded(x, mask)                                                                                             \
	({                                                                                                               \
		u32 __n = (x);                                                                                               \
		asm volatile("%0 &= %1" : "+r"(__n) : "i"(mask));                                                           \
		__n;                                                                                                         \
	})
#else /* test/fixtures/fuzz */
#define bounded(x, mask) ((u32)(x) & (u32)(mask))
#endif

static __always_inline u64 cookie_of(struct sock *sk)
{
	u64 known = sk->__sk_common.skc_cookie.counter;
	return known ? known : bpf_get_socket_cookie(sk); /* which gives it one */
}

static __always_inline u64 now(struct work *w)
{
	if (!w->now)
		w->now = bpf_ktime_get_ns();
	return w->now;
}
