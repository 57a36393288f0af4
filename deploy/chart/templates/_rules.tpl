{{/*
What is computed from the rules. A template sets values in the dictionary that it gets. It has "root", the context of the
chart, and the values of the templates that are made from src/manifests.
*/}}

{{/* The values that all templates have. */}}
{{- define "untaint.setCommonValues" -}}
{{- $values := .root.Values }}
{{- range list "affinity" "annotations" "env" "exempt" "extraVolumes" "extraVolumeMounts" "form" "image" "imagePullSecrets" "labels" "monitoring" "nodeSelector" "podAnnotations" "port" "resources" "serviceAccount" "tolerations" "updateStrategy" }}
{{- /* With null, Helm deletes the default. */}}
{{- if kindIs "invalid" (index $values .) }}
{{- fail (printf "%s: is null: leave it out, or set it as values.yaml says" .) }}
{{- end }}
{{- end }}
{{- if not $values.rules }}
{{- fail "rules: there are none: give the configuration of untaint as values, such as --values examples/cilium.yaml" }}
{{- end }}
{{- $namespace := .root.Release.Namespace }}
{{- $account := include "untaint.account" .root }}
{{- if and (ne $values.form "daemonset") (eq $namespace "untaint") (eq $account "untaint") }}
{{- fail "form: this form is for the pods of another program: name the account of those pods with --namespace and serviceAccount.name; untaint:untaint is the account of the form daemonset" }}
{{- end }}
{{- if not $values.serviceAccount.name }}
{{- if ne $values.form "daemonset" }}
{{- fail "serviceAccount.name is missing: with this form, it is the account that the pods of the other program have" }}
{{- else if not $values.serviceAccount.create }}
{{- fail "serviceAccount.name is missing: with serviceAccount.create=false, name an account that exists" }}
{{- end }}
{{- end }}
{{- $_ := set . "namespace" (toJson $namespace) }}
{{- $_ := set . "accountName" (toJson $account) }}
{{- $_ := set . "instance" (include "untaint.shortened" (list (include "untaint.name" (list . "untaint")) 63)) }}
{{- $_ := set . "moreLabels" ($values.labels | empty | ternary "" (toYaml $values.labels)) }}
{{- range $place, $labels := dict "labels" $values.labels "monitoring.labels" $values.monitoring.labels "monitoring.dashboardLabels" $values.monitoring.dashboardLabels }}
{{- range list "name" "instance" "part-of" }}
{{- if hasKey $labels (printf "app.kubernetes.io/%s" .) }}
{{- fail (printf "%s: untaint sets the label app.kubernetes.io/%s itself: use another key" $place .) }}
{{- end }}
{{- end }}
{{- end }}
{{- $_ := set . "matchDefaults" (include "untaint.policy.match-defaults" . | trim) }}
{{- $_ := set . "labels" (include "untaint.labels" . | trim) }}
{{- $_ := set . "user" (printf "system:serviceaccount:%s:%s" $namespace $account) }}
{{- $_ := set . "writtenAccount" (printf "%s:%s" $namespace $account) }}
{{- $_ := set . "holdsAccount" (or (eq $values.form "daemonset") $values.strictPolicy) }}
{{- $_ := set . "mark" (ternary "ownnode" "owntaints" .holdsAccount) }}
{{- $_ := set . "writing" list }}
{{- $_ := set . "checks" list }}
{{- $names := dict }}
{{- range $values.rules }}
{{- if hasKey $names .name }}
{{- fail (printf "rules: two rules have the name %s: rename one of them" .name) }}
{{- end }}
{{- $_ := set $names .name true }}
{{- if not .dryRun }}
{{- $_ := set $ "writing" (append $.writing .) }}
{{- end }}
{{- range .gates }}
{{- $_ := set $ "checks" (concat $.checks (.anyOf | default (list .))) }}
{{- end }}
{{- end }}
{{- $_ := set . "rules" (include "untaint.rules" .) }}
{{- include "untaint.checkLength" (list "untaint" .rules) }}
{{- $_ := set . "hash" (printf "%s %t %s" .mark $values.checkNodeUid .rules | sha256sum | trunc 16) }}
{{- end }}

