/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which protocol a connection speaks, by the first bytes of a call: the surest signs come first. HTTP/1 is told apart by
 * http1.h, which also frames it. */
#pragma once
#include "head.h"
#include "protocol/amqp.h"
#include "protocol/dns.h"
#include "protocol/http2.h"
#include "protocol/kafka.h"
#include "protocol/memcached.h"
#include "protocol/mongodb.h"
#include "protocol/mqtt.h"
#include "protocol/mysql.h"
#include "protocol/nats.h"
#include "protocol/postgres.h"
#include "protocol/redis.h"

/* Names as src/protocols has them. */
enum svc_protocol {
	svc_protocol_none,
	svc_protocol_http1,
	svc_protocol_http2,
	svc_protocol_postgres,
	svc_protocol_mysql,
	svc_protocol_redis,
	svc_protocol_memcached,
	svc_protocol_mongodb,
	svc_protocol_kafka,
	svc_protocol_amqp,
	svc_protocol_mqtt,
	svc_protocol_nats,
	svc_protocol_dns,
	svc_protocol_count,
};

struct opening {
	u8 protocol;
	u8 opens;
};

/* `enabled`: a bit for each protocol that is looked for. */
#define TRY(name)                                                                                                     \
	if (enabled & 1U << svc_protocol_##name) {                                                                    \
		int opens = opens_##name(h);                                                                          \
		if (opens)                                                                                            \
			return (struct opening){ svc_protocol_##name, opens };                                        \
	}

static __always_inline struct opening classify(const struct head *h, u32 enabled)
{
	TRY(http2)
	TRY(amqp)
	TRY(nats)
	TRY(redis)
	TRY(memcached)
	TRY(postgres)
	TRY(mysql)
	TRY(mongodb)
	TRY(kafka)
	TRY(mqtt)
	TRY(dns)
	return (struct opening){ svc_protocol_none, OPENS_NOT };
}
