// The documents about what surrounds the agent: processes, containers, cluster and cloud, logs.

import { count, flag, list, named, object, record, text, time } from './schema.ts'

export const discoveryDocument = named(
  'Discovery',
  object('What is known of the surroundings.', {
    kubernetes: object('Kubernetes.', {
      enabled: flag('The source is on.'),
      connected: flag('The API server answers.'),
      cluster: text('Empty where it is not known.'),
      namespace: text('Empty where it is not known.'),
      pods_watched: count('Now.'),
      services_watched: count('Now.'),
      node: text('Whose pods are watched; empty outside of a cluster.'),
      reason: text('Why the API server is not asked, or does not answer; empty where it does.'),
    }),
    docker: object('Docker or Podman.', {
      enabled: flag('The source is on.'),
      connected: flag('The daemon answers.'),
      containers: count('Now, from whatever source.'),
      runtime: text('`docker` or `podman`; empty where none answered.'),
      version: text('Of the daemon.'),
      endpoint: text('Its socket or address; empty where none answered.'),
      reason: text('Why it does not answer, or not all of it; empty where it does.'),
    }),
    containerd: object('containerd, as itself or within a distribution of Kubernetes.', {
      enabled: flag('The source is on.'),
      connected: flag('One answers.'),
      containers: count('Now, without those of Docker, which reports them itself.'),
      version: text('Of the daemon; empty where none answered.'),
      endpoint: text('Its socket, or several with commas between; empty where none answered.'),
      reason: text('Why it does not answer, or not all of it; empty where it does.'),
    }),
    cloud: object('The cloud’s metadata; empty texts where none was detected.', {
      provider: text('`cloud.provider`: `aws`, `gcp`, `azure`, …'),
      region: text('Region.'),
      instance_id: text('Instance.'),
      instance_name: text('Its name.'),
      zone: text('Availability zone.'),
      account: text('Account, project or subscription.'),
      instance_type: text('Kind of machine.'),
      reason: text('Why there is none.'),
    }),
    discovered_services: list(
      'Services of this host: those that listen, and those whose calls were seen.',
      object('A service.', {
        name: text('`service.name`.'),
        namespace: text('`service.namespace`; empty for none.'),
        instances: count('Processes of it that run.'),
        ports: list('TCP ports that they listen at.', count('A port.')),
      }),
    ),
    containers: list(
      'Containers that are there, at most 1,000.',
      object('A container.', {
        id: text('`container.id`.'),
        name: text('`container.name`.'),
        image: text('As it was asked for.'),
        runtime: text('`container.runtime.name`.'),
        state: text('In the words of the runtime.'),
        health: text('`starting`, `healthy` or `unhealthy`; empty without a check.'),
        pod: text('`k8s.pod.uid`; empty outside of pods.'),
        service: text('What it says of `service.name`; empty where its processes say it themselves.'),
        labels: record('Those of `agent.discovery.docker.labels`.', text('Its value.')),
      }),
    ),
  }),
)

export const logsDocument = named(
  'LogsStatus',
  object('Logs that are followed.', {
    enabled: flag('Logs are collected.'),
    records: record('Records by source: `docker`, `cri`, `files`, `journal`.', count('Since the start.')),
    files: count('Followed now.'),
    behind_bytes: count('In these files and not read yet.'),
    read_bytes: count('Since the start.'),
    paused: flag('Nothing is read, because the queue is full.'),
    truncations: count('Files that were cut while they were followed.'),
    lost_rotations: count('Rotated files that were gone, or compressed, before they were read.'),
    left_out_files: count(
      'Files that the last look found and that are not followed: their owner has its share of the places.',
    ),
    left_out_directories: count('Directories that the last look did not go through to their end, likewise.'),
    places_taken: count('Followed logs whose place went to an owner who had fewer.'),
    cut_texts: count(
      'Times that what waited in a log for the end of its line or record was handed on as it was, as too much waited.',
    ),
    journal: text('Why the journal is not read; empty where it is, or is not wanted.'),
    followed: list(
      'Files, the busiest first, at most 100.',
      object('A file.', {
        path: text('Path.'),
        source: text('`docker`, `cri` or `files`.'),
        offset: count('Read up to here.'),
        size: count('Bytes.'),
      }),
    ),
  }),
)

export const processesDocument = named(
  'Processes',
  object('Why processes are observed, or not.', {
    processes: list(
      'Those that were asked for, and that there are.',
      object('A process.', {
        pid: count('Its number.'),
        service: text('`service.name` of what it does.'),
        executable: text('Empty where it may not be read.'),
        listening: list('TCP ports that it listens at.', count('A port.')),
        served: list('Ports at which it was seen to answer.', count('A port.')),
        command_line: text('What looks like a secret is left out of it.'),
        owner: text('User; its number where it has no name.'),
        started: time('When it began.'),
        runtime: text('Its language’s runtime, and the version where that is known.'),
        container: text('`container.id`; empty outside of containers.'),
        container_name: text('Empty where it is not known.'),
        pod: text('`namespace/name` of its pod; empty outside of pods.'),
        seen: flag('Calls of it were seen since the agent started.'),
        observed: flag('Spans are made of what it does.'),
        reason: text('Why, or why not.'),
        notes: list('What else stands in the way, with what fixes it.', text('One of them.')),
      }),
    ),
  }),
)
