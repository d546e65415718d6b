/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Connections whose bytes are read in user space: their protocol is recognised here, and the bytes of each call are
 * written to the ring. A turn is a sequence of bytes in one direction until the other side sends; for protocols
 * whose sides do not alternate, one call. The first TURN_WHOLE bytes of a turn are captured, then only the end of
 * each call: rows of a response are many and contain little information. */
#pragma once
#include "cursor.h"
#include "emit.h"
#include "serving.h"

#define PART 8192          /* bytes of a call in one record; a power of two */
#define PARTS_MAX 8        /* records of one call */
#define TURN_WHOLE 16384
#define TAIL 64
#define GATHER_MAX 128     /* buffers of a call from which one record takes bytes; with PARTS_MAX, the maximum */
#define GATHER_STEP 16     /* of these in one loop: the verifier checks each iteration */

/* Bits of a connection's number, which user space reads as a double: inside the TLS of the socket with this cookie,
 * inside TLS within that (to a proxy), inside the TLS of a session without a socket. */
#define INSIDE (1ULL << 52)
#define WITHOUT_SOCKET (1ULL << 51)
#define DEEP_INSIDE (1ULL << 50)
#define COOKIE (DEEP_INSIDE - 1)

/* Both ends of a connection. */
struct identity {
	u64 connection;
	u8 local_address[16];
	u8 peer_address[16];
	u16 local_port;
	u16 peer_port;
	u8 family;
};

struct part {
	struct svc_segment segment;
	u8 data[2 * PART]; /* directly follows; doubled, so that a mask bounds writes at any offset */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 6);
	__type(key, u32);
	__type(value, struct part);
} parts SEC(".maps");

/* Connections whose protocol user space found to be another one. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u8);
} refused SEC(".maps");

static __always_inline void identify(struct identity *id, struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;
	struct inet_sock *inet = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct inet_sock));
	id->connection = cookie_of(sk);
	id->family = family;
	fill_address(id->local_address, sk, family, true);
	fill_address(id->peer_address, sk, family, false);
	id->local_port = bpf_ntohs(inet->inet_sport);
	id->peer_port = bpf_ntohs(sk->__sk_common.skc_dport);
}

/* Continues gather() for GATHER_STEP buffers. Returns the number of missing bytes; 0 if there are no more. Global,
 * so that the verifier checks its loop once. State between iterations is in memory, where the verifier does not
 * track it: all paths through an iteration end alike, and only the first is followed. */
__noinline int svc_gather(struct work *w, struct part *p)
{
	if (!w || !p)
		return 0;
	for (int i = 0; i < GATHER_STEP && w->missing; i++) {
		if (!w->segment && !next_segment(w))
			return 0;
		u32 n = w->segment < w->missing ? w->segment : w->missing;
		if (n > PART)
			n = PART;
		if (!n)
			continue;
		if (bpf_probe_read_user(&p->data[bounded(w->gathered, PART - 1)], bounded(n, 2 * PART - 1), (void *)w->base)) {
			w->failed = svc_counter_fault;
			return 0;
		}
		consume(w, n);
		w->gathered += n;
		w->missing -= n;
		barrier();
	}
	return w->missing;
}

/* Copies up to `want` bytes of the caller's buffers to p->data, and consumes them. Returns their number; fewer if a
 * page is not readable, or there are no buffers. */
static __always_inline u32 gather(struct work *w, struct part *p, u32 want)
{
	w->gathered = 0;
	w->missing = want;
	for (int i = 0; i < GATHER_MAX / GATHER_STEP; i++)
		if (!svc_gather(w, p))
			break;
	return w->gathered;
}

/* False: no room in the ring. */
static __always_inline bool put_part(struct work *w, u32 owner, struct part *p, u32 captured)
{
	p->segment.captured = captured;
	if (captured > PART)
		return false;
	if (!put(w, owner, p, sizeof(p->segment) + bounded(captured, 2 * PART - 1)))
		return true;
	count(svc_counter_segments_lost);
	return false;
}

/* Protocols that usually respond before the next request: a turn of each side is an exchange. */
static __always_inline bool takes_turns(u8 protocol)
{
	return IS_COUNTED(protocol);
}

