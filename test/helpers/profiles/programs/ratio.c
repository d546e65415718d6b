// Spends its time in three callers as 6:3:1, one of them under 20 frames of recursion, and some more below qsort(3). No
// two rounds in a row take the same time, so that a sampler whose period is near to theirs sees all of them alike.
#include <stdint.h>
#include <stdlib.h>
#define OWN_FRAME __attribute__((noinline, noclone))

volatile uint64_t sink;
static uint64_t unit = 100000; // rounds of spin: changes with each round of work

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
	sink += leaf_b(unit / 20);
	return *(const int *)a - *(const int *)b;
}

OWN_FRAME void work(void)
{
	unit = 50000 + (unit * 48271 + 11) % 100000;
	large_frame(6 * unit);
	small_frame(3 * unit);
	descend(20, unit);
	int numbers[8] = {8, 7, 6, 5, 4, 3, 2, 1};
	qsort(numbers, 8, sizeof(int), compare);
}

int main(void)
{
	for (;;)
		work();
}
