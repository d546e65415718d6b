// Functions that align their stack beyond what callers do: their CFA and rbp stand in memory.
#include <alloca.h>
#include <stdalign.h>

#define APART __attribute__((noinline, noclone, noipa))

volatile unsigned long sink;

APART void spin(volatile float *values, char *bytes)
{
  for (volatile int i = 0; i < 20000; i++) {
    sink += i;
    bytes[i & 7]++;
    values[i & 7] += 1;
  }
}

APART void aligned(int n)
{
  alignas(32) volatile float values[8] = { 0 };
  char *bytes = alloca(n);
  spin(values, bytes);
  sink += bytes[1];
}

__attribute__((force_align_arg_pointer)) APART void forced(int n)
{
  alignas(64) volatile float values[16] = { 0 };
  char *bytes = alloca(n + 8);
  aligned(n);
  sink += bytes[0] + (int)values[1];
}

// Its own frame is found by rbp, which those below keep.
APART void variable(int n)
{
  char *bytes = alloca(n);
  forced(n);
  sink += bytes[0];
}

APART void leaf(void)
{
  alignas(64) volatile float values[16];
  values[sink & 15] = 1;
}

int main(int count, char **arguments)
{
  (void)arguments;
  for (;;) {
    variable(64 + count);
    for (int i = 0; i < 20000; i++)
      leaf();
    sink++;
  }
}
