import type { TargetGroup } from '../../src/signals/metrics/scraping/scrape-job.ts'
import type { TargetSource } from '../../src/signals/metrics/scraping/source.ts'
import { until } from './program.ts'
import { silentLogger } from './silent-logger.ts'

/** Notes what a source of targets tells. */
export class ReportedTargets {
  groups: readonly TargetGroup[] = []
  /** How often something was told. */
  times = 0
  readonly options = {
    log: silentLogger,
    onGroups: (groups: readonly TargetGroup[]): void => {
      this.groups = groups
      this.times++
    },
  }

  /** Of each target the labels, those of its group included. */
  get targets(): Record<string, string>[] {
    return this.groups.flatMap(({ targets, labels }) =>
      targets.map(target => Object.fromEntries([...labels, ...target])),
    )
  }

  /** Their addresses in order. */
  get addresses(): string {
    return this.targets
      .map(target => target.__address__)
      .sort()
      .join()
  }

  at(address: string): Record<string, string> | undefined {
    return this.targets.find(target => target.__address__ === address)
  }

  has(addresses: string, source?: TargetSource): Promise<void> {
    return until(
      () => `there are ${addresses}, and not ${this.addresses}; ${JSON.stringify(source?.state)}`,
      20_000,
      () => this.times > 0 && this.addresses === addresses,
    )
  }
}

/** Waits until a source says that something is wrong. */
export function isAtFault(source: TargetSource, reason: RegExp): Promise<void> {
  return until(
    () => `it is wrong: ${JSON.stringify(source.state)} does not say ${reason}`,
    20_000,
    () => reason.test(source.state.reason),
  )
}