/* The exchange that is only counted has ended. */
static __noinline int count_turn(struct stream_state *s, struct identity *id, struct part *p)
{
	struct svc_red_key key = { .protocol = s->protocol };
	u32 reason = s->counted;
	s->counted = 0;
	if (!s->answered_ns || s->answered_ns < s->asked_ns) {
		count(svc_counter_abandoned);
		return 0;
	}
	count(svc_counter_finished);
	count(reason);
	key.pid = s->pid;
	if (p->segment.pid == s->pid) /* an end may be reported in the context of another process */
		__builtin_memcpy(key.comm, p->segment.comm, sizeof(key.comm));
	key.side = svc_side_client;
	key.port = id->peer_port;
	__builtin_memcpy(key.peer_address, id->peer_address, 16);
	return svc_count(&key, s->answered_ns - s->asked_ns);
}

/* Starts a turn. Above the budget, the exchange is only counted. */
static __noinline int on_turn(struct work *w, struct stream_state *s, struct identity *id, struct part *p, bool asking)
{
	u64 at = now(w);
	if (!asking) {
		s->answered_ns = at;
		return 0;
	}
	if (s->counted)
		count_turn(s, id, p);
	s->asked_ns = at;
	s->answered_ns = 0;
	if (within_budget(s->owner, at, false))
		return 0;
	s->counted = svc_counter_over_budget;
	return 0;
}

/* Fields shared by all parts of a call. */
static __noinline int describe(struct part *p, struct stream_state *s, struct identity *id, u32 direction, u64 at)
{
	struct svc_segment *segment = &p->segment;
	struct task_struct *task = bpf_get_current_task_btf();
	segment->kind = svc_kind_segment;
	segment->pid = task->tgid;
	segment->tid = task->pid;
	segment->time_ns = at;
	segment->connection = id->connection;
	segment->cgroup = bpf_get_current_cgroup_id();
	segment->sequence = 0;
	segment->tail = 0;
	segment->local_port = id->local_port;
	segment->peer_port = id->peer_port;
	__builtin_memcpy(segment->local_address, id->local_address, 16);
	__builtin_memcpy(segment->peer_address, id->peer_address, 16);
	bpf_probe_read_kernel(segment->comm, sizeof(segment->comm), task->group_leader->comm);
	segment->error = 0;
	segment->flags = s->flags | (direction == RX ? SVC_SEGMENT_RECEIVED : 0);
	segment->protocol = s->protocol;
	if (track_requests)
		segment->served = 0;
	return 0;
}

/* Global, so that the verifier checks it once. Returns the protocol, and from bit 8 on who sends such bytes. */
__noinline int svc_classify(struct head *h)
{
	if (!h)
		return 0;
	struct opening found = classify(h, protocols_enabled);
	return found.protocol | found.opens << 8;
}

/* Recognises the protocol by the first bytes of the call in `w`. Leaves the buffers unchanged. `role`: OPENS_CLIENT
 * or OPENS_SERVER if this side is known from the handshake. */
static __noinline int recognise(struct work *w, struct stream_state *s, struct identity *id, struct part *p, u8 role)
{
	u64 base = w->base, segment = w->segment, iov = w->iov, left = w->left;
	u32 iov_left = w->iov_left;
	struct head *h = (struct head *)p->data; /* its bytes come first */
	__builtin_memset(h, 0, sizeof(*h));
	h->have = gather(w, p, HEAD_BYTES);
	w->base = base;
	w->segment = segment;
	w->iov = iov;
	w->left = left;
	w->iov_left = iov_left;
	if (!h->have)
		return 0;
	h->length = left;
	h->local_port = id->local_port;
	h->peer_port = id->peer_port;
	h->received = w->direction == RX;
	h->joined = s->flags & SVC_SEGMENT_JOINED;
	u32 told = svc_classify(h);
	struct opening found = { .protocol = told, .opens = told >> 8 };
	if (!found.protocol)
		return 0;
	if (found.opens == OPENS_EITHER)
		found.opens = !role ? OPENS_NOT : (role == OPENS_CLIENT) == (w->direction == TX) ? OPENS_CLIENT : OPENS_SERVER;
	if (found.opens == OPENS_NOT)
		return 0;
	s->protocol = found.protocol;
	if ((found.opens == OPENS_CLIENT) == (w->direction == RX))
		s->flags |= SVC_SEGMENT_SERVER;
	return 1;
}

/* Skips missing bytes of the current segment, and moves to the next one if it has too few. 1: done, or no more
 * buffers. A callback, unlike the loop in gather(), as few calls need a repetition. */
