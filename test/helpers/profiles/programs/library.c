// What programs/late.c opens.
#include <stdint.h>
#define OWN_FRAME __attribute__((noinline, noclone))

OWN_FRAME static uint64_t library_spin(uint64_t rounds)
{
	uint64_t x = 88172645463325252ull;
	for (uint64_t i = 0; i < rounds; i++) {
		x ^= x << 13;
		x ^= x >> 7;
	}
	return x;
}

OWN_FRAME uint64_t library_work(uint64_t rounds) { return library_spin(rounds) + 1; }
