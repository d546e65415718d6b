/** What keeps the agent from all that it never does. What is missing from it would cost telemetry, and says which. */
export const confinement = `# svc reads; it writes only to its own directories.
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateMounts=yes
ProtectControlGroups=yes
ProtectKernelModules=yes
# No access to disks and memory through their devices. GPUs are queried through their devices.
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
# In addition to common system calls: eBPF, and the state of the clock, which is only read (the C library uses the second).
SystemCallFilter=@system-service bpf perf_event_open adjtimex clock_adjtime
SystemCallFilter=~@resources
# Threads and programs that read other users' files lower their priority.
SystemCallFilter=setpriority
SystemCallErrorNumber=EPERM
# Not set, because each costs telemetry: MemoryDenyWriteExecute= breaks the JIT of the runtime; ProtectKernelLogs= removes
# CAP_SYSLOG, ProtectKernelTunables= /proc/kallsyms, the names of kernel functions, ProtectClock= the state of
# the clock, ProtectHostname= changes of the host name, ProtectProc=, ProcSubset=, PrivateUsers= and PrivatePIDs=
# other users' processes, PrivateDevices= GPUs, PrivateNetwork= and IPAddressDeny= the network.`
