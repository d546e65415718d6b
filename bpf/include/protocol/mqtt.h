/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* MQTT 3.1, 3.1.1 and 5. A connection starts with CONNECT, which contains the protocol name. Within a connection, a
 * PUBLISH that fills its call identifies it; shorter packets only at the ports registered for MQTT. */
#pragma once
#include "../head.h"

/* Protocol name and level (section 3.1.2): "MQTT" and 4 or 5, "MQIsdp" and 3. Bridges set the highest bit. */
static __always_inline bool mqtt_name(const u8 *p)
{
	u32 name = BE32(p + 2), level = p[6] & 0x7f;
	if (BE16(p) == 4)
		return name == 0x4d515454 && (level == 4 || level == 5);
	return BE16(p) == 6 && name == 0x4d514973 && p[8] == 3;
}

/* A PUBLISH of `length` bytes at `p` that is the rest of the call, with a topic of readable text within it. */
static __always_inline bool mqtt_publish(const u8 *p, u32 length, u32 left)
{
	u32 topic = BE16(p);
	return length == left && topic > 0 && topic + 2 <= length && p[2] > ' ' && p[2] != 0x7f && (topic < 2 || p[3] >= ' ');
}

static __always_inline bool mqtt_port(const struct head *h)
{
	return h->local_port == 1883 || h->peer_port == 1883 || h->local_port == 8883 || h->peer_port == 8883;
}

static __always_inline int opens_mqtt(const struct head *h)
{
	const u8 *p = h->bytes;
	/* Remaining length in one or two bytes, enough for any authentication. */
	bool wide = p[1] >= 0x80;
	if (h->have < 2 || (wide && (p[2] >= 0x80 || p[2] == 0)))
		return OPENS_NOT;
	if (p[0] == 0x10)
		return h->have >= 14 && (wide ? mqtt_name(p + 3) : mqtt_name(p + 2)) ? OPENS_CLIENT : OPENS_NOT;
	if (!h->joined)
		return OPENS_NOT;
	if (p[0] >> 4 == 3 && (p[0] & 6) != 6)
		return (wide ? mqtt_publish(p + 3, (p[1] & 0x7fU) | p[2] << 7, h->length - 3) :
			       mqtt_publish(p + 2, p[1], h->length - 2)) ?
			       OPENS_EITHER :
			       OPENS_NOT;
	if (!mqtt_port(h))
		return OPENS_NOT;
	if (h->length == 2 && p[1] == 0)
		return p[0] == 0xc0 ? OPENS_CLIENT : p[0] == 0xd0 ? OPENS_SERVER : OPENS_NOT;
	/* PUBACK, PUBREC, PUBREL, PUBCOMP with only a packet identifier, which is never 0 */
	if (h->length == 4 && p[1] == 2 && BE16(p + 2) != 0)
		return p[0] == 0x40 || p[0] == 0x50 || p[0] == 0x62 || p[0] == 0x70 ? OPENS_EITHER : OPENS_NOT;
	return OPENS_NOT;
}
