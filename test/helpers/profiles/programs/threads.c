// Eight threads, each of which spends all its time in one function below its body.
#include <pthread.h>
#include <stdint.h>
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

int main(void)
{
	pthread_t threads[8];
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], 0, thread_body, 0);
	pthread_join(threads[0], 0);
}
