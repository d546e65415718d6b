/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* MongoDB wire protocol: length, request number, number of the answered request (0 in requests), opcode; little
 * endian. Drivers start with OP_QUERY or OP_MSG, and may compress (OP_COMPRESSED) later. */
#pragma once
#include "../head.h"

#define MONGODB_REPLY 1
#define MONGODB_QUERY 2004
#define MONGODB_COMPRESSED 2012
#define MONGODB_MESSAGE 2013
#define MONGODB_MAX (64 << 20)

/* After the head of an OP_MSG: flags, of which two are known, the kind of the first section, its length. */
static __always_inline bool mongodb_message(const struct head *h, u32 length)
{
	const u8 *b = h->bytes;
	if (h->have < 20)
		return h->length == 16; /* some send the head in a separate call */
	if (LE32(b + 16) & 0xfffc)
		return false;
	if (h->have < 25)
		return h->length == 20;
	return b[20] <= 1 && LE32(b + 21) >= 5 && LE32(b + 21) <= length - 21;
}

static __always_inline int opens_mongodb(const struct head *h)
{
	const u8 *b = h->bytes;
	if (h->have < 16)
		return OPENS_NOT;
	u32 length = LE32(b), answered = LE32(b + 8), opcode = LE32(b + 12);
	if (length < 26 || length > MONGODB_MAX || (answered && !h->joined))
		return OPENS_NOT;
	/* No bytes follow the first message before it is answered. */
	if (!h->joined && h->length > length)
		return OPENS_NOT;
	int from = answered ? OPENS_SERVER : OPENS_CLIENT;
	if (opcode == MONGODB_MESSAGE)
		return mongodb_message(h, length) ? from : OPENS_NOT;
	/* Flags of eight bits, and a name that starts with a letter or similar. */
	if (opcode == MONGODB_QUERY && !answered)
		return h->have >= 34 && LE32(b + 16) < 256 && b[20] > ' ' && b[20] < 0x7f ? OPENS_CLIENT : OPENS_NOT;
	if (opcode == MONGODB_REPLY && answered)
		return h->have >= 36 && LE32(b + 16) < 16 ? OPENS_SERVER : OPENS_NOT;
	if (opcode == MONGODB_COMPRESSED && h->joined)
		return h->have >= 25 && b[24] <= 3 && (LE32(b + 16) == MONGODB_MESSAGE || LE32(b + 16) == MONGODB_QUERY ||
						       LE32(b + 16) == MONGODB_REPLY) ? from : OPENS_NOT;
	return OPENS_NOT;
}
