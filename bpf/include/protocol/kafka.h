/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Kafka requests: length, key, version, number, client name; big endian. There is no distinctive mark, so every
 * field must match: user space reports nothing before the broker's response with the same number. */
#pragma once
#include "../head.h"

#define KAFKA_MAX (256 << 20)

/* Newest version of a request that clients send, with room for later ones; -1: clients do not send it. */
static __always_inline int kafka_versions(u32 key)
{
	if (key <= 3) /* Produce, Fetch, ListOffsets, Metadata */
		return 20;
	if (key >= 8 && key <= 16) /* groups and their offsets */
		return 12;
	if (key == 17 || key == 36) /* SaslHandshake, SaslAuthenticate */
		return 3;
	if (key == 18) /* ApiVersions */
		return 6;
	if (key == 22 || (key >= 24 && key <= 28)) /* transactions */
		return 8;
	if (key >= 19 && key <= 92) /* administration, and newer groups */
		return 9;
	return -1;
}

/* Valid byte of a client name. Missing bytes of a long name are zeros, which match. */
static __always_inline bool kafka_name(u8 byte, u32 place, u32 length)
{
	return place >= length || (byte > ' ' && byte < 0x7f);
}

static __always_inline int opens_kafka(const struct head *h)
{
	const u8 *b = h->bytes;
	/* Responses start like requests: length, a number (key and version while it is small), often a number of
	 * topics and the name of one. So only sent bytes are conclusive; the server side is not needed anyway. */
	if (h->have < 14 || (h->joined && h->received))
		return OPENS_NOT;
	u32 total = BE32(b) + 4, key = BE16(b + 4), version = BE16(b + 6), name = BE16(b + 12);
	if (total < 14 || total > KAFKA_MAX || (int)version > kafka_versions(key) || BE32(b + 8) > 0x7fffffff)
		return OPENS_NOT;
	/* No bytes follow the first request before its response, and it is short. Later one call may have several,
	 * and a request that moves records may be larger than its call. */
	if (!h->joined ? total != h->length : total > h->length && (key > 1 || h->length < 1024))
		return OPENS_NOT;
	if (name == 0xffff)
		return key == 18 || key == 3 || h->joined ? OPENS_CLIENT : OPENS_NOT;
	/* Zeros as a name's length are more often another protocol. */
	if (name > 512 || 14 + name > total || (h->joined && !name))
		return OPENS_NOT;
	bool printable = kafka_name(b[14], 0, name) && kafka_name(b[15], 1, name) && kafka_name(b[16], 2, name) &&
			 kafka_name(b[17], 3, name) && kafka_name(b[18], 4, name) && kafka_name(b[19], 5, name) &&
			 kafka_name(b[20], 6, name) && kafka_name(b[21], 7, name);
	return printable ? OPENS_CLIENT : OPENS_NOT;
}
