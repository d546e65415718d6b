/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* State of the back end "syscalls". Must be accepted by Linux 4.18: no global data, no kernel types, no atomics that
 * return a value. Numbers are 64 bits wide if the verifier must know their bounds, as it loses those of 32-bit
 * halves. */
#pragma once
#include "kernel.h" /* first: it enforces "always inline", for the openings of the protocols */
#include "layout.h"

#define CONNECTIONS 65536
#define OTHERS 65536
#define CALLS 16384
#define FDS 0xf0000    /* descriptors from here on are not followed: they represent TLS sessions without a socket */
#define SESSION_MASK 0xffff
#define PART 8184      /* maximum bytes of a segment */
#define PART_MASK 8191
#define TURN 16384     /* captured bytes of a turn, from its start */
#define TURN_HTTP2 65536 /* the same for a call of HTTP/2 */
#define ROUNDS 8         /* of eight buffers each, for the first bytes of a call */
#define MESSAGES 8       /* of one call, whose lengths are read if its bytes are not */
#define TAIL 64        /* above that: the last bytes of each call */
#define MISSES_OLD 255 /* calls without a known opening, of connections older than their observation */
#define MISSES_NEW 5   /* the same, of those followed from their first byte */
#define MISSES_FILE 8  /* the same, of descriptors that may be anything */
#define CLOSE_NS 10000000 /* a shut socket reports its ends within this time */
#define ORDER_NS 1000000   /* a longer call is ordered by its end; user space waits as long for others */
#define DNS_PORT 53

/* The helper that distinguishes user memory from kernel memory exists since Linux 5.5. */
#ifdef PERF
#define read_user bpf_probe_read
#define read_kernel bpf_probe_read
#else
#define read_user bpf_probe_read_user
#define read_kernel bpf_probe_read_kernel
#endif

/* Additional kinds of records of this back end. */
enum svc_syscall_kind {
	svc_syscall_kind_address = 64, /* svc_syscall_address */
	svc_syscall_kind_sweep,        /* svc_syscall_sweep */
};

/* Both ends of a connection, reported when its socket is shut. */
struct svc_syscall_address {
	u32 kind;
	u32 pid;
	u64 time_ns;
	u64 connection;
	u8 local_address[16];
	u8 peer_address[16];
	u16 local_port;
	u16 peer_port;
	u8 pad[4];
};

/* Descriptors first..last of a process were closed by other ways than close(2). */
struct svc_syscall_sweep {
	u32 kind;
	u32 pid;
	u64 time_ns;
	u32 first;
	u32 last;
};

struct svc_syscall_key {
	u32 pid;
	u32 fd;
};

enum svc_syscall_state {
	svc_syscall_state_unknown,  /* the protocol is not known yet */
	svc_syscall_state_listening,
	svc_syscall_state_followed,
	svc_syscall_state_off,
};

enum svc_syscall_role { svc_syscall_role_unknown, svc_syscall_role_client, svc_syscall_role_server };

struct svc_syscall_connection {
	u64 id; /* pid << 31 | fd << 11 | a number that differs from the successor's on this descriptor */
	u32 position[2]; /* bytes received, sent */
	u32 from[2];     /* the same when the protocol was recognised */
	u32 turn;        /* captured bytes of the current turn */
	u16 local_port;
	u16 peer_port;
	u8 local_address[16];
	u8 peer_address[16];
	u16 error;
	u8 state;
	u8 protocol;
	u8 role;
	u8 direction; /* of the newest bytes */
	u8 misses;
	u8 joined;
	u8 known;     /* both ports are known */
	u8 blocking;
	u8 datagrams;
	u8 missed;    /* a bit per direction: the newest bytes had no scratch */
	u8 pad[4];
	u64 inside;   /* TLS session whose plaintext replaces the connection's bytes, 0: none */
};

