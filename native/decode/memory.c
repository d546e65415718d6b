// All memory of the program: a part of its own image. It needs no system call, and is limited. All memory of one
// request is freed at once, so that none of it can be leaked, miscounted or freed twice.
#include "decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES (40 * 1024 * 1024)
#define ALIGNMENT 16

static _Alignas(ALIGNMENT) uint8_t arena[ARENA_BYTES];
static size_t used;

void forget_memory(void)
{
	used = 0;
}

void *malloc(size_t size)
{
	size_t rounded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (rounded < size || rounded > ARENA_BYTES - ALIGNMENT || used > ARENA_BYTES - ALIGNMENT - rounded) {
		errno = ENOMEM;
		return NULL;
	}
	uint8_t *bytes = arena + used;
	memcpy(bytes, &size, sizeof(size));
	used += ALIGNMENT + rounded;
	return bytes + ALIGNMENT;
}

void free(void *bytes)
{
	(void)bytes;
}

void *calloc(size_t count, size_t size)
{
	size_t whole;
	void *bytes = NULL;
	if (!__builtin_mul_overflow(count, size, &whole))
		bytes = malloc(whole);
	if (bytes != NULL)
		memset(bytes, 0, whole);
	return bytes;
}

void *realloc(void *bytes, size_t size)
{
	size_t before;
	void *longer = malloc(size);
	if (longer == NULL || bytes == NULL)
		return longer;
	memcpy(&before, (uint8_t *)bytes - ALIGNMENT, sizeof(before));
	memcpy(longer, bytes, before < size ? before : size);
	return longer;
}
