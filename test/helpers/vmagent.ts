// vmagent of Debian's package victoria-metrics: scrapes, and writes by remote write.
import { debianProgram, withoutProgram } from './debian-program.ts'

const found = debianProgram({ package: 'victoria-metrics', path: 'usr/bin/vmagent' })

export const vmagentProgram = found ?? ''
export const withoutVmagent: string | false = withoutProgram(found, 'victoria-metrics')

/** Its command line. `config` has the form of Prometheus' `scrape_configs`; `directory` is empty and its own. */
export function vmagentArguments(options: {
  readonly config: string
  readonly directory: string
  readonly port: number
  readonly remoteWrite: string
}): string[] {
  return [
    `-promscrape.config=${options.config}`,
    '-promscrape.maxScrapeSize=64MiB',
    `-remoteWrite.url=${options.remoteWrite}`,
    `-remoteWrite.tmpDataPath=${options.directory}`,
    `-httpListenAddr=127.0.0.1:${options.port}`,
  ]
}
