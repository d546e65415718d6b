/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* PostgreSQL protocol 3 (PostgreSQL 15, section 55.7). Only clients start a connection. */
#pragma once
#include "../head.h"

static __always_inline bool svc_postgres_text(u8 byte)
{
	return byte >= ' ' ? byte != 0x7f : byte == '\t' || byte == '\n' || byte == '\r';
}

/* Lengths include themselves, but not the type before most messages. */
static __always_inline int opens_postgres(const struct head *h)
{
	const u8 *b = h->bytes;
	u32 size, code;

	if (h->have < 6)
		return OPENS_NOT;
	if (!h->joined) {
		size = BE32(b);
		code = BE32(b + 4);
		/* SSLRequest, GSSENCRequest */
		if (h->length == 8 && size == 8 && (code == 80877103 || code == 80877104))
			return OPENS_CLIENT;
		/* StartupMessage: alternating names and values; the first name is a lower case word */
		if ((code == 0x30000 || code == 0x30002) && size == h->length && size > 9 && size <= 10000 &&
		    b[8] >= 'a' && b[8] <= 'z' && b[9] >= 'a' && b[9] <= 'z')
			return OPENS_CLIENT;
		return OPENS_NOT;
	}
	size = BE32(b + 1);
	if (size > 0xffffff)
		return OPENS_NOT;
	switch (b[0]) {
	case 'Q': /* Query: a text that ends with the call or continues after it */
		if (size < 6 || size + 1 < h->length || !svc_postgres_text(b[5]))
			return OPENS_NOT;
		if (size + 1 == h->length)
			return OPENS_CLIENT;
		return h->have == HEAD_BYTES && svc_postgres_text(b[6]) && svc_postgres_text(b[7]) &&
			       svc_postgres_text(b[32]) && svc_postgres_text(b[63]) ?
			       OPENS_CLIENT :
			       OPENS_NOT;
	case 'P': /* Parse: a name, usually empty, and a text; usually followed by others */
		if (size < 8)
			return OPENS_NOT;
		if (size + 1 > h->length && h->have < HEAD_BYTES)
			return OPENS_NOT;
		if (b[5] == 0)
			return svc_postgres_text(b[6]) && (svc_postgres_text(b[7]) || b[7] == 0) ? OPENS_CLIENT :
												 OPENS_NOT;
		return svc_postgres_text(b[5]) && b[5] != ' ' && (svc_postgres_text(b[6]) || b[6] == 0) ? OPENS_CLIENT :
													OPENS_NOT;
	case 'B': /* Bind of the unnamed portal: a statement's name; at least Execute (10 bytes) follows */
		if (size < 12 || b[5] != 0 || size + 11 > h->length)
			return OPENS_NOT;
		if (b[6] == 0) /* zero or few parameter formats */
			return b[7] == 0 && b[8] <= 1 ? OPENS_CLIENT : OPENS_NOT;
		return svc_postgres_text(b[6]) && (svc_postgres_text(b[7]) || b[7] == 0) ? OPENS_CLIENT : OPENS_NOT;
	default:
		return OPENS_NOT;
	}
}