{{/* The ServiceAccount of the pods. */}}
{{- define "untaint.account" -}}
{{- $name := contains "untaint" .Release.Name | ternary .Release.Name (printf "%s-untaint" .Release.Name) }}
{{- .Values.serviceAccount.name | default $name }}
{{- end }}

{{/* The name of an object for the account, and its beginning and a hash if it is too long: src/manifests/account.rs. */}}
{{- define "untaint.name" -}}
{{- include "untaint.shortened" (list (include "untaint.unshortened" .) 240) }}
{{- end }}

{{- define "untaint.unshortened" -}}
{{- $root := (index . 0).root }}
{{- $account := include "untaint.account" $root }}
{{- if and (eq $root.Release.Namespace "untaint") (eq $account "untaint") }}{{ index . 1 }}
{{- else }}{{ index . 1 }}.{{ $root.Release.Namespace }}.{{ $account }}{{ end }}
{{- end }}

{{- define "untaint.shortened" -}}
{{- $name := index . 0 }}
{{- $longest := index . 1 }}
{{- if le (len $name) $longest }}{{ $name }}
{{- else }}{{ trunc (int (sub $longest 11)) $name | trimAll ".-" }}-{{ sha256sum $name | trunc 10 }}{{ end }}
{{- end }}

{{/* All taints that a rule removes, as a JSON list. The one that it may put back has the field putBack. */}}
{{- define "untaint.taints" -}}
{{- $taint := pick .taint "key" "value" "effect" }}
{{- $taints := list $taint }}
{{- if hasKey . "retaint" }}
{{- $retaint := .retaint | default dict }}
{{- $key := $retaint.key | default $taint.key }}
{{- if eq $key $taint.key }}
{{- $taints = list (merge (dict "putBack" ($taint.value | default "")) $taint) }}
{{- else }}
{{- $taints = append $taints (dict "key" $key "effect" "NoSchedule" "putBack" "") }}
{{- end }}
{{- end }}
{{- toJson $taints }}
{{- end }}

{{/* The labels that a Node must have, as strings in CEL. */}}
{{- define "untaint.nodeLabels" -}}
{{- $labels := list }}
{{- range $key, $value := .nodeSelector }}
{{- $labels = append $labels (printf "'%s=%s'" $key $value) }}
{{- end }}
{{- join ", " $labels }}
{{- end }}

{{/* The rules as data in CEL: src/manifests/policy/rules.rs. */}}
{{- define "untaint.rules" -}}
{{- $byKey := dict }}
{{- range $rule := .writing }}
{{- range $index, $taint := include "untaint.taints" $rule | fromJsonArray }}
{{- $fields := list }}
{{- with $taint.effect }}{{ $fields = append $fields (printf "'effect': ['%s']" .) }}{{ end }}
{{- if hasKey $taint "value" }}{{ $fields = append $fields (printf "'value': ['%s']" $taint.value) }}{{ end }}
{{- with include "untaint.nodeLabels" $rule }}{{ $fields = append $fields (printf "'nodeSelector': [%s]" .) }}{{ end }}
{{- if hasKey $taint "putBack" }}{{ $fields = append $fields (printf "'retaint': ['%s']" $taint.putBack) }}{{ end }}
{{- if and (eq $index 0) $rule.publishCondition }}
{{- $fields = append $fields (printf "'publishCondition': ['%s']" $rule.publishCondition.type) }}
{{- end }}
{{- $entry := printf "{%s}" (join ", " $fields) }}
{{- $_ := set $byKey $taint.key (append (get $byKey $taint.key | default list) $entry) }}
{{- end }}
{{- end }}
{{- $lines := list }}
{{- range $key, $entries := $byKey }}
{{- $lines = append $lines (printf "'%s': [%s]" $key (join ", " $entries)) }}
{{- end }}
{{- if $lines }}{{ printf "{\n%s\n}" (join ",\n" $lines) }}{{ else }}{}{{ end }}
{{- end }}

