/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Recognises the protocol of a connection by the first bytes of a call, most reliable marks first. HTTP/1 is
 * recognised by http1.h, which also frames it. */
#pragma once
#include "gen/protocols.h"

struct opening {
	u8 protocol;
	u8 opens;
};

_Static_assert(svc_protocol_count <= 32, "a protocol is a bit of `enabled`");

/* `enabled`: a bit per protocol to look for. */
#define TRY(name)                                                                                                     \
	if (enabled & 1U << svc_protocol_##name) {                                                                    \
		int opens = opens_##name(h);                                                                          \
		if (opens)                                                                                            \
			return (struct opening){ svc_protocol_##name, opens };                                        \
	}

static __always_inline struct opening classify(const struct head *h, u32 enabled)
{
	EACH_BY_SIGN(TRY)
	return (struct opening){ svc_protocol_none, OPENS_NOT };
}
