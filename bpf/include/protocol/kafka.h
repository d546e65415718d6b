/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Kafka's requests: length, key, version, number, the client's name; big endian. There is nothing that is there for being
 * recognised, so that all of it has to fit: user space tells nothing before the broker answers by the same number. */
#pragma once
#include "../head.h"

#define KAFKA_MAX (256 << 20)

/* The newest version of a request that clients send, some room for newer ones included; -1: clients do not send it. */
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
	if (key >= 19 && key <= 92) /* administration, and groups of a newer kind */
		return 9;
	return -1;
}

/* What a client's name is made of. Behind the bytes that are there stand zeros, which pass with the rest of a long name. */
static __always_inline bool kafka_name(u8 byte, u32 place, u32 length)
{
	return place >= length || (byte > ' ' && byte < 0x7f);
}

static __always_inline int opens_kafka(const struct head *h)
{
	const u8 *b = h->bytes;
	/* Answers begin like requests: length, a number (key and version while it is small), often a number of topics and the
	 * name of one. So it is only what is sent that tells; a server's side is of no use anyway. */
	if (h->have < 14 || (h->joined && h->received))
		return OPENS_NOT;
	u32 total = BE32(b) + 4, key = BE16(b + 4), version = BE16(b + 6), name = BE16(b + 12);
	if (total < 14 || total > KAFKA_MAX || (int)version > kafka_versions(key) || BE32(b + 8) > 0x7fffffff)
		return OPENS_NOT;
	/* Nothing is sent behind the first request before it is answered, and it is short. Later there may be several of
	 * them in one call, and one that moves records may be too long for it. */
	if (!h->joined ? total != h->length : total > h->length && (key > 1 || h->length < 1024))
		return OPENS_NOT;
	if (name == 0xffff)
		return key == 18 || key == 3 || h->joined ? OPENS_CLIENT : OPENS_NOT;
	/* Zeros where a name's length stands are more often something else. */
	if (name > 512 || 14 + name > total || (h->joined && !name))
		return OPENS_NOT;
	bool printable = kafka_name(b[14], 0, name) && kafka_name(b[15], 1, name) && kafka_name(b[16], 2, name) &&
			 kafka_name(b[17], 3, name) && kafka_name(b[18], 4, name) && kafka_name(b[19], 5, name) &&
			 kafka_name(b[20], 6, name) && kafka_name(b[21], 7, name);
	return printable ? OPENS_CLIENT : OPENS_NOT;
}