{{/* The values of the policies for the pods of tenants, for one purpose: src/manifests/policy/tenants.rs. */}}
{{- define "untaint.setTenantValues" -}}
{{- $v := index . 0 }}
{{- $purpose := index . 1 }}
{{- $exempt := $v.root.Values.exempt }}
{{- $namespaces := list }}
{{- range concat $exempt.namespaces (list "kube-system" $v.root.Release.Namespace) | uniq | sortAlpha }}
{{- $namespaces = append $namespaces (toJson .) }}
{{- end }}
{{- $accounts := list }}
{{- range $exempt.serviceAccounts | uniq | sortAlpha }}{{ $accounts = append $accounts (printf "'%s'" .) }}{{ end }}
{{- $_ := set $v "name" (include "untaint.name" (list $v (printf "untaint-%s" $purpose))) }}
{{- $_ := set $v "exemptNamespaces" (join ", " $namespaces) }}
{{- $_ := set $v "exemptAccounts" (join ", " $accounts) }}
{{- $_ := set $v "podsAndTemplates" (include "untaint.policy.tenants.pods-and-templates" $v) }}
{{- $_ := set $v "notAKubelet" (include "untaint.policy.tenants.not-a-kubelet" $v) }}
{{- $_ := set $v "pod" (include "untaint.policy.tenants.pod" $v) }}
{{- $_ := set $v "remedy" (include "untaint.policy.tenants.remedy" $v | trim) }}
{{- if eq $purpose "tolerations" }}{{ $_ := set $v "taints" (include "untaint.barriers" $v) }}{{ end }}
{{- end }}

{{/* The taints that keep pods away, as data in CEL: src/manifests/policy/tenants/taints.rs. */}}
{{- define "untaint.barriers" -}}
{{- $lines := list }}
{{- range .root.Values.rules }}
{{- range include "untaint.taints" . | fromJsonArray }}
{{- if ne (.effect | default "") "PreferNoSchedule" }}
{{- $fields := list (printf "'key': '%s'" .key) }}
{{- if hasKey . "value" }}
{{- $fields = append $fields (printf "'value': '%s'" .value) }}
{{- /* Up to 19 digits, numbers of the same length have the order of their texts. */}}
{{- if and (regexMatch "^(0|[1-9][0-9]{0,18})$" .value) (or (lt (len .value) 19) (le .value "9223372036854775807")) }}
{{- $fields = append $fields (printf "'number': '%s'" .value) }}
{{- end }}
{{- end }}
{{- with .effect }}{{ $fields = append $fields (printf "'effect': '%s'" .) }}{{ end }}
{{- $lines = append $lines (printf "{%s}" (join ", " $fields)) }}
{{- end }}
{{- end }}
{{- end }}
{{- if not $lines }}
{{- fail "tolerationPolicy has no taint to protect: all rules have the effect PreferNoSchedule, which keeps no pod away" }}
{{- end }}
{{- include "untaint.checkLength" (list "untaint-tolerations" (join "\n  " $lines)) }}
{{- join ",\n" $lines }}
{{- end }}

{{/* Refuses an expression that the API server would refuse, before Helm creates what it restricts: MOST_CHARACTERS in
src/manifests/policy.rs. */}}
{{- define "untaint.checkLength" -}}
{{- $length := len (index . 1) }}
{{- if gt $length 100000 }}
{{- fail (printf "rules: the admission policy %s is too long: one of its expressions has %d characters, and the API server accepts at most 100000; divide the rules among several configurations, each with its own account" (index . 0) $length) }}
{{- end }}
{{- end }}

{{/* The taints of new Nodes as data in CEL: src/manifests/policy/new_nodes.rs. */}}
{{- define "untaint.newTaints" -}}
{{- $same := dict }}
{{- $withoutEffect := list }}
{{- range .writing }}
{{- if .taint.effect }}
{{- $fields := list (printf "'key': ['%s']" .taint.key) (printf "'effect': ['%s']" .taint.effect) }}
{{- with .taint.value }}{{ $fields = append $fields (printf "'value': ['%s']" .) }}{{ end }}
{{- with include "untaint.nodeLabels" . }}{{ $fields = append $fields (printf "'nodeSelector': [%s]" .) }}{{ end }}
{{- $taint := printf "%s\u0001%s" .taint.key .taint.effect }}
{{- $_ := set $same $taint (append (get $same $taint | default list) (printf "{%s}" (join ", " $fields))) }}
{{- else }}
{{- $withoutEffect = append $withoutEffect .name }}
{{- end }}
{{- end }}
{{- with $withoutEffect }}
{{- fail (printf "taintNewNodes cannot add a taint without an effect: set taint.effect in each rule that does not have it: %s" (join ", " .)) }}
{{- end }}
{{- if not $same }}
{{- fail "taintNewNodes has no taint to add: untaint would not remove the taint of a rule with dryRun; delete dryRun from a rule, or leave the option out" }}
{{- end }}
{{- $lines := list }}
{{- range $same }}{{ $lines = append $lines (printf "[%s]" (join ", " .)) }}{{ end }}
{{- include "untaint.checkLength" (list "untaint-new-nodes" (join "\n  " $lines)) }}
{{- join ",\n" $lines }}
{{- end }}

