{{/*
For the chart of another program, which depends on this chart with the form sidecar or init-container, and has untaint in
its own pods. The argument is .Subcharts.untaint:

  initContainers:
  {{- include "untaint.container" .Subcharts.untaint | nindent 2 }}
  volumes:
  {{- include "untaint.volumes" .Subcharts.untaint | nindent 2 }}
*/}}

{{/* The container of untaint, as a list with one item. */}}
{{- define "untaint.container" -}}
{{- $v := dict "root" . }}
{{- include "untaint.values" $v }}
{{- include "untaint.ofPods" $v }}
{{- if not (has .Values.form (list "sidecar" "init-container")) }}
{{- fail (printf "form: untaint.container is for the forms sidecar and init-container, not for %s" .Values.form) }}
{{- end }}
{{- $list := include (printf "untaint.workload.container.%s" .Values.form) $v | fromYamlArray }}
{{- include "untaint.changed" (list .Values (first $list)) }}
{{- toYaml $list }}
{{- end }}

{{/* The volumes that this container mounts. */}}
{{- define "untaint.volumes" -}}
{{- $v := dict "root" . }}
{{- include "untaint.values" $v }}
{{- include "untaint.ofPods" $v }}
{{- $v.volumes }}
{{- end }}

{{/* Changes a container as the values say. */}}
{{- define "untaint.changed" -}}
{{- $values := index . 0 }}
{{- $container := index . 1 }}
{{- with $values.image.pullPolicy }}{{ $_ := set $container "imagePullPolicy" . }}{{ end }}
{{- with $values.env }}{{ $_ := set $container "env" (concat $container.env .) }}{{ end }}
{{- with $values.resources }}{{ $_ := set $container "resources" . }}{{ end }}
{{- end }}
