/**
 * Directives that forbid everything the agent never does. Directives left out would cost telemetry, as the text
 * explains.
 */
export const confinement = `# The agent reads, and writes only in its own directories.
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateMounts=yes
ProtectControlGroups=yes
ProtectKernelModules=yes
# The agent may read much, but not disks and memory through their devices. GPUs are queried through theirs.
DevicePolicy=closed
DeviceAllow=char-nvidia* rw
NoNewPrivileges=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
LockPersonality=yes
RemoveIPC=yes
KeyringMode=private
SystemCallArchitectures=native
# In addition to normal services: eBPF, and the clock's state, which is only read (the C library uses the second call).
SystemCallFilter=@system-service bpf perf_event_open adjtimex clock_adjtime
SystemCallFilter=~@resources
# Threads and programs that read foreign files lower their priority.
SystemCallFilter=setpriority
SystemCallErrorNumber=EPERM
# Not set, because each costs telemetry: MemoryDenyWriteExecute= breaks the runtime, which compiles; ProtectKernelLogs=
# removes CAP_SYSLOG and ProtectKernelTunables= /proc/kallsyms, the names of the kernel's functions; ProtectClock= hides
# the state of the clock; ProtectHostname= changes of the host's name; ProtectProc=, ProcSubset=, PrivateUsers= and
# PrivatePIDs= the processes of others; PrivateDevices= GPUs; PrivateNetwork= and IPAddressDeny= the network.`
