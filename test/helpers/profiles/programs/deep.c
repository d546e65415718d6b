// Works at the end of 1,000 frames of recursion.
#include <stdint.h>
#define OWN_FRAME __attribute__((noinline, noclone))

volatile uint64_t sink;

OWN_FRAME uint64_t spin(uint64_t rounds)
{
	uint64_t x = 88172645463325252ull;
	for (uint64_t i = 0; i < rounds; i++) {
		x ^= x << 13;
		x ^= x >> 7;
	}
	sink += x;
	return x;
}

OWN_FRAME uint64_t descend(int depth)
{
	if (depth == 0)
		return spin(100000000);
	uint64_t result = descend(depth - 1);
	sink += result; // without it the compiler makes a loop of the recursion
	return result + depth;
}

int main(void)
{
	for (;;)
		sink += descend(1000);
}
