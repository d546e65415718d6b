/* A stand-in for NVIDIA's management library, with the functions and structures of the NVML API Reference Guide. What it
 * says stands in a file beside it, <library>.state, which it reads whenever it is initialised or asked for the number of
 * GPUs. What it is told to do is logged in <library>.log. With -DOLD it has what drivers of 2014 had. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST 8
enum { SUCCESS, UNINITIALIZED, INVALID, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 6, INSUFFICIENT_SIZE, LOST = 15 };

typedef struct device {
  int status, plain, mig, instance, parent;
} device;

typedef struct {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
} process;

typedef struct {
  unsigned pid;
  unsigned long long time;
  unsigned sm, memory, encoder, decoder;
} sample;

static struct {
  int init, count_status, counters;
  unsigned count;
  unsigned long long energy, ecc, sent, received, reasons;
  char driver[64], hang[256];
  device devices[MOST], instances[2];
  unsigned process_count, sample_count;
  struct {
    int graphics;
    process row;
  } processes[64];
  sample samples[64];
} state;

static const char *beside(const char *suffix)
{
  static char path[512];
  Dl_info info;
  dladdr(&state, &info);
  snprintf(path, sizeof path, "%s%s", info.dli_fname, suffix);
  return path;
}

static void note(const char *what)
{
  FILE *file = fopen(beside(".log"), "a");
  fprintf(file, "%s\n", what);
  fclose(file);
}

static void read_line(const char *line)
{
  char word[32] = "", text[256] = "";
  unsigned long long a = 0, b = 0, c = 0, d = 0;
  sscanf(line, "%31s %255[^\n]", word, text);
  sscanf(text, "%llu %llu %llu %llu", &a, &b, &c, &d);
  if (!strcmp(word, "init")) state.init = a;
  if (!strcmp(word, "count_status")) state.count_status = a;
  if (!strcmp(word, "devices")) state.count = a;
  if (!strcmp(word, "driver")) strcpy(state.driver, text);
  if (!strcmp(word, "hang")) strcpy(state.hang, text);
  if (!strcmp(word, "energy")) state.energy = a;
  if (!strcmp(word, "ecc")) state.ecc = a;
  if (!strcmp(word, "reasons")) state.reasons = a;
  if (!strcmp(word, "counters")) state.counters = 1, state.sent = a, state.received = b;
  if (!strcmp(word, "status") && a < MOST) state.devices[a].status = b;
  if (!strcmp(word, "plain") && a < MOST) state.devices[a].plain = 1;
  if (!strcmp(word, "mig") && a < MOST) state.devices[a].mig = 1;
  if (!strcmp(word, "compute") || !strcmp(word, "graphics")) {
    state.processes[state.process_count].graphics = word[0] == 'g';
    state.processes[state.process_count++].row =
      (process){ a, text[strlen(text) - 1] == '?' ? ~0ull : b, c ? c : ~0u, c ? 0 : ~0u };
  }
  if (!strcmp(word, "sample")) state.samples[state.sample_count++] = (sample){ a, b, c, d, 3, 4 };
}

static void read_state(void)
{
  char line[300];
  memset(&state, 0, sizeof state);
  for (int i = 0; i < 2; i++) state.instances[i] = (device){ .instance = i + 1 };
  FILE *file = fopen(beside(".state"), "r");
  while (file && fgets(line, sizeof line, file)) read_line(line);
  if (file) fclose(file);
  if (state.hang[0] && access(state.hang, F_OK) == 0) note("hangs");
  for (struct timespec tick = { 0, 2000000 }; state.hang[0] && access(state.hang, F_OK) == 0;) nanosleep(&tick, NULL);
}

static int put(device *gpu, unsigned *to, unsigned value)
{
  if (gpu->status) return gpu->status;
  if (gpu->plain || gpu->instance) return NOT_SUPPORTED;
  *to = value;
  return SUCCESS;
}

static int put_large(device *gpu, unsigned long long *to, unsigned long long value)
{
  unsigned unused;
  int status = put(gpu, &unused, 0);
  if (status == SUCCESS) *to = value;
  return status;
}

static int put_text(char *to, unsigned size, const char *text)
{
  if (strlen(text) >= size) return INSUFFICIENT_SIZE;
  strcpy(to, text);
  return SUCCESS;
}

int nvmlInit_v2(void)
{
  read_state();
  note("init");
  return state.init;
}

int nvmlShutdown(void)
{
  note("shutdown");
  return SUCCESS;
}

const char *nvmlErrorString(int status)
{
  switch (status) {
  case NO_PERMISSION: return "Insufficient Permissions";
  case 9: return "Driver Not Loaded";
  case LOST: return "GPU is lost";
  case 18: return "Driver/library version mismatch";
  default: return "Unknown Error";
  }
}

int nvmlSystemGetDriverVersion(char *to, unsigned size) { return put_text(to, size, state.driver); }

int nvmlDeviceGetCount_v2(unsigned *count)
{
  read_state();
  note("count");
  *count = state.count;
  return state.count_status;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **gpu)
{
  if (index >= state.count) return INVALID;
  *gpu = &state.devices[index];
  return (*gpu)->status == NO_PERMISSION ? NO_PERMISSION : SUCCESS;
}

static int index_of(device *gpu) { return gpu - state.devices; }

int nvmlDeviceGetUUID(device *gpu, char *to, unsigned size)
{
  char text[64];
  if (gpu->instance) snprintf(text, sizeof text, "MIG-%d", gpu->instance);
  else snprintf(text, sizeof text, "GPU-%d", index_of(gpu));
  return put_text(to, size, text);
}

int nvmlDeviceGetName(device *gpu, char *to, unsigned size)
{
  return put_text(to, size, gpu->instance ? "Stand-in MIG 1g.5gb" : "Stand-in");
}

int nvmlDeviceGetMemoryInfo(device *gpu, unsigned long long *memory)
{
  if (gpu->status) return gpu->status;
  memory[0] = gpu->instance ? 500 : 1000;
  memory[1] = 0;
  memory[2] = gpu->instance ? 125 : 300;
  return SUCCESS;
}

int nvmlDeviceGetTemperature(device *gpu, int sensor, unsigned *to) { return sensor ? INVALID : put(gpu, to, 45); }

#ifndef OLD
int nvmlDeviceGetSerial(device *gpu, char *to, unsigned size)
{
  unsigned unused;
  int status = put(gpu, &unused, 0);
  return status ? status : put_text(to, size, "S123");
}

int nvmlDeviceGetPciInfo_v3(device *gpu, char *to)
{
  memset(to, 0, 68);
  sprintf(to + 36, "00000000:%02d:00.0", index_of(gpu));
  return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(device *gpu, unsigned long long *memory)
{
  if (gpu->status || gpu->instance) return gpu->status ? gpu->status : NOT_SUPPORTED;
  if ((unsigned)memory[0] != (40 | 2 << 24)) return 25; /* NVML_ERROR_ARGUMENT_VERSION_MISMATCH */
  memory[1] = 1000, memory[2] = 50, memory[3] = 700, memory[4] = 250;
  return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(device *gpu, unsigned *rates)
{
  int status = put(gpu, &rates[0], 75);
  return status ? status : gpu->mig ? NOT_SUPPORTED : put(gpu, &rates[1], 20);
}

