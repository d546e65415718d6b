/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How the programs of the back end "syscalls" call each other. */
#pragma once
#include "syscalls-context.h"

int svc_part(void *ctx);
int svc_end(void *ctx);
int svc_look(void *ctx);
int svc_rest(struct exit *ctx);
int svc_opening0(void *ctx);
int svc_opening1(void *ctx);
int svc_opening2(void *ctx);
int svc_opening3(void *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, STAGES);
	__uint(key_size, 4);
	__array(values, int(void *));
} stages SEC(".maps") = {
	.values = {
		[STAGE_PART] = (void *)&svc_part,
		[STAGE_END] = (void *)&svc_end,
		[STAGE_LOOK] = (void *)&svc_look,
		[STAGE_REST] = (void *)&svc_rest,
		[STAGE_OPENING] = (void *)&svc_opening0,
		[STAGE_OPENING + 1] = (void *)&svc_opening1,
		[STAGE_OPENING + 2] = (void *)&svc_opening2,
		[STAGE_OPENING + 3] = (void *)&svc_opening3,
	},
};
