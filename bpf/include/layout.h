/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Data shared with user space. TypeScript reads these layouts from the object's BTF (tools/gen-bpf.ts): types with
 * the prefix svc_ are part of the contract, and defined only here. */
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

/* Kind of a ring record: its first word. */
enum svc_kind {
	svc_kind_exchange, /* svc_record: a finished exchange */
	svc_kind_begin,    /* svc_record as known once the request's head is complete */
	svc_kind_segment,  /* svc_segment: bytes of a call */
	svc_kind_thread,   /* svc_thread */
};

/* One exchange. `captured` bytes of the request's head follow; after a begin only with `more_context`. */
struct svc_record {
	u32 kind;
	u32 tid;         /* thread that moved the request's first byte, initial PID namespace */
	u64 start_ns;    /* CLOCK_MONOTONIC: end of the call that moved the request's first byte */
	u64 response_ns; /* the same for the response; 0: there was none */
	u64 end_ns;
	u64 cgroup;
	u64 request_bytes; /* head and body */
	u64 response_bytes;
	u32 request_head;
	u32 response_head;
	u32 pid;      /* thread group id, initial PID namespace */
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
	u8 blocking;      /* the socket is in blocking mode */
	u8 more_context;  /* the head has a tracestate or a Zipkin B3 header */
	u8 told;          /* its begin was reported, so its end must be */
	u8 doubt;         /* recent begins of server requests were not reported: the current request of a thread is uncertain */
	u8 sampled;       /* of a server: the receiving thread was sampled while working on it, and has responded */
	u8 pad[3];
};

/* Flags of a segment. */
#define SVC_SEGMENT_RECEIVED 1
#define SVC_SEGMENT_JOINED 2   /* the connection is older than its observation */
#define SVC_SEGMENT_CLOSED 4   /* the connection ended: no bytes follow, `error` is the cause */
#define SVC_SEGMENT_TLS 8      /* the bytes were inside TLS */
#define SVC_SEGMENT_BLOCKING 16
#define SVC_SEGMENT_SERVER 32  /* this side is the server */
#define SVC_SEGMENT_MISSED 64  /* earlier bytes were missed for lack of scratch */

/* Part of the bytes of one call. The first `captured` bytes follow; if not all were captured, the last `tail` of
 * them are the part's last bytes. */
struct svc_segment {
	u32 kind;
	u32 pid;        /* thread group id, initial PID namespace */
	u64 time_ns;    /* CLOCK_MONOTONIC: end of the call */
	u64 connection; /* the socket's cookie */
	u64 cgroup;
	u32 tid;
	u32 position;   /* bytes of the direction before this part, modulo 2^32 */
	u32 sequence;   /* TCP sequence number of the first byte; inside TLS: position + 1, or 0 if joined */
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
	u32 served;     /* first of a response: the thread was sampled at work on the request of this moment (request.h) */
};

/* A thread was started by another one of its process. */
struct svc_thread {
	u32 kind;
	u32 pid;
	u32 parent;
	u32 tid;
};

/* Exchanges without a record are counted here, so that totals stay exact. */
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
	u8 protocol; /* enum svc_protocol; except for HTTP/1, only server and process are known */
	u8 pad;
	u8 comm[16];
};

#define SVC_BUCKETS 16
struct svc_red {
	u64 count;
	u64 sum_ns;
	u64 buckets[SVC_BUCKETS]; /* bounds in svc_bounds_ns; the last is the overflow */
};

/* Per-CPU counters, mostly of data that was not seen or not reported individually. */
enum svc_counter {
	svc_counter_finished,           /* exchanges that ended */
	svc_counter_records,            /* written to the ring */
	svc_counter_ring_full,          /* counted in `red`: no room in the ring */
	svc_counter_over_budget,        /* counted in `red`: above max_spans_per_second */
	svc_counter_red_full,           /* lost: no room in `red` either */
	svc_counter_fault,              /* a user page was not readable */
	svc_counter_unreadable,         /* a head was expected in bytes without a user buffer (splice, sendfile) */
	svc_counter_io_uring,           /* the same, by io_uring */
	svc_counter_compat32,           /* a 32-bit system call */
	svc_counter_desync,             /* a stream's framing was lost; it is found again at the next head */
	svc_counter_orphan_response,    /* a response to an unseen request */
	svc_counter_abandoned,          /* exchanges in flight that were abandoned when their stream lost its framing */
	svc_counter_storage_full,       /* no memory for a connection's state, or for a call in progress */
	svc_counter_pipeline_full,      /* no memory for an exchange, or too many in flight */
	svc_counter_messages_bound,     /* one call had more messages than the limit */
	svc_counter_connections,        /* connections recognised as HTTP */
	svc_counter_not_recognised,     /* connections abandoned: no known protocol */
	svc_counter_excluded,           /* connections excluded by port */
	svc_counter_sockets_found,      /* sockets that were open at the start */
	svc_counter_segments,           /* calls whose bytes were written to the ring, in parts */
	svc_counter_segments_lost,      /* parts without room in the ring */
	svc_counter_streams,            /* connections whose bytes are read by a decoder */
	svc_counter_count,
};

/* A listening socket that was open at the start, or any TCP socket of a process; written by the iterator. */
struct svc_socket {
	u32 pid;
	u16 port;
	u8 state;
	u8 family;
};

/* Types without a variable reach the BTF only if they are named. */
#define SVC_EXPORT(kind, type) const kind type *export_##type __attribute__((unused))
SVC_EXPORT(enum, svc_side);
SVC_EXPORT(enum, svc_method);
SVC_EXPORT(enum, svc_counter);
SVC_EXPORT(struct, svc_socket);
SVC_EXPORT(struct, svc_segment);
SVC_EXPORT(struct, svc_thread);
SVC_EXPORT(enum, svc_kind);
SVC_EXPORT(enum, svc_protocol);
