// The systemd unit, and the files installed with it. Rights, paths, times and exit codes come from the program.
import { dirname, relative } from 'node:path'
import { defaults } from '../../src/config/index.ts'
import { ExitCode } from '../../src/foundation/lib/start-error.ts'
import { doctor } from '../../src/program/cli/doctor.ts'
import { run } from '../../src/program/cli/run.ts'
import { endMs } from '../../src/program/cli/run-agent.ts'
import { validate } from '../../src/program/cli/validate.ts'
import { perfEvents } from '../../src/program/doctor/profiling-rights.ts'
import { table } from '../../src/program/doctor/table.ts'
import type { Generated } from '../generated.ts'
import { confinement } from './systemd-confinement.ts'
import { collector, docker, head, oldKernel, rights } from './systemd-drop-ins.ts'

const config = defaults()
const program = '/usr/bin/svc'
const user = 'svc'
const shutdownMs = config.pipeline.operations.shutdown.timeout
const stateDirectory = below('/var/lib', dirname(config.pipeline.export.queue.directory))
const runDirectory = below('/run', dirname(config.self_telemetry.admin_socket))

/** The capabilities that the checks of `svc doctor` need, in the order of its table. */
const capabilities = [...new Set(table.flatMap(row => row.capabilities ?? []))]

function below(parent: string, path: string): string {
  const name = relative(parent, path)
  if (name.startsWith('..') || name.includes('/')) throw new Error(`${path} is not a directory in ${parent}`)
  return name
}

const bounds = `# A process that keeps all CPUs busy must not stop the agent from reporting it. limits.cpu bounds the agent's own CPU.
Nice=-10
CPUWeight=200
IOWeight=20
MemoryMax=512M
# The observed programs matter more than the observer.
OOMScoreAdjust=500
LimitNOFILE=65536
# Kernels before 5.11 count eBPF maps against it.
LimitMEMLOCK=infinity
# A core dump would contain observed data.
LimitCORE=0`

/** The agent's user and writable directories, shared by all its units. */
const identity = `User=${user}
# Variables, such as OTEL_EXPORTER_OTLP_HEADERS, one NAME=VALUE per line.
EnvironmentFile=-/etc/svc/environment
StateDirectory=${stateDirectory}
StateDirectoryMode=0700
RuntimeDirectory=${runDirectory}
UMask=0077`

function service(): string {
  return `# ${head} Change it with: systemctl edit svc
[Unit]
Description=svc, the observability agent of this host
Documentation=man:svc(1)
After=network.target

[Service]
Type=notify
# There is no ExecStartPre=: the agent checks its configuration itself, and systemd would restart a failed check again
# and again.
ExecStart=${program} ${run.name}
ExecReload=${program} ${validate.name}
ExecReload=/bin/sh -c 'kill -HUP $MAINPID'
# Records the cause of the exit for the next start.
ExecStopPost=-/usr/lib/svc/dist/svc-probe --ended
# The agent sends systemd a sign of life, until its event loop or one of its stages is stuck.
WatchdogSec=60
TimeoutStartSec=180
# The agent requests more if shutdown_timeout is longer.
TimeoutStopSec=${Math.ceil(endMs(shutdownMs) / 1000)}
KillMode=mixed
Restart=on-failure
RestartSec=5
# A wrong configuration, or eBPF that is required and missing: a restart fixes neither.
RestartPreventExitStatus=${ExitCode.usage} ${ExitCode.ebpf}
${identity}

# The capabilities in the needs of "svc doctor", and no others.
${rights(capabilities)}

${bounds}

${confinement}

[Install]
WantedBy=multi-user.target
`
}

function doctorService(): string {
  return `# ${head} Checks what the agent may do, with its user and rights:
# systemctl start svc-doctor; journalctl -u svc-doctor -o cat
[Unit]
Description=Checks of svc on this host
Documentation=man:svc(1)

[Service]
Type=oneshot
ExecStart=${program} ${doctor.name}
# A feature is limited, or a receiver rejects data.
SuccessExitStatus=${ExitCode.general} ${ExitCode.exporting}
${identity}
# The agent's socket is in it.
RuntimeDirectoryPreserve=yes

${rights(capabilities)}

${bounds}

${confinement}
`
}

const account = `# ${head}
u ${user} - "svc, the observability agent" /var/lib/${stateDirectory}
`

/** A setting that Debian and Ubuntu change, and that only CAP_SYS_ADMIN overrides. */
const sysctl = `# ${head} Debian and Ubuntu set another value, with which CAP_PERFMON is not enough to record
# profiles, and before Linux 6.3 to trace. This is the kernel's own value: users may measure their own processes.
${/^sysctl -w (\S+)=(\S+)$/
  .exec(perfEvents.faults.paranoid.hints.sysctl ?? '')!
  .slice(1)
  .join(' = ')}
`

const directory = 'deploy/systemd'
export const systemdFiles: readonly Generated[] = [
  { file: `${directory}/svc.service`, text: service },
  { file: `${directory}/svc-doctor.service`, text: doctorService },
  { file: `${directory}/svc.sysusers.conf`, text: () => account },
  { file: `${directory}/svc.sysctl.conf`, text: () => sysctl },
  { file: `${directory}/old-kernel.conf.example`, text: () => oldKernel },
  { file: `${directory}/collector.conf.example`, text: () => collector },
  { file: `${directory}/docker.conf.example`, text: () => docker },
]
