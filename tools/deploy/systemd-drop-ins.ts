// Changes of the unit for some hosts.

export const head = 'Written by tools/gen-deploy.ts.'

/** The directives that grant capabilities, and drop all others. */
export function rights(names: readonly string[]): string {
  const list = names.map(name => `CAP_${name}`).join(' ')
  return `AmbientCapabilities=${list}\nCapabilityBoundingSet=${list}`
}

/** Kernels before 5.8 have no capabilities for eBPF, before 5.9 none to open the files of processes. */
export const oldKernel = `# ${head} For kernels before 5.9: /etc/systemd/system/svc.service.d/old-kernel.conf
[Service]
${rights(['SYS_ADMIN', 'SYS_RESOURCE'])}
`

export const collector = `# ${head} For mode: collector, which scrapes and needs no rights:
# /etc/systemd/system/svc.service.d/collector.conf
[Service]
AmbientCapabilities=
CapabilityBoundingSet=
ProtectHome=yes
ProtectProc=invisible
ProcSubset=pid
`

export const docker = `# ${head} For names of Docker's containers: /etc/systemd/system/svc.service.d/docker.conf
# A program with access to Docker can become root. The agent only reads.
[Service]
SupplementaryGroups=docker
`