{{/* The configuration, which is the values of its own fields. */}}
{{- define "untaint.configuration" -}}
{{- $configuration := dict "apiVersion" "untaint/v1alpha1" "kind" "UntaintConfiguration" "rules" .Values.rules }}
{{- if .Values.events }}{{ $_ := set $configuration "events" true }}{{ end }}
{{- toYaml $configuration }}
{{- end }}

{{/* The name of the ConfigMap, with a hash of its content. */}}
{{- define "untaint.configMap" -}}
{{- $text := printf "%s\n" (include "untaint.configuration" .root) }}
{{- include "untaint.name" (list . "untaint") }}-{{ sha256sum $text | trunc 10 }}
{{- end }}

{{/* The directories of the host that the gates look at, as a JSON list: src/manifests/workload/mounts.rs. */}}
{{- define "untaint.directories" -}}
{{- $all := list }}
{{- range .checks }}
{{- $paths := list }}
{{- if hasKey . "cniConfig" }}
{{- $paths = prepend (dig "cniConfig" "binDirs" list .) (dig "cniConfig" "dir" "/etc/cni/net.d" .) }}
{{- else if hasKey . "file" }}
{{- $paths = list .file.path }}
{{- else }}
{{- with dig "unixSocket" "" (.httpGet | default .grpc | default .tcpSocket | default dict) }}{{ $paths = list . }}{{ end }}
{{- end }}
{{- $gate := .name }}
{{- range $paths }}
{{- if has ".." (splitList "/" .) }}
{{- fail (printf "gate %s: %s cannot be made visible in a pod: the path of a volume cannot contain '..'; write the path without it" $gate .) }}
{{- end }}
{{- $path := clean . }}
{{- range $place, $why := include "untaint.not-of-host" $ | fromJson }}
{{- if hasPrefix (printf "%s/" $place) (printf "%s/" $path) }}
{{- fail (printf "gate %s: %s cannot be made visible in a pod: %s" $gate $path $why) }}
{{- end }}
{{- end }}
{{- if regexMatch "^/proc/[0-9]+(/|$)" $path }}
{{- fail (printf "gate %s: %s cannot be made visible in a pod: %s" $gate $path (include "untaint.processes" $)) }}
{{- end }}
{{- if not (regexMatch "^/(proc|sys)(/|$)" $path) }}
{{- $directory := dir $path }}
{{- if regexMatch "^/(|etc|dev|var|var/run|(etc/untaint|dev/termination-log|var/run/secrets|untaint|LICENSE)(/.*)?)$" $directory }}
{{- if not (and (hasPrefix "/var/run/secrets/" $directory) (not (hasPrefix "/var/run/secrets/kubernetes.io/" (printf "%s/" $directory)))) }}
{{- fail (printf "gate %s: %s cannot be made visible in a pod: its parent directory also contains files that the pod itself needs; move it to a directory of its own" $gate .) }}
{{- end }}
{{- end }}
{{- $all = append $all (replace "/" "\u0001" $directory) }}
{{- end }}
{{- end }}
{{- end }}
{{- $all = $all | uniq | sortAlpha }}
{{- $outermost := list }}
{{- range $directory := $all }}
{{- $isInner := false }}
{{- range $all }}{{ if hasPrefix (printf "%s\u0001" .) $directory }}{{ $isInner = true }}{{ end }}{{ end }}
{{- if not $isInner }}{{ $outermost = append $outermost (replace "\u0001" "/" $directory) }}{{ end }}
{{- end }}
{{- toJson $outermost }}
{{- end }}

