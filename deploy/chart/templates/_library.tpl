{{/*
For the chart of another program, which depends on this chart with the form sidecar or init-container, and has untaint in
its own pods. The argument is .Subcharts.untaint:

  {{- with .Subcharts.untaint }}
  initContainers:
  {{- include "untaint.container" . | nindent 2 }}
  volumes:
  {{- include "untaint.volumes" . | nindent 2 }}
  {{- end }}

With a condition that is false, .Subcharts has no untaint. The pod needs imagePullSecrets of its own.
*/}}

{{/* The container of untaint, as a list with one item. */}}
{{- define "untaint.container" -}}
{{- $v := dict "root" . }}
{{- include "untaint.setCommonValues" $v }}
{{- include "untaint.setPodValues" $v }}
{{- if not (has .Values.form (list "sidecar" "init-container")) }}
{{- fail (printf "form: untaint.container is for the forms sidecar and init-container, not for %s" .Values.form) }}
{{- end }}
{{- $list := include (printf "untaint.workload.container.%s" .Values.form) $v | fromYamlArray }}
{{- include "untaint.setContainerFields" (list .Values (first $list)) }}
{{- toYaml $list }}
{{- end }}

{{/* The volumes that this container mounts. */}}
{{- define "untaint.volumes" -}}
{{- $v := dict "root" . }}
{{- include "untaint.setCommonValues" $v }}
{{- include "untaint.setPodValues" $v }}
{{- toYaml (concat ($v.volumes | fromYamlArray) .Values.extraVolumes) }}
{{- end }}

{{/* Sets what the values say of the container. */}}
{{- define "untaint.setContainerFields" -}}
{{- $values := index . 0 }}
{{- $container := index . 1 }}
{{- with $values.image.pullPolicy }}{{ $_ := set $container "imagePullPolicy" . }}{{ end }}
{{- range $values.env }}
{{- if eq .name "NODE_NAME" }}
{{- fail "env: untaint sets NODE_NAME itself: leave it out" }}
{{- end }}
{{- end }}
{{- with $values.env }}{{ $_ := set $container "env" (concat $container.env .) }}{{ end }}
{{- with $values.extraVolumeMounts }}{{ $_ := set $container "volumeMounts" (concat $container.volumeMounts .) }}{{ end }}
{{- with $values.resources }}{{ $_ := set $container "resources" . }}{{ end }}
{{- end }}
