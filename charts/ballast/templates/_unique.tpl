{{/* Refuses a list in which two items have the same value of a key: the API server would refuse it only when other
     objects are changed already. (dict "what" "env" "key" "name" "items" (list …)) */}}
{{- define "ballast.unique" -}}
{{- $seen := dict -}}
{{- range .items -}}
{{- $value := toString (index . $.key) -}}
{{- if hasKey $seen $value -}}
{{- fail (printf "%s: the %s %s is there twice, once perhaps by the chart itself" $.what $.key $value) -}}
{{- end -}}
{{- $_ := set $seen $value true -}}
{{- end -}}
{{- end }}

{{- define "ballast.checked" -}}
{{- $own := list (dict "name" "POD_NAME") (dict "name" "POD_NAMESPACE") (dict "name" "POD_IP") -}}
{{- include "ballast.unique" (dict "what" "env" "key" "name" "items" (concat $own (.Values.env | default list))) -}}
{{- $volumes := append (.Values.extraVolumes | default list) (dict "name" "tmp") -}}
{{- include "ballast.unique" (dict "what" "extraVolumes" "key" "name" "items" $volumes) -}}
{{- $mounts := append (.Values.extraVolumeMounts | default list) (dict "mountPath" "/tmp") -}}
{{- include "ballast.unique" (dict "what" "extraVolumeMounts" "key" "mountPath" "items" $mounts) -}}
{{- $containers := append (.Values.extraContainers | default list) (dict "name" "ballast") -}}
{{- include "ballast.unique" (dict "what" "extraContainers" "key" "name" "items" $containers) -}}
{{- $secrets := .Values.imagePullSecrets | default list -}}
{{- include "ballast.unique" (dict "what" "imagePullSecrets" "key" "name" "items" $secrets) -}}
{{- $crds := .Values.crds | default dict -}}
{{- if and (eq (toString $crds.keep) "false") (ne (toString $crds.install) "false") -}}
{{- fail (printf "crds.keep is false: an earlier chart made the CRDs so that this upgrade would delete them, with every policy, topology and move. Run `kubectl annotate crd balancingpolicies.ballast.dev executormoves.ballast.dev gateswitches.ballast.dev sparktopologies.ballast.dev helm.sh/resource-policy=keep`, then upgrade with crds.keep=true") -}}
{{- end -}}
{{- if eq (int .Values.health.port) (int .Values.metrics.port) -}}
{{- fail (printf "health.port and metrics.port are both %d: set them to different ports" (int .Values.health.port)) -}}
{{- end -}}
{{- if and (.Values.serviceMonitor | default dict).enabled (.Values.podMonitor | default dict).enabled -}}
{{- fail "serviceMonitor.enabled and podMonitor.enabled: choose one, because both together count every series twice" -}}
{{- end -}}
{{- end }}
