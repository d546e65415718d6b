import assert from 'node:assert/strict'
import type { Container, EntitySink } from '../../src/foundation/model/entity.ts'

/** Keeps what a source tells of containers. */
export class ReportedContainers implements EntitySink {
  /** Those that are there. */
  readonly present = new Map<string, Container>()
  /** The last that was told of each. */
  readonly last = new Map<string, Container>()
  /** How often a container was told of, the same or another. */
  times = 0

  container(container: Container): void {
    this.times++
    this.present.set(container.id, container)
    this.last.set(container.id, container)
  }

  containerGone(id: string): void {
    assert.ok(this.present.delete(id), 'only what is there can go')
  }

  named(name: string): Container | undefined {
    return [...this.present.values()].find(container => container.name === name)
  }

  pod(): void {}
  podGone(): void {}
  cloud(): void {}
  cluster(): void {}
}
