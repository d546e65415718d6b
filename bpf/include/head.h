/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* First bytes of a call, by which a protocol is recognised. Plain C without loops, helpers or variable indices:
 * tests run it as a program, and every kernel accepts it. */
#pragma once
#include <linux/types.h>
#include <stdbool.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define HEAD_BYTES 64

struct head {
	u8 bytes[HEAD_BYTES]; /* zero after `have` */
	u32 have;
	u32 length; /* of the call; usually more than `have` */
	u16 local_port, peer_port;
	bool received;
	bool joined; /* may not be the connection's first bytes */
};

/* Sender of a message, which determines the client. */
enum opens {
	OPENS_NOT,
	OPENS_CLIENT,   /* sent only by clients */
	OPENS_SERVER,   /* sent only by servers */
	OPENS_EITHER,   /* matches the protocol, but may be from either side */
};

#define BE16(p) ((u32)(p)[0] << 8 | (p)[1])
#define BE32(p) ((u32)(p)[0] << 24 | (u32)(p)[1] << 16 | (u32)(p)[2] << 8 | (p)[3])
#define LE16(p) ((u32)(p)[1] << 8 | (p)[0])
#define LE24(p) ((u32)(p)[2] << 16 | (u32)(p)[1] << 8 | (p)[0])
#define LE32(p) ((u32)(p)[3] << 24 | (u32)(p)[2] << 16 | (u32)(p)[1] << 8 | (p)[0])
