/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* MySQL and MariaDB protocol: three bytes of length, a sequence number, a payload. The server sends first. */
#pragma once
#include "../head.h"

static __always_inline bool svc_mysql_digit(u8 byte)
{
	return byte >= '0' && byte <= '9';
}

/* First byte of a statement: a letter, a blank, a comment or a parenthesis. */
static __always_inline bool svc_mysql_text(u8 byte)
{
	u8 lower = byte | 0x20;

	return (lower >= 'a' && lower <= 'z') || byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t' ||
	       byte == '(' || byte == '/' || byte == '-' || byte == '#';
}

static __always_inline int opens_mysql(const struct head *h)
{
	const u8 *b = h->bytes;
	u32 size, text;

	if (h->have < 5 || h->length <= 4)
		return OPENS_NOT;
	size = LE24(b);
	if (!h->joined) {
		/* Greeting of protocol version 10: the server's version as text. */
		if (b[3] == 0 && b[4] == 10 && size + 4 == h->length && size >= 40 && size <= 512 &&
		    svc_mysql_digit(b[5]) && (b[6] == '.' || svc_mysql_digit(b[6])) &&
		    (b[7] == '.' || svc_mysql_digit(b[7])))
			return OPENS_SERVER;
		/* The client's response: CLIENT_PROTOCOL_41, and 19 zeros after the character set. */
		if ((b[3] == 1 || b[3] == 2) && size + 4 == h->length && size >= 32 && (b[5] & 2) != 0 && b[13] == 0 &&
		    b[14] == 0 && b[17] == 0 && b[20] == 0 && b[24] == 0 && b[28] == 0 && b[31] == 0 && b[11] <= 0x7f)
			return OPENS_CLIENT;
		return OPENS_NOT;
	}
	/* Commands have sequence number 0. */
	if (b[3] != 0 || size == 0)
		return OPENS_NOT;
	switch (b[4]) {
	case 0x03: /* QUERY; with no attributes a zero and a one come first */
	case 0x16: /* STMT_PREPARE */
		text = b[4] == 0x03 && b[5] == 0 && b[6] == 1 ? b[7] : b[5];
		if (size < 3 || !svc_mysql_text(text))
			return OPENS_NOT;
		if (size + 4 == h->length)
			return OPENS_CLIENT;
		/* A long statement continues in another call. */
		return size + 4 > h->length && h->have == HEAD_BYTES && b[9] >= ' ' && b[9] < 0x7f && b[63] >= '\t' ?
			       OPENS_CLIENT :
			       OPENS_NOT;
	case 0x17: /* STMT_EXECUTE: a number, flags, and one iteration */
		return size >= 10 && size + 4 == h->length && b[9] <= 0x0f && b[10] == 1 && b[11] == 0 && b[12] == 0 &&
			       b[13] == 0 ?
			       OPENS_CLIENT :
			       OPENS_NOT;
	case 0x0e: /* PING */
		return size == 1 && h->length == 5 ? OPENS_CLIENT : OPENS_NOT;
	default:
		return OPENS_NOT;
	}
}