int nvmlDeviceGetPowerUsage(device *gpu, unsigned *to) { return put(gpu, to, 123400); }
int nvmlDeviceGetFanSpeed(device *gpu, unsigned *to) { return put(gpu, to, 31); }
int nvmlDeviceGetCurrPcieLinkGeneration(device *gpu, unsigned *to) { return put(gpu, to, 4); }
int nvmlDeviceGetCurrPcieLinkWidth(device *gpu, unsigned *to) { return put(gpu, to, 16); }
int nvmlDeviceGetTotalEnergyConsumption(device *gpu, unsigned long long *to) { return put_large(gpu, to, state.energy); }
int nvmlDeviceGetClockInfo(device *gpu, int clock, unsigned *to) { return put(gpu, to, 1000 + clock); }
int nvmlDeviceGetPcieThroughput(device *gpu, int counter, unsigned *to) { return put(gpu, to, counter ? 700 : 300); }

int nvmlDeviceGetTotalEccErrors(device *gpu, int type, int counter, unsigned long long *to)
{
  return put_large(gpu, to, state.ecc + type * 10 + counter * 100);
}

int nvmlDeviceGetEncoderUtilization(device *gpu, unsigned *to, unsigned *period) { return *period = 1, put(gpu, to, 10); }
int nvmlDeviceGetDecoderUtilization(device *gpu, unsigned *to, unsigned *period) { return *period = 1, put(gpu, to, 101); }

int nvmlDeviceGetCurrentClocksThrottleReasons(device *gpu, unsigned long long *to)
{
  return put_large(gpu, to, state.reasons);
}

int nvmlDeviceGetFieldValues(device *gpu, int count, char *values)
{
  if (gpu->status) return gpu->status;
  for (int i = 0; i < count; i++, values += 40) {
    int field = *(int *)values;
    *(int *)(values + 24) = state.counters ? 3 : 1;
    *(int *)(values + 28) = gpu->plain || gpu->mig ? NOT_SUPPORTED : SUCCESS;
    *(unsigned long long *)(values + 32) = field == 197 ? state.sent : field == 198 ? state.received : 0;
  }
  return SUCCESS;
}

static int list(device *gpu, unsigned *count, process *rows, int graphics)
{
  unsigned found = 0, room = *count;
  if (gpu->status || gpu->plain) return gpu->status ? gpu->status : NOT_SUPPORTED;
  for (unsigned i = 0; i < state.process_count; i++)
    if (state.processes[i].graphics == graphics && found++ < room) rows[found - 1] = state.processes[i].row;
  *count = found;
  return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(device *gpu, unsigned *count, process *rows) { return list(gpu, count, rows, 0); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(device *gpu, unsigned *count, process *rows) { return list(gpu, count, rows, 1); }

int nvmlDeviceGetProcessUtilization(device *gpu, sample *rows, unsigned *count, unsigned long long since)
{
  unsigned found = 0;
  if (gpu->status || gpu->plain || gpu->mig) return gpu->status ? gpu->status : NOT_SUPPORTED;
  for (unsigned i = 0; i < state.sample_count && found < *count; i++)
    if (state.samples[i].time > since) rows[found++] = state.samples[i];
  *count = found;
  return found ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetMigMode(device *gpu, unsigned *current, unsigned *pending)
{
  return *pending = 0, put(gpu, current, gpu->mig);
}

int nvmlDeviceGetMaxMigDeviceCount(device *gpu, unsigned *count) { return put(gpu, count, gpu->mig ? 7 : 0); }

int nvmlDeviceGetMigDeviceHandleByIndex(device *gpu, unsigned index, device **part)
{
  /* Places of the table may be empty. */
  if (!gpu->mig || index % 2 || index / 2 > 1) return NOT_FOUND;
  *part = &state.instances[index / 2];
  return SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(device *gpu, unsigned *id) { return *id = gpu->instance, SUCCESS; }
#endif
