import { setImmediate as nextTurn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { ByteRoom } from '../../foundation/lib/byte-room.ts'
import type { Container, EntitySink } from '../../foundation/model/entity.ts'
import { entityBytes } from '../../foundation/model/entity-bytes.ts'
import { ContainerFiles } from '../../identity/discovery/container-files/container-files.ts'

export interface ContainerLookupOptions {
  /** Where the host's root is mounted. */
  readonly rootfs: string
  readonly sink: Pick<EntitySink, 'container' | 'containerGone'>
  /** Memory for containers that are checked again. */
  readonly room: ByteRoom
  /** Whether a runtime reports this container, including its end. */
  readonly isFollowed: (id: string) => boolean
  /** Interval of checking the files of containers that no runtime reports. */
  readonly intervalMs: () => number
}

/** Maximum number of such containers: as many as are known. */
const maxFound = 16_384

/** Finds containers by their files, and polls those for changes and removal, because files send no events. */
export class ContainerLookup {
  readonly files: ContainerFiles
  readonly #options: ContainerLookupOptions
  /** As last read. */
  readonly #found = new Map<string, Container>()
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(options: ContainerLookupOptions) {
    this.#options = options
    this.files = new ContainerFiles({ rootfs: options.rootfs })
  }

  /** Starts polling. */
  start(): void {
    const again = () => void this.#lookAgain().then(() => this.#stopped || this.start())
    this.#timer = setTimeout(again, this.#options.intervalMs()).unref()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  /** The container with this ID; the caller reports it to the sink. */
  find(id: string): Container | undefined {
    const container = this.files.find(id)
    if (container !== undefined && this.#found.size < maxFound) this.#keep(id, container)
    return container
  }

  #keep(id: string, container: Container): void {
    if (this.#options.room.change(entityBytes(this.#found.get(id)), entityBytes(container)))
      this.#found.set(id, container)
  }

  /** Reports all found containers as gone. */
  clear(): void {
    const { isFollowed, room, sink } = this.#options
    for (const [id, container] of this.#found) {
      room.give(entityBytes(container))
      if (!isFollowed(id)) sink.containerGone(id)
    }
    this.#found.clear()
  }

  async #lookAgain(): Promise<void> {
    for (const id of this.#found.keys()) {
      this.#lookAt(id)
      await nextTurn(undefined, { ref: false })
      if (this.#stopped) return
    }
  }

  #lookAt(id: string): void {
    const { sink, isFollowed, room } = this.#options
    const container = isFollowed(id) ? undefined : this.files.find(id)
    if (container === undefined) {
      room.give(entityBytes(this.#found.get(id)))
      this.#found.delete(id)
      if (!isFollowed(id)) sink.containerGone(id)
    } else if (!isDeepStrictEqual(container, this.#found.get(id))) {
      this.#keep(id, container)
      sink.container(container)
    }
  }
}
