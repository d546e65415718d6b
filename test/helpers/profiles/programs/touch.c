// Makes its memory grow in two functions as 6:3, in pages of 4 KiB, and gives it back; over and over.
#include <stddef.h>
#include <sys/mman.h>
#define OWN_FRAME __attribute__((noinline, noclone))

static const size_t page = 4096;
volatile int sink;

// Not by a function that both call: the fault is to be seen right below its cause.
#define TOUCH(memory, pages)                                                                                 \
	for (size_t i = 0; i < (pages); i++)                                                                 \
	((volatile char *)(memory))[i * page] = 1

OWN_FRAME void grow_large(char *memory) { TOUCH(memory, 6000); sink++; }
OWN_FRAME void grow_small(char *memory) { TOUCH(memory, 3000); sink++; }

OWN_FRAME void round_of_growth(void)
{
	char *memory = mmap(0, 9000 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return;
	madvise(memory, 9000 * page, MADV_NOHUGEPAGE);
	grow_large(memory);
	grow_small(memory + 6000 * page);
	munmap(memory, 9000 * page);
	sink++;
}

int main(void)
{
	for (;;)
		round_of_growth();
}
