/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* HTTP/1 framing (RFC 9112) over the bytes of a connection, whatever the back end they come from. Both directions
 * are followed byte-exactly: heads are scanned for the few lines that matter, bodies are skipped by length. */
#pragma once
#include "emit.h"

struct step {
	struct sock *sk;
	struct conn *c;
	struct work *w;
};

enum verdict { NO, YES, MORE };

static __always_inline struct exchange *exchange_of(struct sock *sk, struct conn *c, u32 seq)
{
	if (c->slot_seq == seq)
		return bpf_sk_storage_get(&slots, sk, 0, 0);
	struct exchange_key key = { .sk = (u64)sk, .seq = seq };
	return bpf_map_lookup_elem(&pipelined, &key);
}

static __always_inline void exchange_free(struct sock *sk, struct conn *c, u32 seq)
{
	if (c->slot_seq == seq) {
		c->slot_seq = 0;
		return;
	}
	struct exchange_key key = { .sk = (u64)sk, .seq = seq };
	bpf_map_delete_elem(&pipelined, &key);
}

static __always_inline struct exchange *exchange_new(struct sock *sk, struct conn *c, struct work *w)
{
	u32 seq = ++c->asked;
	if (!c->slot_seq) {
		struct exchange *ex = bpf_sk_storage_get(&slots, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
		if (ex)
			c->slot_seq = seq;
		else
			count(svc_counter_storage_full);
		return ex;
	}
	struct exchange_key key = { .sk = (u64)sk, .seq = seq };
	bpf_map_update_elem(&pipelined, &key, &w->blank, BPF_ANY);
	struct exchange *ex = bpf_map_lookup_elem(&pipelined, &key);
	if (!ex)
		count(svc_counter_pipeline_full);
	return ex;
}

static __always_inline void stream_reset(struct stream *s)
{
	s->state = START;
	s->start_len = 0;
	s->bytes = 0;
	s->head = 0;
	s->flags = 0;
}

static long abandon_one(u32 i, struct step *step)
{
	struct conn *c = step->c;
	if (c->answered >= c->asked)
		return 1;
	c->answered++;
	exchange_free(step->sk, c, c->answered);
	count(svc_counter_abandoned);
	return 0;
}

/* The framing is lost: gives up what is in flight and looks for the next request head. */
static __noinline int lose(struct step *step, u32 reason)
{
	struct conn *c = step->c;
	count(reason);
	bpf_loop(PIPELINE_MAX, abandon_one, step, 0);
	c->answered = c->asked;
	stream_reset(&c->stream[REQUEST]);
	stream_reset(&c->stream[RESPONSE]);
	c->joined = 1;
	step->w->left = 0;
	return 0;
}

static __always_inline void give_up(struct step *step, u32 reason)
{
	count(reason);
	step->c->mode = OFF;
	step->w->left = 0;
}

static __always_inline void finish(struct step *step, struct exchange *ex, u32 seq, bool aborted)
{
	struct conn *c = step->c;
	struct sock *sk = step->sk;
	struct stream *request = &c->stream[REQUEST], *response = &c->stream[RESPONSE];
	if (ex) {
		struct svc_record *r = &ex->record;
		bool answering = response->seq == seq;
		r->status = answering ? response->status : 0;
		r->response_bytes = answering ? response->bytes : 0;
		r->response_head = answering ? response->head : 0;
		if (request->seq == seq && request->state != START) { /* answered before it was complete */
			r->request_bytes = request->bytes;
			r->request_head = request->head;
		}
		r->aborted = aborted;
		r->error = aborted ? sk->sk_err : 0;
		emit(ex, sk, now(step->w));
	}
	exchange_free(sk, c, seq);
	c->answered = seq;
}

static __noinline int finish_found(struct step *step, u32 seq, bool aborted)
{
	finish(step, exchange_of(step->sk, step->c, seq), seq, aborted);
	return 0;
}

/* --- the bytes of one call ------------------------------------------------------------------------------------- */

/* Makes the next segment of the caller's buffers current. False: there is none. */
static __always_inline bool next_segment(struct work *w)
{
	u64 vector[2];
	if (!w->iov_left)
		return false;
	if (bpf_probe_read_user(vector, sizeof(vector), (void *)w->iov)) {
		w->failed = svc_counter_fault;
		return false;
	}
	w->iov += sizeof(vector);
	w->iov_left--;
	w->base = vector[0];
	w->segment = vector[1] < w->left ? vector[1] : w->left;
	return true;
}

/* Reads up to `most` (at most WINDOW) bytes of the current segment to win[CARRY]. */
static __always_inline u32 read_window(struct work *w, u32 most)
{
	u32 n = w->segment < most ? w->segment : most;
	if (n > WINDOW)
		n = WINDOW;
	if (!n || bpf_probe_read_user(&w->win[CARRY], n, (void *)w->base)) {
		w->failed = svc_counter_fault;
		return 0;
	}
	return n;
}

static __always_inline void consume(struct work *w, u64 n)
{
	w->base += n;
	w->segment -= n;
	w->left -= n;
}

/* Consumes up to n bytes without looking at them. */
static __always_inline u64 skip(struct work *w, u64 n)
{
	if (n >= w->left) {
		n = w->left;
		w->left = 0;
		return n;
	}
	if (n > w->segment)
		n = w->segment;
	consume(w, n);
	return n;
}

/* --- heads ----------------------------------------------------------------------------------------------------- */

#define WORD(a, b, c, d, e, f, g, h)                                                                                 \
	((u64)(a) | (u64)(b) << 8 | (u64)(c) << 16 | (u64)(d) << 24 | (u64)(e) << 32 | (u64)(f) << 40 | (u64)(g) << 48 | \
	 (u64)(h) << 56)
#define BYTES(n) ((n) >= 8 ? ~0ULL : (1ULL << 8 * (n)) - 1)

/* A request line starts with a token in capitals, a space and a target in one of its four forms (RFC 9112, 3.2). */
static __always_inline int request_start(u64 x, u32 have)
{
	bool connect = (x & BYTES(7)) == WORD('C', 'O', 'N', 'N', 'E', 'C', 'T', 0);
#pragma unroll
	for (int i = 0; i < 8; i++) {
		u8 ch = x >> 8 * i;
		if (i >= have)
			return MORE;
		if (ch == ' ') {
			if (i < 3)
				return NO;
			if (i == 7 || i + 1 >= have)
				return i == 7 ? YES : MORE;
			u8 target = x >> 8 * (i + 1 < 8 ? i + 1 : 7);
			return target == '/' || target == '*' || (target | 0x20) == 'h' || connect ? YES : NO;
		}
		if ((ch < 'A' || ch > 'Z') && ch != '-' && ch != '_')
			return NO;
	}
	return YES; /* a long method: the rest of the line decides */
}

static __always_inline int response_start(u64 x, u32 have)
{
	u64 mask = BYTES(have < 7 ? have : 7);
	if ((x ^ WORD('H', 'T', 'T', 'P', '/', '1', '.', 0)) & mask)
		return NO;
	return have >= 8 ? YES : MORE;
}

static __always_inline u8 method_of(u64 x)
{
	u32 low = x;
	if (low == (u32)WORD('G', 'E', 'T', ' ', 0, 0, 0, 0))
		return svc_method_get;
	if (low == (u32)WORD('P', 'O', 'S', 'T', 0, 0, 0, 0))
		return (u8)(x >> 32) == ' ' ? svc_method_post : svc_method_other;
	if (low == (u32)WORD('H', 'E', 'A', 'D', 0, 0, 0, 0))
		return (u8)(x >> 32) == ' ' ? svc_method_head : svc_method_other;
	if (low == (u32)WORD('P', 'U', 'T', ' ', 0, 0, 0, 0))
		return svc_method_put;
	if ((x & BYTES(7)) == WORD('D', 'E', 'L', 'E', 'T', 'E', ' ', 0))
		return svc_method_delete;
	if ((x & BYTES(6)) == WORD('P', 'A', 'T', 'C', 'H', ' ', 0, 0))
		return svc_method_patch;
	if (x == WORD('O', 'P', 'T', 'I', 'O', 'N', 'S', ' '))
		return svc_method_options;
	if (x == WORD('C', 'O', 'N', 'N', 'E', 'C', 'T', ' '))
		return svc_method_connect;
	if ((x & BYTES(6)) == WORD('T', 'R', 'A', 'C', 'E', ' ', 0, 0))
		return svc_method_trace;
	if ((x & BYTES(6)) == WORD('Q', 'U', 'E', 'R', 'Y', ' ', 0, 0))
		return svc_method_query;
	return svc_method_other;
}

#define LOWER 0x2020202020202020ULL

static __always_inline u64 word_at(struct work *w, u32 index)
{
	return *(u64 *)&w->win[bounded(index, WIN_MASK)];
}

/* One complete line [w->line, p) of a head. 1: the head ends here. 2: this is not HTTP/1. Global, so that the verifier
 * walks it once and not for each place of a line end. */
__noinline int svc_on_line(struct work *w, struct stream *s, struct svc_record *r, u32 p)
{
	if (!w || !s || !r)
		return 2;
	u32 line = w->line, end = p, kind = w->kind;
	w->line = p + 1;
	if (end > line && w->win[(end - 1) & WIN_MASK] == '\r')
		end--;
	if (s->flags & F_FIRST) {
		s->flags &= ~(F_FIRST | F_LONG);
		u32 at = kind == REQUEST ? end - 8 : line;
		if (end - line < 8)
			return 2;
		u64 version = word_at(w, at);
		if ((version & BYTES(7)) != WORD('H', 'T', 'T', 'P', '/', '1', '.', 0))
			return 2;
		if (kind == REQUEST) {
			r->minor = (version >> 56) - '0';
			return 0;
		}
		u64 rest = word_at(w, line + 8); /* " 200 OK" */
		u32 a = (u8)(rest >> 8) - '0', b = (u8)(rest >> 16) - '0', c = (u8)(rest >> 24) - '0';
		if (end - line < 12 || a < 1 || a > 9 || b > 9 || c > 9)
			return 2;
		s->status = a * 100 + b * 10 + c;
		return 0;
	}
	if (s->flags & F_LONG) {
		s->flags &= ~F_LONG;
		return 0;
	}
	if (end == line)
		return 1;
	u64 name = word_at(w, line) | LOWER;
	if (name == WORD('c', 'o', 'n', 't', 'e', 'n', 't', '-')) {
		if (((word_at(w, line + 8) | LOWER) & BYTES(7)) != WORD('l', 'e', 'n', 'g', 't', 'h', ':', 0))
			return 0;
		u64 length = 0;
		u32 i = line + 15;
		for (int n = 0; n < 24 && i < end; n++, i++) {
			u8 ch = w->win[i & WIN_MASK];
			if (ch >= '0' && ch <= '9')
				length = length * 10 + (ch - '0');
			else if (ch != ' ' && ch != '\t')
				break;
		}
		s->content = length;
		s->flags |= F_LENGTH;
	} else if (name == WORD('t', 'r', 'a', 'n', 's', 'f', 'e', 'r')) {
		if ((word_at(w, line + 8) | LOWER) != WORD('-', 'e', 'n', 'c', 'o', 'd', 'i', 'n'))
			return 0;
		/* only a message whose last coding is "chunked" frames itself */
		if (((word_at(w, end - 7) | LOWER) & BYTES(7)) == WORD('c', 'h', 'u', 'n', 'k', 'e', 'd', 0))
			s->flags |= F_CHUNKED;
	} else if (kind == REQUEST && name == WORD('t', 'r', 'a', 'c', 'e', 'p', 'a', 'r')) {
		if (((word_at(w, line + 8) | LOWER) & BYTES(4)) != (u32)WORD('e', 'n', 't', ':' | 0x20, 0, 0, 0, 0))
			return 0;
		u32 value = line + 12;
		for (int n = 0; n < 4; n++) {
			if (w->win[value & WIN_MASK] == ' ' || w->win[value & WIN_MASK] == '\t')
				value++;
		}
		if (end < value || end - value < 55 || r->has_traceparent)
			return 0;
		for (int n = 0; n < SVC_TRACEPARENT / 8; n++)
			*(u64 *)&r->traceparent[n * 8] = word_at(w, value + n * 8);
		r->has_traceparent = 1;
	}
	return 0;
}

#define SCAN_STEPS 256 /* eight bytes or a line each: more than a window of common heads needs */

/* True: the line is one that on_line wants. Most are not, and a call costs more than this. */
static __always_inline bool wanted(struct work *w, u32 line, u8 flags)
{
	if (flags & (F_FIRST | F_LONG))
		return true;
	u64 name = word_at(w, line);
	u8 first = name;
	if (first == '\r' || first == '\n')
		return true;
	name |= LOWER;
	if (name == WORD('c', 'o', 'n', 't', 'e', 'n', 't', '-'))
		return (w->win[bounded(line + 8, WIN_MASK)] | 0x20) == 'l';
	return name == WORD('t', 'r', 'a', 'n', 's', 'f', 'e', 'r') || name == WORD('t', 'r', 'a', 'c', 'e', 'p', 'a', 'r');
}

/* Scans the lines of the window from w->scan on. Global for the same reason, and a plain loop because a callback for
 * each word costs a return, which is dear on processors with mitigations (measured: 15 ns). */
__noinline int svc_scan(struct work *w, struct stream *s, struct svc_record *r)
{
	if (!w || !s || !r)
		return 0;
	for (u32 i = 0; i < SCAN_STEPS; i++) {
		u32 at = w->scan;
		if (at >= w->end)
			return 0;
		u64 x = word_at(w, at) ^ 0x0a0a0a0a0a0a0a0aULL;
		u64 found = (x - 0x0101010101010101ULL) & ~x & 0x8080808080808080ULL;
		if (!found) {
			w->scan = at + 8;
			continue;
		}
		u64 below = ((found & -found) >> 7) - 1; /* 0xff for each byte before the line end */
		u32 p = at + ((below & 0x0101010101010101ULL) * 0x0101010101010101ULL >> 56);
		if (p >= w->end)
			return 0;
		w->scan = p + 1;
		if (!wanted(w, w->line, s->flags)) {
			w->line = p + 1;
			continue;
		}
		int done = svc_on_line(w, s, r, p);
		if (!done)
			continue;
		w->head_end = done == 1 ? p + 1 : 0;
		w->failed = done == 2 ? svc_counter_desync : 0;
		return 0;
	}
	w->end = w->scan; /* the rest is for the next step */
	return 0;
}

/* Keeps a short head of a request, win[from, from + n), without a helper's call. Global like the scan. */
__noinline int svc_capture_short(struct work *w, struct exchange *ex, u32 from, u32 n)
{
	if (!w || !ex)
		return 0;
	for (u32 i = 0; i < 256 && i < n; i += 8)
		*(u64 *)&ex->data[i] = word_at(w, from + i);
	ex->record.captured = n;
	return 0;
}

/* Keeps the bytes win[from, to) as the next part of the request's head. */
static __noinline int capture(struct work *w, struct exchange *ex, u32 from, u32 to)
{
	u32 have = ex->record.captured, n = to - from;
	if (have >= capture_bytes)
		return 0;
	if (n > capture_bytes - have)
		n = capture_bytes - have;
	if (n > CAPTURE)
		n = CAPTURE;
	struct bpf_dynptr whole;
	bpf_dynptr_from_mem(ex->data, sizeof(ex->data), 0, &whole);
	if (!bpf_dynptr_write(&whole, have, &w->win[bounded(from, 127)], bounded(n, WIN_MASK), 0))
		ex->record.captured = have + n;
	return 0;
}

/* The message's framing after its head (RFC 9112, 6.3). True: it has no body. */
static __always_inline bool body_follows(struct conn *c, struct stream *s, u32 kind, u8 method)
{
	if (kind == RESPONSE) {
		u16 status = s->status;
		if (status < 200 || status == 204 || status == 304 || method == svc_method_head)
			return false;
		if (method == svc_method_connect && status < 300)
			return false;
	}
	if (s->flags & F_CHUNKED) {
		s->state = CHUNK_SIZE;
		s->remaining = 0;
		s->line = 0;
		s->flags &= ~F_EXTENSION;
		return true;
	}
	if (s->flags & F_LENGTH) {
		s->state = BODY;
		s->remaining = s->content;
		return s->content > 0;
	}
	if (kind == REQUEST)
		return false;
	s->state = BODY_CLOSE;
	return true;
}

/* A message is complete. */
static __always_inline int message_end(struct step *step, u32 kind, struct exchange *ex)
{
	struct conn *c = step->c;
	struct stream *s = &c->stream[kind & 1];
	u32 seq = s->seq;
	if (kind == REQUEST) {
		if (ex) {
			ex->record.request_bytes = s->bytes;
			ex->record.request_head = s->head;
		}
		stream_reset(s);
		return 0;
	}
	if (s->status < 200 && s->status != 101) { /* interim: the response is still due */
		stream_reset(s);
		return 0;
	}
	bool tunnel = s->status == 101 || (ex && ex->record.method == svc_method_connect && s->status < 300);
	finish(step, ex, seq, false);
	stream_reset(s);
	if (tunnel) {
		c->mode = OFF;
		step->w->left = 0;
	}
	return 0;
}

static __noinline int message_end_found(struct step *step, u32 kind)
{
	struct conn *c = step->c;
	return message_end(step, kind & 1, exchange_of(step->sk, c, c->stream[kind & 1].seq));
}

static __always_inline bool port_allowed(u16 port)
{
	u8 mark = ports[port];
	return include_ports ? mark == 2 : mark != 1;
}

/* A request begins at win[from]. */
static __always_inline struct exchange *begin_request(struct step *step, u32 from)
{
	struct sock *sk = step->sk;
	struct conn *c = step->c;
	struct work *w = step->w;
	if (c->mode == UNKNOWN) {
		bool server = w->direction == RX;
		u16 port = server ? sk->__sk_common.skc_num : bpf_ntohs(sk->__sk_common.skc_dport);
		if (!port_allowed(port)) {
			give_up(step, svc_counter_excluded);
			return 0;
		}
		c->mode = server ? SERVER : CLIENT;
	}
	struct stream *s = &c->stream[REQUEST], *response = &c->stream[RESPONSE];
	if (response->state == BODY_CLOSE) { /* it was not the last response after all */
		finish_found(step, response->seq, false);
		stream_reset(response);
	}
	struct exchange *ex = exchange_new(sk, c, w);
	if (!ex)
		return 0;
	if (c->joined) {
		c->joined = 0;
		c->misses = 0;
		stream_reset(response);
	}
	s->seq = c->asked;
	ex->carry_len[0] = 0;
	ex->carry_len[1] = 0;
	struct svc_record *r = &ex->record;
	r->start_ns = now(w);
	r->response_ns = 0;
	r->request_bytes = 0;
	r->request_head = 0;
	struct task_struct *task = bpf_get_current_task_btf();
	u32 pid = task->tgid;
	if (c->pid != pid) {
		c->pid = pid;
		c->cgroup = bpf_get_current_cgroup_id();
		bpf_get_current_comm(c->comm, sizeof(c->comm));
	}
	r->pid = pid;
	r->cgroup = c->cgroup;
	__builtin_memcpy(r->comm, c->comm, sizeof(r->comm));
	r->captured = 0;
	r->side = c->mode == SERVER ? svc_side_server : svc_side_client;
	r->method = method_of(word_at(w, from));
	r->minor = 1;
	r->has_traceparent = 0;
	/* The call's first byte has the sequence number "position - total"; carried bytes came before this call. */
	struct tcp_sock *tp = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
	u32 position = w->direction == RX ? tp->copied_seq : tp->write_seq;
	r->sequence = position - (u32)w->left + from - CARRY;
	return ex;
}

static __always_inline struct exchange *begin_response(struct step *step, struct stream *s)
{
	struct conn *c = step->c;
	s->seq = c->answered + 1;
	struct exchange *ex = exchange_of(step->sk, c, s->seq);
	if (!ex)
		return 0;
	ex->carry_len[RESPONSE] = 0;
	if (!ex->record.response_ns)
		ex->record.response_ns = now(step->w);
	return ex;
}

/* START and HEAD: a head is due or under way. */
static __always_inline int on_head(struct step *step)
{
	struct conn *c = step->c;
	struct work *w = step->w;
	u32 kind = w->kind & 1;
	struct stream *s = &c->stream[kind];
	struct exchange *ex = 0;
	u32 from = CARRY;
	u32 n = read_window(w, WINDOW);
	if (!n)
		return 0;
	w->end = CARRY + n;

	if (s->state == START) {
		u32 carried = s->start_len & 7;
		if (carried) {
			*(u64 *)&w->win[CARRY - 8] = s->start << (8 * (8 - carried));
			from = CARRY - carried;
		} else if (kind == REQUEST) { /* line ends before a request are to be ignored (RFC 9112, 2.2) */
			for (int i = 0; i < 4 && from < w->end; i++) {
				u8 ch = w->win[from & WIN_MASK];
				if (ch != '\r' && ch != '\n')
					break;
				from++;
			}
			if (from == w->end) {
				consume(w, n);
				return 0;
			}
		}
		u64 x = word_at(w, from);
		u32 have = w->end - from;
		int verdict = kind == REQUEST ? request_start(x, have) : response_start(x, have);
		if (verdict == MORE && have < 8) {
			s->start = x;
			s->start_len = have;
			c->direction = w->direction;
			consume(w, n);
			return 0;
		}
		s->start_len = 0;
		if (verdict == NO || (kind == RESPONSE && c->answered >= c->asked)) {
			if (verdict != NO)
				count(svc_counter_orphan_response);
			if (c->joined && c->misses < 255) {
				c->misses++;
				w->left = 0;
				return 0;
			}
			if (c->mode == UNKNOWN || c->joined)
				give_up(step, svc_counter_not_recognised);
			else
				lose(step, svc_counter_desync);
			return 0;
		}
		if (kind == REQUEST) {
			ex = begin_request(step, from);
			if (!ex) {
				if (c->mode != OFF)
					lose(step, svc_counter_desync);
				return 0;
			}
		} else {
			ex = begin_response(step, s);
		}
		s->state = HEAD;
		s->flags = F_FIRST;
		s->bytes = 0;
		s->head = 0;
		s->status = 0;
		s->content = 0;
		s->head += CARRY - (from < CARRY ? from : CARRY);
		s->bytes = s->head;
	} else {
			ex = exchange_of(step->sk, c, s->seq);
	}
	if (!ex) {
		lose(step, svc_counter_desync);
		return 0;
	}
	u32 kept = ex->carry_len[kind];
	if (kept && kept <= CARRY) {
		bpf_probe_read_kernel(&w->win[bounded(CARRY - kept, 127)], bounded(kept, 127), ex->carry[kind]);
		w->line = CARRY - kept;
	} else {
		w->line = from;
	}
	ex->carry_len[kind] = 0;

	w->scan = from;
	w->head_end = 0;
	w->failed = 0;
	svc_scan(w, s, &ex->record);
	if (w->failed) { /* the first line is no HTTP/1 */
		w->failed = 0;
		if (kind == REQUEST && c->asked == 1) { /* nor is the connection: HTTP/2 with prior knowledge starts like this */
			exchange_free(step->sk, c, 1);
			c->answered = 1;
			give_up(step, svc_counter_not_recognised);
		} else {
			lose(step, svc_counter_desync);
		}
		return 0;
	}
	u32 stop = w->head_end ? w->head_end : w->end;
	if (stop > CARRY + WINDOW || stop < from)
		return 0;
	if (kind == REQUEST) {
		if (!ex->record.captured && stop - from <= 256 && capture_bytes >= 256)
			svc_capture_short(w, ex, from, stop - from);
		else
			capture(w, ex, from, stop);
	}
	u32 consumed = stop - CARRY;
	if (stop < CARRY)
		consumed = 0;
	s->head += consumed;
	s->bytes += consumed;
	consume(w, consumed);
	if (w->head_end) {
		if (kind == REQUEST && c->asked == 1)
			count(svc_counter_connections);
		bool body = body_follows(c, s, kind, ex->record.method);
		if (body && s->state == BODY && s->remaining == w->left) { /* all of it is here: the common case in one step */
			s->bytes += s->remaining;
			w->left = 0;
			body = false;
		}
		if (!body)
			message_end(step, kind, ex);
		return 0;
	}
	u32 line = w->line, length = w->end - line;
	if (length > CARRY) {
		if (!(s->flags & F_FIRST)) {
			s->flags |= F_LONG;
			return 0;
		}
		length = 16; /* the first line ends with the version */
		line = w->end - length;
	}
	if (length && length <= CARRY && line <= CARRY + WINDOW) {
		bpf_probe_read_kernel(ex->carry[kind], length, &w->win[bounded(line, WIN_MASK)]);
		ex->carry_len[kind] = length;
	}
	return 0;
}

/* CHUNK_SIZE and TRAILER: a short line is under way. */
static __noinline int on_chunk_line(struct step *step)
{
	struct work *w = step->w;
	u32 kind = w->kind & 1;
	struct stream *s = &step->c->stream[kind];
	u32 n = read_window(w, 32);
	if (!n)
		return 0;
	u32 used = 0;
	bool end = false;
	for (u32 i = 0; i < 32; i++) {
		if (i >= n)
			break;
		u8 ch = w->win[CARRY + i];
		used = i + 1;
		if (s->state == CHUNK_SIZE) {
			u8 lower = ch | 0x20;
			if (ch == '\n') {
				if (s->remaining) {
					s->remaining += 2;
					s->state = CHUNK_DATA;
					break;
				}
				s->state = TRAILER;
				s->line = 0;
			} else if (s->flags & F_EXTENSION || ch == '\r') {
				continue;
			} else if (ch >= '0' && ch <= '9') {
				s->remaining = s->remaining << 4 | (ch - '0');
			} else if (lower >= 'a' && lower <= 'f') {
				s->remaining = s->remaining << 4 | (lower - 'a' + 10);
			} else {
				s->flags |= F_EXTENSION;
			}
		} else if (ch == '\n') {
			if (!s->line) {
				end = true;
				break;
			}
			s->line = 0;
		} else if (ch != '\r') {
			s->line = 1;
		}
	}
	s->bytes += used;
	consume(w, used);
	if (end)
		message_end_found(step, kind);
	return 0;
}

static __noinline long on_step(u32 i, struct step *step)
{
	struct work *w = step->w;
	struct conn *c = step->c;
	if (!w->left)
		return 1;
	struct stream *s = &c->stream[w->kind & 1];
	u8 state = s->state;
	if (state == BODY || state == CHUNK_DATA || state == BODY_CLOSE) {
		u64 want = state == BODY_CLOSE ? w->left : s->remaining;
		if (want < w->left && !w->segment && !next_segment(w)) {
			lose(step, w->failed ? svc_counter_fault : svc_counter_unreadable);
			return 1;
		}
		u64 done = skip(w, want);
		s->bytes += done;
		if (state == BODY_CLOSE)
			return 0;
		s->remaining -= done;
		if (s->remaining)
			return 0;
		if (state == BODY) {
			message_end_found(step, w->kind);
		} else {
			s->state = CHUNK_SIZE;
			s->flags &= ~F_EXTENSION;
		}
		return 0;
	}
	if (!w->segment) {
		if (next_segment(w))
			return 0;
		if (c->mode == UNKNOWN && !c->joined)
			give_up(step, svc_counter_not_recognised);
		else
			lose(step, w->failed ? svc_counter_fault : svc_counter_unreadable);
		return 1;
	}
	if (state == START || state == HEAD)
		on_head(step);
	else
		on_chunk_line(step);
	if (w->failed) {
		lose(step, w->failed);
		return 1;
	}
	return c->mode == OFF;
}

/* The body that all back ends share: `w` describes the bytes of one call that went over `sk`. */
static __always_inline int on_data(struct sock *sk, struct conn *c, struct work *w)
{
	if (c->mode == UNKNOWN) {
		w->kind = REQUEST;
		if (c->stream[REQUEST].start_len && c->direction != w->direction) {
			if (!c->joined) {
				count(svc_counter_not_recognised);
				c->mode = OFF;
				return 0;
			}
			c->stream[REQUEST].start_len = 0;
		}
	} else {
		w->kind = (c->mode == SERVER) == (w->direction == RX) ? REQUEST : RESPONSE;
	}
	struct step step = { .sk = sk, .c = c, .w = w };
	if (!on_step(0, &step))
		bpf_loop(MESSAGES_MAX, on_step, &step, 0);
	if (w->left && c->mode != OFF)
		lose(&step, svc_counter_messages_bound);
	return 0;
}

static long close_one(u32 i, struct step *step)
{
	struct conn *c = step->c;
	if (c->answered >= c->asked)
		return 1;
	struct stream *response = &c->stream[RESPONSE];
	u32 seq = c->answered + 1;
	bool complete = response->seq == seq && response->state == BODY_CLOSE && !step->sk->sk_err;
	finish_found(step, seq, !complete);
	return 0;
}

/* No more bytes will come: what is in flight ends here. */
static __always_inline void on_close(struct sock *sk, struct conn *c, struct work *w)
{
	struct step step = { .sk = sk, .c = c, .w = w };
	bpf_loop(PIPELINE_MAX, close_one, &step, 0);
	c->mode = OFF;
}
