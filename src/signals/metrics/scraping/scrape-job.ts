// What is scraped and how: one job of `scrape_configs`, or one entry of `targets`, compiled.

import type { TlsOptions } from '../../../foundation/lib/dialer.ts'
import type { RelabelRule } from './relabel.ts'

/** How requests to a target, or to a source of targets, prove who they are. */
export interface Access {
  /** Names as they were written. */
  readonly headers: Readonly<Record<string, string>>
  readonly basic: { readonly username: string; readonly password: Secret } | undefined
  readonly authorization: { readonly type: string; readonly credentials: Secret } | undefined
  readonly tls: TlsOptions
  readonly followRedirects: boolean
  /** URL of an HTTP proxy; '' for none. */
  readonly proxyUrl: string
}

/** Nothing is proved, and nobody is in between. */
export const noAccess: Access = {
  headers: {},
  basic: undefined,
  authorization: undefined,
  tls: { caFile: '', certFile: '', keyFile: '', serverName: '', insecureSkipVerify: false },
  followRedirects: true,
  proxyUrl: '',
}

/** A secret as it stands in the configuration, or a file that is read for each request. '' is none. */
export type Secret = { readonly text: string } | { readonly file: string }

/** 0: no limit. */
export interface ScrapeLimits {
  /** Of the body as it is after decompression. */
  readonly bodyBytes: number
  readonly samples: number
  readonly labels: number
  readonly labelNameLength: number
  readonly labelValueLength: number
  readonly targets: number
}

/** Targets with labels that they share, as every kind of discovery tells them. */
export interface TargetGroup {
  /** Names this group among those of its source: a file and number, a pod. */
  readonly source: string
  /** Values of `__address__`, and labels of single targets (`__meta_...`). */
  readonly targets: readonly ReadonlyMap<string, string>[]
  readonly labels: ReadonlyMap<string, string>
}

/** Where targets come from. Each kind is one file in `src/signals/metrics/scraping/sources`. */
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
      /** '' for the usual places: the pod's own account, or the usual file. */
      readonly kubeconfigFile: string
      /** Empty: all. */
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
  /** Asks for gzip. */
  readonly compression: boolean
  /** Leaves out lines that cannot be read instead of failing the scrape. */
  readonly lenient: boolean
  readonly limits: ScrapeLimits
  readonly access: Access
  readonly relabel: readonly RelabelRule[]
  readonly metricRelabel: readonly RelabelRule[]
  readonly sources: readonly SourceSettings[]
  /** Labels that every series gets unless it has them (`external_labels`). */
  readonly externalLabels: ReadonlyMap<string, string>
}
