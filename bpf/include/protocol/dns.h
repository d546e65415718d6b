/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* DNS (RFC 1035, section 4) on its port: a datagram, or a message preceded by its length (4.2.2). */
#pragma once
#include "../head.h"

#define DNS_PORT 53
#define DNS_HEADER 12

/* A header and the start of a question at `p`. */
static __always_inline int dns_message(const u8 *p)
{
	u32 answers = BE16(p + 6), authorities = BE16(p + 8), additional = BE16(p + 10);
	bool response = p[2] & 0x80;
	/* Opcode QUERY, reserved bit 0. */
	if (p[2] & 0x78 || p[3] & 0x40)
		return OPENS_NOT;
	if (response) {
		/* A rejected message may be returned without its question. */
		if (BE16(p + 4) > 1 || (p[3] & 0x0f) > 10)
			return OPENS_NOT;
		return OPENS_SERVER;
	}
	if (BE16(p + 4) != 1 || answers != 0 || authorities > 1 || additional > 2 || p[2] & 0x06 || p[3] & 0x8f)
		return OPENS_NOT;
	/* The first label's length, or the root and a type. */
	return p[12] <= 63 ? OPENS_CLIENT : OPENS_NOT;
}

static __always_inline int opens_dns(const struct head *h)
{
	const u8 *b = h->bytes;
	if (h->peer_port != DNS_PORT && h->local_port != DNS_PORT)
		return OPENS_NOT;
	u32 framed = BE16(b);
	/* Some senders write the length in a separate call. */
	if (h->length == 2)
		return framed >= DNS_HEADER + 5 && h->received == (h->local_port == DNS_PORT) ? OPENS_CLIENT : OPENS_NOT;
	if (h->length < DNS_HEADER)
		return OPENS_NOT;
	if (framed + 2 == h->length) {
		int opens = dns_message(b + 2);
		if (opens)
			return opens;
	}
	return dns_message(b);
}
