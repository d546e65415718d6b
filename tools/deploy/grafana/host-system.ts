// Clock, kernel, sensors and services of a host.
import type { Row } from './dashboard.ts'
import { lines } from './panel-kinds.ts'

const timesync: Row = {
  title: 'System Timesync',
  folded: true,
  panels: [
    lines('Time Synchronized Drift', 'Offset of the clock from its source, and the maximum error.', 's', {
      Offset: 'node_timex_offset_seconds{HOST}',
      'Estimated error': 'node_timex_estimated_error_seconds{HOST}',
      'Maximum error': 'node_timex_maxerror_seconds{HOST}',
    }),
    lines('Time Synchronized Status', '1 if the clock is synchronised.', 'short', {
      Synchronized: 'node_timex_sync_status{HOST}',
      'Frequency adjustment': 'node_timex_frequency_adjustment_ratio{HOST}',
    }),
    lines('Time PLL Adjust', 'Time constant of the loop that adjusts the clock.', 'short', {
      'Time constant': 'node_timex_loop_time_constant{HOST}',
    }),
    lines('Time Misc', 'Length of a clock tick, and the offset of TAI from UTC.', 's', {
      Tick: 'node_timex_tick_seconds{HOST}',
      'TAI offset': 'node_timex_tai_offset_seconds{HOST}',
    }),
  ],
}

const misc: Row = {
  title: 'System Misc',
  folded: true,
  panels: [
    lines(
      'Context Switches / Interrupts',
      'Context switches and interrupts.',
      'ops',
      {
        'Context switches': 'rate(node_context_switches_total{HOST}[RATE])',
        Interrupts: 'rate(node_intr_total{HOST}[RATE])',
      },
      { min: 0 },
    ),
    lines(
      'System Load',
      'Running or waiting tasks, averaged over 1, 5 and 15 minutes.',
      'short',
      {
        '1m': 'node_load1{HOST}',
        '5m': 'node_load5{HOST}',
        '15m': 'node_load15{HOST}',
      },
      { min: 0 },
    ),
    lines('CPU Frequency', 'Clock frequency of each CPU.', 'hertz', {
      'CPU {{cpu}}': 'node_cpu_scaling_frequency_hertz{HOST}',
    }),
    lines('Schedule timeslices executed by each CPU', 'Time slices of tasks on each CPU.', 'ops', {
      'CPU {{cpu}}': 'rate(node_schedstat_timeslices_total{HOST}[RATE])',
    }),
    lines(
      'Entropy',
      'Available entropy of the kernel, in bits.',
      'short',
      { Available: 'node_entropy_available_bits{HOST}' },
      { min: 0 },
    ),
    lines(
      'File Descriptors',
      'Open files of all processes, and their limit.',
      'short',
      {
        Open: 'node_filefd_allocated{HOST}',
        Limit: 'node_filefd_maximum{HOST}',
      },
      { min: 0 },
    ),
  ],
}

const hardware: Row = {
  title: 'Hardware Misc',
  folded: true,
  panels: [
    lines('Hardware temperature monitor', 'Temperatures by chip and sensor.', 'celsius', {
      '{{chip}} {{sensor}}': 'node_hwmon_temp_celsius{HOST}',
    }),
    lines(
      'Throttle cooling device',
      'How much each device is throttled for cooling.',
      'short',
      { '{{name}} {{type}}': 'node_cooling_device_cur_state{HOST}' },
      { min: 0 },
    ),
    lines(
      'Power supply',
      '1 if a power supply is online.',
      'short',
      { '{{power_supply}}': 'node_power_supply_online{HOST}' },
      { min: 0, max: 1 },
    ),
    lines(
      'Memory errors',
      'Corrected and uncorrected memory errors (EDAC).',
      'short',
      {
        'Corrected {{controller}}': 'increase(node_edac_correctable_errors_total{HOST}[RATE])',
        'Uncorrected {{controller}}': 'increase(node_edac_uncorrectable_errors_total{HOST}[RATE])',
      },
      { min: 0 },
    ),
  ],
}

const systemd: Row = {
  title: 'Systemd',
  folded: true,
  panels: [
    lines(
      'Systemd Units State',
      'Units by state. Needs the collector systemd.',
      'short',
      { '{{state}}': 'node_systemd_units{HOST}' },
      { min: 0 },
    ),
    lines(
      'Systemd Failed Units',
      'Failed units, by name. Needs the collector systemd.',
      'short',
      { '{{name}}': 'node_systemd_unit_state{state="failed",HOST} == 1' },
      { min: 0 },
    ),
    lines(
      'Systemd Sockets Current',
      'Current connections to sockets of systemd. Needs the collector systemd.',
      'short',
      { '{{name}}': 'node_systemd_socket_current_connections{HOST}' },
      { min: 0 },
    ),
    lines(
      'Systemd Sockets Accepted',
      'Connections accepted by sockets of systemd. Needs the collector systemd.',
      'ops',
      { '{{name}}': 'rate(node_systemd_socket_accepted_connections_total{HOST}[RATE])' },
      { min: 0 },
    ),
  ],
}

export const systemRows: readonly Row[] = [timesync, misc, hardware, systemd]
