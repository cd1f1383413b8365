package api

import (
	"maps"
	"slices"
	"strings"
)

// Namespaced reports whether a kind is namespaced, for the kinds of Kubernetes and of gitfleet;
// known is false for all others. Snapshot.Namespaced of package hub has the custom kinds.
func Namespaced(gk GroupKind) (namespaced, known bool) {
	if k, ours := ManifestKinds[gk]; ours {
		return k.Namespaced, true
	}
	namespaced, known = scopes[gk]
	return namespaced, known
}

// KnownKinds returns the kinds that Namespaced knows, in no particular order.
func KnownKinds() []GroupKind {
	return slices.AppendSeq(slices.Collect(maps.Keys(scopes)), maps.Keys(ManifestKinds))
}

// BuiltInGroup reports whether kube-apiserver itself serves an API group, or an older version did.
func BuiltInGroup(group string) bool { return builtInGroups[group] }

var builtInGroups = map[string]bool{
	"": true, "apps": true, "autoscaling": true, "batch": true, "extensions": true, "policy": true,
	"admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true, "authentication.k8s.io": true,
	"authorization.k8s.io": true, "certificates.k8s.io": true, "coordination.k8s.io": true, "discovery.k8s.io": true, "events.k8s.io": true,
	"flowcontrol.apiserver.k8s.io": true, "internal.apiserver.k8s.io": true, "networking.k8s.io": true, "node.k8s.io": true,
	"rbac.authorization.k8s.io": true, "resource.k8s.io": true, "scheduling.k8s.io": true, "storage.k8s.io": true, "storagemigration.k8s.io": true,
}

