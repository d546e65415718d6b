import type { SourceSettings } from '../scrape-job.ts'
import type { SourceKind, SourceOptions, TargetSource } from '../source.ts'
import { dnsSource } from './dns.ts'
import { dockerSource } from './docker.ts'
import { fileSource } from './file.ts'
import { httpSource } from './http.ts'
import { kubernetesSource } from './kubernetes/kubernetes.ts'
import { staticSource } from './static.ts'

/** Kinds of sources. */
const kinds: { readonly [Kind in SourceSettings['kind']]: SourceKind<Kind> } = {
  static: staticSource,
  file: fileSource,
  http: httpSource,
  dns: dnsSource,
  docker: dockerSource,
  kubernetes: kubernetesSource,
}

/** A configured source. Nothing happens before it is started. */
export function openSource(settings: SourceSettings, options: SourceOptions): TargetSource {
  const kind: SourceKind = kinds[settings.kind] as SourceKind
  return kind.open(settings, options)
}
