{{/* At most 44 characters: the name of the CronJob, with -release, may have 52. */}}
{{- define "ballast.name" -}}
{{- $name := ternary .Release.Name (printf "%s-ballast" .Release.Name) (contains "ballast" .Release.Name) -}}
{{- $name | trunc 44 | trimSuffix "-" -}}
{{- end }}

{{- define "ballast.selector" -}}
app.kubernetes.io/name: ballast
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "ballast.operatorSelector" -}}
{{ include "ballast.selector" . }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "ballast.labels" -}}
{{ include "ballast.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "ballast.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "ballast.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "ballast.name" . }}
{{- end }}

{{- define "ballast.releaseUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "ballast.name" . }}-release
{{- end }}

{{- define "ballast.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "ballast.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
