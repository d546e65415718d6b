// What telemetry is about, beside processes: containers, pods and the machine, as those tell that run them. Every value
// is replaced as a whole when anything of it changes, so that identity says whether it did.

/** A container, from its runtime or from the files that the runtime keeps of it. Texts that are not known are ''. */
export interface Container {
  /** As the runtime tells it: 64 hexadecimal digits. */
  readonly id: string
  /** `docker`, `podman`, `containerd`, `cri-o`. */
  readonly runtime: string
  /** Without the `/` that Docker puts before it. */
  readonly name: string
  /** As it was asked for: `registry.example.com/shop:1.2`. */
  readonly image: string
  /** `sha256:` and a digest. */
  readonly imageId: string
  readonly labels: ReadonlyMap<string, string>
  /** In the words of the runtime: `created`, `running`, `paused`, `exited`, …. */
  readonly state: string
  /** `starting`, `healthy` or `unhealthy`; '' where it has no check. */
  readonly health: string
  /** The first process of it, as the host numbers processes; 0: none, or not known. */
  readonly pid: number
  /** Of its pod; '' where it belongs to none. */
  readonly podUid: string
  /** What the pod calls it. */
  readonly podContainer: string
  /** Where the runtime writes what it says on its standard output, '' where it does so nowhere. */
  readonly logPath: string
}

/** Who made a pod, the nearest first: a ReplicaSet, then its Deployment. */
export interface Owner {
  /** `Deployment`, `ReplicaSet`, `StatefulSet`, `DaemonSet`, `Job`, `CronJob`, or any other. */
  readonly kind: string
  readonly name: string
  readonly uid: string
}

/** A pod of this node. */
export interface Pod {
  readonly uid: string
  readonly name: string
  readonly namespace: string
  readonly node: string
  /** Microseconds since the Unix epoch; 0: not started. */
  readonly startUs: number
  readonly addresses: readonly string[]
  /** Those that were asked for, and those that name a service. */
  readonly labels: ReadonlyMap<string, string>
  readonly annotations: ReadonlyMap<string, string>
  readonly owners: readonly Owner[]
  readonly containers: readonly PodContainer[]
}

export interface PodContainer {
  readonly name: string
  /** '' before it was made. */
  readonly id: string
  readonly image: string
  readonly restarts: number
}

/** The machine, as its cloud tells it. Texts that are not known are ''. */
export interface Cloud {
  /** `cloud.provider`: `aws`, `gcp`, `azure`, `alibaba_cloud`, `oracle_cloud`, `digitalocean`. */
  readonly provider: string
  /** `cloud.platform`: `aws_ec2`, …. */
  readonly platform: string
  readonly region: string
  readonly zone: string
  readonly account: string
  readonly resourceId: string
  readonly instanceId: string
  readonly instanceName: string
  readonly instanceType: string
  readonly imageId: string
}

/** Takes what sources find out. */
export interface EntitySink {
  /** A container that is new, or another value of one that is known. */
  container(container: Container): void
  /** It was removed; that it ended is told by its state. */
  containerGone(id: string): void
  pod(pod: Pod): void
  podGone(uid: string): void
  /** Undefined: there is none. */
  cloud(cloud: Cloud | undefined): void
  /** `k8s.cluster.uid` and `k8s.cluster.name`; '' where it is not known. */
  cluster(uid: string, name: string): void
}

/** How a source stands. */
export interface SourceState {
  /** It answers. */
  readonly connected: boolean
  /** Why not, in words; '' while all is well, or while nobody knows yet. */
  readonly reason: string
  /** What to do about it. */
  readonly hint: string
}
