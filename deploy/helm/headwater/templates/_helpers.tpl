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
