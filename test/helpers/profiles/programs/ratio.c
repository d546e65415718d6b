// Spends its time in three callers as 6:3:1, one of them under 20 frames of recursion, and some more below qsort(3).
#include <stdint.h>
#include <stdlib.h>
#define OWN_FRAME __attribute__((noinline, noclone))

volatile uint64_t sink;

OWN_FRAME uint64_t spin(uint64_t rounds)
{
	uint64_t x = 88172645463325252ull;
	for (uint64_t i = 0; i < rounds; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	sink += x;
	return x;
}

// The additions after the calls keep the compiler from making jumps of them, which leave no frame.
OWN_FRAME uint64_t leaf_a(uint64_t rounds) { return spin(rounds) + 1; }
OWN_FRAME uint64_t leaf_b(uint64_t rounds) { return spin(rounds) + 2; }
OWN_FRAME uint64_t leaf_c(uint64_t rounds) { return spin(rounds) + 3; }

OWN_FRAME uint64_t large_frame(uint64_t rounds)
{
	volatile char room[256];
	room[0] = (char)rounds;
	uint64_t result = leaf_a(rounds);
	sink += room[0];
	return result;
}

OWN_FRAME uint64_t small_frame(uint64_t rounds) { return leaf_b(rounds) * 3; }

OWN_FRAME uint64_t descend(int depth, uint64_t rounds)
{
	if (depth == 0)
		return leaf_c(rounds);
	uint64_t result = descend(depth - 1, rounds);
	sink += result; // without it the compiler makes a loop of the recursion
	return result + depth;
}

static int compare(const void *a, const void *b)
{
	sink += leaf_b(5000);
	return *(const int *)a - *(const int *)b;
}

OWN_FRAME void work(void)
{
	large_frame(600000);
	small_frame(300000);
	descend(20, 100000);
	int numbers[8] = {8, 7, 6, 5, 4, 3, 2, 1};
	qsort(numbers, 8, sizeof(int), compare);
}

int main(void)
{
	for (;;)
		work();
}
