/** What keeps the agent from all that it never does. What is missing from it would cost telemetry, and says which. */
export const confinement = `# Reading is its work; it writes in its own directories alone.
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateMounts=yes
ProtectControlGroups=yes
ProtectKernelModules=yes
# It may read much, but no disk and no memory by their devices. GPUs are asked through theirs.
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
# Beyond what services call: eBPF, and the clock's state, which is only read (the C library reads it by the second).
SystemCallFilter=@system-service bpf perf_event_open adjtimex clock_adjtime
SystemCallFilter=~@resources
# Threads and programs that read foreign files lower their priority.
SystemCallFilter=setpriority
SystemCallErrorNumber=EPERM
# Not here, as each costs telemetry: MemoryDenyWriteExecute= ends the runtime, which compiles; ProtectKernelLogs= takes
# CAP_SYSLOG and ProtectKernelTunables= /proc/kallsyms, the names of the kernel's functions; ProtectClock= the state of
# the clock; ProtectHostname= a name of the host that changes; ProtectProc=, ProcSubset=, PrivateUsers= and PrivatePIDs=
# the processes of others; PrivateDevices= GPUs; PrivateNetwork= and IPAddressDeny= the network.`
