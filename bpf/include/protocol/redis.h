/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* RESP (redis.io/docs/reference/protocol-spec). A client sends arrays of bulk strings, the first of which is a
 * command. Replies may look the same, so within a connection only common commands count. */
#pragma once
#include "../head.h"

#define REDIS_PORT 6379

#define REDIS_DIGIT(c) ((u8)((c) - '0') < 10)
#define REDIS_LETTER(c) ((u8)(((c) | 0x20) - 'a') < 26)

/* Four letters in upper case: other characters become different bytes, but equally on both sides. */
#define REDIS_WORD(a, b, c, d) ((u32)((a) & 0xdf) << 24 | (u32)((b) & 0xdf) << 16 | (u32)((c) & 0xdf) << 8 | ((d) & 0xdf))

static __always_inline bool redis_everyday(const u8 *p)
{
	switch (REDIS_WORD(p[0], p[1], p[2], p[3])) {
	case REDIS_WORD('G', 'E', 'T', '\r'):
	case REDIS_WORD('S', 'E', 'T', '\r'):
	case REDIS_WORD('D', 'E', 'L', '\r'):
	case REDIS_WORD('T', 'T', 'L', '\r'):
	case REDIS_WORD('M', 'G', 'E', 'T'):
	case REDIS_WORD('M', 'S', 'E', 'T'):
	case REDIS_WORD('H', 'G', 'E', 'T'):
	case REDIS_WORD('H', 'S', 'E', 'T'):
	case REDIS_WORD('H', 'M', 'G', 'E'):
	case REDIS_WORD('I', 'N', 'C', 'R'):
	case REDIS_WORD('E', 'X', 'P', 'I'):
	case REDIS_WORD('E', 'X', 'I', 'S'):
	case REDIS_WORD('S', 'E', 'T', 'E'):
	case REDIS_WORD('L', 'P', 'U', 'S'):
	case REDIS_WORD('R', 'P', 'U', 'S'):
	case REDIS_WORD('B', 'L', 'P', 'O'):
	case REDIS_WORD('B', 'R', 'P', 'O'):
	case REDIS_WORD('L', 'R', 'A', 'N'):
	case REDIS_WORD('S', 'A', 'D', 'D'):
	case REDIS_WORD('S', 'M', 'E', 'M'):
	case REDIS_WORD('Z', 'A', 'D', 'D'):
	case REDIS_WORD('Z', 'R', 'A', 'N'):
	case REDIS_WORD('X', 'R', 'E', 'A'):
	case REDIS_WORD('X', 'A', 'D', 'D'):
	case REDIS_WORD('P', 'U', 'B', 'L'):
	case REDIS_WORD('E', 'V', 'A', 'L'):
	case REDIS_WORD('M', 'U', 'L', 'T'):
	case REDIS_WORD('P', 'I', 'N', 'G'):
	case REDIS_WORD('I', 'N', 'F', 'O'):
	case REDIS_WORD('S', 'C', 'A', 'N'):
	case REDIS_WORD('U', 'N', 'L', 'I'):
		return true;
	}
	return false;
}

/* "\r\n$" and a length of one or two digits, then a word. */
static __always_inline bool redis_command(const struct head *h, const u8 *p)
{
	if (p[0] != '\r' || p[1] != '\n' || p[2] != '$' || p[3] < '1' || p[3] > '9')
		return false;
	const u8 *word = p + 6;
	if (p[4] != '\r') {
		if (!REDIS_DIGIT(p[4]) || p[5] != '\r')
			return false;
		word = p + 7;
	}
	if (word[-1] != '\n' || !REDIS_LETTER(word[0]))
		return false;
	if (!h->joined)
		return true;
	return h->peer_port == REDIS_PORT || h->local_port == REDIS_PORT ? h->received == (h->local_port == REDIS_PORT)
									 : redis_everyday(word);
}

static __always_inline int opens_redis(const struct head *h)
{
	const u8 *b = h->bytes;
	/* Sent by health checks. On a NATS connection the server has sent before. */
	if (h->length == 6 && REDIS_WORD(b[0], b[1], b[2], b[3]) == REDIS_WORD('P', 'I', 'N', 'G') && b[4] == '\r' &&
	    b[5] == '\n')
		return h->joined && h->peer_port != REDIS_PORT && h->local_port != REDIS_PORT ? OPENS_NOT : OPENS_CLIENT;
	if (b[0] != '*' || b[1] < '1' || b[1] > '9')
		return OPENS_NOT;
	const u8 *end = b + 2;
	if (REDIS_DIGIT(b[2])) {
		end = b + 3;
		if (REDIS_DIGIT(b[3]))
			end = REDIS_DIGIT(b[4]) ? b + 5 : b + 4;
	}
	/* Only this line, from a client that writes in pieces. */
	if (h->peer_port == REDIS_PORT && !h->received && h->length == 4 && b[2] == '\r' && b[3] == '\n')
		return OPENS_CLIENT;
	return redis_command(h, end) ? OPENS_CLIENT : OPENS_NOT;
}
