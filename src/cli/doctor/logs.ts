import { accessSync, constants, readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { containerLogDirectories } from '../../agent/log-sources.ts'
import type { Finding } from '../../kernel/need.ts'
import { errorText } from '../../lib/logger.ts'
import { journalctl } from '../../logs/journal.ts'
import { check } from './check.ts'
import { nearestWritable } from './directory.ts'

export const logDirectories = check({
  name: 'container logs',
  group: 'logs',
  summary: 'The directories where container runtimes write logs can be read, where there are such',
  lose: 'logs of containers',
  faults: {
    absent: {
      state: 'note',
      what: 'no container runtime of this host writes logs to files',
      mends: { any: 'none needed: without containers there are no such logs' },
    },
    denied: {
      state: 'missing',
      what: 'svc may not read them',
      mends: {
        any: 'run as root, or with the capability DAC_READ_SEARCH',
        systemd: 'AmbientCapabilities=CAP_DAC_READ_SEARCH',
        container: 'docker run --user=0 -v /var/lib/docker/containers:/var/lib/docker/containers:ro',
        kubernetes: 'a hostPath volume of /var/log, read-only',
      },
    },
  },
  try: ({ loaded }) => {
    const { logs } = loaded.config.agent
    if (loaded.config.mode !== 'agent' || !logs.enabled || !logs.container_logs) return []
    const findings: Finding<'absent' | 'denied'>[] = []
    for (const directory of containerLogDirectories) {
      try {
        findings.push({ ok: `${directory}: ${readdirSync(directory).length} entries` })
      } catch (error) {
        if (!isAbsent(error)) findings.push({ fault: 'denied', detail: `${directory}: ${errorText(error)}` })
      }
    }
    if (findings.length > 0) return findings
    return [{ fault: 'absent', detail: `there is no ${containerLogDirectories.join(' and no ')}` }]
  },
})

export const logPositions = check({
  name: 'log positions',
  group: 'logs',
  summary: 'The file that remembers how far each log was read can be written',
  lose: 'lines that are written while svc is away; after a restart logs begin at their ends',
  faults: {
    refused: {
      state: 'limited',
      what: 'its directory cannot be written or made',
      mends: {
        any: 'make the directory for the user of svc',
        systemd: 'StateDirectory=svc',
        container: 'docker run -v svc:/var/lib/svc',
        kubernetes: 'a hostPath volume at /var/lib/svc',
        config: 'agent.logs.position_file: /a/path/that/can/be/written',
      },
    },
  },
  try: ({ loaded }) => {
    const { logs } = loaded.config.agent
    if (loaded.config.mode !== 'agent' || !logs.enabled) return []
    const place = nearestWritable(dirname(logs.position_file))
    if ('refused' in place) return [{ fault: 'refused', detail: place.refused }]
    return [{ ok: logs.position_file }]
  },
})

export const journal = check({
  name: 'journal',
  group: 'logs',
  summary:
    'The program journalctl is there to read the journal with, where agent.logs.journald asks for that',
  lose: 'logs of the journal',
  faults: {
    absent: {
      state: 'missing',
      what: 'there is no journalctl, or svc may not run it',
      mends: { any: 'install systemd', config: 'agent.logs.journald: false' },
    },
  },
  try: ({ loaded }) => {
    const { logs } = loaded.config.agent
    if (loaded.config.mode !== 'agent' || !logs.enabled || !logs.journald) return []
    try {
      accessSync(journalctl, constants.X_OK)
      return [{ ok: journalctl }]
    } catch (error) {
      return [{ fault: 'absent', detail: errorText(error) }]
    }
  },
})

function isAbsent(error: unknown): boolean {
  return /^(?:ENOENT|ENOTDIR)$/.test((error as NodeJS.ErrnoException).code ?? '')
}
