/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* HTTP/2 (RFC 9113): the client's preface, the server's settings; within a connection, frames with distinctive
 * heads. */
#pragma once
#include "../head.h"

#define BE24(p) ((u32)(p)[0] << 16 | (u32)(p)[1] << 8 | (p)[2])

/* The call ends at `at`, or the head of a frame may follow. */
static __always_inline bool http2_goes_on(const u8 *p, u32 at, u32 length, u32 have)
{
	if (length < at || have < at + 9)
		return length >= at;
	return p[at] == 0 && p[at + 3] <= 9 && !(p[at + 5] & 0x80);
}

/* First frame of a server: settings, each with a small number. Few bytes follow in the same call. */
static __always_inline bool http2_settings(const struct head *h)
{
	const u8 *p = h->bytes;
	u32 length = BE24(p);
	if (p[3] != 4 || p[4] || BE32(p + 5) || length > 240 || length % 6)
		return false;
	if (h->length < 9 || h->length > 9 + length + 64)
		return false;
	return !length || (p[9] == 0 && p[10] >= 1 && p[10] <= 0x10);
}

/* Headers of a stream opened by a client; the first field identifies the sender. */
static __always_inline int http2_headers(const struct head *h)
{
	const u8 *p = h->bytes;
	u32 length = BE24(p);
	if ((p[4] & ~0x2d) || !(p[4] & 4) || (p[5] & 0x80) || !(p[8] & 1))
		return OPENS_NOT;
	if (!length || length > 16384 || h->length < 9 + length)
		return OPENS_NOT;
	u8 first = p[9], second = p[10];
	if (p[4] & 0x20) {
		first = p[14];
		second = p[15];
	}
	if (p[4] & 8) /* padding is too rare to support */
		return OPENS_EITHER;
	if ((first >= 0x82 && first <= 0x87) || first == 0x41 || first == 0x44 || first == 0x04)
		return OPENS_CLIENT;
	if ((first >= 0x88 && first <= 0x8e) || first == 0x48 || first == 0x08)
		return OPENS_SERVER;
	if (first < 0xbe)
		return OPENS_NOT;
	if (second >= 0x82 && second <= 0x87)
		return OPENS_CLIENT;
	return length == 1 || second >= 0xbe || second == 0x41 || second == 0x44 ? OPENS_EITHER : OPENS_NOT;
}

/* Data that start with a gRPC message which fills the frame. */
static __always_inline bool http2_grpc_data(const struct head *h)
{
	const u8 *p = h->bytes;
	u32 length = BE24(p);
	return length >= 5 && length <= 16384 && !(p[4] & ~1) && !(p[5] & 0x80) && (p[8] & 1) && p[9] <= 1 &&
	       h->have >= 14 && BE32(p + 10) == length - 5 && h->length >= 9 + length;
}

static __always_inline int opens_http2(const struct head *h)
{
	const u8 *p = h->bytes;
	u32 have = h->have, length = h->length;
	if (have >= 8 && BE32(p) == 0x50524920 && BE32(p + 4) == 0x2a204854) /* PRI * HTTP/2.0 */
		return have < 16 || (BE32(p + 8) == 0x54502f32 && BE32(p + 12) == 0x2e300d0a) ? OPENS_CLIENT : OPENS_NOT;
	if (have < 9 || p[0])
		return OPENS_NOT;
	if (!h->joined)
		return http2_settings(h) ? OPENS_SERVER : OPENS_NOT;
	u32 sign = BE32(p);
	if (sign == 0x00000408 && !p[4]) /* window update */
		return have >= 13 && !(p[5] & 0x80) && !(p[9] & 0x80) && BE32(p + 9) && http2_goes_on(p, 13, length, have) ?
			       OPENS_EITHER :
			       OPENS_NOT;
	if (sign == 0x00000403 && !p[4]) /* reset */
		return have >= 13 && !(p[5] & 0x80) && p[8] & 1 && BE32(p + 9) < 16 && http2_goes_on(p, 13, length, have) ?
			       OPENS_EITHER :
			       OPENS_NOT;
	if (sign == 0x00000806 && p[4] <= 1) /* ping */
		return !BE32(p + 5) && http2_goes_on(p, 17, length, have) ? OPENS_EITHER : OPENS_NOT;
	if (sign == 0x00000004 && p[4] == 1) /* settings acknowledged */
		return !BE32(p + 5) && http2_goes_on(p, 9, length, have) ? OPENS_EITHER : OPENS_NOT;
	if (p[3] == 1)
		return http2_headers(h);
	return p[3] == 0 && http2_grpc_data(h) ? OPENS_EITHER : OPENS_NOT;
}
