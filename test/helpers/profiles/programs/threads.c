// Threads, as many as the first argument says, each of which spends all its time in one function below its body.
#include <pthread.h>
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

OWN_FRAME void *thread_body(void *argument)
{
	for (;;)
		sink += spin(100000);
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--)
		pthread_create(&thread, 0, thread_body, 0);
	pthread_join(thread, 0);
}
