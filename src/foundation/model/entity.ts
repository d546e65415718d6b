// The subjects of telemetry besides processes: containers, pods and the machine, as reported by their runtime, cluster
// or cloud. Values are immutable: any change replaces the whole object, so comparing identity detects it.

/** A container, from its runtime or from files that the runtime keeps about it. Unknown texts are ''. */
export interface Container {
  /** As reported by the runtime: 64 hexadecimal digits. */
  readonly id: string
  /** `docker`, `podman`, `containerd`, `cri-o`. */
  readonly runtime: string
  /** Without the `/` that Docker puts before it. */
  readonly name: string
  /** As requested: `registry.example.com/shop:1.2`. */
  readonly image: string
  /** `sha256:` and a digest. */
  readonly imageId: string
  readonly labels: ReadonlyMap<string, string>
  /** As the runtime names it: `created`, `running`, `paused`, `exited`, …. */
  readonly state: string
  /** `starting`, `healthy` or `unhealthy`; '' without a health check. */
  readonly health: string
  /** Its first process, in the host's pid namespace; 0: none, or unknown. */
  readonly pid: number
  /** UID of its pod; '' if it belongs to none. */
  readonly podUid: string
  /** Its name in the pod. */
  readonly podContainer: string
  /** Where the runtime writes its standard output, '' if nowhere. */
  readonly logPath: string
}

/** An owner of a pod, nearest first: a ReplicaSet, then its Deployment. */
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
  /** The configured labels, and those that name a service. */
  readonly labels: ReadonlyMap<string, string>
  readonly annotations: ReadonlyMap<string, string>
  readonly owners: readonly Owner[]
  readonly containers: readonly PodContainer[]
}

export interface PodContainer {
  readonly name: string
  /** '' before it is created. */
  readonly id: string
  readonly image: string
  readonly restarts: number
}

/** The machine, as reported by its cloud. Unknown texts are ''. */
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

/** Receives the results of sources. */
export interface EntitySink {
  /** A new container, or a new value of a known one. */
  container(container: Container): void
  /** It was removed. Its end is a `state` of the container instead. */
  containerGone(id: string): void
  pod(pod: Pod): void
  podGone(uid: string): void
  /** Undefined: no cloud. */
  cloud(cloud: Cloud | undefined): void
  /** `k8s.cluster.uid` and `k8s.cluster.name`; '' if unknown. */
  cluster(uid: string, name: string): void
}

/** State of a source. */
export interface SourceState {
  /** It responds. */
  readonly connected: boolean
  /** Why it is not connected; '' if all is well or the state is still unknown. */
  readonly reason: string
  readonly hint: string
}
