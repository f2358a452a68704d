package main

// The commands that install a controller, from its own documentation.
const (
	headwaterInstall = `helm install headwater deploy/helm/headwater --namespace headwater-system --create-namespace --values values.yaml
`
	replicatorInstall = `helm repo add mittwald https://helm.mittwald.de
helm repo update
helm upgrade --install kubernetes-replicator mittwald/kubernetes-replicator
`
	reflectorInstall = `helm repo add emberstack https://emberstack.github.io/helm-charts
helm repo update
helm upgrade --install reflector emberstack/reflector
`
	reloaderInstall = `helm repo add stakater https://stakater.github.io/stakater-charts
helm repo update
helm install reloader stakater/reloader
`
	waveInstall = `helm repo add wave-k8s https://wave-k8s.github.io/wave/
helm install wave wave-k8s/wave
`
	kyvernoInstall = `helm repo add kyverno https://kyverno.github.io/kyverno/
kubectl create namespace kyverno
helm install kyverno --namespace kyverno kyverno/kyverno
`
)

const headwaterSetup = `# Headwater's configuration file, or these rules added to it:
apiVersion: headwater.dev/v1alpha1
kind: Config
rules:
- name: PREFIX
  source: {kind: Secret, namespace: PREFIX-src, name: PREFIX-shared}
  sync: {namespaces: {include: ["PREFIX-t-*"]}}
- name: PREFIX-crowd
  source: {kind: Secret, namespace: PREFIX-crowd, name: PREFIX-shared}
  reload: {debounce: 0s, minInterval: 0s, maxRestartsPerHour: 0}
reload: {maxConcurrentRollouts: 0, maxConcurrentRolloutsPerNamespace: 0}
`

const kyvernoSetup = `# A permission for two of Kyverno's controllers, and a policy. Apply the permission first.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: PREFIX-kyverno
  labels:
    rbac.kyverno.io/aggregate-to-admission-controller: "true"
    rbac.kyverno.io/aggregate-to-background-controller: "true"
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, list, watch, create, update, patch, delete]}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: PREFIX
spec:
  rules:
  - name: clone
    match: {any: [{resources: {kinds: [Namespace], names: ["PREFIX-t-*"]}}]}
    generate:
      generateExisting: true
      apiVersion: v1
      kind: Secret
      name: PREFIX-shared
      namespace: "{{request.object.metadata.name}}"
      synchronize: true
      clone: {namespace: PREFIX-src, name: PREFIX-shared}
`
