/* NVIDIA's management library: loads and queries it. Everything here runs on a thread that may hang. */
#define _GNU_SOURCE
#include "nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* nvmlReturn_t */
enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15, RESET_REQUIRED = 16 };
enum { CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY, CLOCK_VIDEO };
enum { PCIE_SENT, PCIE_RECEIVED };
enum { CORRECTED, UNCORRECTED };
enum { VOLATILE, AGGREGATE };
/* NVML_FI_DEV_PCIE_COUNT_TX_BYTES and _RX_BYTES, since driver 535. */
enum { FIELD_PCIE_SENT = 197, FIELD_PCIE_RECEIVED = 198 };
enum { VALUE_UNSIGNED_LONG = 2, VALUE_UNSIGNED_LONG_LONG = 3 };

static const struct {
  size_t at;
  /* The second is the name in older libraries. */
  const char *names[2];
} symbols[] = {
#define SYMBOL(function, ...) { offsetof(struct functions, function), { __VA_ARGS__ } }
  SYMBOL(init, "nvmlInit_v2"),
  SYMBOL(shutdown, "nvmlShutdown"),
  SYMBOL(error_string, "nvmlErrorString"),
  SYMBOL(driver_version, "nvmlSystemGetDriverVersion"),
  SYMBOL(count, "nvmlDeviceGetCount_v2"),
  SYMBOL(by_index, "nvmlDeviceGetHandleByIndex_v2"),
  SYMBOL(uuid, "nvmlDeviceGetUUID"),
  SYMBOL(name, "nvmlDeviceGetName"),
  SYMBOL(serial, "nvmlDeviceGetSerial"),
  SYMBOL(pci_info, "nvmlDeviceGetPciInfo_v3"),
  SYMBOL(utilization, "nvmlDeviceGetUtilizationRates"),
  SYMBOL(memory, "nvmlDeviceGetMemoryInfo"),
  SYMBOL(memory_v2, "nvmlDeviceGetMemoryInfo_v2"),
  SYMBOL(temperature, "nvmlDeviceGetTemperature"),
  SYMBOL(power, "nvmlDeviceGetPowerUsage"),
  SYMBOL(fan_speed, "nvmlDeviceGetFanSpeed"),
  SYMBOL(link_generation, "nvmlDeviceGetCurrPcieLinkGeneration"),
  SYMBOL(link_width, "nvmlDeviceGetCurrPcieLinkWidth"),
  SYMBOL(mig_devices, "nvmlDeviceGetMaxMigDeviceCount"),
  SYMBOL(gpu_instance, "nvmlDeviceGetGpuInstanceId"),
  SYMBOL(energy, "nvmlDeviceGetTotalEnergyConsumption"),
  SYMBOL(clock, "nvmlDeviceGetClockInfo"),
  SYMBOL(pcie_throughput, "nvmlDeviceGetPcieThroughput"),
  SYMBOL(fields, "nvmlDeviceGetFieldValues"),
  SYMBOL(ecc_errors, "nvmlDeviceGetTotalEccErrors"),
  SYMBOL(encoder, "nvmlDeviceGetEncoderUtilization"),
  SYMBOL(decoder, "nvmlDeviceGetDecoderUtilization"),
  SYMBOL(clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
  SYMBOL(compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"),
  SYMBOL(graphics_processes, "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"),
  SYMBOL(process_samples, "nvmlDeviceGetProcessUtilization"),
  SYMBOL(mig_mode, "nvmlDeviceGetMigMode"),
  SYMBOL(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex"),
};

#define CALL(function, ...) (nvml->functions.function ? nvml->functions.function(__VA_ARGS__) : NOT_SUPPORTED)

static void drop(struct nvml *nvml)
{
  dlclose(nvml->library);
  nvml->library = NULL;
}

void nvml_unload(struct nvml *nvml)
{
  if (!nvml->library)
    return;
  nvml->functions.shutdown();
  drop(nvml);
}

static void put_words(struct nvml *nvml, int status, char *text, size_t size)
{
  const char *words = nvml->functions.error_string ? nvml->functions.error_string(status) : NULL;
  snprintf(text, size, "%s", words ? words : "error without a name");
}

static void fail(struct nvml *nvml, struct answer *answer, const char *failed, int status)
{
  answer->failed = failed;
  answer->status = status;
  put_words(nvml, status, answer->error, sizeof answer->error);
}

static bool find_library(struct nvml *nvml, struct answer *answer)
{
  for (unsigned i = 0; i < nvml->path_count; i++) {
    nvml->library = dlopen(nvml->paths[i], RTLD_NOW | RTLD_LOCAL);
    if (nvml->library) {
      memcpy(nvml->path, nvml->paths[i], MAX_NAME);
      return true;
    }
    /* An existing library that cannot be loaded is a better reason than missing ones. */
    const char *error = dlerror();
    bool absent = !error || strstr(error, "No such file or directory");
    if (!absent || !answer->failed)
      snprintf(answer->error, sizeof answer->error, "%s", error ? error : "");
    if (!absent)
      answer->failed = "load";
    else if (!answer->failed)
      answer->failed = "find";
  }
  return false;
}

/* The library is loaded again after each failure: an upgrade of the driver replaces the file. */
static bool load(struct nvml *nvml, struct answer *answer)
{
  if (nvml->library)
    return true;
  memset(&nvml->functions, 0, sizeof nvml->functions);
  memset(nvml->sampled, 0, sizeof nvml->sampled);
  if (!find_library(nvml, answer))
    return false;
  answer->failed = NULL;
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *found = NULL;
    for (int k = 0; k < 2 && !found && symbols[i].names[k]; k++)
      found = dlsym(nvml->library, symbols[i].names[k]);
    memcpy((char *)&nvml->functions + symbols[i].at, &found, sizeof found);
  }
  const struct functions *functions = &nvml->functions;
  if (!functions->init || !functions->shutdown || !functions->count || !functions->by_index) {
    answer->failed = "load";
    snprintf(answer->error, sizeof answer->error, "%s lacks functions of NVML", nvml->path);
    drop(nvml);
    return false;
  }
  int status = functions->init();
  if (status == SUCCESS)
    return true;
  fail(nvml, answer, "init", status);
  memcpy(answer->path, nvml->path, MAX_NAME);
  drop(nvml);
  return false;
}

/* Handles a function's status for a device. An unsupported value is no error; a lost device ends its queries. */
static bool succeeded(struct device *device, int status)
{
  if (status == GPU_IS_LOST || status == RESET_REQUIRED)
    device->status = status;
  return status == SUCCESS;
}

/* Through pointers: the call that sets the number is an argument, too. */
static void put(struct device *device, enum value value, int status, const unsigned *number)
{
  if (succeeded(device, status))
    device->values[value] = *number;
}

static void put_large(struct device *device, enum value value, int status, const unsigned long long *number)
{
  if (succeeded(device, status))
    device->values[value] = *number;
}

static void put_memory(struct nvml *nvml, handle gpu, struct device *device)
{
  struct memory_v2 newer = { .version = MEMORY_V2 };
  struct memory memory;
  if (succeeded(device, CALL(memory_v2, gpu, &newer))) {
    device->values[memoryTotal] = newer.total;
    device->values[memoryUsed] = newer.used;
  } else if (succeeded(device, CALL(memory, gpu, &memory))) {
    device->values[memoryTotal] = memory.total;
    device->values[memoryUsed] = memory.used;
  }
}

static void put_pcie(struct nvml *nvml, handle gpu, struct device *device)
{
  unsigned number = 0;
  put(device, linkGeneration, CALL(link_generation, gpu, &number), &number);
  put(device, linkWidth, CALL(link_width, gpu, &number), &number);
  struct field_value fields[2] = { { .field = FIELD_PCIE_SENT }, { .field = FIELD_PCIE_RECEIVED } };
  bool counted = succeeded(device, CALL(fields, gpu, 2, fields));
  /* A 32-bit counter wraps several times a second. */
  for (int i = 0; counted && i < 2; i++)
    counted = fields[i].status == SUCCESS &&
              (fields[i].type == VALUE_UNSIGNED_LONG_LONG || fields[i].type == VALUE_UNSIGNED_LONG);
  if (counted) {
    device->values[pcieSentBytes] = fields[0].value;
    device->values[pcieReceivedBytes] = fields[1].value;
    return;
  }
  /* Each call measures for 20 ms. */
  put(device, pcieSentKbps, CALL(pcie_throughput, gpu, PCIE_SENT, &number), &number);
  put(device, pcieReceivedKbps, CALL(pcie_throughput, gpu, PCIE_RECEIVED, &number), &number);
}

static void put_values(struct nvml *nvml, handle gpu, struct device *device)
{
  struct utilization rates = { 0 };
  unsigned number = 0, period = 0;
  unsigned long long large = 0;
  if (succeeded(device, CALL(utilization, gpu, &rates))) {
    device->values[utilization] = rates.gpu;
    device->values[memoryBusy] = rates.memory;
  }
  put_memory(nvml, gpu, device);
  if (device->status)
    return;
  put(device, encoder, CALL(encoder, gpu, &number, &period), &number);
  put(device, decoder, CALL(decoder, gpu, &number, &period), &number);
  put(device, temperature, CALL(temperature, gpu, 0, &number), &number);
  put(device, powerMw, CALL(power, gpu, &number), &number);
  put_large(device, energyMj, CALL(energy, gpu, &large), &large);
  put(device, fanSpeed, CALL(fan_speed, gpu, &number), &number);
  for (int clock = CLOCK_GRAPHICS; clock <= CLOCK_VIDEO; clock++)
    put(device, graphicsMhz + clock, CALL(clock, gpu, clock, &number), &number);
  put_large(device, clockReasons, CALL(clock_reasons, gpu, &large), &large);
  put_large(device, correctedSinceLoad, CALL(ecc_errors, gpu, CORRECTED, VOLATILE, &large), &large);
  put_large(device, uncorrectedSinceLoad, CALL(ecc_errors, gpu, UNCORRECTED, VOLATILE, &large), &large);
  put_large(device, correctedEver, CALL(ecc_errors, gpu, CORRECTED, AGGREGATE, &large), &large);
  put_large(device, uncorrectedEver, CALL(ecc_errors, gpu, UNCORRECTED, AGGREGATE, &large), &large);
  put_pcie(nvml, gpu, device);
}

static void add_processes(struct nvml *nvml, handle gpu, struct device *device, processes_of *list)
{
  unsigned count = MAX_PROCESSES;
  if (list && succeeded(device, list(gpu, &count, device->processes + device->process_count)) && count <= MAX_PROCESSES)
    device->process_count += count;
}

static void put_processes(struct nvml *nvml, handle gpu, struct device *device, unsigned long long *sampled)
{
  device->processes = calloc(2 * MAX_PROCESSES, sizeof *device->processes);
  device->samples = calloc(MAX_SAMPLES, sizeof *device->samples);
  if (!device->processes || !device->samples)
    return;
  add_processes(nvml, gpu, device, nvml->functions.compute_processes);
  add_processes(nvml, gpu, device, nvml->functions.graphics_processes);
  unsigned count = MAX_SAMPLES;
  int status = CALL(process_samples, gpu, device->samples, &count, *sampled);
  /* No samples since the last request is no failure. */
  if (status == NOT_FOUND || (status == SUCCESS && count > MAX_SAMPLES))
    status = SUCCESS, count = 0;
  if (!succeeded(device, status))
    return;
  /* The first answer contains much older samples. */
  device->has_samples = *sampled != 0;
  device->sample_count = device->has_samples ? count : 0;
  for (unsigned i = 0; i < count; i++)
    if (device->samples[i].time > *sampled)
      *sampled = device->samples[i].time;
  if (*sampled == 0)
    *sampled = 1;
}

static void put_instances(struct nvml *nvml, handle gpu, struct device *device)
{
  unsigned current = 0, pending, most = 0;
  if (!succeeded(device, CALL(mig_mode, gpu, &current, &pending)))
    return;
  device->values[mig] = current;
  if (current != 1 || !succeeded(device, CALL(mig_devices, gpu, &most)))
    return;
  for (unsigned i = 0; i < most && device->instance_count < MAX_INSTANCES; i++) {
    struct instance *instance = &device->instances[device->instance_count];
    handle part;
    if (CALL(mig_by_index, gpu, i, &part) != SUCCESS || CALL(uuid, part, instance->uuid, TEXT - 1) != SUCCESS ||
        CALL(memory, part, &instance->memory) != SUCCESS)
      continue;
    if (CALL(gpu_instance, part, &instance->gpu_instance) != SUCCESS)
      instance->gpu_instance = UINT32_MAX;
    CALL(name, part, instance->name, TEXT - 1);
    device->instance_count++;
  }
}

static void look_at(struct nvml *nvml, unsigned index, struct device *device)
{
  handle gpu;
  struct pci_info pci = { 0 };
  for (int i = 0; i < VALUE_COUNT; i++)
    device->values[i] = NAN;
  device->status = nvml->functions.by_index(index, &gpu);
  if (device->status == SUCCESS) {
    succeeded(device, CALL(uuid, gpu, device->uuid, TEXT - 1));
    succeeded(device, CALL(name, gpu, device->name, TEXT - 1));
    succeeded(device, CALL(serial, gpu, device->serial, TEXT - 1));
    if (succeeded(device, CALL(pci_info, gpu, &pci)))
      snprintf(device->bus, sizeof device->bus, "%.31s", pci.id);
  }
  if (device->status == SUCCESS)
    put_values(nvml, gpu, device);
  if (device->status == SUCCESS)
    put_instances(nvml, gpu, device);
  if (device->status == SUCCESS && nvml->per_process)
    put_processes(nvml, gpu, device, &nvml->sampled[index]);
  if (device->status != SUCCESS)
    put_words(nvml, device->status, device->error, sizeof device->error);
}

void nvml_look(struct nvml *nvml, struct answer *answer)
{
  unsigned count = 0, failed = 0;
  if (!load(nvml, answer))
    return;
  memcpy(answer->path, nvml->path, MAX_NAME);
  CALL(driver_version, answer->driver, TEXT - 1);
  int status = nvml->functions.count(&count);
  if (status != SUCCESS) {
    fail(nvml, answer, "ask", status);
    nvml_unload(nvml);
    return;
  }
  if (count > MAX_DEVICES)
    count = MAX_DEVICES;
  answer->devices = calloc(count ? count : 1, sizeof *answer->devices);
  if (!answer->devices)
    return;
  answer->count = count;
  for (unsigned i = 0; i < count; i++) {
    look_at(nvml, i, &answer->devices[i]);
    failed += answer->devices[i].status != SUCCESS;
  }
  /* If all devices fail, the driver may have been replaced while the library was loaded. */
  if (count > 0 && failed == count)
    nvml_unload(nvml);
}