// scopes are those of Kubernetes 1.36, and of some kinds of older versions that manifests still
// use.
var scopes = scopeTable(
	[]kindsOf{
		{"", "ComponentStatus Namespace Node PersistentVolume"},
		{"admissionregistration.k8s.io", "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration " +
			"ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"},
		{"apiextensions.k8s.io", "CustomResourceDefinition"},
		{"apiregistration.k8s.io", "APIService"},
		{"authentication.k8s.io", "SelfSubjectReview TokenReview"},
		{"authorization.k8s.io", "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"},
		{"certificates.k8s.io", "CertificateSigningRequest ClusterTrustBundle"},
		{"extensions", "PodSecurityPolicy"},
		{"flowcontrol.apiserver.k8s.io", "FlowSchema PriorityLevelConfiguration"},
		{"imagepolicy.k8s.io", "ImageReview"},
		{"internal.apiserver.k8s.io", "StorageVersion"},
		{"metrics.k8s.io", "NodeMetrics"},
		{"networking.k8s.io", "IPAddress IngressClass ServiceCIDR"},
		{"node.k8s.io", "RuntimeClass"},
		{"policy", "PodSecurityPolicy"},
		{"rbac.authorization.k8s.io", "ClusterRole ClusterRoleBinding"},
		{"resource.k8s.io", "DeviceClass DeviceTaintRule ResourcePoolStatusRequest ResourceSlice"},
		{"scheduling.k8s.io", "PriorityClass"},
		{"storage.k8s.io", "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass"},
		{"storagemigration.k8s.io", "StorageVersionMigration"},
	},
	[]kindsOf{
		{"", "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate " +
			"ReplicationController ResourceQuota Secret Service ServiceAccount"},
		{"apps", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"},
		{"authorization.k8s.io", "LocalSubjectAccessReview"},
		{"autoscaling", "HorizontalPodAutoscaler Scale"},
		{"batch", "CronJob Job"},
		{"certificates.k8s.io", "PodCertificateRequest"},
		{"coordination.k8s.io", "Lease LeaseCandidate"},
		{"discovery.k8s.io", "EndpointSlice"},
		{"events.k8s.io", "Event"},
		{"extensions", "DaemonSet Deployment Ingress NetworkPolicy ReplicaSet"},
		{"lifecycle.k8s.io", "Eviction EvictionRequest"},
		{"metrics.k8s.io", "PodMetrics"},
		{"networking.k8s.io", "Ingress NetworkPolicy"},
		{"policy", "Eviction PodDisruptionBudget"},
		{"rbac.authorization.k8s.io", "Role RoleBinding"},
		{"resource.k8s.io", "ResourceClaim ResourceClaimTemplate"},
		{"scheduling.k8s.io", "CompositePodGroup PodGroup Workload"},
		{"storage.k8s.io", "CSIStorageCapacity"},
	},
)

type kindsOf struct{ group, kinds string }

func scopeTable(cluster, namespaced []kindsOf) map[GroupKind]bool {
	table := map[GroupKind]bool{}
	for i, g := range slices.Concat(cluster, namespaced) {
		for kind := range strings.FieldsSeq(g.kinds) {
			table[GroupKind{Group: g.group, Kind: kind}] = i >= len(cluster)
		}
	}
	return table
}

// UsuallyNamespaced reports whether a custom kind of a widely used API group is namespaced there; known is false for other groups. It
// is a guess, for manifests without a namespace whose kind the commit does not define.
func UsuallyNamespaced(gk GroupKind) (namespaced, known bool) {
	clusterScoped, known := usualGroups[gk.Group]
	return known && !slices.Contains(strings.Fields(clusterScoped), gk.Kind), known
}

// usualGroups are API groups of widely used operators, and which of their kinds are cluster-scoped; all others are namespaced.
var usualGroups = map[string]string{
	"acid.zalan.do":                  "",
	"acme.cert-manager.io":           "",
	"addons.cluster.x-k8s.io":        "",
	"argoproj.io":                    "ClusterAnalysisTemplate ClusterEventBus ClusterWorkflowTemplate",
	"bitnami.com":                    "",
	"bootstrap.cluster.x-k8s.io":     "",
	"ceph.rook.io":                   "",
	"cert-manager.io":                "ClusterIssuer",
	"cluster.x-k8s.io":               "",
	"controlplane.cluster.x-k8s.io":  "",
	"external-secrets.io":            "ClusterExternalSecret ClusterPushSecret ClusterSecretStore",
	"externaldns.k8s.io":             "",
	"flagger.app":                    "",
	"fluxcd.controlplane.io":         "",
	"gateway.envoyproxy.io":          "",
	"gateway.networking.k8s.io":      "GatewayClass",
	"generators.external-secrets.io": "ClusterGenerator",
	"grafana.integreatly.org":        "",
	"helm.cattle.io":                 "",
	"helm.toolkit.fluxcd.io":         "",
	"image.toolkit.fluxcd.io":        "",
	"k8s.cni.cncf.io":                "",
	"k8s.mariadb.com":                "",
	"kafka.strimzi.io":               "",
	"karpenter.k8s.aws":              "AWSNodeTemplate EC2NodeClass",
	"karpenter.sh":                   "Machine NodeClaim NodeOverlay NodePool Provisioner",
	"keda.sh":                        "ClusterCloudEventSource ClusterTriggerAuthentication",
	"kustomize.toolkit.fluxcd.io":    "",
	"kyverno.io":                     "ClusterCleanupPolicy ClusterPolicy GlobalContextEntry",
	"longhorn.io":                    "",
	"metallb.io":                     "",
	"monitoring.coreos.com":          "",
	"networking.istio.io":            "",
	"notification.toolkit.fluxcd.io": "",
	"opentelemetry.io":               "",
	"operator.victoriametrics.com":   "",
	"policy.linkerd.io":              "",
	"postgresql.cnpg.io":             "ClusterImageCatalog",
	"projectcontour.io":              "",
	"rabbitmq.com":                   "",
	"route.openshift.io":             "",
	"secrets-store.csi.x-k8s.io":     "",
	"security.istio.io":              "",
	"snapshot.storage.k8s.io":        "VolumeSnapshotClass VolumeSnapshotContent",
	"source.extensions.fluxcd.io":    "",
	"source.toolkit.fluxcd.io":       "",
	"telemetry.istio.io":             "",
	"traefik.io":                     "",
	"velero.io":                      "",
	"volsync.backube":                "",
}
