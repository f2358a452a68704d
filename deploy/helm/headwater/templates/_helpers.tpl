{{- define "headwater.selectorLabels" -}}
app.kubernetes.io/name: headwater
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "headwater.labels" -}}
{{ include "headwater.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "headwater.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- /* The environment of Go's garbage collector: it runs early, and more often when nine
tenths of the memory limit are used. extraEnv replaces either variable. */ -}}
{{- define "headwater.goMemory" -}}
{{- $set := list -}}
{{- range .Values.extraEnv }}{{ $set = append $set .name }}{{ end -}}
{{- $env := list -}}
{{- if not (has "GOGC" $set) }}{{ $env = append $env (dict "name" "GOGC" "value" "40") }}{{ end -}}
{{- $memory := ((.Values.resources).limits).memory | default "" -}}
{{- if kindIs "float64" $memory }}{{ $memory = int64 $memory }}{{ end -}}
{{- $number := regexFind "^[0-9.]+" (toString $memory) -}}
{{- $bytes := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $unit := get $bytes (trimPrefix $number (toString $memory)) -}}
{{- if and $number $unit (not (has "GOMEMLIMIT" $set)) -}}
{{- $limit := floor (divf (mulf (float64 $number) $unit 0.9) 1048576) | int64 -}}
{{- $env = append $env (dict "name" "GOMEMLIMIT" "value" (printf "%dMiB" $limit)) -}}
{{- end -}}
{{- with $env }}{{ toYaml . }}{{ end -}}
{{- end }}

{{- /* How Prometheus reads the metrics with metrics.auth; a list item's fields. */ -}}
{{- define "headwater.scrape" -}}
scheme: https
{{- if .Values.metrics.verifyTLS }}
tlsConfig:
  ca:
    secret: {name: {{ ((.Values.config.protect).certificates).secretName | default "headwater-webhook-tls" }}, key: ca.crt}
  serverName: headwater-webhook.{{ .Release.Namespace }}.svc
{{- else }}
tlsConfig: {insecureSkipVerify: true}
{{- end }}
{{- with .Values.metrics.authorization }}
authorization:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Fails if the metrics cannot be read as the values say. */ -}}
{{- define "headwater.checkMetrics" -}}
{{- with .Values.metrics }}
{{- if and (or .verifyTLS .authorization) (not .auth) }}
{{- fail "metrics.verifyTLS and metrics.authorization need metrics.auth: true" }}
{{- end }}
{{- if and .podMonitor.enabled .auth (not .authorization) }}
{{- fail "metrics.podMonitor with metrics.auth needs metrics.authorization: a PodMonitor cannot send the token of Prometheus's own service account" }}
{{- end }}
{{- if and .podMonitor.enabled .serviceMonitor.enabled }}
{{- fail "enable metrics.serviceMonitor or metrics.podMonitor: with both, Prometheus reads every metric twice" }}
{{- end }}
{{- end }}
{{- if and .Values.page (not .Values.metrics.auth) (not .Values.pageLocalhost) }}
{{- fail "page needs metrics.auth: true, or pageLocalhost: true if no other container of the pod forwards requests to Headwater" }}
{{- end }}
{{- if and .Values.tls.secretName (or (not .Values.metrics.auth) .Values.metrics.verifyTLS) }}
{{- fail "tls.secretName needs metrics.auth: true, and not metrics.verifyTLS, which is about Headwater's own CA" }}
{{- end }}
{{- $protects := false }}
{{- range .Values.config.rules }}
{{- if hasKey . "protect" }}{{ $protects = true }}{{ end }}
{{- end }}
{{- if and .Values.metrics.verifyTLS .Values.configMap.create (or (not $protects) (eq "Policy" ((.Values.config.protect).engine | default "Both"))) }}
{{- fail "metrics.verifyTLS needs a rule that protects, and not protect.engine Policy: otherwise Headwater has no CA" }}
{{- end }}
{{- end }}
