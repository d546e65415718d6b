import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import { matches, type SelectionRules } from '../../identity/entities/selection.ts'
import type { Capture } from '../../signals/capture/capture.ts'
import type { TlsProbes } from '../../signals/capture/tls/tls-probes.ts'

const hint = 'run Linux 5.10 or newer with BTF, or set agent.ebpf.network.tls: false'

/** A part of tracing that works only in part. */
export interface TracingLimit {
  readonly subsystem: 'processes' | 'tls'
  readonly reason: string
  readonly hint: string
}

/**
 * Attaches the reader of TLS traffic, or returns why the kernel does not allow it, and the hint. Skips what rules
 * exclude.
 */
export function readInsideTls(
  capture: Pick<Capture, 'tls'>,
  { exclude }: Pick<SelectionRules, 'exclude'>,
  log: Logger,
): { readonly probes?: TlsProbes; readonly limit?: TracingLimit } {
  const denied = (path: string) =>
    exclude.some(({ executable }) => executable !== '' && matches(executable, path))
  try {
    const probes = capture.tls({ log, denied })
    void probes.start()
    return { probes }
  } catch (error) {
    return {
      limit: { subsystem: 'tls', reason: `TLS traffic is not decoded: ${errorText(error)}`, hint },
    }
  }
}
