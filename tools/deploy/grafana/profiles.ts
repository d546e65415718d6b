// Flame graphs of svc's samples, stored by Pyroscope, and the cost of sampling.
import { agentVariables } from './agent.ts'
import { type Dashboard, type Row, sourceVariable } from './dashboard.ts'
import { type Panel, panel } from './panel.ts'
import { lines } from './panel-kinds.ts'

const pyroscope = { type: 'grafana-pyroscope-datasource', uid: `\${profiles}` }

/** Values from Pyroscope: kinds of profiles, or values of a label. */
function profileVariable(name: string, label: string, query: object): object {
  return {
    type: 'query',
    name,
    label,
    datasource: pyroscope,
    definition: '',
    query: { refId: 'ProfileVariable', ...query },
    refresh: 2,
    sort: 1,
    regex: '',
    hide: 0,
    multi: false,
    includeAll: false,
    current: {},
    options: [],
  }
}

function profilePanel(
  type: string,
  title: string,
  description: string,
  queryType: string,
  height: number,
): Panel {
  const query = {
    profileTypeId: '$type',
    labelSelector: '{service_name="$service"}',
    groupBy: [],
    spanSelector: [],
  }
  const targets = [{ refId: 'A', datasource: pyroscope, queryType, ...query }]
  const fieldConfig = { defaults: { unit: 'short', custom: {} }, overrides: [] }
  return panel(
    type,
    title,
    description,
    { width: 24, height },
    {},
    { datasource: pyroscope, targets, fieldConfig },
  )
}

const flames: Row = {
  title: 'Profiles',
  panels: [
    profilePanel(
      'timeseries',
      'Over time',
      'The total value: CPU time, memory or waiting, depending on the type.',
      'metrics',
      7,
    ),
    profilePanel(
      'flamegraph',
      'Flame graph',
      'The width of a frame is its share. A frame is on top of its caller.',
      'profile',
      20,
    ),
  ],
}

const rate = (name: string, by: string) => `sum by (${by}) (rate(svc_profiling_${name}{AGENT}[RATE]))`

const cost: Row = {
  title: 'Coverage and cost of sampling',
  panels: [
    lines(
      'CPU time in samples',
      'Busy and idle CPUs, as measured by the sampler.',
      'short',
      { '{{state}}': rate('cpu_seconds_total', 'state') },
      { stack: true, min: 0 },
    ),
    lines(
      'Samples and stacks',
      'Samples by kind, how their stacks ended, and losses.',
      'ops',
      { '{{event}}': rate('events_total', 'event') },
      { min: 0 },
    ),
    lines(
      'CPU of the agent',
      'CPUs used by the agent, for profiles and everything else.',
      'short',
      { '{{instance}}': 'rate(svc_process_cpu_seconds_total{AGENT}[RATE])' },
      { min: 0, decimals: 3 },
    ),
    lines(
      'Memory for profiles',
      'Kernel maps, including unwind tables, and symbols.',
      'bytes',
      {
        'maps {{instance}}': 'svc_profiling_map_bytes{AGENT}',
        'unwind tables {{instance}}': 'svc_profiling_table_bytes{AGENT}',
        'symbols {{instance}}': 'svc_profiling_symbol_bytes{AGENT}',
      },
      { min: 0 },
    ),
    lines(
      'Frames with a name',
      'Share of the user-space frames that have a name.',
      'percentunit',
      {
        '{{instance}}': 'svc_profiling_frames_named{AGENT} / (svc_profiling_frames{AGENT} > 0)',
      },
      { min: 0, max: 1 },
    ),
    lines(
      'Profiles exported',
      'Profiles that a receiver accepted, and lost profiles.',
      'ops',
      {
        'exported {{endpoint}}': 'sum by (endpoint) (rate(svc_profiles_exported_total{AGENT}[RATE]))',
        'lost {{reason}}': 'sum by (reason) (rate(svc_profiles_dropped_total{AGENT}[RATE]))',
      },
      { min: 0 },
    ),
  ],
}

export const profiles: Dashboard = {
  uid: 'svc-profiles',
  title: 'svc / Profiles',
  description:
    'Flame graphs of all processes, from a Pyroscope that receives profiles over OTLP, and the cost of sampling.',
  variables: [
    sourceVariable('profiles', 'Profiles', 'grafana-pyroscope-datasource'),
    profileVariable('type', 'Type', { type: 'profileType' }),
    profileVariable('service', 'Service', {
      type: 'labelValue',
      profileTypeId: '$type',
      labelName: 'service_name',
    }),
    ...agentVariables,
  ],
  rows: [flames, cost],
}
