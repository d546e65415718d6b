/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What crosses into user space. TypeScript reads these layouts from the object's BTF (tools/gen-bpf.ts):
 * a type whose name starts with svc_ is part of the contract, and this is the only place that defines it. */
#pragma once
#include "classify.h"
#include "kernel.h"

#define SVC_TRACEPARENT 56

enum svc_side { svc_side_client, svc_side_server };

/* Methods of RFC 9110, PATCH (RFC 5789) and QUERY; everything else is "other". */
enum svc_method {
	svc_method_other,
	svc_method_get,
	svc_method_head,
	svc_method_post,
	svc_method_put,
	svc_method_delete,
	svc_method_connect,
	svc_method_options,
	svc_method_trace,
	svc_method_patch,
	svc_method_query,
};

/* What a record of the ring is: its first word. */
enum svc_kind {
	svc_kind_exchange, /* svc_record: a finished exchange */
	svc_kind_begin,    /* svc_record as far as it is known when the request's head is whole */
	svc_kind_segment,  /* svc_segment: bytes of a call */
	svc_kind_thread,   /* svc_thread */
};

/* One exchange. `captured` bytes of the request's head follow it; of one that begins only with `more_context`. */
struct svc_record {
	u32 kind;
	u32 tid;         /* the thread that moved the request's first byte, initial pid namespace */
	u64 start_ns;    /* CLOCK_MONOTONIC: end of the call that moved the request's first byte */
	u64 response_ns; /* the same of the response; 0: there was none */
	u64 end_ns;
	u64 cgroup;
	u64 request_bytes; /* head and body */
	u64 response_bytes;
	u32 request_head;
	u32 response_head;
	u32 pid;      /* thread group id, initial pid namespace */
	u32 sequence; /* TCP sequence number of the request's first byte */
	u8 local_address[16]; /* IPv4 as ::ffff:a.b.c.d */
	u8 peer_address[16];
	u16 local_port;
	u16 peer_port;
	u16 status;
	u16 error; /* errno */
	u16 captured;
	u8 side;
	u8 method;
	u8 minor; /* of HTTP/1.minor */
	u8 aborted;
	u8 has_traceparent;
	u8 family;
	u8 comm[16];
	u8 traceparent[SVC_TRACEPARENT];
	u8 blocking;      /* the socket is not in non-blocking mode */
	u8 more_context;  /* the head has a tracestate, or a header of Zipkin's B3 */
	u8 told;          /* its beginning was told, so its end is */
	u8 doubt;         /* of late, beginnings of requests to servers were not told: who serves what is not known */
	u8 sampled;       /* of a server: the thread that received it was sampled at work on it, and has answered */
	u8 pad[3];
};

/* Of a segment: a bit each. */
#define SVC_SEGMENT_RECEIVED 1
#define SVC_SEGMENT_JOINED 2   /* the connection is older than its observation */
#define SVC_SEGMENT_CLOSED 4   /* the connection ended: no bytes follow, `error` says how */
#define SVC_SEGMENT_TLS 8      /* the bytes were inside TLS */
#define SVC_SEGMENT_BLOCKING 16
#define SVC_SEGMENT_SERVER 32  /* this side is the server */
#define SVC_SEGMENT_MISSED 64  /* bytes before those of this call found no scratch to be read into */

/* A part of the bytes of one call. `captured` bytes follow it: the first ones, of which the last `tail` are the part's
 * last where not all were captured. */
struct svc_segment {
	u32 kind;
	u32 pid;        /* thread group id, initial pid namespace */
	u64 time_ns;    /* CLOCK_MONOTONIC: the call's end */
	u64 connection; /* the socket's cookie */
	u64 cgroup;
	u32 tid;
	u32 position;   /* bytes of the direction before this part, modulo 2^32 */
	u32 sequence;   /* TCP sequence number of the first byte; inside TLS: position + 1, 0 where it is joined */
	u32 length;
	u16 captured;
	u16 tail;
	u16 local_port;
	u16 peer_port;
	u8 local_address[16]; /* IPv4 as ::ffff:a.b.c.d */
	u8 peer_address[16];
	u8 comm[16];
	u16 error;      /* errno that ended the connection */
	u8 flags;
	u8 protocol;    /* enum svc_protocol */
	u32 served;     /* of a response's first: the thread was sampled at work on the request of this moment (request.h) */
};

/* A thread was started by another one of its process. */
struct svc_thread {
	u32 kind;
	u32 pid;
	u32 parent;
	u32 tid;
};

/* Exchanges that got no record are counted here, so that totals stay exact. */
struct svc_red_key {
	u8 peer_address[16]; /* of a client's server; zero on the server side */
	u32 pid;
	u16 port; /* of the server */
	u16 status;
	u8 side;
	u8 method;
	u8 minor;
	u8 aborted;
	u16 error;
	u8 protocol; /* enum svc_protocol; of all but HTTP/1 only the server and the process are known */
	u8 pad;
	u8 comm[16];
};

#define SVC_BUCKETS 16
struct svc_red {
	u64 count;
	u64 sum_ns;
	u64 buckets[SVC_BUCKETS]; /* bounds of svc_bounds_ns, the last is the overflow */
};

/* Per-CPU counters. Each says what was not seen, or not passed on one by one. */
enum svc_counter {
	svc_counter_finished,           /* exchanges that ended */
	svc_counter_records,            /* put into the ring */
	svc_counter_ring_full,          /* counted in `red`: no room in the ring */
	svc_counter_over_budget,        /* counted in `red`: above max_spans_per_second */
	svc_counter_red_full,           /* lost: no room in `red` either */
	svc_counter_fault,              /* a user page was not readable */
	svc_counter_unreadable,         /* a head was due in bytes that have no user buffer (splice, sendfile) */
	svc_counter_io_uring,           /* the same by io_uring */
	svc_counter_compat32,           /* a 32-bit system call */
	svc_counter_desync,             /* a stream's framing was lost; it is found again at the next head */
	svc_counter_orphan_response,    /* a response to a request that was not seen */
	svc_counter_abandoned,          /* exchanges given up when their stream lost its framing */
	svc_counter_storage_full,       /* no memory for a connection's state, or for a call under way */
	svc_counter_pipeline_full,      /* no memory for an exchange, or too many in flight */
	svc_counter_messages_bound,     /* one call held more messages than the bound */
	svc_counter_connections,        /* connections recognised as HTTP */
	svc_counter_not_recognised,     /* connections given up: no known protocol */
	svc_counter_excluded,           /* connections left out by port */
	svc_counter_sockets_found,      /* sockets that were open at start */
	svc_counter_segments,           /* calls whose bytes went into the ring, in parts */
	svc_counter_segments_lost,      /* parts that found the ring full */
	svc_counter_segments_over_budget, /* parts above the budget */
	svc_counter_streams,            /* connections whose bytes are read by a decoder */
	svc_counter_count,
};

/* A listening socket that was open at start, or any TCP socket of a process: written by the iterator. */
struct svc_socket {
	u32 pid;
	u16 port;
	u8 state;
	u8 family;
};

/* Types that no variable has reach the BTF only by being named. */
#define SVC_EXPORT(kind, type) const kind type *export_##type __attribute__((unused))
SVC_EXPORT(enum, svc_side);
SVC_EXPORT(enum, svc_method);
SVC_EXPORT(enum, svc_counter);
SVC_EXPORT(struct, svc_socket);
SVC_EXPORT(struct, svc_segment);
SVC_EXPORT(struct, svc_thread);
SVC_EXPORT(enum, svc_kind);
SVC_EXPORT(enum, svc_protocol);