{{/* The labels of the Nodes on which the pods run: src/manifests/workload/nodes.rs. */}}
{{- define "untaint.nodeSelector" -}}
{{- $values := .root.Values }}
{{- $shared := (first $values.rules).nodeSelector | default dict | deepCopy }}
{{- range $rule := $values.rules }}
{{- range $key, $value := $shared }}
{{- $selector := $rule.nodeSelector | default dict }}
{{- if or (hasKey $rule "retaint") (not (hasKey $selector $key)) (ne $value (get $selector $key)) }}{{ $_ := unset $shared $key }}{{ end }}
{{- end }}
{{- end }}
{{- range $key, $value := $values.nodeSelector }}
{{- if eq $key "kubernetes.io/os" }}
{{- fail "nodeSelector: untaint runs on Linux only, and the manifests say so: leave the label kubernetes.io/os out" }}
{{- end }}
{{- if and (hasKey $shared $key) (ne (get $shared $key) $value) }}
{{- fail (printf "nodeSelector: %s: %s: every rule has %s: %s in nodeSelector, so the pods would run only on nodes that no rule selects; leave %s out, or correct the rules" $key $value $key (get $shared $key) $key) }}
{{- end }}
{{- end }}
{{- $selector := omit (merge (deepCopy $values.nodeSelector) $shared) "kubernetes.io/os" }}
{{- $selector | empty | ternary "" (toYaml $selector) }}
{{- end }}

{{/* The volumes and mounts of the host, and what runs as root because of them. */}}
{{- define "untaint.setPodValues" -}}
{{- $directories := include "untaint.directories" . | fromJsonArray }}
{{- $mounts := list }}
{{- $volumes := list }}
{{- range $index, $path := $directories }}
{{- $name := printf "untaint-host-%d" $index }}
{{- $mounts = append $mounts (dict "name" $name "mountPath" $path "readOnly" true) }}
{{- $volumes = append $volumes (dict "name" $name "hostPath" (dict "path" $path "type" "DirectoryOrCreate")) }}
{{- end }}
{{- $_ := set . "hostMounts" ($mounts | empty | ternary "" (toYaml $mounts)) }}
{{- $_ := set . "hostVolumes" ($volumes | empty | ternary "" (toYaml $volumes)) }}
{{- $_ := set . "configMap" (include "untaint.configMap" .) }}
{{- $_ := set . "config" "/etc/untaint/config.yaml" }}
{{- $_ := set . "timeout" "5m" }}
{{- $image := .root.Values.image }}
{{- $tag := $image.tag | default .root.Chart.AppVersion }}
{{- $name := printf "%s:%s" $image.repository $tag }}
{{- with $image.digest }}{{ $name = printf "%s@%s" $image.repository . }}{{ end }}
{{- $_ := set . "image" (toJson $name) }}
{{- with .root.Values.imagePullSecrets }}{{ $_ := set $ "pullSecrets" (printf "imagePullSecrets:\n%s" (toYaml .)) }}{{ end }}
{{- $_ := set . "nodeSelector" (include "untaint.nodeSelector" .) }}
{{- $_ := set . "nodeName" (include "untaint.workload.node-name" .) }}
{{- $_ := set . "configMount" (include "untaint.workload.config-mount" .) }}
{{- $selinux := .root.Values.seLinuxType }}
{{- $user := $directories | empty | ternary (include "untaint.workload.nobody" .) (include "untaint.workload.root" .) }}
{{- $selinux = $selinux | empty | ternary "" (printf "seLinuxOptions:\n  type: %s" (toJson $selinux)) }}
{{- $_ := set . "confinement" (include "untaint.workload.confinement" (dict "user" $user "selinux" $selinux)) }}
{{- $_ := set . "volumes" (include "untaint.workload.volumes" . | trim) }}
{{- $tolerations := include "untaint.workload.all-tolerations" . }}
{{- if .root.Values.exactTolerations }}
{{- $ofRules := list }}
{{- range .root.Values.rules }}
{{- range include "untaint.taints" . | fromJsonArray }}
{{- $toleration := dict "key" .key "operator" (hasKey . "value" | ternary "Equal" "Exists") }}
{{- with .value }}{{ $_ := set $toleration "value" . }}{{ end }}
{{- with .effect }}{{ $_ := set $toleration "effect" . }}{{ end }}
{{- $ofRules = append $ofRules $toleration }}
{{- end }}
{{- end }}
{{- $tolerations = include "untaint.workload.exact-tolerations" (dict "ofRules" (toYaml $ofRules)) }}
{{- end }}
{{- $_ := set . "tolerations" $tolerations }}
{{- end }}
