// Works on each of two CPUs for so many rounds, with frames of recursion below each, and prints the nanoseconds of it.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
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
	return x;
}

OWN_FRAME uint64_t descend(int depth)
{
	if (depth == 0)
		return spin(100000);
	uint64_t result = descend(depth - 1);
	sink += result; // without it the compiler makes a loop of the recursion
	return result + depth;
}

OWN_FRAME void *body(void *argument)
{
	for (long left = *(long *)argument; left > 0; left--)
		sink += descend(left % 24);
	return 0;
}

int main(int count, char **arguments)
{
	long rounds = count > 1 ? atol(arguments[1]) : 1000;
	struct timespec before, after;
	pthread_t other;
	clock_gettime(CLOCK_MONOTONIC, &before);
	pthread_create(&other, 0, body, &rounds);
	body(&rounds);
	pthread_join(other, 0);
	clock_gettime(CLOCK_MONOTONIC, &after);
	printf("%ld\n", (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec);
}
