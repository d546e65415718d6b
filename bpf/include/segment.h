/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Connections whose bytes are read in user space: their protocol is recognised here, and the bytes of each call go into
 * the ring. A turn is what goes in one direction until the other side says something; where the sides do not wait for
 * each other, a call. Of a turn TURN_WHOLE bytes are passed on and of the rest of each call the end: a response's rows are
 * many and tell little. */
#pragma once
#include "cursor.h"
#include "emit.h"
#include "serving.h"

#define PART 8192          /* bytes of a call in one record; a power of two */
#define PARTS_MAX 8        /* records of one call */
#define TURN_WHOLE 16384
#define TAIL 64
#define GATHER_MAX 128     /* buffers of a call that one record takes bytes from: with PARTS_MAX, all that there may be */
#define GATHER_STEP 16     /* of them in one loop: the verifier walks each round */

/* Of a connection's number, which user space reads as a double: it is what goes inside the TLS of the socket with this
 * cookie, inside a TLS inside of that (to a proxy), inside the TLS of a session without a socket. */
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
	u8 data[2 * PART]; /* follows without a gap; twice, so that a mask bounds what is written anywhere in it */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 6);
	__type(key, u32);
	__type(value, struct part);
} parts SEC(".maps");

/* Connections that user space found to speak something else. */
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
	id->connection = bpf_get_socket_cookie(sk);
	id->family = family;
	fill_address(id->local_address, sk, family, true);
	fill_address(id->peer_address, sk, family, false);
	id->local_port = bpf_ntohs(inet->inet_sport);
	id->peer_port = bpf_ntohs(sk->__sk_common.skc_dport);
}

/* Goes on with what gather() began, for GATHER_STEP buffers. Returns how much is missing still; 0 where there is no more.
 * Global, so that the verifier walks its loop once. What a round leaves to the next one stands in memory, where it is
 * unknown to the verifier: all ways through a round end alike, and only the first of them is walked on. */
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

/* Copies up to `want` bytes of the caller's buffers to p->data, and consumes them. Returns how many; fewer where a page
 * is not readable, or there are no buffers. */
static __always_inline u32 gather(struct work *w, struct part *p, u32 want)
{
	w->gathered = 0;
	w->missing = want;
	for (int i = 0; i < GATHER_MAX / GATHER_STEP; i++)
		if (!svc_gather(w, p))
			break;
	return w->gathered;
}

/* False: there is no room in the ring. */
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

/* Protocols that answer before they are asked again, as a rule: a turn of each side is an exchange. */
static __always_inline bool takes_turns(u8 protocol)
{
	return IS_COUNTED(protocol);
}

/* The exchange that is only counted is over. */
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
	if (p->segment.pid == s->pid) /* an end may be told in somebody else's context */
		__builtin_memcpy(key.comm, p->segment.comm, sizeof(key.comm));
	key.side = svc_side_client;
	key.port = id->peer_port;
	__builtin_memcpy(key.peer_address, id->peer_address, 16);
	return svc_count(&key, s->answered_ns - s->asked_ns);
}

/* A turn begins. True: the exchange is above the budget, and is only counted. */
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

/* What all parts of a call share. */
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

/* Global, so that the verifier walks it once. The protocol, and from bit 8 on who sends such bytes. */
__noinline int svc_classify(struct head *h)
{
	if (!h)
		return 0;
	struct opening found = classify(h, protocols_enabled);
	return found.protocol | found.opens << 8;
}

/* Recognises the protocol by the first bytes of the call that `w` describes. The buffers are left as they were.
 * `role`: OPENS_CLIENT or OPENS_SERVER where the handshake told what this side is. */
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

/* Consumes what is missing as far as the current segment has it, and takes the next one where it has too little. 1: no
 * more is to be done, or can be. A callback, unlike the loop of gather(): few calls need it again. */
static long skip_missing(u32 i, struct work **of)
{
	struct work *w = *of;
	w->missing -= skip(w, w->missing);
	return !w->missing || !next_segment(w);
}

/* Passes on the bytes of the call that `w` describes. `sequence`: TCP sequence number of its first byte, or 0. */
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
			serve(id->connection & COOKIE, now(w), s->flags & SVC_SEGMENT_BLOCKING);
	}
	if (takes_turns(s->protocol)) {
		bool asking = (direction == TX) != !!(s->flags & SVC_SEGMENT_SERVER);
		if (!s->captured)
			on_turn(w, s, id, p, asking);
		if (s->counted) {
			if (!asking)
				s->answered_ns = now(w);
			s->captured = 1; /* the turn has begun */
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
			/* What it would have been a record of is counted instead. */
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
	if (w->left || tail > TAIL) /* a page is not readable: these are not the last ones */
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

/* Tells user space that the connection ended. May run in an interrupt, so the process is not told. */
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
