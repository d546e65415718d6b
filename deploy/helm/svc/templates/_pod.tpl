{{- /* (list $ config hostNetwork): probes of a container. Empty if the management API is off. */ -}}
{{- /* Ready means that it runs: /readyz also checks whether receivers answer, and would delay a rollout for them. */ -}}
{{- define "svc.probes" -}}
{{- $facts := include "svc.facts" (index . 0) | fromYaml -}}
{{- $config := index . 1 -}}
{{- if include "svc.on" (list $config "self_telemetry") -}}
{{- $listen := include "svc.listen" (list $config "self_telemetry.listen" $facts.listen.management) | fromJson -}}
{{- if and $listen.isLocal (not (index . 2)) -}}
{{- fail "self_telemetry.listen is an address inside the pod, but the kubelet connects from outside: write \":PORT\", or set agent.hostNetwork=true" -}}
{{- end -}}
{{- $tls := eq (toString (include "svc.at" (list $config "self_telemetry.tls.enabled") | fromJson).v) "true" -}}
{{- $mutual := and $tls (include "svc.at" (list $config "self_telemetry.tls.client_ca_file") | fromJson).v -}}
{{- $http := dict "port" "management" -}}
{{- if $listen.isLocal -}}{{- $_ := set $http "host" (trimAll "[]" $listen.host) -}}{{- end -}}
{{- if $tls -}}{{- $_ := set $http "scheme" "HTTPS" -}}{{- end -}}
{{- $live := dict "httpGet" (merge (dict "path" $facts.live) $http) -}}
{{- $healthy := dict "httpGet" (merge (dict "path" $facts.healthy) $http) -}}
{{- if $mutual -}}
{{- /* The kubelet presents no certificate. */ -}}
{{- $live = dict "tcpSocket" (omit $http "scheme") -}}{{- $healthy = $live -}}
{{- end -}}
startupProbe:
  {{- toYaml $healthy | nindent 2 }}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  {{- toYaml $live | nindent 2 }}
  periodSeconds: 15
  timeoutSeconds: 5
  failureThreshold: 4
