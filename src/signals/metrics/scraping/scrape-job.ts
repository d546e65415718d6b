// Settings of a compiled job: one of `scrape_configs`, or an entry of `targets`.

import type { TlsOptions } from '../../../foundation/lib/dialer.ts'
import type { RelabelRule } from './relabel.ts'

/** Authentication of requests to a target or to a source of targets. */
export interface Access {
  /** Header names as configured. */
  readonly headers: Readonly<Record<string, string>>
  readonly basic: { readonly username: string; readonly password: Secret } | undefined
  readonly authorization: { readonly type: string; readonly credentials: Secret } | undefined
  readonly tls: TlsOptions
  readonly followRedirects: boolean
  /** URL of an HTTP proxy; '' for none. */
  readonly proxyUrl: string
}

/** No authentication and no proxy. */
export const noAccess: Access = {
  headers: {},
  basic: undefined,
  authorization: undefined,
  tls: { caFile: '', certFile: '', keyFile: '', serverName: '', insecureSkipVerify: false },
  followRedirects: true,
  proxyUrl: '',
}

/** A secret from the configuration, or a file that is read for each request. '' for none. */
export type Secret = { readonly text: string } | { readonly file: string }

/** 0 for no limit. */
export interface ScrapeLimits {
  /** Maximum size of the decompressed body. */
  readonly bodyBytes: number
  readonly samples: number
  readonly labels: number
  readonly labelNameLength: number
  readonly labelValueLength: number
  readonly targets: number
}

/** Targets with common labels, as returned by every kind of discovery. */
export interface TargetGroup {
  /** Identifies the group within its source: a file and a number, a pod. */
  readonly source: string
  /** Labels of each target: `__address__`, and `__meta_...`. */
  readonly targets: readonly ReadonlyMap<string, string>[]
  readonly labels: ReadonlyMap<string, string>
}

/** Source of targets. Each kind is one file in `src/signals/metrics/scraping/sources`. */
export type SourceSettings =
  | { readonly kind: 'static'; readonly groups: readonly TargetGroup[] }
  | { readonly kind: 'file'; readonly patterns: readonly string[]; readonly refreshMs: number }
  | { readonly kind: 'http'; readonly url: string; readonly refreshMs: number; readonly access: Access }
  | {
      readonly kind: 'dns'
      readonly names: readonly string[]
      readonly type: 'SRV' | 'A' | 'AAAA' | 'MX' | 'NS'
      readonly port: number
      readonly refreshMs: number
    }
  | {
      readonly kind: 'docker'
      readonly host: string
      readonly port: number
      readonly hostNetworkingHost: string
      readonly refreshMs: number
    }
  | {
      readonly kind: 'kubernetes'
      readonly role: 'pod' | 'service' | 'endpoints' | 'endpointslice' | 'node' | 'ingress'
      /** '' for the defaults: the pod's own account, or the usual file. */
      readonly kubeconfigFile: string
      /** Empty for all. */
      readonly namespaces: readonly string[]
      readonly ownNamespace: boolean
      readonly labelSelector: string
      readonly fieldSelector: string
      readonly attachNodeMetadata: boolean
    }

export interface ScrapeJob {
  /** `job_name`, unique. */
  readonly name: string
  readonly intervalMs: number
  readonly timeoutMs: number
  readonly scheme: 'http' | 'https'
  readonly metricsPath: string
  readonly params: Readonly<Record<string, readonly string[]>>
  readonly honorLabels: boolean
  readonly honorTimestamps: boolean
  readonly trackTimestampsStaleness: boolean
  /** Whether gzip is requested. */
  readonly compression: boolean
  /** Whether unreadable lines are skipped instead of failing the scrape. */
  readonly lenient: boolean
  readonly limits: ScrapeLimits
  readonly access: Access
  readonly relabel: readonly RelabelRule[]
  readonly metricRelabel: readonly RelabelRule[]
  readonly sources: readonly SourceSettings[]
  /** Labels added to every series that lacks them (`external_labels`). */
  readonly externalLabels: ReadonlyMap<string, string>
}
