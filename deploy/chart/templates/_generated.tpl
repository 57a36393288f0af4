{{/* Written by `make generate` from src/manifests. Do not edit. */}}
{{- define "untaint.labels" -}}
app.kubernetes.io/name: untaint
app.kubernetes.io/instance: {{ .instance }}
app.kubernetes.io/part-of: untaint
{{- with .moreLabels }}{{ . | nindent 0 }}{{ end }}
{{- end }}
{{- define "untaint.policy.binding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  name: {{ .name }}
spec:
  policyName: {{ .name }}
  validationActions: [Deny]
{{- end }}
{{- define "untaint.policy.events" -}}
# Restricts the account to Events about the Node that the token is for.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  name: {{ .name }}
spec:
  # If an expression fails, the request is refused.
  failurePolicy: Fail
  matchConstraints:
{{- with .matchDefaults }}{{ . | nindent 4 }}{{ end }}
    resourceRules:
    - apiGroups: [events.k8s.io]
      apiVersions: ["*"]
      resources: [events]
      operations: ["*"]
      scope: "*"
  matchConditions:
{{- with .isAccount }}{{ . | nindent 2 }}{{ end }}
  variables:
  - name: node
    # The Node of the pod that the token was issued for.
    expression: |-
      request.userInfo.?extra[?'authentication.kubernetes.io/node-name'][?0].orValue('')
  validations:
  - expression: |-
      request.operation in ['CREATE', 'UPDATE'] && request.namespace == 'default'
    messageExpression: |-
      'untaint: this account may only create and update Events in the namespace default; refused: ' +
      request.operation + ' in ' + request.namespace
    reason: Forbidden
{{- with .hasNode }}{{ . | nindent 2 }}{{ end }}
  # This also applies to the Event before the update: the account may not change an Event of another program.
  - expression: |-
      [dyn(object), dyn(oldObject)].all(e, e == null ||
        e.?regarding.?kind.orValue('') == 'Node' && e.?regarding.?name.orValue('') == variables.node &&
        e.?reportingController.orValue('') == '{{ .controller }}')
    messageExpression: |-
      'untaint: this account may only write Events about the Node ' + variables.node + ', with the reportingController {{ .controller }}'
    reason: Forbidden
{{- end }}
{{- define "untaint.policy.has-node" -}}
- expression: |-
    variables.node != ''
  message: "untaint: the token is for no Node: it has no claim authentication.kubernetes.io/node-name; tokens of pods have it from Kubernetes 1.30 on, tokens in Secrets never have it"
  reason: Forbidden
{{- end }}
{{- define "untaint.policy.is-account" -}}
- name: account
  # The account by its written name or, if it has been renamed, by the verb 'hold', which only its role grants. An
  # administrator has this verb too, but also the verb 'never'. Claims do not count here, so that this policy also
  # applies to tokens without them.
  expression: |-
    request.userInfo.username == '{{ .user }}' ||
    request.userInfo.username.startsWith('system:serviceaccount:') &&
    authorizer.group('untaint.dev').resource('{{ .mark }}').name('{{ .writtenAccount }}').check('hold').allowed() &&
    !authorizer.group('untaint.dev').resource('{{ .mark }}').name('{{ .writtenAccount }}').check('never').allowed()
{{- end }}
{{- define "untaint.policy.match-defaults" -}}
# The defaults of the API server. These fields have one owner together, so without the defaults,
# `kubectl apply --server-side` would conflict with an earlier `kubectl apply`.
matchPolicy: Equivalent
namespaceSelector: {}
objectSelector: {}
{{- end }}
{{- define "untaint.policy.new-nodes.binding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  name: {{ .name }}
spec:
  policyName: {{ .name }}
{{- end }}
{{- define "untaint.policy.new-nodes.not-karpenter" -}}
- name: is-not-of-karpenter
  # Karpenter must know the taints of its Nodes: list them as startupTaints in the NodePool.
  expression: |-
    !('karpenter.sh/nodepool' in object.metadata.?labels.orValue({})) &&
    !object.spec.?taints.orValue([]).exists(t, t.key == 'karpenter.sh/unregistered')
{{- end }}
{{- define "untaint.policy.new-nodes.policy" -}}
# Adds the start-up taints to a new Node, in the request with which the kubelet creates it. So the scheduler never sees
# the Node without them.
#
# It needs Kubernetes 1.36 or newer: older versions do not have this kind of object, and refuse it. If untaint does not
# run, or if a gate does not open, the new Nodes keep the taints. To stop this policy, delete its binding:
#
#     kubectl delete mutatingadmissionpolicybinding --selector app.kubernetes.io/instance={{ .instance }}
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  name: {{ .name }}
spec:
  # If an expression fails, the request is refused, and the kubelet tries again. A Node that is created without the
  # taints would get pods too early.
  failurePolicy: Fail
  # If another policy or a webhook changes the taints after this one, this one adds what is missing then.
  reinvocationPolicy: IfNeeded
  matchConstraints:
{{- with .matchDefaults }}{{ . | nindent 4 }}{{ end }}
    resourceRules:
    - apiGroups: [""]
      apiVersions: ["*"]
      resources: [nodes]
      operations: [CREATE]
      scope: "*"
  matchConditions:
  - name: is-its-kubelet
    # Other accounts create Nodes that are no machines, or that their programs manage. With generateName, there is no name
    # yet.
    expression: |-
      request.userInfo.username == 'system:node:' + object.metadata.?name.orValue('') &&
      'system:nodes' in request.userInfo.groups
  - name: untaint-runs-there
    # The DaemonSet of untaint selects the same Nodes.
    expression: |-
      object.metadata.?labels[?'kubernetes.io/os'].orValue('') == 'linux' &&
      object.metadata.?labels[?'eks.amazonaws.com/compute-type'].orValue('') != 'fargate' &&
      object.metadata.?labels[?'type'].orValue('') != 'virtual-kubelet'
{{- with .notKarpenter }}{{ . | nindent 2 }}{{ end }}
  variables:
  - name: rules
    # The taints of the rules without dryRun. Rules whose taints have the same key and effect stand together, because a
    # Node can have only one of these taints.
    expression: |-
      [
{{- with .rules }}{{ . | nindent 8 }}{{ end }}
      ]
  - name: labels
    expression: |-
      object.metadata.?labels.orValue({}).map(key, key + '=' + object.metadata.labels[key])
  - name: present
    expression: |-
      object.spec.?taints.orValue([]).map(t, t.key + ':' + t.effect)
  - name: missing
    expression: |-
      variables.rules
        .filter(same, !(same[0].key[0] + ':' + same[0].effect[0] in variables.present))
        .map(same, same.filter(r, !has(r.nodeSelector) || r.nodeSelector.all(label, label in variables.labels)))
        .filter(selecting, selecting.size() > 0)
        .map(selecting, {
          'key': selecting[0].key[0],
          ?'value': selecting[0].?value[?0],
          'effect': selecting[0].effect[0]
        })
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: |-
        (variables.missing.size() == 0 || has(object.spec.taints) ? [] :
          [JSONPatch{op: 'add', path: '/spec/taints', value: []}]) +
        variables.missing.map(taint, JSONPatch{op: 'add', path: '/spec/taints/-', value: taint})
{{- end }}
{{- define "untaint.policy.nodes.others-stay" -}}
# All other taints must stay unchanged, in their order.
- expression: |-
    variables.othersStay
  messageExpression: |-
    'untaint: removed: ' + variables.removedText[0] + '; added: ' + variables.addedText[0] +
    '; this account may only remove and put back the taints of its rules, on the Nodes of each rule; ' +
    'all other taints must stay unchanged, in their order; if the configuration has changed, apply the output of untaint manifests'
  reason: Forbidden
{{- end }}
{{- define "untaint.policy.nodes.own-account" -}}
# Restricts what the account may change to the work of untaint: the taints and conditions of the rules, on the Node that
# the token is for. With the token of one node, the other Nodes can only be read.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  name: {{ .name }}
spec:
  # If an expression fails, the request is refused.
  failurePolicy: Fail
  matchConstraints:
{{- with .matchDefaults }}{{ . | nindent 4 }}{{ end }}
    resourceRules:
    - apiGroups: [""]
      apiVersions: ["*"]
      # Subresources such as nodes/status and nodes/proxy are not part of nodes.
      resources: [nodes, nodes/*]
      operations: ["*"]
      scope: "*"
  matchConditions:
{{- with .isAccount }}{{ . | nindent 2 }}{{ end }}
  variables:
{{- with .variables }}{{ . | nindent 2 }}{{ end }}
  - name: oldConditions
    expression: |-
      oldObject.status.?conditions.orValue([])
  - name: conditions
    expression: |-
      object.status.?conditions.orValue([])
  - name: changed
    # The types of the conditions that change.
    expression: |-
      variables.conditions.filter(c, !(c in variables.oldConditions)).map(c, c.type) +
      variables.oldConditions.filter(old, !variables.conditions.exists(c, c.type == old.type)).map(c, c.type)
  - name: published
    # Those that the account may change: those of a rule's publishCondition or, if these rules do not apply, of the
    # role's list.
    expression: |-
      variables.rulesApply ?
      variables.changed.filter(type, variables.rules.exists(key, variables.rules[key].exists(r,
          has(r.publishCondition) && type in r.publishCondition &&
          (!has(r.nodeSelector) || r.nodeSelector.all(label, label in variables.labels))))) :
      variables.changed.size() > 2 ? [] : variables.changed.filter(type, authorizer.group('untaint.dev').resource('conditions').name(type).check('publish').allowed())
  validations:
  - expression: |-
      request.operation == 'UPDATE' && request.?subResource.orValue('') in ['', 'status']
    messageExpression: |-
      'untaint: this account may only update its own Node; refused: ' + request.operation + ' of nodes' +
      (request.?subResource.orValue('') == '' ? '' : '/' + request.?subResource.orValue(''))
    reason: Forbidden
{{- with .ownNode }}{{ . | nindent 2 }}{{ end }}
  # Lists the fields that may change, so that all others may not: labels, annotations, finalizers, ownerReferences, new
  # ones.
  - expression: |-
      dyn(object.metadata).all(f, f in ['managedFields', 'resourceVersion', 'generation'] ||
        f in dyn(oldObject.metadata) && dyn(object.metadata)[f] == dyn(oldObject.metadata)[f]) &&
      dyn(oldObject.metadata).all(f, f in ['managedFields', 'resourceVersion', 'generation'] || f in dyn(object.metadata))
    message: "untaint: this account may not change the Node's labels, annotations or anything else in its metadata"
    reason: Forbidden
  - expression: |-
      dyn(object.spec).all(f, f in ['taints'] ||
        f in dyn(oldObject.spec) && dyn(object.spec)[f] == dyn(oldObject.spec)[f]) &&
      dyn(oldObject.spec).all(f, f in ['taints'] || f in dyn(object.spec))
    message: "untaint: this account may change nothing in the Node's spec except taints"
    reason: Forbidden
{{- with .othersStay }}{{ . | nindent 2 }}{{ end }}
  - expression: |-
      dyn(object.status).all(f, f in ['conditions'] ||
        f in dyn(oldObject.status) && dyn(object.status)[f] == dyn(oldObject.status)[f]) &&
      dyn(oldObject.status).all(f, f in ['conditions'] || f in dyn(object.status)) &&
      variables.oldConditions.filter(c, !(c.type in variables.published)) ==
      variables.conditions.filter(c, !(c.type in variables.published))
    message: "untaint: this account may change nothing in the Node's status except the conditions that a rule for this Node publishes; if the configuration has changed, apply the output of untaint manifests"
    reason: Forbidden
  # If an applier owns a field by managedFields and applies again without the field, the server removes it. So this
  # account may take ownership away from an applier, but not give any.
  - expression: |-
      dyn(object.metadata).?managedFields.orValue([]).all(m, m.operation != 'Apply' ||
        dyn(oldObject.metadata).?managedFields.orValue([]).exists(old, old.operation == 'Apply' &&
          old.?manager == m.?manager && old.?subresource == m.?subresource &&
          m.fieldsV1.all(f, f in old.fieldsV1 && (m.fieldsV1[f] == old.fieldsV1[f] ||
            f == 'f:spec' && m.fieldsV1[f].all(g, g in old.fieldsV1[f] && m.fieldsV1[f][g] == old.fieldsV1[f][g])))))
    message: "untaint: this account may not use server-side apply, or add to the fields of an applier in managedFields"
    reason: Forbidden
{{- end }}
{{- define "untaint.policy.nodes.own-node" -}}
{{- with .hasNode }}{{ . | nindent 0 }}{{ end }}
- expression: |-
    request.name == variables.node
  messageExpression: |-
    'untaint: the token is for the Node ' + variables.node + ': this account may not change the Node ' +
    request.name
  reason: Forbidden
{{- with .ownUid }}{{ . | nindent 0 }}{{ end }}
{{- end }}
{{- define "untaint.policy.nodes.own-uid" -}}
# A token outlives its Node. Until the kubelet has a new token, the old one has the uid of the earlier Node or none.
- expression: |-
    !variables.rulesApply || request.userInfo.?extra[?'authentication.kubernetes.io/node-uid'][?0].orValue('') == oldObject.metadata.uid
  message: "untaint: the claim authentication.kubernetes.io/node-uid of the token is not the uid of this Node: the token is for an earlier Node of the same name, or has no uid; to get a new token, delete the pod"
  reason: Forbidden
{{- end }}
{{- define "untaint.policy.nodes.shared-account" -}}
# Restricts which taints the account may change: those of the rules, on the Node that the token is for. The account may
# have other work with Nodes, which this policy does not restrict.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  name: {{ .name }}
spec:
  # If an expression fails, the request is refused.
  failurePolicy: Fail
  matchConstraints:
{{- with .matchDefaults }}{{ . | nindent 4 }}{{ end }}
    resourceRules:
    - apiGroups: [""]
      apiVersions: ["*"]
      resources: [nodes]
      # Patches are updates.
      operations: [UPDATE]
      scope: "*"
  matchConditions:
{{- with .isAccount }}{{ . | nindent 2 }}{{ end }}
  - name: changes-taints
    expression: |-
      oldObject.spec.?taints.orValue([]) != object.spec.?taints.orValue([]) ||
      dyn(object.metadata).?managedFields.orValue([]).exists(m, m.operation == 'Apply' &&
        m.?fieldsV1[?'f:spec'][?'f:taints'].hasValue() &&
        !dyn(oldObject.metadata).?managedFields.orValue([]).exists(old, old.operation == 'Apply' &&
          old.?manager == m.?manager && old.?subresource == m.?subresource &&
          old.?fieldsV1[?'f:spec'][?'f:taints'].hasValue()))
  variables:
{{- with .variables }}{{ . | nindent 2 }}{{ end }}
  validations:
{{- with .ownNode }}{{ . | nindent 2 }}{{ end }}
{{- with .othersStay }}{{ . | nindent 2 }}{{ end }}
  # If an applier owns taints by managedFields and applies again without them, the server removes them.
  - expression: |-
      !dyn(object.metadata).?managedFields.orValue([]).exists(m, m.operation == 'Apply' &&
        m.?fieldsV1[?'f:spec'][?'f:taints'].hasValue() &&
        !dyn(oldObject.metadata).?managedFields.orValue([]).exists(old, old.operation == 'Apply' &&
          old.?manager == m.?manager && old.?subresource == m.?subresource &&
          old.?fieldsV1[?'f:spec'][?'f:taints'].hasValue()))
    message: "untaint: this account may not use server-side apply for taints, or make an applier their owner in managedFields"
    reason: Forbidden
{{- end }}
{{- define "untaint.policy.nodes.variables" -}}
- name: node
  # The Node of the pod that the token was issued for.
  expression: |-
    request.userInfo.?extra[?'authentication.kubernetes.io/node-name'][?0].orValue('')
- name: rules
  # The only part that depends on the configuration: the rules without dryRun, by the keys of their taints. A field that
  # a rule does not have matches everything. retaint is the value of the taint that may be put back.
  expression: |-
{{- with .rules }}{{ . | nindent 4 }}{{ end }}
- name: rulesApply
  # Whether the account's role belongs to these rules. It does not if only the role or only this policy is from a new
  # configuration, or if the account belongs to another installation, which was renamed. The account may then change the
  # taints and conditions that its role lists. Everything else in this policy still applies.
  expression: |-
    authorizer.group('untaint.dev').resource('rules').name('{{ .hash }}').check('follow').allowed() ||
    request.userInfo.username == '{{ .user }}' && !authorizer.group('untaint.dev').resource('{{ .mark }}').name('{{ .writtenAccount }}').check('hold').allowed()
- name: labels
  expression: |-
    oldObject.metadata.?labels.orValue({}).map(key, key + '=' + oldObject.metadata.labels[key])
- name: oldTaints
  expression: |-
    oldObject.spec.?taints.orValue([])
- name: taints
  expression: |-
    object.spec.?taints.orValue([])
- name: removed
  expression: |-
    variables.oldTaints.filter(t, !(t in variables.taints))
- name: added
  expression: |-
    variables.taints.filter(t, !(t in variables.oldTaints))
- name: mayRemove
  # The removed taints that the account may remove: those of a rule or, if these rules do not apply, of the role's list.
  # The account may remove what it may have put back even if the labels of the Node have changed since.
  expression: |-
    variables.rulesApply ?
    variables.oldTaints.filter(t, variables.rules[?t.key].orValue([]).exists(r,
        (!has(r.effect) || t.effect in r.effect) &&
        (!has(r.value) || t.?value.orValue('') in r.value) &&
        (!has(r.nodeSelector) || has(r.retaint) && t.?value.orValue('') in r.retaint ||
          r.nodeSelector.all(label, label in variables.labels))) &&
      !(t in variables.taints)) :
    variables.removed.size() > 2 ? [] : variables.removed.filter(t, authorizer.group('untaint.dev').resource('taints').name(t.key).check('remove').allowed())
- name: mayAdd
  # The added taints that the account may add: those of a rule's retaint or, if these rules do not apply, of the role's
  # list.
  expression: |-
    variables.rulesApply ?
    variables.taints.filter(t, variables.rules[?t.key].orValue([]).exists(r,
        (!has(r.effect) || t.effect in r.effect) &&
        has(r.retaint) && t.?value.orValue('') in r.retaint && !has(t.timeAdded) &&
        (!has(r.nodeSelector) || r.nodeSelector.all(label, label in variables.labels))) &&
      !(t in variables.oldTaints)) :
    variables.added.size() > 2 ? [] : variables.added.filter(t, !has(t.timeAdded) &&
      authorizer.group('untaint.dev').resource('taints').name(t.key).check('add').allowed())
- name: othersStay
  expression: |-
    variables.oldTaints.filter(t, !(t in variables.mayRemove)) ==
    variables.taints.filter(t, !(t in variables.mayAdd))
- name: removedText
  # For the message: a list with one string.
  expression: |-
    variables.oldTaints.size() + variables.taints.size() > 200 ? ['too many to list'] :
    [variables.removed.map(t, t.key + ':' + t.effect).join(', ')].map(all,
      all == '' ? 'none' : all.size() > 500 ? all.substring(0, 500) + '...' : all)
- name: addedText
  # For the message: a list with one string.
  expression: |-
    variables.oldTaints.size() + variables.taints.size() > 200 ? ['too many to list'] :
    [variables.added.map(t, t.key + ':' + t.effect).join(', ')].map(all,
      all == '' ? 'none' : all.size() > 500 ? all.substring(0, 500) + '...' : all)
{{- end }}
{{- define "untaint.policy.tenants.actions.deny" -}}
validationActions: [Deny]
{{- end }}
{{- define "untaint.policy.tenants.actions.warn-of-templates" -}}
# A user who creates a template gets this warning. A refusal of its pods would reach only their controller, and its
# Events.
validationActions: [Warn]
{{- end }}
{{- define "untaint.policy.tenants.actions.warn" -}}
# To try the policy: the policy refuses nothing; the audit log has an entry for each pod that it would refuse.
validationActions: [Warn, Audit]
{{- end }}
{{- define "untaint.policy.tenants.binding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  name: {{ .bindingName }}
spec:
  policyName: {{ .name }}
{{- with .actions }}{{ . | nindent 2 }}{{ end }}
  matchResources:
    # Defaults, as in the policy.
    matchPolicy: Equivalent
    objectSelector: {}
    namespaceSelector:
      matchExpressions:
      # These namespaces are exempt.
      - key: kubernetes.io/metadata.name
        operator: NotIn
        values: [{{ .exemptNamespaces }}]
      # Namespaces with this label are exempt. A user who may change a Namespace can exempt it, so tenants must not have
      # that permission.
      - key: untaint/may-tolerate-startup-taints
        operator: NotIn
        values: ["true"]
    {{ .podRules }}:
    - apiGroups: [""]
      apiVersions: ["*"]
      resources: [pods]
      operations: [{{ .operations }}]
      scope: "*"
{{- end }}
{{- define "untaint.policy.tenants.node-names" -}}
# A pod that is created with spec.nodeName runs on that Node without a scheduler, and only the scheduler keeps pods off
# a Node with a taint of the effect NoSchedule. The permission to bind pods (pods/binding, bindings) has the same
# effect, but only schedulers need it: the roles for users that come with Kubernetes do not have it.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  name: {{ .name }}
spec:
  # If an expression fails, the request is refused.
  failurePolicy: Fail
  matchConstraints:
{{- with .matchDefaults }}{{ . | nindent 4 }}{{ end }}
    resourceRules:
{{- with .podsAndTemplates }}{{ . | nindent 4 }}{{ end }}
  matchConditions:
{{- with .notAKubelet }}{{ . | nindent 2 }}{{ end }}
  variables:
{{- with .pod }}{{ . | nindent 2 }}{{ end }}
  validations:
  - expression: |-
      !has(variables.pod.nodeName) || variables.isExempt
    messageExpression: |-
      'pods in the namespace ' + request.namespace + ' may not choose their Node by spec.nodeName (' +
      variables.pod.?nodeName.orValue('') + '), which bypasses start-up taints: use nodeSelector or nodeAffinity' +
{{- with .remedy }}{{ . | nindent 6 }}{{ end }}
    reason: Forbidden
{{- end }}
{{- define "untaint.policy.tenants.not-a-kubelet" -}}
- name: not-a-kubelet
  # Kubelets create only mirror pods of static pods: the admission plugin NodeRestriction allows no others. A static pod
  # runs without its mirror pod too, so a refusal would only hide it.
  expression: |-
    !('system:nodes' in request.userInfo.groups)
{{- end }}
{{- define "untaint.policy.tenants.pod" -}}
- name: pod
  # The spec of the pod, or of the pods of a template.
  expression: |-
    request.resource.resource == 'pods' ? dyn(object).spec :
    request.resource.resource == 'podtemplates' ? dyn(object).template.spec :
    request.resource.resource == 'cronjobs' ? dyn(object).spec.jobTemplate.spec.template.spec :
    dyn(object).spec.template.spec
- name: isExempt
  # A pod names its own account, so everyone who may create pods in the namespace has this exemption. A pod cannot get
  # it later, because its account cannot change. untaint's own account is exempt by a permission that only its role
  # grants.
  expression: |-
    request.namespace + ':' + variables.pod.?serviceAccountName.orValue('default') in
    [{{ .exemptAccounts }}] ||
    authorizer.serviceAccount(request.namespace, variables.pod.?serviceAccountName.orValue('default')).group('untaint.dev').resource('{{ .mark }}').name('{{ .writtenAccount }}').check('hold').allowed() &&
    !authorizer.serviceAccount(request.namespace, variables.pod.?serviceAccountName.orValue('default')).group('untaint.dev').resource('{{ .mark }}').name('{{ .writtenAccount }}').check('never').allowed()
{{- end }}
{{- define "untaint.policy.tenants.pods-and-templates" -}}
- apiGroups: [""]
  apiVersions: ["*"]
  resources: [pods, podtemplates, replicationcontrollers]
  operations: [CREATE, UPDATE]
  scope: "*"
- apiGroups: [apps]
  apiVersions: ["*"]
  resources: [daemonsets, deployments, replicasets, statefulsets]
  operations: [CREATE, UPDATE]
  scope: "*"
- apiGroups: [batch]
  apiVersions: ["*"]
  resources: [cronjobs, jobs]
  operations: [CREATE, UPDATE]
  scope: "*"
{{- end }}
{{- define "untaint.policy.tenants.remedy" -}}
'; a cluster administrator can exempt the namespace, with the label untaint/may-tolerate-startup-taints=true or in the bindings of the policy {{ .name }}, or the ServiceAccount in the policy'
{{- end }}
{{- define "untaint.policy.tenants.tolerations" -}}
# A pod that tolerates a start-up taint runs on nodes that are not ready. Kubernetes adds tolerations to the pods of
# DaemonSets (node.kubernetes.io/...); none of them is for a start-up taint.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  name: {{ .name }}
spec:
  # If an expression fails, the request is refused.
  failurePolicy: Fail
  matchConstraints:
{{- with .matchDefaults }}{{ . | nindent 4 }}{{ end }}
    resourceRules:
{{- with .podsAndTemplates }}{{ . | nindent 4 }}{{ end }}
  matchConditions:
{{- with .notAKubelet }}{{ . | nindent 2 }}{{ end }}
  variables:
{{- with .pod }}{{ . | nindent 2 }}{{ end }}
  - name: taints
    # The taints of all rules, also of those with dryRun. Without a value or an effect, every value or effect counts.
    # Taints of the effect PreferNoSchedule keep no pod away and are not here.
    expression: |-
      [
{{- with .taints }}{{ . | nindent 8 }}{{ end }}
      ]
  - name: tolerations
    # An existing pod keeps its tolerations, so that its labels and finalizers can still change. The tolerations of a
    # template always count, because it creates new pods.
    expression: |-
      request.resource.resource == 'pods' && request.operation == 'UPDATE' &&
      variables.pod.?tolerations == dyn(oldObject).spec.?tolerations ? [] :
      variables.pod.?tolerations.orValue([]).filter(t,
        request.resource.resource != 'pods' || request.operation == 'CREATE' ||
        !dyn(oldObject).spec.?tolerations.orValue([]).exists(old,
          old.?key == t.?key && old.?operator == t.?operator && old.?value == t.?value && old.?effect == t.?effect))
  - name: bypasses
    # For each toleration of such a taint, which taints it tolerates, in words.
    expression: |-
      variables.tolerations.map(t, variables.taints.map(taint,
        t.?key.orValue('') in ['', taint.key] &&
        (has(taint.effect) ? t.?effect.orValue('') in ['', taint.effect] : t.?effect.orValue('') != 'PreferNoSchedule') &&
        (
          t.?operator.orValue('') in ['', 'Equal'] ?
            !has(taint.value) || t.?value.orValue('') == taint.value :
          t.operator == 'Lt' ?
            (has(taint.number) ? int(t.value) > int(taint.number) : !has(taint.value) && int(t.value) > 0) :
          t.operator == 'Gt' ?
            (has(taint.number) ? int(t.value) < int(taint.number) :
              !has(taint.value) && int(t.value) < 9223372036854775807) :
          true
        ),
        '{' + [
          ?t.?key.optMap(key, 'key: ' + key),
          ?t.?operator.optMap(operator, 'operator: ' + operator),
          ?t.?value.optMap(value, 'value: ' + value),
          ?t.?effect.optMap(effect, 'effect: ' + effect)
        ].join(', ') + '} tolerates ' +
        taint.key + taint.?value.optMap(value, '=' + value).orValue('') +
        taint.?effect.optMap(effect, ':' + effect).orValue('')
      )).filter(found, found.size() > 0)
  validations:
  - expression: |-
      variables.bypasses.size() == 0 || variables.isExempt
    messageExpression: |-
      'pods in the namespace ' + request.namespace + ' may not tolerate start-up taints: ' +
      variables.bypasses.map(found, found[0]).join('; ') +
{{- with .remedy }}{{ . | nindent 6 }}{{ end }}
    reason: Forbidden
{{- end }}
{{- define "untaint.rbac.flow-schema" -}}
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  name: {{ .name }}
spec:
  # Before those of all ServiceAccounts (900 and 9000), and after the one for the Nodes of kubelets (400).
  matchingPrecedence: 450
  priorityLevelConfiguration:
    # Where the requests of kubelets for their Nodes and Leases are.
    name: node-high
  # All agents together are one flow, and each kubelet is another. The server takes turns between flows, so all agents
  # together can delay kubelets no more than one kubelet can.
  distinguisherMethod:
    type: ByUser
  rules:
  - subjects:
    - kind: ServiceAccount
      serviceAccount:
        name: {{ .accountName }}
        namespace: {{ .namespace }}
    # What removals need. Events can wait. This grants nothing.
    resourceRules:
    - apiGroups: [""]
      resources: [nodes, nodes/status]
      verbs: [list, watch, get, patch]
      clusterScope: true
      namespaces: ["*"]
{{- with .observed }}{{ . | nindent 4 }}{{ end }}
{{- end }}
{{- define "untaint.rbac.role" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  name: {{ .name }}
{{- with .inNamespace }}{{ . | nindent 2 }}{{ end }}
rules:
{{- with .rules }}{{ . | nindent 0 }}{{ end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  name: {{ .name }}
{{- with .inNamespace }}{{ . | nindent 2 }}{{ end }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: {{ .accountName }}
  namespace: {{ .namespace }}
{{- end }}
{{- define "untaint.workload.affinity" -}}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions:
        - key: eks.amazonaws.com/compute-type
          operator: NotIn
          values: [fargate]
        - key: type
          operator: NotIn
          values: [virtual-kubelet]
{{- end }}
{{- define "untaint.workload.all-tolerations" -}}
tolerations:
- operator: Exists
{{- end }}
{{- define "untaint.workload.config-map" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  # The name contains a hash of the content, so a new configuration changes the pod template and rolls out.
  name: {{ .configMap }}
  namespace: {{ .namespace }}
data:
{{- with .configuration }}{{ . | nindent 2 }}{{ end }}
{{- end }}
{{- define "untaint.workload.config-mount" -}}
- name: untaint-config
  mountPath: /etc/untaint
  readOnly: true
{{- end }}
{{- define "untaint.workload.confinement" -}}
securityContext:
{{- with .user }}{{ . | nindent 2 }}{{ end }}
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
  seccompProfile:
    type: RuntimeDefault
{{- with .selinux }}{{ . | nindent 2 }}{{ end }}
resources:
  requests:
    cpu: 10m
    memory: 16Mi
  limits:
    memory: 64Mi
{{- end }}
{{- define "untaint.workload.container.init-container" -}}
- name: untaint
  image: {{ .image }}
  args: [run, --once, --config, {{ .config }}, --timeout, {{ .timeout }}]
{{- with .nodeName }}{{ . | nindent 2 }}{{ end }}
{{- with .confinement }}{{ . | nindent 2 }}{{ end }}
  volumeMounts:
{{- with .hostMounts }}{{ . | nindent 2 }}{{ end }}
{{- with .configMount }}{{ . | nindent 2 }}{{ end }}
{{- end }}
{{- define "untaint.workload.container.sidecar" -}}
- name: untaint
  restartPolicy: Always
  image: {{ .image }}
  args: [run, --config, {{ .config }}, --listen, "off"]
{{- with .nodeName }}{{ . | nindent 2 }}{{ end }}
{{- with .confinement }}{{ . | nindent 2 }}{{ end }}
  volumeMounts:
{{- with .hostMounts }}{{ . | nindent 2 }}{{ end }}
{{- with .configMount }}{{ . | nindent 2 }}{{ end }}
{{- end }}
{{- define "untaint.workload.daemonset" -}}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  name: {{ .accountName }}
  namespace: {{ .namespace }}
spec:
  selector:
    matchLabels:
{{- with .selector }}{{ . | nindent 6 }}{{ end }}
  updateStrategy:
    rollingUpdate:
      maxUnavailable: 10%
  template:
    metadata:
      labels:
{{- with .labels }}{{ . | nindent 8 }}{{ end }}
    spec:
      serviceAccountName: {{ .accountName }}
{{- with .pullSecrets }}{{ . | nindent 6 }}{{ end }}
      automountServiceAccountToken: true
{{- with .hostNetwork }}{{ . | nindent 6 }}{{ end }}
{{- with .tolerations }}{{ . | nindent 6 }}{{ end }}
{{- with .nodes }}{{ . | nindent 6 }}{{ end }}
      terminationGracePeriodSeconds: 5
      containers:
      - name: untaint
        image: {{ .image }}
        args: [run, --config, {{ .config }}]
{{- with .nodeName }}{{ . | nindent 8 }}{{ end }}
{{- with .confinement }}{{ . | nindent 8 }}{{ end }}
        readinessProbe:
          httpGet:
            host: 127.0.0.1
            port: 9468
            path: /readyz
          periodSeconds: 2
        volumeMounts:
{{- with .hostMounts }}{{ . | nindent 8 }}{{ end }}
{{- with .configMount }}{{ . | nindent 8 }}{{ end }}
      volumes:
{{- with .volumes }}{{ . | nindent 6 }}{{ end }}
{{- end }}
{{- define "untaint.workload.exact-tolerations" -}}
tolerations:
{{- with .ofRules }}{{ . | nindent 0 }}{{ end }}
- key: node.kubernetes.io/not-ready
  operator: Exists
  effect: NoSchedule
- key: node.cloudprovider.kubernetes.io/uninitialized
  operator: Exists
- key: karpenter.sh/unregistered
  operator: Exists
{{- end }}
{{- define "untaint.workload.host-network" -}}
hostNetwork: true
dnsPolicy: Default
{{- end }}
{{- define "untaint.workload.nobody" -}}
runAsUser: 65532
runAsGroup: 65532
runAsNonRoot: true
{{- end }}
{{- define "untaint.workload.node-name" -}}
env:
- name: NODE_NAME
  valueFrom:
    fieldRef:
      apiVersion: v1
      fieldPath: spec.nodeName
{{- end }}
{{- define "untaint.workload.nodes" -}}
priorityClassName: system-node-critical
nodeSelector:
  kubernetes.io/os: linux
{{- with .nodeSelector }}{{ . | nindent 2 }}{{ end }}
{{- with .affinity }}{{ . | nindent 0 }}{{ end }}
{{- end }}
{{- define "untaint.workload.root" -}}
runAsUser: 0
runAsGroup: 0
{{- end }}
{{- define "untaint.workload.service-account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  labels:
{{- with .labels }}{{ . | nindent 4 }}{{ end }}
  name: {{ .accountName }}
  namespace: {{ .namespace }}
{{- end }}
{{- define "untaint.workload.volumes" -}}
{{- with .hostVolumes }}{{ . | nindent 0 }}{{ end }}
- name: untaint-config
  configMap:
    name: {{ .configMap }}
{{- end }}
{{- define "untaint.not-of-host" -}}
{"/dev/disk":"it is a symbolic link to a device, which a pod does not see; use a gate for a file under /sys","/dev/mapper":"it is a symbolic link to a device, which a pod does not see; use a gate for a file under /sys","/proc/acpi":"container runtimes hide it from containers; use a gate for another file","/proc/asound":"container runtimes hide it from containers; use a gate for another file","/proc/interrupts":"container runtimes hide it from containers; use a gate for another file","/proc/kcore":"container runtimes hide it from containers; use a gate for another file","/proc/keys":"container runtimes hide it from containers; use a gate for another file","/proc/latency_stats":"container runtimes hide it from containers; use a gate for another file","/proc/sched_debug":"container runtimes hide it from containers; use a gate for another file","/proc/scsi":"container runtimes hide it from containers; use a gate for another file","/proc/self":"a container sees only its own processes; use a gate for what the process offers, such as a file or a socket","/proc/sys/fs/binfmt_misc":"a container has another file system there than the host; use a gate for another file","/proc/thread-self":"a container sees only its own processes; use a gate for what the process offers, such as a file or a socket","/proc/timer_list":"container runtimes hide it from containers; use a gate for another file","/proc/timer_stats":"container runtimes hide it from containers; use a gate for another file","/sys/devices/virtual/powercap":"container runtimes hide it from containers; use a gate for another file","/sys/firmware":"container runtimes hide it from containers; use a gate for another file","/sys/fs/bpf":"a container has another file system there than the host; use a gate for another file","/sys/fs/cgroup":"a container has another file system there than the host; use a gate for another file","/sys/fs/pstore":"a container has another file system there than the host; use a gate for another file","/sys/kernel/config":"a container has another file system there than the host; use a gate for another file","/sys/kernel/debug":"a container has another file system there than the host; use a gate for another file","/sys/kernel/security":"a container has another file system there than the host; use a gate for another file","/sys/kernel/tracing":"a container has another file system there than the host; use a gate for another file"}
{{- end }}
{{- define "untaint.processes" -}}
a container sees only its own processes; use a gate for what the process offers, such as a file or a socket
{{- end }}