struct svc_syscall_settings {
	u64 turns;        /* connections so far */
	u64 wakeup_bytes; /* pending bytes at which the consumer is woken */
	u32 self_pid;
	u32 magic;        /* the process that closes this descriptor is the agent */
	u32 enabled;      /* a bit per protocol */
	u32 wide;         /* inet_sock_set_state has two bytes for the protocol (Linux 5.6) */
};

/* How a call describes its bytes, or its other effect. */
enum svc_syscall_call_kind {
	svc_syscall_call_kind_none,
	svc_syscall_call_kind_buffer,   /* an address */
	svc_syscall_call_kind_vector,   /* an array of struct iovec */
	svc_syscall_call_kind_message,  /* struct msghdr */
	svc_syscall_call_kind_messages, /* an array of struct mmsghdr */
	svc_syscall_call_kind_unseen,   /* only the number of bytes */
	svc_syscall_call_kind_accept,   /* `count`: its flags */
	svc_syscall_call_kind_connect,
	svc_syscall_call_kind_listen,
};

/* A system call in progress; user space writes those that began before the programs. */
struct svc_syscall_call {
	u64 address;
	u64 name;  /* struct sockaddr of the peer, 0 for none */
	u64 time;  /* its start, if bytes are sent */
	u32 count;
	u32 fd;
	s32 nr;
	u8 kind;
	u8 direction;
	u8 is_socket; /* only sockets support this call */
	u8 told;      /* the socket's state changed in this call */
	u8 for_tls;   /* its bytes are only checked for TLS */
	u8 pad[7];
};

SVC_EXPORT(enum, svc_syscall_call_kind);
SVC_EXPORT(enum, svc_syscall_kind);
SVC_EXPORT(enum, svc_syscall_state);
SVC_EXPORT(enum, svc_syscall_role);
SVC_EXPORT(struct, svc_syscall_address);
SVC_EXPORT(struct, svc_syscall_sweep);

enum { RECEIVED, SENT };

struct closing {
	u64 id;
	u64 time;
	u64 local_port; /* 0: unknown */
};

struct owner {
	struct svc_syscall_key key;
	u64 id;
};

/* Scratch of one call that moves bytes; the record directly precedes its bytes. */
struct work {
	u64 holder; /* current holder, 0 for none */
	u64 users;  /* number of users that want it: only one gets it */
	struct svc_segment segment;
	u8 data[2 * (PART_MASK + 1)];
	struct head head;
	struct svc_syscall_key key;
	u64 vector;   /* user address of the next buffers, */
	u64 vectors;  /* and their number */
	u64 base;     /* rest of the current buffer */
	u64 size;
	u64 first[4]; /* the four above at the call's first byte */
	u64 left;     /* bytes of the call */
	u64 room;     /* how many of them may be captured */
	u64 want;     /* bytes to copy, and copied */
	u64 taken;
	u64 rounds;   /* programs that copy in sequence */
	u64 message;  /* user address of a second message, 0: none */
	u64 time;     /* of the call: start if sending, end if receiving, so that causes come first */
	struct svc_syscall_call call; /* the call that the thread returns from, if handled by another program */
	u8 direction;
	u8 is_socket;
	u8 pad[6];
};

#define MAP(name, kind, entries, key_of, value_of)                                                                    \
	struct {                                                                                                      \
		__uint(type, kind);                                                                                   \
		__uint(max_entries, entries);                                                                         \
		__type(key, key_of);                                                                                  \
		__type(value, value_of);                                                                              \
	} name SEC(".maps")

