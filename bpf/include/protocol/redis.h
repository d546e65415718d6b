/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#pragma once
#include "../head.h"

static __always_inline int opens_redis(const struct head *h)
{
	return OPENS_NOT;
}
