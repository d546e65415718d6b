import type { SourceKind } from '../source.ts'
import { TargetGroupPublisher } from './_target-group-publisher.ts'

/** Targets listed in the configuration (`static_configs`, `targets`). */
export const staticSource: SourceKind<'static'> = {
  kind: 'static',
  open({ groups }, options) {
    const told = new TargetGroupPublisher('static', options)
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
