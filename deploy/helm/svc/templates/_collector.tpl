{{- define "svc.collector.ports" -}}
{{- $facts := include "svc.facts" (index . 0) | fromYaml -}}
{{- $config := index . 1 -}}
{{- if include "svc.on" (list $config "self_telemetry") }}
- {name: management, protocol: TCP, containerPort: {{ (include "svc.listen" (list $config "self_telemetry.listen" $facts.listen.management) | fromJson).port }}}
{{- end }}
{{- end -}}

{{- /* 65532 is the user svc of the image; its group lets it write to the volume. OpenShift assigns both, and rejects others. */ -}}
{{- define "svc.collector.podSecurityContext" -}}
runAsNonRoot: true
{{- if not (include "svc.isOpenShift" .) }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
{{- end }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "svc.collector.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "svc.collector.env" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: SVC_INSTANCE_ID
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- with .Values.collector.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "svc.collector.mounts" -}}
{{- $facts := include "svc.facts" . | fromYaml -}}
- {name: config, mountPath: {{ $facts.configDirectory }}, readOnly: true}
{{- if .Values.existingSecret }}
- {name: secret, mountPath: {{ $facts.configDirectory }}-secret, readOnly: true}
{{- end }}
{{- include "svc.auth.mount" (list . (include "svc.collector.config" . | fromYaml)) }}
- {name: state, mountPath: {{ $facts.stateDirectory }}}
- {name: run, mountPath: {{ $facts.runDirectory }}}
{{- with .Values.collector.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "svc.collector.volumes" -}}
- {name: config, configMap: {name: {{ include "svc.collector.fullname" . }}}}
{{- with .Values.existingSecret }}
- {name: secret, secret: {secretName: {{ . }}}}
{{- end }}
{{- include "svc.auth.volume" (list . (include "svc.collector.config" . | fromYaml)) }}
- {name: run, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
{{- with .Values.collector.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "svc.collector.placement" -}}
{{- $collector := .Values.collector -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $collector.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
nodeSelector:
  kubernetes.io/os: linux
  {{- with $collector.nodeSelector }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $collector.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  {{- if $collector.affinity }}
  {{- toYaml $collector.affinity | nindent 2 }}
  {{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "svc.selector" (list . "collector") | nindent 14 }}
  {{- end }}
{{- end -}}
