import { list } from '../schema/collections.ts'
import {
  boolean,
  count,
  duration,
  integer,
  listenAddress,
  nameOrRegex,
  path,
  regex,
  someText,
  text,
} from '../schema/kinds.ts'
import { branch, key } from '../schema/tree.ts'
import { collectorSwitches } from './schema-collectors.ts'

const metricNamespace = text({
  expects: 'a prefix that a metric name can have, such as "node"',
  pattern: /^[a-zA-Z_][a-zA-Z0-9_]*$/,
})

/** A regular expression that, while it is empty, filters nothing. */
function filter(what: string) {
  return key(regex, '', `Regular expression for ${what}; empty for none.`)
}

function flag(on: boolean, what: string) {
  return key(boolean, on, what)
}

function filters(what: string) {
  return { device_include: filter(`${what} to show`), device_exclude: filter(`${what} to leave out`) }
}

/** Options of collectors, named as the flags of the exporter that this endpoint replaces, `-` and `.` as `_`. */
const options = {
  arp: branch('Options of the collector `arp`.', {
    ...filters('devices'),
    netlink: flag(true, 'Asks over netlink instead of reading /proc/net/arp.'),
  }),
  bcache: branch('Options of the collector `bcache`.', {
    priorityStats: flag(false, 'Shows priority statistics, which are expensive.'),
  }),
  cpu: branch('Options of the collector `cpu`.', {
    guest: flag(true, 'Shows time of guests.'),
    info: flag(false, 'Shows `cpu_info`.'),
    info_flags_include: filter('CPU flags to show'),
    info_bugs_include: filter('CPU bugs to show'),
  }),
  diskstats: branch('Options of the collector `diskstats`.', {
    device_include: key(list(regex), [], 'Regular expressions for devices to show; empty for all.'),
    device_exclude: key(
      list(regex),
      ['^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\\d+n\\d+p)\\d+$'],
      'Regular expressions for devices to leave out.',
    ),
  }),
  ethtool: branch('Options of the collector `ethtool`.', {
    ...filters('devices'),
    metrics_include: key(regex, '.*', 'Regular expression for counters to show.'),
  }),
  filesystem: branch('Options of the collector `filesystem`.', {
    ignored_fs_types: key(
      list(nameOrRegex),
      [
        '/^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|erofs|sysfs|tracefs)$/',
      ],
      'Types of file systems to leave out: names, or regular expressions between slashes.',
    ),
    ignored_mount_points: key(
      list(regex),
      ['^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|var/lib/containers/storage/.+)($|/)'],
      'Regular expressions for mount points to leave out.',
    ),
    mount_timeout: key(
      duration(),
      5000,
      'Time that a mount may take to answer before it is marked as stuck.',
    ),
    mount_points_exclude: filter('mount points to leave out, beside `ignored_mount_points`'),
    mount_points_include: filter('mount points to show'),
    fs_types_exclude: filter('types of file systems to leave out, beside `ignored_fs_types`'),
    fs_types_include: filter('types of file systems to show'),
    stat_workers: key(integer({ min: 1, max: 64 }), 4, 'Mounts that are asked at once.'),
  }),
  hwmon: branch('Options of the collector `hwmon`.', {
    chip_include: filter('chips to show'),
    chip_exclude: filter('chips to leave out'),
    sensor_include: filter('sensors (as `chip;sensor`) to show'),
    sensor_exclude: filter('sensors (as `chip;sensor`) to leave out'),
  }),
  infiniband: branch('Options of the collector `infiniband`.', filters('devices')),
  interrupts: branch('Options of the collector `interrupts`.', {
    name_include: filter('interrupts (as `name;info;devices`) to show'),
    name_exclude: filter('interrupts (as `name;info;devices`) to leave out'),
    include_zeros: flag(true, 'Shows interrupts that never happened.'),
  }),
  ipvs: branch('Options of the collector `ipvs`.', {
    backend_labels: key(
      text(),
      'local_address,local_port,remote_address,remote_port,proto,local_mark',
      'Labels of backend metrics, between commas.',
    ),
  }),
  netclass: branch('Options of the collector `netclass`.', {
    ignored_devices: key(regex, '^$', 'Regular expression for devices to leave out.'),
    ignore_invalid_speed: flag(false, 'Leaves out speeds that are not known.'),
    netlink: flag(false, 'Asks over netlink instead of reading /sys/class/net.'),
    rtnl_with_stats: flag(false, 'Shows traffic statistics too when netlink is asked.'),
  }),
  netdev: branch('Options of the collector `netdev`.', {
    device_include: key(list(regex), [], 'Regular expressions for devices to show; empty for all.'),
    device_exclude: key(list(regex), [], 'Regular expressions for devices to leave out.'),
    address_info: flag(false, 'Shows addresses of devices.'),
    enable_detailed_metrics: flag(false, 'Uses the kernel’s own, finer counters and names.'),
    label_ifalias: flag(false, 'Adds the label `ifalias`.'),
    netlink: flag(true, 'Asks over netlink instead of reading /proc/net/dev.'),
  }),
  netstat: branch('Options of the collector `netstat`.', {
    fields: key(
      regex,
      '^(.*_(InErrors|InErrs)|Ip_Forwarding|Ip(6|Ext)_(InOctets|OutOctets)|Icmp6?_(InMsgs|OutMsgs)|TcpExt_(Listen.*|Syncookies.*|TCPSynRetrans|TCPTimeouts|TCPOFOQueue|TCPRcvQDrop)|Tcp_(ActiveOpens|InSegs|OutSegs|OutRsts|PassiveOpens|RetransSegs|CurrEstab)|Udp6?_(InDatagrams|OutDatagrams|NoPorts|RcvbufErrors|SndbufErrors))$',
      'Regular expression for fields to show.',
    ),
  }),
  ntp: branch('Options of the collector `ntp`.', {
    server: key(someText, '127.0.0.1', 'NTP server to ask.'),
    server_port: key(integer({ min: 1, max: 65_535 }), 123, 'Port of the NTP server.'),
    server_is_local: flag(false, 'Vouches that the server is on this host.'),
    protocol_version: key(integer({ min: 2, max: 4 }), 4, 'NTP version.'),
    ip_ttl: key(integer({ min: 1, max: 255 }), 1, 'Time to live of request packets.'),
    max_distance: key(duration(), 3466, 'Largest root distance of a sane server.'),
    local_offset_tolerance: key(duration(), 1, 'Offset to a local server that still counts as none.'),
  }),
  pcidevice: branch('Options of the collector `pcidevice`.', {
    names: flag(false, 'Shows names of vendors and devices.'),
    idsfile: key(path, '', 'The pci.ids file; empty to find it.'),
  }),
  perf: branch('Options of the collector `perf`.', {
    cpus: key(text(), '', 'CPUs to measure, as `0-3,8`; empty for all.'),
    tracepoint: key(list(someText), [], 'Tracepoints to count, as `group:name`.'),
    disable_hardware_profilers: flag(false, 'Leaves out hardware counters.'),
    hardware_profilers: key(list(someText), [], 'Hardware counters; empty for all.'),
    disable_software_profilers: flag(false, 'Leaves out software counters.'),
    software_profilers: key(list(someText), [], 'Software counters; empty for all.'),
    disable_cache_profilers: flag(false, 'Leaves out cache counters.'),
    cache_profilers: key(list(someText), [], 'Cache counters; empty for all.'),
  }),
  powersupplyclass: branch('Options of the collector `powersupplyclass`.', {
    ignored_supplies: key(regex, '^$', 'Regular expression for supplies to leave out.'),
  }),
  qdisc: branch('Options of the collector `qdisc`.', {
    ...filters('devices'),
    fixtures: key(path, '', 'Reads this directory instead of the kernel; for tests.'),
  }),
  rapl: branch('Options of the collector `rapl`.', {
    enable_zone_label: flag(false, 'Gives the zone as a label instead of in the metric’s name.'),
  }),
  runit: branch('Options of the collector `runit`.', {
    servicedir: key(path, '/etc/service', 'Directory of the services.'),
  }),
  slabinfo: branch('Options of the collector `slabinfo`.', {
    slabs_include: key(regex, '.*', 'Regular expression for slabs to show.'),
    slabs_exclude: filter('slabs to leave out'),
  }),
  stat: branch('Options of the collector `stat`.', {
    softirq: flag(false, 'Shows soft interrupts by kind.'),
  }),
  supervisord: branch('Options of the collector `supervisord`.', {
    url: key(someText, 'http://localhost:9001/RPC2', 'XML-RPC endpoint, http or unix.'),
  }),
  sysctl: branch('Options of the collector `sysctl`.', {
    include: key(list(someText), [], 'Parameters to show as numbers, as `name` or `name:key,key`.'),
    include_info: key(list(someText), [], 'Parameters to show as text.'),
  }),
  systemd: branch('Options of the collector `systemd`.', {
    unit_include: key(regex, '.+', 'Regular expression, anchored, for units to show.'),
    unit_exclude: key(
      regex,
      '.+\\.(automount|device|mount|scope|slice)',
      'Regular expression, anchored, for units to leave out.',
    ),
    private: flag(false, 'Talks to systemd over its private socket instead of D-Bus.'),
    enable_task_metrics: flag(false, 'Shows tasks of units.'),
    enable_restarts_metrics: flag(false, 'Shows restarts of services.'),
    enable_start_time_metrics: flag(false, 'Shows start times of units.'),
  }),
  tapestats: branch('Options of the collector `tapestats`.', {
    ignored_devices: key(regex, '^$', 'Regular expression for devices to leave out.'),
  }),
  textfile: branch('Options of the collector `textfile`.', {
    enabled: key(boolean, true, 'Serves metrics from files; the same switch as `collectors.textfile`.'),
    directory: key(
      path,
      '/var/lib/node_exporter/textfile_collector',
      'Directory of `*.prom` files; may contain `*`. An absent directory means no files.',
    ),
  }),
  vmstat: branch('Options of the collector `vmstat`.', {
    fields: key(regex, '^(oom_kill|pgpg|pswp|pg.*fault).*', 'Regular expression for fields to show.'),
  }),
  wifi: branch('Options of the collector `wifi`.', {
    fixtures: key(path, '', 'Reads this directory instead of the kernel; for tests.'),
  }),
} as const

