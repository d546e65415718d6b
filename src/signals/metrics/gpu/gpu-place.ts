import { Attributes, type AttributeValue } from '../../../foundation/model/attributes.ts'
import type { NvmlDevice } from '../../../kernel/native.ts'

/** An attribute that tells points of one GPU and metric apart: one object for each. */
export interface Extra {
  readonly key: string
  readonly value: string
}

/** A GPU, or a part of one that is used as a GPU of its own: its attributes, made once. */
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
   * A GPU by its index. There is one `hw.id` for all that is said of it, its temperature and its fan, too: whoever groups
   * by it finds everything.
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

  /** What belongs to this one only: the same object for the same attribute. */
  with(extra?: Extra): Attributes {
    let set = this.#sets.get(extra)
    if (set === undefined) {
      set = Attributes.of(extra === undefined ? this.#own : { ...this.#own, [extra.key]: extra.value })
      this.#sets.set(extra, set)
    }
    return set
  }

  /** With fewer attributes: what tells the GPUs of one process apart. */
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

  /** A part of it. Its memory is also counted as the whole one's. */
  instance({ uuid, name, gpuInstance }: NvmlDevice['instances'][number]): GpuPlace {
    let place = this.#instances.get(uuid)
    if (place === undefined) {
      // Instances are made anew at any time.
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

/** All attributes that a GPU, or an instance of one, is told by. */
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
