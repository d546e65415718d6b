/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Written by tools/gen-protocols.ts from src/signals/traces/protocols/index.ts: change the list and run it again. */
#pragma once
#include "../protocol/amqp.h"
#include "../protocol/dns.h"
#include "../protocol/http2.h"
#include "../protocol/kafka.h"
#include "../protocol/memcached.h"
#include "../protocol/mongodb.h"
#include "../protocol/mqtt.h"
#include "../protocol/mysql.h"
#include "../protocol/nats.h"
#include "../protocol/postgres.h"
#include "../protocol/redis.h"

/* Names as src/signals/traces/protocols has them, in the order of its list. */
enum svc_protocol {
	svc_protocol_none,
	svc_protocol_http1,
	svc_protocol_http2,
	svc_protocol_dns,
	svc_protocol_postgres,
	svc_protocol_mysql,
	svc_protocol_redis,
	svc_protocol_memcached,
	svc_protocol_mongodb,
	svc_protocol_kafka,
	svc_protocol_amqp,
	svc_protocol_mqtt,
	svc_protocol_nats,
	svc_protocol_count,
};

/* Those that are recognised by their first bytes, the surest signs first. */
#define EACH_BY_SIGN(DO) \
	DO(http2) \
	DO(amqp) \
	DO(nats) \
	DO(redis) \
	DO(memcached) \
	DO(postgres) \
	DO(mysql) \
	DO(mongodb) \
	DO(kafka) \
	DO(mqtt) \
	DO(dns)

/* The same as bits, by their confidence. */
#define BY_PREFACE \
	(1U << svc_protocol_http2 | \
	 1U << svc_protocol_amqp | \
	 1U << svc_protocol_nats)
#define BY_COMMAND \
	(1U << svc_protocol_redis | \
	 1U << svc_protocol_memcached)
#define BY_MESSAGE \
	(1U << svc_protocol_postgres | \
	 1U << svc_protocol_mysql | \
	 1U << svc_protocol_mongodb)
#define BY_NUMBERS \
	(1U << svc_protocol_kafka | \
	 1U << svc_protocol_mqtt)
#define BY_PORT \
	(1U << svc_protocol_dns)

/* Those of which a turn of each side can be counted as an exchange. */
#define IS_COUNTED(protocol) \
	((protocol) == svc_protocol_postgres || \
	 (protocol) == svc_protocol_mysql || \
	 (protocol) == svc_protocol_redis || \
	 (protocol) == svc_protocol_memcached)
