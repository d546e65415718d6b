/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* NATS: the server sends INFO and the client CONNECT, both with a JSON object; then each line starts with a verb.
 * PING and +OK are ambiguous, as Redis has them too. */
#pragma once
#include "../head.h"

/* A blank, then the first byte of a subject: printable and not a quote, to exclude sentences. */
static __always_inline bool nats_subject(u8 blank, u8 first)
{
	return (blank == ' ' || blank == '\t') && first > ' ' && first < 0x7f && first != '"' && first != '\'';
}

/* "{" after at most one blank, then a member's name or the end. */
static __always_inline bool nats_object(u8 blank, u8 brace, u8 next)
{
	return (blank == ' ' || blank == '\t') && brace == '{' && (next == '"' || next == '}' || next == ' ');
}

static __always_inline int opens_nats(const struct head *h)
{
	const u8 *p = h->bytes;
	if (h->have < 8)
		return OPENS_NOT;
	switch (BE32(p)) {
	case 0x494e464f: /* INFO */
		return nats_object(p[4], p[5], p[6]) ? OPENS_SERVER : OPENS_NOT;
	case 0x434f4e4e: /* CONNECT */
		return h->have >= 10 && BE32(p + 3) == 0x4e454354 && nats_object(p[7], p[8], p[9]) ? OPENS_CLIENT :
												      OPENS_NOT;
	case 0x50554220: /* PUB */
	case 0x50554209:
		return h->joined && nats_subject(p[3], p[4]) ? OPENS_CLIENT : OPENS_NOT;
	case 0x48505542: /* HPUB */
		return h->joined && nats_subject(p[4], p[5]) ? OPENS_CLIENT : OPENS_NOT;
	case 0x4d534720: /* MSG */
	case 0x4d534709:
		return h->joined && nats_subject(p[3], p[4]) ? OPENS_SERVER : OPENS_NOT;
	case 0x484d5347: /* HMSG */
		return h->joined && nats_subject(p[4], p[5]) ? OPENS_SERVER : OPENS_NOT;
	}
	return OPENS_NOT;
}
