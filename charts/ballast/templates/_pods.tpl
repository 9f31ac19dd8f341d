{{/* Where pods may run and what pulls their image: the same for the operator and for the jobs that release. */}}
{{- define "ballast.scheduling" -}}
{{- $chosen := dict -}}
{{- range $key := list "imagePullSecrets" "priorityClassName" "nodeSelector" "tolerations" "hostNetwork" "dnsPolicy" -}}
{{- with index $.Values $key -}}{{- $_ := set $chosen $key . -}}{{- end -}}
{{- end -}}
{{- with $chosen -}}{{- toYaml . -}}{{- end -}}
{{- end }}

{{/* The pod template of a job that releases executors: (dict "root" $ "arguments" (list "--stale")). */}}
{{- define "ballast.releaseTemplate" -}}
{{- $root := .root -}}
{{- $name := include "ballast.name" $root -}}
metadata:
  {{- $labels := dict "app.kubernetes.io/component" "release" }}
  labels: {{- include "ballast.labelsWith" (dict "root" $root "labels" $labels) | nindent 4 }}
spec:
  serviceAccountName: {{ include "ballast.account" $root }}-release
  restartPolicy: Never
  securityContext: {{- include "ballast.podSecurity" $root | nindent 4 }}
  {{- with include "ballast.scheduling" $root }}{{ . | nindent 2 }}{{ end }}
  {{- /* Not the affinity to other pods: a job must run also on a node of the operator's own pods. */}}
  {{- with ($root.Values.affinity | default dict).nodeAffinity }}
  affinity:
    nodeAffinity: {{- toYaml . | nindent 6 }}
  {{- end }}
  containers:
  - name: release
    image: {{ include "ballast.image" $root }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    args: [release, {{ join ", " .arguments }}, --name={{ $name }}]    # the namespace is the pod's
    resources:
      requests: {cpu: 20m, memory: 128Mi}
      limits: {memory: 256Mi}
    securityContext: {{- include "ballast.containerSecurity" $root | nindent 6 }}
    volumeMounts:
    - {name: tmp, mountPath: /tmp}
  volumes:
  - {name: tmp, emptyDir: {}}
{{- end }}
