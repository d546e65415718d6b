import { arp } from './arp.ts'
import { bcache } from './bcache.ts'
import { bcachefs } from './bcachefs.ts'
import { bonding } from './bonding.ts'
import { btrfs } from './btrfs.ts'
import { buddyinfo } from './buddyinfo.ts'
import { cgroup_usage } from './cgroup_usage.ts'
import { cgroups } from './cgroups.ts'
import { conntrack } from './conntrack.ts'
import { cpu } from './cpu.ts'
import { cpu_vulnerabilities } from './cpu_vulnerabilities.ts'
import { cpufreq } from './cpufreq.ts'
import { diskstats } from './diskstats.ts'
import { dmi } from './dmi.ts'
import { dmmultipath } from './dmmultipath.ts'
import { drbd } from './drbd.ts'
import { drm } from './drm.ts'
import { ebpf } from './ebpf.ts'
import { edac } from './edac.ts'
import { entropy } from './entropy.ts'
import { ethtool } from './ethtool.ts'
import { fibrechannel } from './fibrechannel.ts'
import { filefd } from './filefd.ts'
import { filesystem } from './filesystem.ts'
import { hwmon } from './hwmon.ts'
import { infiniband } from './infiniband.ts'
import { interrupts } from './interrupts.ts'
import { ipvs } from './ipvs.ts'
import { kernel_hung } from './kernel_hung.ts'
import { ksmd } from './ksmd.ts'
import { lnstat } from './lnstat.ts'
import { loadavg } from './loadavg.ts'
import { logind } from './logind.ts'
import { mdadm } from './mdadm.ts'
import { meminfo } from './meminfo.ts'
import { meminfo_numa } from './meminfo_numa.ts'
import { mountstats } from './mountstats.ts'
import { netclass } from './netclass.ts'
import { netdev } from './netdev.ts'
import { netstat } from './netstat.ts'
import { network_route } from './network_route.ts'
import { nfs } from './nfs.ts'
import { nfsd } from './nfsd.ts'
import { ntp } from './ntp.ts'
import { nvme } from './nvme.ts'
import { nvmesubsystem } from './nvmesubsystem.ts'
import { os } from './os.ts'
import { pcidevice } from './pcidevice.ts'
import { perf } from './perf.ts'
import { powersupplyclass } from './powersupplyclass.ts'
import { pressure } from './pressure.ts'
import { processes } from './processes.ts'
import { qdisc } from './qdisc.ts'
import { rapl } from './rapl.ts'
import { runit } from './runit.ts'
import { schedstat } from './schedstat.ts'
import { selinux } from './selinux.ts'
import { slabinfo } from './slabinfo.ts'
import { sockstat } from './sockstat.ts'
import { softirqs } from './softirqs.ts'
import { softnet } from './softnet.ts'
import { stat } from './stat.ts'
import { supervisord } from './supervisord.ts'
import { swap } from './swap.ts'
import { sysctl } from './sysctl.ts'
import { systemd } from './systemd.ts'
import { tapestats } from './tapestats.ts'
import { tcpstat } from './tcpstat.ts'
import { textfile } from './textfile.ts'
import { thermal_zone } from './thermal_zone.ts'
import { time } from './time.ts'
import { timex } from './timex.ts'
import { udp_queues } from './udp_queues.ts'
import { uname } from './uname.ts'
import { vmstat } from './vmstat.ts'
import { watchdog } from './watchdog.ts'
import { wifi } from './wifi.ts'
import { xfrm } from './xfrm.ts'
import { xfs } from './xfs.ts'
import { zfs } from './zfs.ts'
import { zoneinfo } from './zoneinfo.ts'

/** Host collectors of the replaced exporter, in order of their names. */
export const collectors = [
  arp,
  bcache,
  bcachefs,
  bonding,
  btrfs,
  buddyinfo,
  cgroups,
  conntrack,
  cpu,
  cpu_vulnerabilities,
  cpufreq,
  diskstats,
  dmi,
  dmmultipath,
  drbd,
  drm,
  edac,
  entropy,
  ethtool,
  fibrechannel,
  filefd,
  filesystem,
  hwmon,
  infiniband,
  interrupts,
  ipvs,
  kernel_hung,
  ksmd,
  lnstat,
  loadavg,
  logind,
  mdadm,
  meminfo,
  meminfo_numa,
  mountstats,
  netclass,
  netdev,
  netstat,
  network_route,
  nfs,
  nfsd,
  ntp,
  nvme,
  nvmesubsystem,
  os,
  pcidevice,
  perf,
  powersupplyclass,
  pressure,
  processes,
  qdisc,
  rapl,
  runit,
  schedstat,
  selinux,
  slabinfo,
  sockstat,
  softirqs,
  softnet,
  stat,
  supervisord,
  swap,
  sysctl,
  systemd,
  tapestats,
  tcpstat,
  textfile,
  thermal_zone,
  time,
  timex,
  udp_queues,
  uname,
  vmstat,
  watchdog,
  wifi,
  xfrm,
  xfs,
  zfs,
  zoneinfo,
] as const

/** Collectors of svc that the replaced exporter does not have, with `ebpf_enhanced`. */
export const extraCollectors = [cgroup_usage, ebpf] as const