MAP(connections, BPF_MAP_TYPE_LRU_HASH, CONNECTIONS, struct svc_syscall_key, struct svc_syscall_connection);
/* Descriptors without a known accept, connect or socket at the start, with their number of calls without an opening. */
MAP(others, BPF_MAP_TYPE_LRU_HASH, OTHERS, struct svc_syscall_key, u64);
MAP(calls, BPF_MAP_TYPE_LRU_HASH, CALLS, u64, struct svc_syscall_call);
/* Threads in a close, whose socket will report its ends. */
MAP(closings, BPF_MAP_TYPE_LRU_HASH, 4096, u64, struct closing);
/* Sockets being connected. */
MAP(connecting, BPF_MAP_TYPE_LRU_HASH, 16384, u64, struct owner);
/* Processes with followed connections. */
MAP(owners, BPF_MAP_TYPE_LRU_HASH, 16384, u32, u32);
MAP(settings, BPF_MAP_TYPE_ARRAY, 1, u32, struct svc_syscall_settings);
/* A bit per excluded port. */
MAP(ports, BPF_MAP_TYPE_ARRAY, 2048, u32, u32);
/* Since Linux 7 a system call program may be preempted by that of another task, so there are several slots. User
 * space keeps one if that cannot happen. */
#define SLOTS 4
MAP(scratch, BPF_MAP_TYPE_PERCPU_ARRAY, SLOTS, u32, struct work);

struct svc_counters {
	u64 values[svc_counter_count];
};
MAP(counters, BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32, struct svc_counters);

#ifdef PERF
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} ring SEC(".maps");
#else
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 2 << 20);
} ring SEC(".maps");
/* Time of each CPU's last wake-up of the consumer. */
MAP(woken, BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32, u64);
#endif

static __always_inline void count(u32 counter)
{
	u32 zero = 0;
	struct svc_counters *c = bpf_map_lookup_elem(&counters, &zero);
	if (c && counter < svc_counter_count)
		__sync_fetch_and_add(&c->values[counter], 1);
}

/* Holder number of the current thread. */
static __always_inline u64 holder_of_thread(void)
{
	return bpf_get_current_pid_tgid() + 1;
}

/* Scratch of the thread, until released: the programs of one call share it. Call last, when bytes must be read:
 * nothing else needs it. */
static __always_inline struct work *work_of(void)
{
	u64 holder = holder_of_thread();
	struct work *w;
#pragma unroll
	for (u32 i = 0; i < SLOTS; i++) {
		u32 slot = i;
		w = bpf_map_lookup_elem(&scratch, &slot);
		if (!w)
			break;
		if (w->holder == holder)
			return w;
	}
#pragma unroll
	for (u32 i = 0; i < SLOTS; i++) {
		u32 slot = i;
		w = bpf_map_lookup_elem(&scratch, &slot);
		if (!w)
			break;
		__sync_fetch_and_add(&w->users, 1);
		if (w->users == 1) {
			w->holder = holder;
			return w;
		}
		__sync_fetch_and_add(&w->users, -1);
	}
	count(svc_counter_storage_full);
	return 0;
}

/* Ends every program that may have used scratch, unless it continues in another program. */
static __always_inline int ended(int result)
{
	u64 holder = holder_of_thread();
#pragma unroll
	for (u32 i = 0; i < SLOTS; i++) {
		u32 slot = i;
		struct work *w = bpf_map_lookup_elem(&scratch, &slot);
		if (!w)
			break;
		if (w->holder == holder) {
			w->holder = 0;
			__sync_fetch_and_add(&w->users, -1);
			break;
		}
	}
	return result;
}

static __always_inline struct svc_syscall_settings *settings_of(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&settings, &zero);
}

/* Whether the port is excluded, if it is known. */
static __always_inline bool excluded(u32 port)
{
	u32 index = port >> 5;
	u32 *bits = bpf_map_lookup_elem(&ports, &index);
	return bits && *bits & 1U << (port & 31);
}

/* Bounds a number in its register, where the verifier sees it and the compiler cannot remove it. */
#define bounded(x, mask)                                                                                              \
	({                                                                                                            \
		u64 __n = (x);                                                                                        \
		asm volatile("%0 &= %1" : "+r"(__n) : "i"(mask));                                                    \
		__n;                                                                                                  \
	})

/* Registers are reloaded after this: paths that differ in nothing else are equal to the verifier. */
#define forget() asm volatile("" ::: "memory")
