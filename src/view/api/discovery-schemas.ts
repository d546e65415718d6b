// The documents about processes, containers, cluster, cloud and logs.

import { count, flag, list, named, object, record, text, time } from './schema.ts'

export const discoveryDocument = named(
  'Discovery',
  object('Discovered metadata.', {
    kubernetes: object('Kubernetes.', {
      enabled: flag('The source is enabled.'),
      connected: flag('The API server answers.'),
      cluster: text('Cluster name; empty if unknown.'),
      namespace: text('Namespace; empty if unknown.'),
      pods_watched: count('Current number of pods.'),
      services_watched: count('Current number of services.'),
      node: text('Node whose pods are watched; empty outside a cluster.'),
      reason: text('Why the API server is not queried or does not answer; empty if it answers.'),
    }),
    docker: object('Docker or Podman.', {
      enabled: flag('The source is enabled.'),
      connected: flag('The daemon answers.'),
      containers: count('Current number of containers, from all sources.'),
      runtime: text('`docker` or `podman`; empty if none answered.'),
      version: text('Version of the daemon.'),
      endpoint: text('Its socket or address; empty if none answered.'),
      reason: text('Why it does not answer, or only in part; empty if it does.'),
    }),
    containerd: object('containerd, standalone or as part of a Kubernetes distribution.', {
      enabled: flag('The source is enabled.'),
      connected: flag('At least one containerd answers.'),
      containers: count('Current number of containers, without those of Docker, which reports them itself.'),
      version: text('Version of the daemon; empty if none answered.'),
      endpoint: text('Its socket, or several separated by commas; empty if none answered.'),
      reason: text('Why it does not answer, or only in part; empty if it does.'),
    }),
    cloud: object('Cloud metadata; strings are empty if no cloud was detected.', {
      provider: text('`cloud.provider`: `aws`, `gcp`, `azure`, …'),
      region: text('Region.'),
      instance_id: text('Instance ID.'),
      instance_name: text('Instance name.'),
      zone: text('Availability zone.'),
      account: text('Account, project or subscription.'),
      instance_type: text('Machine type.'),
      reason: text('Why there is no metadata.'),
    }),
    discovered_services: list(
      'Services of this host: listening services, and services with observed calls.',
      object('A service.', {
        name: text('`service.name`.'),
        namespace: text('`service.namespace`; empty if there is none.'),
        instances: count('Running processes.'),
        ports: list('TCP ports that they listen on.', count('A port.')),
      }),
    ),
    containers: list(
      'Containers, at most 1,000.',
      object('A container.', {
        id: text('`container.id`.'),
        name: text('`container.name`.'),
        image: text('Image, as requested.'),
        runtime: text('`container.runtime.name`.'),
        state: text('State, in the runtime’s words.'),
        health: text('`starting`, `healthy` or `unhealthy`; empty without a health check.'),
        pod: text('`k8s.pod.uid`; empty outside pods.'),
        service: text('`service.name` that the container declares; empty if its processes declare it.'),
        labels: record('Labels from `agent.discovery.docker.labels`.', text('A value.')),
      }),
    ),
  }),
)

export const logsDocument = named(
  'LogsStatus',
  object('Followed logs.', {
    enabled: flag('Logs are collected.'),
    records: record(
      'Records by source: `docker`, `cri`, `files`, `journal`.',
      count('Total since the start.'),
    ),
    files: count('Files followed now.'),
    unread_bytes: count('Unread bytes in these files.'),
    read_bytes: count('Bytes read since the start.'),
    paused: flag('Reading is paused because the queue is full.'),
    truncations: count('Files truncated while followed.'),
    lost_rotations: count('Rotated files deleted or compressed before they were read.'),
    omitted_files: count(
      'Files found by the last scan but not followed, because their owner has reached its share.',
    ),
    omitted_directories: count('Directories not scanned to the end by the last scan, for the same reason.'),
    evicted_logs: count('Followed logs that were dropped in favour of an owner with fewer.'),
    incomplete_records: count(
      'Incomplete lines or records that were sent as they were, because too much was buffered.',
    ),
    journal: text('Why the journal is not read; empty if it is, or is not requested.'),
    followed: list(
      'Files, busiest first, at most 100.',
      object('A file.', {
        path: text('Path.'),
        source: text('`docker`, `cri` or `files`.'),
        offset: count('Bytes read so far.'),
        size: count('Size in bytes.'),
      }),
    ),
  }),
)

export const processesDocument = named(
  'Processes',
  object('Why processes are observed, or not.', {
    processes: list(
      'Requested processes that exist.',
      object('A process.', {
        pid: count('Process ID.'),
        service: text('`service.name` of its telemetry.'),
        executable: text('Executable; empty if it cannot be read.'),
        listening_ports: list('TCP ports that it listens on.', count('A port.')),
        served_ports: list('Ports with observed answers.', count('A port.')),
        command_line: text('Command line, without likely secrets.'),
        owner: text('User; the user ID if there is no name.'),
        started: time('Start time.'),
        runtime: text('Language runtime, and its version if known.'),
        container: text('`container.id`; empty outside containers.'),
        container_name: text('Container name; empty if unknown.'),
        pod: text('`namespace/name` of its pod; empty outside pods.'),
        has_calls: flag('Calls were observed since the agent started.'),
        observed: flag('svc makes spans of its requests.'),
        reason: text('Why it is observed, or not.'),
        notes: list('Other obstacles, and how to fix them.', text('An obstacle.')),
      }),
    ),
  }),
)
