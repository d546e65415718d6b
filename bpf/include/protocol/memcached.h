/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* memcached's text protocol with its meta commands, and the binary one (memcached's doc/protocol.txt and
 * protocol_binary.h). The server never sends first. */
#pragma once
#include "../head.h"

/* Four letters as in the memory of a little-endian machine. */
#define MEMCACHED_4(a, b, c, d) ((u32)(d) << 24 | (u32)(c) << 16 | (u32)(b) << 8 | (a))

/* First byte of a key. */
#define MEMCACHED_KEY(c) ((u8)((c) - 0x21) < 0x5e)

static __always_inline bool memcached_text(const struct head *h)
{
	const u8 *b = h->bytes;
	u32 first, second;
	__builtin_memcpy(&first, h->bytes, 4);
	__builtin_memcpy(&second, h->bytes + 4, 4);
	switch (first) {
	case MEMCACHED_4('g', 'e', 't', ' '):
	case MEMCACHED_4('s', 'e', 't', ' '):
	case MEMCACHED_4('a', 'd', 'd', ' '):
	case MEMCACHED_4('c', 'a', 's', ' '):
	case MEMCACHED_4('g', 'a', 't', ' '):
		return MEMCACHED_KEY(b[4]);
	case MEMCACHED_4('g', 'e', 't', 's'):
	case MEMCACHED_4('g', 'a', 't', 's'):
	case MEMCACHED_4('i', 'n', 'c', 'r'):
	case MEMCACHED_4('d', 'e', 'c', 'r'):
		return b[4] == ' ' && MEMCACHED_KEY(b[5]);
	case MEMCACHED_4('r', 'e', 'p', 'l'):
		return second == MEMCACHED_4('a', 'c', 'e', ' ') && MEMCACHED_KEY(b[8]);
	case MEMCACHED_4('a', 'p', 'p', 'e'):
		return (second & 0xffffff) == MEMCACHED_4('n', 'd', ' ', 0) && MEMCACHED_KEY(b[7]);
	case MEMCACHED_4('p', 'r', 'e', 'p'):
		return second == MEMCACHED_4('e', 'n', 'd', ' ') && MEMCACHED_KEY(b[8]);
	case MEMCACHED_4('d', 'e', 'l', 'e'):
		return (second & 0xffffff) == MEMCACHED_4('t', 'e', ' ', 0) && MEMCACHED_KEY(b[7]);
	case MEMCACHED_4('t', 'o', 'u', 'c'):
		return b[4] == 'h' && b[5] == ' ' && MEMCACHED_KEY(b[6]);
	case MEMCACHED_4('s', 't', 'a', 't'):
		return b[4] == 's' && (b[5] == ' ' || (b[5] == '\r' && b[6] == '\n' && h->length == 7));
	case MEMCACHED_4('v', 'e', 'r', 's'):
		return second == MEMCACHED_4('i', 'o', 'n', '\r') && b[8] == '\n' && h->length == 9;
	case MEMCACHED_4('f', 'l', 'u', 's'):
		return second == MEMCACHED_4('h', '_', 'a', 'l') && b[8] == 'l' && (b[9] == '\r' || b[9] == ' ');
	case MEMCACHED_4('m', 'n', '\r', '\n'):
		return true;
	}
	/* mg, ms, md, ma, me */
	return b[0] == 'm' && (b[1] == 'g' || b[1] == 's' || b[1] == 'd' || b[1] == 'a' || b[1] == 'e') && b[2] == ' ' &&
	       MEMCACHED_KEY(b[3]);
}

#define MEMCACHED_BIT(opcode) (1ULL << (opcode))
/* Opcodes by content: at most a key, flags and a time, a counter, a time, a value after the key, ... */
#define MEMCACHED_KEY_ONLY                                                                                            \
	(MEMCACHED_BIT(0x00) | MEMCACHED_BIT(0x04) | MEMCACHED_BIT(0x09) | MEMCACHED_BIT(0x0c) | MEMCACHED_BIT(0x0d) | \
	 MEMCACHED_BIT(0x14))
#define MEMCACHED_STORE                                                                                               \
	(MEMCACHED_BIT(0x01) | MEMCACHED_BIT(0x02) | MEMCACHED_BIT(0x03) | MEMCACHED_BIT(0x11) | MEMCACHED_BIT(0x12) | \
	 MEMCACHED_BIT(0x13))
#define MEMCACHED_COUNT (MEMCACHED_BIT(0x05) | MEMCACHED_BIT(0x06) | MEMCACHED_BIT(0x15) | MEMCACHED_BIT(0x16))
#define MEMCACHED_TOUCH                                                                                               \
	(MEMCACHED_BIT(0x1c) | MEMCACHED_BIT(0x1d) | MEMCACHED_BIT(0x1e) | MEMCACHED_BIT(0x23) | MEMCACHED_BIT(0x24))
#define MEMCACHED_APPEND                                                                                              \
	(MEMCACHED_BIT(0x0e) | MEMCACHED_BIT(0x0f) | MEMCACHED_BIT(0x19) | MEMCACHED_BIT(0x1a) | MEMCACHED_BIT(0x21) | \
	 MEMCACHED_BIT(0x22))
#define MEMCACHED_BARE                                                                                                \
	(MEMCACHED_BIT(0x08) | MEMCACHED_BIT(0x0a) | MEMCACHED_BIT(0x0b) | MEMCACHED_BIT(0x10) | MEMCACHED_BIT(0x18) | \
	 MEMCACHED_BIT(0x20))

/* A header of 24 bytes: magic, opcode, length of the key (2), of the extras, data type, vbucket (2), length of the
 * whole body (4), opaque (4), version of the item (8). Most opcodes have a single length of extras. */
static __always_inline bool memcached_binary(const struct head *h)
{
	const u8 *b = h->bytes;
	u32 key = BE16(b + 2), extras = b[4], body = BE32(b + 8);
	if (h->have < 24 || b[1] > 0x24 || key > 250 || b[5] != 0 || body < key + extras)
		return false;
	u64 bit = MEMCACHED_BIT(b[1]);
	bool whole = body == key + extras;
	if (key == 0)
		return bit & MEMCACHED_BARE && whole && (extras == 0 || extras == 4);
	if (extras == 0)
		return bit & MEMCACHED_APPEND || (whole && bit & (MEMCACHED_KEY_ONLY | MEMCACHED_BIT(0x10)));
	if (extras == 8)
		return bit & MEMCACHED_STORE;
	return whole && ((extras == 20 && bit & MEMCACHED_COUNT) || (extras == 4 && bit & MEMCACHED_TOUCH));
}

static __always_inline int opens_memcached(const struct head *h)
{
	if (h->bytes[0] == 0x80)
		return memcached_binary(h) ? OPENS_CLIENT : OPENS_NOT;
	return memcached_text(h) ? OPENS_CLIENT : OPENS_NOT;
}
