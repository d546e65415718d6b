/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* AMQP 0-9-1 (specification, section 2.3): "AMQP" and the version, then frames that end with the octet 0xce. */
#pragma once
#include "../head.h"

#define AMQP_CLASS_METHOD(class, method) ((u32)(class) << 16 | (method))

/* A method within a connection: those that move messages, and their acknowledgements. */
static __always_inline int opens_amqp_method(const struct head *h, u32 size)
{
	const u8 *p = h->bytes;
	switch (BE32(p + 7)) {
	case AMQP_CLASS_METHOD(60, 40): /* publish: unused ticket; exchange, routing key, bits */
		return BE16(p + 11) == 0 && size >= 9 && p[13] <= size - 9 && size <= 519 ? OPENS_CLIENT : OPENS_NOT;
	case AMQP_CLASS_METHOD(60, 70): /* get: ticket, queue, bit */
		return BE16(p + 11) == 0 && size == 8U + p[13] ? OPENS_CLIENT : OPENS_NOT;
	case AMQP_CLASS_METHOD(60, 60): /* deliver: consumer tag, delivery tag, bit, exchange, routing key */
		return size >= 16 && p[11] <= size - 16 && size <= 781 ? OPENS_SERVER : OPENS_NOT;
	case AMQP_CLASS_METHOD(60, 71): /* get-ok: delivery tag, bit, exchange, routing key, count */
		return size >= 20 && p[20] <= size - 20 && size <= 530 ? OPENS_SERVER : OPENS_NOT;
	case AMQP_CLASS_METHOD(60, 80): /* ack, nack: delivery tag, bits */
	case AMQP_CLASS_METHOD(60, 120):
		return size == 13 && p[20] == 0xce ? OPENS_EITHER : OPENS_NOT;
	case AMQP_CLASS_METHOD(60, 90): /* reject: delivery tag, bit */
		return size == 13 && p[20] == 0xce ? OPENS_CLIENT : OPENS_NOT;
	}
	return OPENS_NOT;
}

static __always_inline int opens_amqp(const struct head *h)
{
	const u8 *p = h->bytes;
	if (h->have < 8)
		return OPENS_NOT;
	if (BE32(p) == 0x414d5150)
		return BE32(p + 4) == 0x00000901 ? OPENS_CLIENT : OPENS_NOT;
	if (p[0] == 8)
		return h->joined && h->length % 8 == 0 && BE32(p) == 0x08000000 && BE32(p + 4) == 0x000000ce ?
			       OPENS_EITHER :
			       OPENS_NOT;
	u32 size = BE32(p + 3);
	if (p[0] != 1 || h->have < 12 || size > h->length - 8)
		return OPENS_NOT;
	/* connection.start of version 0-9 */
	if (BE16(p + 1) == 0)
		return BE32(p + 7) == AMQP_CLASS_METHOD(10, 10) && p[11] == 0 && p[12] == 9 ? OPENS_SERVER : OPENS_NOT;
	return h->joined ? opens_amqp_method(h, size) : OPENS_NOT;
}
