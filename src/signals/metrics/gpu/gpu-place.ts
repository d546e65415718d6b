import { Attributes, type AttributeValue } from '../../../foundation/model/attributes.ts'
import type { NvmlDevice } from '../../../kernel/native.ts'

/** Attribute that distinguishes points of one GPU and metric: one object per value. */
export interface Extra {
  readonly key: string
  readonly value: string
}

/** Attributes, created once, of a GPU or of a part that is used as a separate GPU. */
export class GpuPlace {
  readonly id: string
  readonly #own: Readonly<Record<string, AttributeValue>>
  readonly #sets = new Map<Extra | undefined, Attributes>()
  readonly #instances = new Map<string, GpuPlace>()
  #brief: GpuPlace | undefined

  constructor(own: Readonly<Record<string, AttributeValue>>) {
    this.#own = own
    this.id = String(own['hw.id'])
  }

  /**
   * A GPU by index. All of its metrics, temperature and fans included, have the same `hw.id`, so that grouping by it
   * finds everything.
   */
  static of(index: number, { uuid, name, serial }: NvmlDevice, driver: string): GpuPlace {
    return new GpuPlace({
      'hw.id': uuid,
      'hw.type': 'gpu',
      'hw.name': `GPU ${index}`,
      'hw.vendor': 'NVIDIA',
      ...(name === '' ? {} : { 'hw.model': name }),
      ...(serial === '' ? {} : { 'hw.serial_number': serial }),
      ...(driver === '' ? {} : { 'hw.driver_version': driver }),
    })
  }

  /** Its attributes with an extra one: the same object for the same extra. */
  with(extra?: Extra): Attributes {
    let set = this.#sets.get(extra)
    if (set === undefined) {
      set = Attributes.of(extra === undefined ? this.#own : { ...this.#own, [extra.key]: extra.value })
      this.#sets.set(extra, set)
    }
    return set
  }

  /** With fewer attributes: those that distinguish the GPUs of one process. */
  get brief(): GpuPlace {
    this.#brief ??= new GpuPlace(
      Object.fromEntries(
        Object.entries(this.#own).filter(
          ([key]) => key !== 'hw.serial_number' && key !== 'hw.driver_version',
        ),
      ),
    )
    return this.#brief
  }

  /** An instance of the GPU. Its memory also counts for the whole GPU. */
  instance({ uuid, name, gpuInstance }: NvmlDevice['instances'][number]): GpuPlace {
    let place = this.#instances.get(uuid)
    if (place === undefined) {
      // Instances can be recreated at any time.
      if (this.#instances.size >= mostInstances) this.#instances.clear()
      place = new GpuPlace({
        ...this.#own,
        'hw.id': uuid,
        'hw.parent': this.id,
        'hw.name': `${this.#own['hw.name']} MIG ${gpuInstance}`,
        ...(name === '' ? {} : { 'hw.model': name }),
      })
      this.#instances.set(uuid, place)
    }
    return place
  }
}

/** All attributes of a GPU or an instance. */
export const gpuAttributes: readonly string[] = [
  'hw.id',
  'hw.type',
  'hw.name',
  'hw.vendor',
  'hw.model',
  'hw.parent',
  'hw.serial_number',
  'hw.driver_version',
]

const mostInstances = 64
