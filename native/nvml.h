/* NVIDIA's management library, by the NVML API Reference Guide: queries (nvml.c), and delivery of the answers
 * (nvml-node.c). An older library may lack any function, and any value may be unsupported. */
#ifndef SVC_NVML_H
#define SVC_NVML_H

#include "addon.h"

#include <pthread.h>

#define MAX_PATHS 8
#define MAX_DEVICES 64
#define MAX_INSTANCES 16
#define MAX_PROCESSES 1024
#define MAX_SAMPLES 4096
#define TEXT 96

struct utilization {
  unsigned gpu, memory; /* percent */
};
struct memory {
  unsigned long long total, free, used;
};
struct memory_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
#define MEMORY_V2 (sizeof(struct memory_v2) | 2u << 24)
struct pci_info {
  char legacy_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};
struct process_info {
  unsigned pid;
  unsigned long long memory; /* all ones: unknown */
  unsigned gpu_instance, compute_instance; /* all ones: none */
};
struct process_sample {
  unsigned pid;
  unsigned long long time; /* microseconds */
  unsigned sm, memory, encoder, decoder;
};
struct field_value {
  unsigned field, scope;
  long long time, latency;
  int type, status;
  unsigned long long value;
};

typedef struct opaque *handle;
typedef int number_of(handle, unsigned *);
typedef int text_of(handle, char *, unsigned);
typedef int processes_of(handle, unsigned *, struct process_info *);

struct functions {
  int (*init)(void);
  int (*shutdown)(void);
  const char *(*error_string)(int);
  int (*driver_version)(char *, unsigned);
  int (*count)(unsigned *);
  int (*by_index)(unsigned, handle *);
  text_of *uuid, *name, *serial;
  int (*pci_info)(handle, struct pci_info *);
  int (*utilization)(handle, struct utilization *);
  int (*memory)(handle, struct memory *);
  int (*memory_v2)(handle, struct memory_v2 *);
  int (*temperature)(handle, int, unsigned *);
  number_of *power, *fan_speed, *link_generation, *link_width, *mig_devices, *gpu_instance;
  int (*energy)(handle, unsigned long long *);
  int (*clock)(handle, int, unsigned *);
  int (*pcie_throughput)(handle, int, unsigned *);
  int (*fields)(handle, int, struct field_value *);
  int (*ecc_errors)(handle, int, int, unsigned long long *);
  int (*encoder)(handle, unsigned *, unsigned *);
  int (*decoder)(handle, unsigned *, unsigned *);
  int (*clock_reasons)(handle, unsigned long long *);
  processes_of *compute_processes, *graphics_processes;
  int (*process_samples)(handle, struct process_sample *, unsigned *, unsigned long long);
  int (*mig_mode)(handle, unsigned *, unsigned *);
  int (*mig_by_index)(handle, unsigned, handle *);
};

/* The numeric values of a device, with their JavaScript names. */
#define VALUES(V)                                                                                                      \
  V(utilization) V(memoryBusy) V(encoder) V(decoder) V(memoryTotal) V(memoryUsed) V(temperature) V(powerMw)            \
  V(energyMj) V(graphicsMhz) V(smMhz) V(memoryMhz) V(videoMhz) V(pcieSentBytes) V(pcieReceivedBytes)                   \
  V(pcieSentKbps) V(pcieReceivedKbps) V(linkGeneration) V(linkWidth) V(correctedSinceLoad) V(uncorrectedSinceLoad)     \
  V(correctedEver) V(uncorrectedEver) V(fanSpeed) V(clockReasons) V(mig)
enum value {
#define V(name) name,
  VALUES(V)
#undef V
  VALUE_COUNT
};

/* A partition of a GPU that is used as a separate one (MIG). */
struct instance {
  char uuid[TEXT], name[TEXT];
  unsigned gpu_instance;
  struct memory memory;
};

struct device {
  int status;
  char error[TEXT], uuid[TEXT], name[TEXT], serial[TEXT], bus[TEXT];
  double values[VALUE_COUNT]; /* NaN: not reported by this GPU or driver */
  unsigned instance_count;
  struct instance instances[MAX_INSTANCES];
  unsigned process_count, sample_count;
  bool has_samples;
  struct process_info *processes;
  struct process_sample *samples;
};

struct answer {
  /* The step that failed; NULL: none. `status` is an nvmlReturn_t, or 0 if the library was not called. */
  const char *failed;
  int status;
  char error[256], driver[TEXT], path[MAX_NAME];
  unsigned count;
  struct device *devices;
};

struct nvml {
  pthread_mutex_t lock;
  int references;
  bool running, closing;
  struct answer *answer;
  int fd;
  /* The thread owns the rest while it runs. */
  bool per_process;
  unsigned path_count;
  char paths[MAX_PATHS][MAX_NAME];
  void *library;
  struct functions functions;
  char path[MAX_NAME];
  /* Time of the newest sample so far; 0: none yet. */
  unsigned long long sampled[MAX_DEVICES];
};

/* Queries everything, and may never return. */
void nvml_look(struct nvml *nvml, struct answer *answer);
/* Shuts the library down; does nothing without one. */
void nvml_unload(struct nvml *nvml);

#endif
