import { type Access, noAccess, type ScrapeJob, type SourceSettings } from '../scrape-job.ts'
import { annotationRules } from './annotations.ts'
import { usualLimits } from './defaults.ts'
import { staticGroup } from './discovery.ts'
import { rulesOf } from './relabel-rules.ts'
import type { ScrapingSettings } from './settings.ts'

// Jobs of svc's own keys, which have no job names.

type OwnTarget = ScrapingSettings['targets'][number]
type OwnAccess = Omit<ScrapingSettings['http_sd'][number], 'url' | 'refresh_interval'>

/** Jobs of `targets`, `file_sd`, `http_sd` and `kubernetes_sd`. `taken`: names already used. */
export function ownJobs(settings: ScrapingSettings, taken: ReadonlySet<string>): ScrapeJob[] {
  const names = new Set(taken)
  const nameFor = (wish: string): string => {
    let name = wish
    for (let i = 2; names.has(name); i++) name = `${wish}#${i}`
    names.add(name)
    return name
  }
  const job = (wish: string, own: Partial<ScrapeJob>): ScrapeJob => ({
    ...usualJob(settings),
    ...own,
    name: nameFor(wish),
  })
  const { file_sd: files, http_sd: lists, kubernetes_sd: clusters } = settings
  const listed: SourceSettings[] = lists.map(each => ({
    kind: 'http',
    url: each.url,
    refreshMs: each.refresh_interval,
    access: ownAccess(each),
  }))
  return [
    ...staticJobs(settings.targets, job),
    ...(files.length > 0
      ? [job('file_sd', { sources: [{ kind: 'file', patterns: files, refreshMs: 300_000 }] })]
      : []),
    ...(listed.length > 0 ? [job('http_sd', { sources: listed })] : []),
    ...clusters.map(({ role, namespaces, label_selector: labelSelector }) =>
      job(`kubernetes-${role}`, {
        relabel: rulesOf(annotationRules(role)),
        sources: [
          {
            kind: 'kubernetes',
            role,
            kubeconfigFile: '',
            namespaces,
            ownNamespace: false,
            labelSelector,
            fieldSelector: '',
            attachNodeMetadata: false,
          },
        ],
      }),
    ),
  ]
}

/** One job for all targets that differ only in address and labels. */
function staticJobs(
  targets: readonly OwnTarget[],
  job: (name: string, own: Partial<ScrapeJob>) => ScrapeJob,
): ScrapeJob[] {
  const alike = new Map<string, OwnTarget[]>()
  for (const target of targets) {
    const { address, labels, ...rest } = target
    const key = JSON.stringify(rest)
    const others = alike.get(key)
    if (others) others.push(target)
    else alike.set(key, [target])
  }
  return [...alike.values()].map(members => {
    const [{ name, scheme, metrics_path, params, ...access }] = members as [OwnTarget]
    const groups = members.map(({ address, labels }, i) =>
      staticGroup(i, [address], { job: name, ...labels }),
    )
    return job(name, {
      scheme,
      metricsPath: metrics_path,
      params: Object.fromEntries(Object.entries(params).map(([key, value]) => [key, [value]])),
      access: ownAccess(access),
      sources: [{ kind: 'static', groups }],
    })
  })
}

function usualJob(settings: ScrapingSettings): ScrapeJob {
  return {
    name: '',
    intervalMs: settings.scrape_interval,
    timeoutMs: Math.min(settings.scrape_timeout, settings.scrape_interval),
    scheme: 'http',
    metricsPath: '/metrics',
    params: {},
    honorLabels: settings.honor_labels,
    honorTimestamps: settings.honor_timestamps,
    trackTimestampsStaleness: false,
    compression: true,
    lenient: settings.lenient,
    limits: usualLimits(settings),
    access: noAccess,
    relabel: [],
    metricRelabel: rulesOf(settings.metric_relabel_configs),
    sources: [],
    externalLabels: new Map(Object.entries(settings.external_labels)),
  }
}

function ownAccess({ headers, basic_auth: basic, bearer_token: token, tls }: OwnAccess): Access {
  return {
    ...noAccess,
    headers,
    basic:
      basic.username + basic.password === ''
        ? undefined
        : { username: basic.username, password: { text: basic.password } },
    authorization: token === '' ? undefined : { type: 'Bearer', credentials: { text: token } },
    tls: {
      caFile: tls.ca_file,
      certFile: tls.cert_file,
      keyFile: tls.key_file,
      serverName: tls.server_name,
      insecureSkipVerify: tls.insecure_skip_verify,
    },
  }
}
