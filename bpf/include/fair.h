/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How owners share common resources (share.h): their numbers, and what each may have. Needs only the names of
 * integer types, which must be declared before it. */
#pragma once

#define GROUP_BITS 7
#define OWNER_BITS 5 /* for users and inner groups: these cannot fill the numbers of another group */
#define GROUPS (1 << GROUP_BITS)
#define OWNERS (GROUPS << OWNER_BITS)
#define OWNER_MASK (OWNERS - 1)
#define FAIR 8      /* a single owner leaves a tenth of a full budget to newcomers, */
#define FAIR_RING 1 /* and a third of the ring */

#ifndef OWNER_SECTION
#define OWNER_SECTION
#endif

/* Set before load, and secret: users must not be able to choose who shares their number. */
const volatile u64 owner_seeds[2] OWNER_SECTION;

struct had {
	u32 amount;
	u32 tick; /* when half of it was last forgotten */
};

static __always_inline u32 had_lately(struct had *had, u32 tick)
{
	u32 passed = tick - had->tick;
	if ((s32)passed > 0) { /* a CPU may be slightly behind */
		had->amount = passed < 32 ? had->amount >> passed : 0;
		had->tick = tick;
	}
	return had->amount;
}

/* Whether an owner with this recent use, and that of its group, may have more of `size`, of which `left` is left. */
static __always_inline bool may_have(u64 owner, u64 group, u64 left, u64 size, u32 fair)
{
	if (left >= size)
		return true;
	u64 bound = fair * left * size / (size - left);
	return group < bound && owner < FAIR * (bound - group);
}

/* Multiplication by a secret odd number spreads numbers that users choose (Dietzfelbinger 1997). Never 0. */
static __always_inline u32 owner_number(u64 group, u64 within)
{
	u32 owner = (group * (owner_seeds[0] | 1)) >> (64 - GROUP_BITS) << OWNER_BITS;
	owner |= (within * (owner_seeds[1] | 1)) >> (64 - OWNER_BITS);
	return owner ? owner : 1;
}

/* Group of processes outside control groups. */
static __always_inline u64 group_of_user(u32 user)
{
	return user | 1ULL << 32;
}
