import type { Container } from '../../src/foundation/model/entity.ts'

/** A container of which nothing is known but what a test says. */
export function containerOf(parts: Partial<Container> & Pick<Container, 'id'>): Container {
  return {
    runtime: 'docker',
    name: '',
    image: '',
    imageId: '',
    labels: new Map(),
    state: 'running',
    health: '',
    pid: 0,
    podUid: '',
    podContainer: '',
    logPath: '',
    ...parts,
  }
}