static long skip_missing(u32 i, struct work **of)
{
	struct work *w = *of;
	w->missing -= skip(w, w->missing);
	return !w->missing || !next_segment(w);
}

/* Reports the bytes of the call in `w`. `sequence`: TCP sequence number of its first byte, or 0. */
__noinline int svc_follow(struct work *w, struct stream_state *s, struct identity *id, struct part *p, u32 sequence)
{
	if (!w || !s || !id || !p)
		return 0;
	u32 direction = w->direction & 1;
	bool first = s->turn != direction + 1 || s->protocol == svc_protocol_http2;
	if (s->turn != direction + 1 || !(takes_turns(s->protocol) || s->protocol == svc_protocol_http1)) {
		s->turn = direction + 1;
		s->captured = 0;
	}
	if ((++s->calls & 15) == 3 && bpf_map_lookup_elem(&refused, &id->connection)) {
		s->off = true;
		return 0;
	}
	describe(p, s, id, direction, now(w));
	if (s->pid != p->segment.pid)
		s->owner = svc_owner();
	s->pid = p->segment.pid;
	if (track_requests && s->flags & SVC_SEGMENT_SERVER) {
		if (direction == TX)
			p->segment.served = answer_begins(id->connection & COOKIE);
		else if (first)
			serve(serving_now(), bpf_get_current_task_btf(), id->connection & COOKIE, now(w),
			      s->flags & SVC_SEGMENT_BLOCKING);
	}
	if (takes_turns(s->protocol)) {
		bool asking = (direction == TX) != !!(s->flags & SVC_SEGMENT_SERVER);
		if (!s->captured)
			on_turn(w, s, id, p, asking);
		if (s->counted) {
			if (!asking)
				s->answered_ns = now(w);
			s->captured = 1; /* the turn has started */
			s->position[direction] += w->left;
			w->left = 0;
			return 0;
		}
	}
	count(svc_counter_segments);
	for (int i = 0; i < PARTS_MAX; i++) {
		u32 want = w->left < PART ? w->left : PART;
		if (!want || (s->captured >= TURN_WHOLE && s->protocol != svc_protocol_http2))
			break;
		u32 got = gather(w, p, want);
		if (!got || got > PART)
			break;
		p->segment.length = got;
		p->segment.position = s->position[direction];
		p->segment.sequence = sequence;
		if (!put_part(w, s->owner, p, got) && !s->captured && takes_turns(s->protocol) && direction == TX) {
			/* Counts the exchange that has no record. */
			s->counted = svc_counter_ring_full;
			s->captured = 1;
			s->position[direction] += w->left + got;
			w->left = 0;
			return 0;
		}
		if (sequence)
			sequence += got;
		s->position[direction] += got;
		s->captured += got;
	}
	u64 left = w->left;
	if (!left)
		return 0;
	/* The rest, with its end. */
	struct work *of = w;
	w->missing = left > TAIL ? left - TAIL : 0;
	if (!skip_missing(0, &of))
		bpf_loop(GATHER_MAX - 1, skip_missing, &of, 0);
	u32 tail = w->missing ? 0 : gather(w, p, TAIL);
	if (w->left || tail > TAIL) /* a page is not readable: these are not the last bytes */
		tail = 0;
	p->segment.length = left;
	p->segment.position = s->position[direction];
	p->segment.sequence = sequence;
	p->segment.tail = tail;
	put_part(w, s->owner, p, tail);
	s->position[direction] += left;
	w->left = 0;
	return 0;
}

/* Reports the end of the connection. May run in an interrupt, so the process is unknown. */
static __noinline int follow_end(struct stream_state *s, struct identity *id, struct part *p, u64 at, u16 error)
{
	describe(p, s, id, TX, at);
	if (s->counted)
		count_turn(s, id, p);
	p->segment.flags |= SVC_SEGMENT_CLOSED;
	p->segment.length = 0;
	p->segment.position = 0;
	p->segment.error = error;
	p->segment.captured = 0;
	if (!svc_has_room(s->owner, sizeof(p->segment), bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA)) ||
	    bpf_ringbuf_output(&ring, p, sizeof(p->segment), BPF_RB_NO_WAKEUP))
		count(svc_counter_segments_lost);
	s->off = true;
	return 0;
}
