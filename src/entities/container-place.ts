/** Where a process runs, as its control group tells. */
export interface ContainerPlace {
  /** 64 hexadecimal digits; '' outside of containers. */
  readonly id: string
  /** '' where the path does not tell. */
  readonly runtime: string
  /** '' outside of pods. */
  readonly podUid: string
}

export const noPlace: ContainerPlace = { id: '', runtime: '', podUid: '' }
