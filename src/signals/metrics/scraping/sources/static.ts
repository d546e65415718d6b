import type { SourceKind } from '../source.ts'
import { ToldGroups } from './_told-groups.ts'

/** Targets listed in the configuration (`static_configs`, `targets`). */
export const staticSource: SourceKind<'static'> = {
  kind: 'static',
  open({ groups }, options) {
    const told = new ToldGroups('static', options)
    return {
      start() {
        told.put('', groups)
        told.known()
      },
      stop: () => told.close(),
      get state() {
        return told.state
      },
    }
  },
}