readinessProbe:
  {{- toYaml $healthy | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: 5
{{- end -}}
{{- end -}}

{{- define "svc.agent.ports" -}}
{{- $facts := include "svc.facts" (index . 0) | fromYaml -}}
{{- $config := index . 1 -}}
{{- if include "svc.on" (list $config "self_telemetry") }}
- {name: management, protocol: TCP, containerPort: {{ (include "svc.listen" (list $config "self_telemetry.listen" $facts.listen.management) | fromJson).port }}}
{{- end }}
{{- if include "svc.on" (list $config "agent.nodeexporter") }}
- {name: metrics, protocol: TCP, containerPort: {{ (include "svc.listen" (list $config "agent.nodeexporter.listen_address" $facts.listen.metrics) | fromJson).port }}}
{{- end }}
{{- end -}}

{{- /* Capabilities for the enabled features, from the table that `svc doctor` checks. */ -}}
{{- define "svc.agent.capabilities" -}}
{{- $config := index . 1 -}}
{{- $names := (index . 0).Values.agent.extraCapabilities -}}
{{- range $feature, $capabilities := (include "svc.facts" (index . 0) | fromYaml).capabilities -}}
{{- if or (eq $feature "") (include "svc.on" (list $config $feature)) -}}
{{- $names = concat $names $capabilities -}}
{{- end -}}
{{- end -}}
{{- $names | uniq | sortAlpha | toJson -}}
{{- end -}}

{{- define "svc.agent.securityContext" -}}
{{- $values := (index . 0).Values -}}
runAsUser: 0
runAsNonRoot: false
readOnlyRootFilesystem: true
{{- if $values.privileged }}
privileged: true
{{- else }}
{{- $names := include "svc.agent.capabilities" . }}
privileged: false
allowPrivilegeEscalation: {{ has "SYS_ADMIN" ($names | fromJsonArray) }}
capabilities:
  drop: [ALL]
  add: {{ $names }}
{{- end }}
seccompProfile: {type: {{ include "svc.agent.seccompProfile" (index . 0) }}}
{{- if include "svc.hasAppArmorField" (index . 0) }}
appArmorProfile: {type: Unconfined}
{{- end }}
{{- with $values.agent.seLinuxType }}
seLinuxOptions: {type: {{ . }}}
{{- end }}
{{- end -}}

{{- /* From Kubernetes 1.36 on even the oldest runtimes allow bpf and perf_event_open with the capabilities. */ -}}
{{- define "svc.agent.seccompProfile" -}}
{{- $certain := ternary "RuntimeDefault" "Unconfined" (semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version) -}}
{{- .Values.agent.seccompProfile | default $certain -}}
{{- end -}}

{{- define "svc.hasAppArmorField" -}}
{{- if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version -}}true{{- end -}}
{{- end -}}

{{- /* Before Kubernetes 1.30 a container's profile is an annotation of its pod. (list $ container). */ -}}
{{- define "svc.appArmorAnnotation" -}}
{{- if not (include "svc.hasAppArmorField" (index . 0)) -}}
container.apparmor.security.beta.kubernetes.io/{{ index . 1 }}: unconfined
{{- end -}}
{{- end -}}

{{- define "svc.agent.env" -}}
- name: NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: SVC_INSTANCE_ID
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
{{- with .Values.agent.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "svc.agent.mounts" -}}
{{- $root := index . 0 -}}{{- $config := index . 1 -}}
{{- $facts := include "svc.facts" $root | fromYaml -}}
- {name: config, mountPath: {{ $facts.configDirectory }}, readOnly: true}
{{- if $root.Values.existingSecret }}
- {name: secret, mountPath: {{ $facts.configDirectory }}-secret, readOnly: true}
{{- end }}
{{- include "svc.auth.mount" . }}
- {name: host, mountPath: {{ $facts.hostMount }}, readOnly: true, mountPropagation: HostToContainer}
- {name: sys, mountPath: /sys, readOnly: true}
{{- if include "svc.on" (list $config "agent.logs") }}
- {name: logs, mountPath: /var/log, readOnly: true}
{{- if $root.Values.agent.dockerLogs }}
- {name: docker, mountPath: {{ first $facts.logDirectories }}, readOnly: true}
{{- end }}
{{- end }}
- {name: state, mountPath: {{ $facts.stateDirectory }}}
- {name: run, mountPath: {{ $facts.runDirectory }}}
{{- with $root.Values.agent.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* (list $ config isTest): a test has its own state directory, because the agent's is locked. */ -}}
{{- define "svc.agent.volumes" -}}
{{- $root := index . 0 -}}{{- $config := index . 1 -}}
{{- $facts := include "svc.facts" $root | fromYaml -}}
- {name: config, configMap: {name: {{ include "svc.fullname" $root }}}}
{{- with $root.Values.existingSecret }}
- {name: secret, secret: {secretName: {{ . }}}}
{{- end }}
{{- include "svc.auth.volume" . }}
- {name: host, hostPath: {path: /}}
- {name: sys, hostPath: {path: /sys}}
{{- if include "svc.on" (list $config "agent.logs") }}
- {name: logs, hostPath: {path: /var/log}}
{{- if $root.Values.agent.dockerLogs }}
- {name: docker, hostPath: {path: {{ first $facts.logDirectories }}}}
{{- end }}
{{- end }}
{{- if index . 2 }}
- {name: state, emptyDir: {}}
{{- else }}
- {name: state, hostPath: {path: {{ $root.Values.agent.stateHostPath }}, type: DirectoryOrCreate}}
{{- end }}
- {name: run, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
{{- with $root.Values.agent.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* (list $ config): rules for the queries to the API server that find targets. */ -}}
{{- define "svc.scrapeRules" -}}
{{- $roles := (include "svc.facts" (index . 0) | fromYaml).roles -}}
{{- $prometheus := (include "svc.at" (list (index . 1) "collectors.prometheus") | fromJson).v -}}
{{- $wanted := list -}}
{{- if kindIs "map" $prometheus -}}
{{- $sources := get $prometheus "kubernetes_sd" | default list -}}
{{- range get $prometheus "scrape_configs" | default list -}}
{{- $sources = concat $sources (get . "kubernetes_sd_configs" | default list) -}}
{{- end -}}
{{- range $sources -}}
{{- $wanted = concat $wanted (get $roles (get . "role" | default "pod" | toString) | default list) -}}
{{- if dig "attach_metadata" "node" false . -}}{{- $wanted = append $wanted "/nodes" -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $groups := dict -}}
{{- range $wanted | uniq | sortAlpha -}}
{{- $parts := splitList "/" . -}}
{{- $_ := set $groups (first $parts) (append (get $groups (first $parts) | default list) (last $parts)) -}}
{{- end -}}
{{- range $group, $resources := $groups }}
- {apiGroups: [{{ quote $group }}], resources: {{ toJson $resources }}, verbs: [list, watch]}
{{- end }}
{{- end -}}

{{- /* Nodes for the agent's pods. Fargate and virtual kubelets have no host to observe. */ -}}
{{- define "svc.agent.placement" -}}
{{- $agent := .Values.agent -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $agent.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $agent.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
nodeSelector:
  kubernetes.io/os: linux
  {{- with $agent.nodeSelector }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $agent.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  {{- if $agent.affinity }}
  {{- toYaml $agent.affinity | nindent 2 }}
  {{- else }}
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            - {key: eks.amazonaws.com/compute-type, operator: NotIn, values: [fargate]}
            - {key: type, operator: NotIn, values: [virtual-kubelet]}
  {{- end }}
{{- end -}}

{{- /* Queries of discovery: the node's pods, services, owners of pods, and the uid of kube-system, which is the cluster's. */ -}}
{{- define "svc.discoveryRules" -}}
- {apiGroups: [""], resources: [pods, services], verbs: [list, watch]}
- {apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}
- {apiGroups: [apps], resources: [replicasets], verbs: [get]}
- {apiGroups: [batch], resources: [jobs], verbs: [get]}
{{- end -}}
