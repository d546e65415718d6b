// What the agent loads into the kernel, begun before its modules are compiled: verification takes as long as those.

import type { Config } from '../../config/index.ts'
import { dropBegun } from '../../kernel/load-ahead.ts'
import { loadNative, Unsupported } from '../../kernel/native.ts'
import { backends } from '../../signals/capture/index.ts'
import { beginNetwork } from '../../signals/capture/network.ts'
import { beginProcessEvents } from '../../signals/capture/process-events.ts'
import { beginCapture } from '../../signals/capture/socket-capture.ts'
import { beginStackObject } from '../../signals/capture/stack-object.ts'
import { captureOptions } from './capture-options.ts'
import { connections, type KernelPart, processEvents, profiles, traces, whyOff } from './kernel-parts.ts'

/** Begins the loads of enabled parts. Those of a kernel that supports none of them fail here, and are not used. */
export function beginLoads(config: Config): void {
  const native = loadNative()
  if (native instanceof Unsupported) return
  try {
    native.bumpMemlock()
  } catch {
    // As in `SocketCapture`.
  }
  const isOn = (part: KernelPart) => whyOff(part, config) === undefined
  const isSock = isOn(traces) && config.agent.ebpf.backend !== 'syscalls'
  // The longest first.
  const requests = isSock ? beginCapture(native, backends[0], captureOptions(config)) : undefined
  if (isOn(profiles)) beginStackObject(native, requests)
  if (isOn(connections)) beginNetwork(native)
  if (isOn(processEvents)) beginProcessEvents(native)
}

/** Unloads what no part needed. */
export function dropLoads(): void {
  const native = loadNative()
  if (!(native instanceof Unsupported)) dropBegun(native)
}