export const nodeexporter = branch(
  'Host metrics, as the common node metrics exporter has them.',
  {
    enabled: key(
      boolean,
      true,
      'Serves host metrics. Where the port is taken the agent goes on without, unless this is written.',
    ),
    listen_address: key(listenAddress, ':9100', 'Address of the endpoint.', { restart: true }),
    namespace: key(metricNamespace, 'node', 'First word of all metric names.'),
    path: branch('Where the host’s file systems are, for an agent in a container.', {
      procfs: key(path, '/proc', 'The host’s /proc.'),
      sysfs: key(path, '/sys', 'The host’s /sys.'),
      rootfs: key(path, '/', 'The host’s root directory.'),
      udev: key(path, '/run/udev/data', 'The host’s udev database.'),
    }),
    collectors: branch('Switches of the collectors.', collectorSwitches, {
      spellings: { thermal: 'thermal_zone' },
    }),
    ...options,
    tls: branch('TLS of the endpoint.', {
      enabled: key(boolean, false, 'Serves over TLS.'),
      cert_file: key(path, '', 'PEM file of the certificate.'),
      key_file: key(path, '', 'PEM file of the private key.'),
      client_auth: key(boolean, false, 'Requires clients to show a certificate.'),
      client_ca_file: key(path, '', 'PEM file of the authorities for client certificates.'),
    }),
    cardinality: branch('Bounds of the endpoint.', {
      enabled: key(boolean, false, 'Applies the bounds.'),
      max_metrics: key(count, 0, 'Most metric families; 0 for no limit.'),
      include_metrics: key(
        list(regex),
        [],
        'Regular expressions, anchored, for metrics to show; empty for all.',
      ),
      exclude_metrics: key(list(regex), [], 'Regular expressions, anchored, for metrics to leave out.'),
      drop_labels: key(list(someText), [], 'Labels to leave out; series that become equal are joined.'),
    }),
    ebpf_enhanced: key(boolean, true, 'Adds metrics that only eBPF can give.'),
    timeout: key(duration(), 10_000, 'Longest time that a scrape may take.'),
    collector_interval: key(
      duration({ min: 0 }),
      0,
      'Time between two readings in the background that answer scrapes; 0 reads at each scrape.',
    ),
    max_procs: key(integer({ min: 1, max: 64 }), 1, 'Collectors that may wait for input at once.'),
    otlp: branch('The same metrics over OTLP, with names of the semantic conventions.', {
      enabled: key(boolean, true, 'Exports host metrics.'),
      interval: key(duration({ min: 1000 }), 15_000, 'Time between two exports.'),
    }),
  },
  { built: false },
)
