{{- define "svc.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- /* 40 characters, to leave room for "-collector" and a hash of the controller. */ -}}
{{- define "svc.fullname" -}}
{{- $name := include "svc.name" . -}}
{{- $full := printf "%s-%s" .Release.Name $name -}}
{{- if contains $name .Release.Name -}}{{- $full = .Release.Name -}}{{- end -}}
{{- default $full .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "svc.collector.fullname" -}}
{{ include "svc.fullname" . }}-collector
{{- end -}}

{{- /* For a component: (list $ "agent"). */ -}}
{{- define "svc.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "svc.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- /* For pods, which a new chart version alone need not restart. */ -}}
{{- define "svc.podLabels" -}}
{{- $root := index . 0 -}}
{{ include "svc.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | replace "+" "_" | quote }}
{{- with $root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "svc.labels" -}}
{{- $root := index . 0 -}}
{{ include "svc.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with $root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "svc.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* (list $ "agent"): the created account, or the configured one. */ -}}
{{- define "svc.account" -}}
{{- $root := index . 0 -}}{{- $component := index . 1 -}}
{{- $named := (index $root.Values $component).serviceAccountName -}}
{{- if $root.Values.serviceAccount.create -}}
{{- if $named -}}
{{- fail (printf "%s.serviceAccountName names an existing account, but serviceAccount.create creates one: set serviceAccount.create=false, or leave the name out" $component) -}}
{{- end -}}
{{- ternary (include "svc.fullname" $root) (include "svc.collector.fullname" $root) (eq $component "agent") -}}
{{- else -}}
{{- default "default" $named -}}
{{- end -}}
{{- end -}}

{{- define "svc.isOpenShift" -}}
{{- if or .Values.openshift.enabled (.Capabilities.APIVersions.Has "security.openshift.io/v1/SecurityContextConstraints") -}}true{{- end -}}
{{- end -}}

{{- define "svc.checks" -}}
{{- $values := .Values -}}
{{- if not (or $values.agent.enabled $values.collector.enabled) -}}
{{- fail "nothing is enabled: set agent.enabled=true or collector.enabled=true" -}}
{{- end -}}
{{- if $values.agent.enabled -}}
{{- $elsewhere := "Run only the collector there: --set agent.enabled=false,collector.enabled=true." -}}
{{- if eq $values.platform "fargate" -}}
{{- fail (printf "the agent cannot run on Fargate, which has no DaemonSets, no host paths and no capabilities. %s" $elsewhere) -}}
{{- end -}}
{{- $isAutopilot := or (.Capabilities.APIVersions.Has "auto.gke.io/v1") (.Capabilities.APIVersions.Has "auto.gke.io/v1/AllowlistSynchronizer") -}}
{{- if or (eq $values.platform "autopilot") (and (eq $values.platform "") $isAutopilot) -}}
{{- fail (printf "the agent cannot run on GKE Autopilot, which rejects host paths, hostPID and capabilities. %s If the nodes are yours: --set platform=nodes." $elsewhere) -}}
{{- end -}}
{{- end -}}
{{- if and $values.collector.enabled (gt (int $values.collector.replicasPerTarget) (int $values.collector.replicas)) -}}
{{- fail "collector.replicasPerTarget is more than collector.replicas: there are not enough pods for a target" -}}
{{- end -}}
{{- end -}}
