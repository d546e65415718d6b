/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Parses an HTTP/1 head (RFC 9112): its start, the lines needed for framing and tracing, and the framing of the
 * body. */
#pragma once
#include "maps.h"

enum verdict { NO, YES, MORE };

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

/* Eight bytes at any address. For an inline cast of a byte array the compiler would read single bytes, for lack of
 * alignment. */
static __always_inline u64 *word(void *at)
{
	return at;
}

static __always_inline u64 word_at(struct work *w, u32 index)
{
	return *word(&w->win[bounded(index, WIN_MASK)]);
}

/* One complete line [w->line, p) of a head. 1: end of the head. 2: not HTTP/1. Global, so that the verifier checks
 * it once and not for each position of a line end. */
__noinline int svc_on_line(struct work *w, struct stream *s, struct svc_record *r, u32 p)
{
	if (!w || !s || !r)
		return 2;
	u32 line = w->line, end = p, kind = w->kind;
	w->line = p + 1;
	for (int n = 0; n < 4 && end > line; n++) { /* the line end, and blanks before it */
		u8 last = w->win[bounded(end - 1, WIN_MASK)];
		if (last != '\r' && last != ' ' && last != '\t')
			break;
		end--;
	}
	if (s->flags & F_FIRST) {
		s->flags &= ~(F_FIRST | F_LONG);
		u32 at = kind == REQUEST ? end - 8 : line;
		if (end - line < 8)
			return 2;
		u64 version = word_at(w, at);
		if ((version & BYTES(7)) != WORD('H', 'T', 'T', 'P', '/', '1', '.', 0))
			return 2;
		u8 minor = (version >> 56) - '0';
		if (minor > 9)
			return 2;
		if (kind == REQUEST) {
			r->minor = minor;
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
		/* a message is framed by chunks only if "chunked" is its last coding */
		s->flags &= ~F_CHUNKED;
		s->flags |= F_CODED;
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
			*word(&r->traceparent[n * 8]) = word_at(w, value + n * 8);
		r->has_traceparent = 1;
	} else if (kind == REQUEST) {
		r->more_context = 1;
	}
	return 0;
}

#define SCAN_STEPS 160 /* of eight bytes or a line; more than a window of usual heads needs */

/* Whether on_line needs the line. Most lines are not needed, and a call costs more than this check. */
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
	return name == WORD('t', 'r', 'a', 'n', 's', 'f', 'e', 'r') || name == WORD('t', 'r', 'a', 'c', 'e', 'p', 'a', 'r') ||
	       name == WORD('x', '-', 'b', '3', '-', 't', 'r', 'a') || name == WORD('t', 'r', 'a', 'c', 'e', 's', 't', 'a') ||
	       (name & BYTES(3)) == WORD('b', '3', ':' | 0x20, 0, 0, 0, 0, 0);
}

/* Scans the lines of the window from w->scan on. Global for the same reason, and a plain loop because a callback per
 * word adds a return, which is slow on processors with mitigations (measured: 15 ns). */
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
	if (w->scan < w->end)
		w->end = w->scan; /* the rest is for the next step */
	return 0;
}

/* Stores a short request head, win[from, from + n), without a helper call. Global like the scan. */
__noinline int svc_capture_short(struct work *w, struct exchange *ex, u32 from, u32 n)
{
	if (!w || !ex)
		return 0;
	for (u32 i = 0; i < 256 && i < n; i += 8)
		*word(&ex->data[i]) = word_at(w, from + i);
	ex->record.captured = n;
	return 0;
}

/* Stores the bytes win[from, to) as the next part of the request head. */
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

/* Framing of the body after the head (RFC 9112, 6.3). False: there is none. */
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
	if (s->flags & F_CODED) { /* coded, but not chunked: ends with the connection */
		s->state = BODY_CLOSE;
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

static __always_inline u8 chunk_digit(u8 ch)
{
	u8 lower = ch | 0x20;
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 16;
}

#define CHUNK_LINE 32 /* bytes read in one step; longer lines take more steps */

/* Continues a line with a chunk size, or the trailer; returns the number of bytes consumed. Sets w->head_end at the
 * end of the message. Global like the scan. */
__noinline int svc_chunk_line(struct work *w, struct stream *s)
{
	if (!w || !s)
		return 0;
	for (u32 i = 0; i < CHUNK_LINE; i++) {
		if (CARRY + i >= w->end)
			return i;
		u8 ch = w->win[CARRY + i];
		if (s->state == TRAILER) {
			if (ch == '\n' && !s->line) {
				w->head_end = 1;
				return i + 1;
			}
			if (ch != '\r')
				s->line = ch != '\n';
			continue;
		}
		u8 digit = chunk_digit(ch);
		if (ch == '\n') {
			s->state = s->remaining ? CHUNK_DATA : TRAILER;
			if (s->state == CHUNK_DATA) {
				s->remaining += 2;
				return i + 1;
			}
			s->line = 0;
		} else if (digit < 16 && !(s->flags & F_EXTENSION)) {
			s->remaining = s->remaining << 4 | digit;
		} else if (ch != '\r') {
			s->flags |= F_EXTENSION;
		}
	}
	return CHUNK_LINE;
}
