{{- /* (list to over): `over` into `to`, in place, lists and scalars as they are, false and 0 too; null removes a key. */ -}}
{{- define "svc.merge" -}}
{{- $to := index . 0 -}}
{{- range $key, $value := index . 1 -}}
{{- if and (kindIs "map" $value) (kindIs "map" (get $to $key)) -}}
{{- include "svc.merge" (list (get $to $key) $value) -}}
{{- else if kindIs "invalid" $value -}}
{{- $_ := unset $to $key -}}
{{- else -}}
{{- $_ := set $to $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* (list config "a.b.c"): {"v": the value}, or the value of a parent that is not a map; {} if there is none. */ -}}
{{- define "svc.at" -}}
{{- $at := index . 0 -}}
{{- $found := true -}}
{{- range splitList "." (index . 1) -}}
{{- if and $found (kindIs "map" $at) -}}
{{- if hasKey $at . -}}{{- $at = get $at . -}}{{- else -}}{{- $found = false -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $found -}}{{- dict "v" $at | toJson -}}{{- else -}}{}{{- end -}}
{{- end -}}

{{- /* (list config "agent.ebpf"): "true" unless it is switched off, as false or as {enabled: false}. */ -}}
{{- define "svc.on" -}}
{{- $found := (include "svc.at" . | fromJson).v -}}
{{- if kindIs "map" $found -}}{{- $found = get $found "enabled" -}}{{- end -}}
{{- if not (and (kindIs "bool" $found) (not $found)) -}}true{{- end -}}
{{- end -}}

{{- define "svc.auth.directory" -}}
{{ (include "svc.facts" . | fromYaml).configDirectory }}-auth
{{- end -}}

{{- /* The token in the configuration: a file, loaded again when the Secret changes. */ -}}
{{- define "svc.auth.token" -}}
{{ printf "${file:%s/token}" (include "svc.auth.directory" .) }}
{{- end -}}

{{- define "svc.auth.config" -}}
{{- if .Values.auth.enabled -}}
self_telemetry: {auth: {enabled: true, bearer_token: {{ include "svc.auth.token" . | quote }}}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{- /* (list $ config): the Secret with the required token; empty if it requires none, or another. */ -}}
{{- define "svc.auth.secret" -}}
{{- $root := index . 0 -}}{{- $config := index . 1 -}}
{{- $isOn := eq (toString (include "svc.at" (list $config "self_telemetry.auth.enabled") | fromJson).v) "true" -}}
{{- $token := (include "svc.at" (list $config "self_telemetry.auth.bearer_token") | fromJson).v | toString -}}
{{- if and $isOn (include "svc.on" (list $config "self_telemetry")) (eq $token (include "svc.auth.token" $root)) -}}
{{ $root.Values.auth.existingSecret | default (printf "%s-auth" (include "svc.fullname" $root)) }}
{{- end -}}
{{- end -}}

{{- define "svc.auth.mount" -}}
{{- if include "svc.auth.secret" . }}
- {name: auth, mountPath: {{ include "svc.auth.directory" (index . 0) }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "svc.auth.volume" -}}
{{- with include "svc.auth.secret" . }}
- {name: auth, secret: {secretName: {{ . }}}}
{{- end }}
{{- end -}}

{{- define "svc.agent.config" -}}
{{- $facts := include "svc.facts" . | fromYaml -}}
{{- $config := deepCopy $facts.agentConfig -}}
{{- if not .Values.agent.hostNetwork -}}
{{- include "svc.merge" (list $config $facts.ownNetworkConfig) -}}
{{- end -}}
{{- include "svc.merge" (list $config (include "svc.auth.config" . | fromYaml)) -}}
{{- include "svc.merge" (list $config (deepCopy .Values.config)) -}}
{{- include "svc.merge" (list $config (deepCopy .Values.agent.config)) -}}
{{- $mode := (include "svc.at" (list $config "mode") | fromJson).v -}}
{{- if and $mode (ne (toString $mode) "agent") -}}
{{- fail "config.mode is not for this chart: the agent has mode agent; for a collector set collector.enabled=true" -}}
{{- end -}}
{{- if (include "svc.at" (list $config "collectors.prometheus.kubernetes_sd") | fromJson).v -}}
{{- fail "collectors.prometheus.kubernetes_sd in the agent would scrape every target from every node: write it below collector.config, and set collector.enabled=true" -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "svc.collector.config" -}}
{{- $config := include "svc.auth.config" . | fromYaml -}}
{{- include "svc.merge" (list $config (deepCopy .Values.config)) -}}
{{- include "svc.merge" (list $config (deepCopy .Values.collector.config)) -}}
{{- if not (include "svc.on" (list $config "collectors.prometheus")) -}}
{{- fail "collectors.prometheus is off, and a collector does nothing else: set collector.enabled=false, or write it below agent.config for the agent only" -}}
{{- end -}}
{{- if or (hasKey $config "mode") (ne "{}" (include "svc.at" (list $config "collectors.prometheus.shard"))) -}}
{{- fail "mode and collectors.prometheus.shard of the collector are set by the chart: set collector.replicas and collector.replicasPerTarget instead" -}}
{{- end -}}
{{- $shard := dict "index" -1 "count" (int .Values.collector.replicas) "replicas" (int .Values.collector.replicasPerTarget) -}}
{{- include "svc.merge" (list $config (dict "mode" "collector" "collectors" (dict "prometheus" (dict "shard" $shard)))) -}}
{{- toYaml $config -}}
{{- end -}}

{{- /* Digest of the settings that need a restart: these cause a rollout, and svc itself loads all others. */ -}}
{{- define "svc.restartDigest" -}}
{{- $config := index . 1 -}}
{{- $given := list -}}
{{- range (include "svc.facts" (index . 0) | fromYaml).restartKeys -}}
{{- $found := include "svc.at" (list $config .) -}}
{{- if ne $found "{}" -}}{{- $given = append $given (printf "%s=%s" . $found) -}}{{- end -}}
{{- end -}}
{{- join "\n" $given | sha256sum | trunc 16 -}}
{{- end -}}

{{- /* (list config key default): JSON of the listen address: `host`, '' for all addresses, `isLocal`, and `port`. */ -}}
{{- define "svc.listen" -}}
{{- $key := index . 1 -}}
{{- $address := (include "svc.at" (list (index . 0) $key) | fromJson).v | default (index . 2) | toString -}}
{{- $port := regexFind ":[0-9]+$" $address | trimPrefix ":" | int -}}
{{- if eq $port 0 -}}
{{- fail (printf "%s is %q, and the chart must know the port: write \":PORT\"" $key $address) -}}
{{- end -}}
{{- $host := regexReplaceAll ":[0-9]+$" $address "" -}}
{{- $isLocal := or (hasPrefix "127." $host) (eq "[::1]" $host) (eq "localhost" $host) -}}
{{- dict "host" $host "isLocal" $isLocal "port" $port | toJson -}}
{{- end -}}
