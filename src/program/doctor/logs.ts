import { accessSync, closeSync, constants, openSync, readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorText } from '../../foundation/lib/logger.ts'
import type { Finding } from '../../kernel/need.ts'
import { FileFinder } from '../../signals/logs/file-finder.ts'
import { journalctl } from '../../signals/logs/journal.ts'
import { containerLogDirectories } from '../agent/log-sources.ts'
import { check } from './check.ts'
import { nearestWritable } from './directory.ts'

export const logDirectories = check({
  name: 'container logs',
  group: 'logs',
  summary: 'The log directories of container runtimes, if any, can be read',
  impact: 'container logs',
  faults: {
    absent: {
      state: 'note',
      what: 'no container runtime on this host writes log files',
      hints: { any: 'none needed: no containers, no such logs' },
    },
    denied: {
      state: 'missing',
      what: 'svc may not read them',
      hints: {
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
    return [{ fault: 'absent', detail: `not found: ${containerLogDirectories.join(', ')}` }]
  },
})

export const logFiles = check({
  name: 'log files',
  group: 'logs',
  summary: 'The patterns of agent.logs.paths match readable files',
  impact: 'logs of these files',
  faults: {
    none: {
      state: 'limited',
      what: 'a pattern matches no file, or its directory cannot be listed',
      hints: {
        any: 'no action if the file is created later; else fix the pattern, or the permissions of the directory',
        config: 'agent.logs.paths: [/var/log/app/*.log]',
        container: 'docker run -v /var/log:/var/log:ro',
      },
    },
    denied: {
      state: 'missing',
      what: 'svc may not read a file',
      hints: {
        any: 'run as root, in the group of the files, or with the capability DAC_READ_SEARCH',
        systemd: 'AmbientCapabilities=CAP_DAC_READ_SEARCH',
      },
    },
  },
  try: async ({ loaded }) => {
    const { logs } = loaded.config.agent
    if (loaded.config.mode !== 'agent' || !logs.enabled) return []
    const findings: Finding<'none' | 'denied'>[] = []
    for (const pattern of logs.paths) {
      const finder = new FileFinder()
      const files = await finder.find([pattern])
      const refused = files.filter(({ path }) => !isReadable(path))
      if (files.length === 0)
        findings.push({ fault: 'none', detail: finder.faults.get(pattern) ?? `${pattern}: no such file` })
      else if (refused.length > 0)
        findings.push({
          fault: 'denied',
          detail: `${pattern}: ${refused.length} of ${files.length} files, such as ${refused[0]!.path}`,
        })
      else findings.push({ ok: `${pattern}: ${files.length} files` })
    }
    return findings
  },
})

export const logPositions = check({
  name: 'log positions',
  group: 'logs',
  summary: 'The file with the read positions of logs is writable',
  impact: 'lines written while svc is stopped; after a restart logs are read from their end',
  faults: {
    refused: {
      state: 'limited',
      what: 'its directory cannot be created or written',
      hints: {
        any: 'create the directory for the user of svc',
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
  summary: 'The program journalctl is installed to read the journal, if agent.logs.journald is on',
  impact: 'logs of the journal',
  faults: {
    absent: {
      state: 'missing',
      what: 'journalctl is not installed, or svc may not run it',
      hints: { any: 'install systemd', config: 'agent.logs.journald: false' },
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

function isReadable(path: string): boolean {
  try {
    closeSync(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK))
    return true
  } catch {
    return false
  }
}
