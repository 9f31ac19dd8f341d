{{/* At most 44 characters: the name of the CronJob, with -release, may have 52. */}}
{{- define "ballast.name" -}}
{{- $part := .Values.nameOverride | default "ballast" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name $part) (contains $part .Release.Name) -}}
{{- .Values.fullnameOverride | default $name | trunc 44 | trimSuffix "-" -}}
{{- end }}

{{/* The ServiceAccount of the operator; the jobs that release executors have one more, with -release. */}}
{{- define "ballast.account" -}}
{{- (.Values.serviceAccount | default dict).name | default (include "ballast.name" .) -}}
{{- end }}

{{- define "ballast.selector" -}}
app.kubernetes.io/name: ballast
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "ballast.operatorSelector" -}}
{{ include "ballast.selector" . }}
app.kubernetes.io/component: operator
{{- end }}

{{/* Labels of anything, next to those that the user adds: (dict "root" $ "labels" (dict …)). The chart's own win. */}}
{{- define "ballast.labelsWith" -}}
{{- $root := .root -}}
{{- $own := dict "app.kubernetes.io/version" $root.Chart.AppVersion "app.kubernetes.io/managed-by" $root.Release.Service
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version) -}}
{{- $selected := include "ballast.selector" $root | fromYaml -}}
{{- merge dict $selected $own (.labels | default dict) ($root.Values.commonLabels | default dict) | toYaml -}}
{{- end }}

{{/* Labels and annotations of an object: (dict "root" $ "labels" (dict …) "annotations" (dict …)). */}}
{{- define "ballast.metadataWith" -}}
labels: {{- include "ballast.labelsWith" . | nindent 2 }}
{{- with merge dict (.annotations | default dict) (.root.Values.commonAnnotations | default dict) }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "ballast.metadata" -}}
{{- include "ballast.metadataWith" (dict "root" .) -}}
{{- end }}

{{- define "ballast.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "ballast.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "ballast.account" . }}
{{- end }}

{{- define "ballast.releaseUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "ballast.account" . }}-release
{{- end }}

{{/* Values that `--reuse-values` brings from an older chart have neither section. */}}
{{- define "ballast.containerSecurity" -}}
{{- $default := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true
  "capabilities" (dict "drop" (list "ALL")) -}}
{{- .Values.securityContext | default $default | toYaml -}}
{{- end }}

{{- define "ballast.podSecurity" -}}
{{- $default := dict "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532 "fsGroup" 65532
  "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- .Values.podSecurityContext | default $default | toYaml -}}
{{- end }}
