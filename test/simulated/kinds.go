package simulated

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kind describes how a cluster serves one kind of object.
type kind struct {
	schema.GroupVersionKind
	plural     string
	namespaced bool
	status     bool // it has a status of its own, written apart
	scale      bool
	counted    bool // it has a generation
	custom     bool // defined by a CustomResourceDefinition
	short      []string
}

func (k *kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.plural}
}

var verbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// builtIn are the kinds of every cluster.
var builtIn = []*kind{
	core("Namespace", "namespaces", status, cluster, named("ns")),
	core("ConfigMap", "configmaps", named("cm")),
	core("Secret", "secrets"),
	core("Service", "services", status, named("svc")),
	core("ServiceAccount", "serviceaccounts", named("sa")),
	core("Pod", "pods", status, counted, named("po")),
	core("Node", "nodes", status, cluster, named("no")),
	core("PersistentVolumeClaim", "persistentvolumeclaims", status, named("pvc")),
	core("PersistentVolume", "persistentvolumes", status, cluster, named("pv")),
	core("Event", "events", named("ev")),
	core("Endpoints", "endpoints", named("ep")),
	core("LimitRange", "limitranges"),
	core("ResourceQuota", "resourcequotas", status),
	of("apps", "v1", "Deployment", "deployments", status, scaled, counted, named("deploy")),
	of("apps", "v1", "StatefulSet", "statefulsets", status, scaled, counted, named("sts")),
	of("apps", "v1", "DaemonSet", "daemonsets", status, counted, named("ds")),
	of("apps", "v1", "ReplicaSet", "replicasets", status, scaled, counted, named("rs")),
	of("batch", "v1", "Job", "jobs", status, counted),
	of("batch", "v1", "CronJob", "cronjobs", status, counted, named("cj")),
	of("networking.k8s.io", "v1", "Ingress", "ingresses", status, counted, named("ing")),
	of("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", counted, named("netpol")),
	of("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", status, counted, named("pdb")),
	of("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", status, named("hpa")),
	of("rbac.authorization.k8s.io", "v1", "Role", "roles"),
	of("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
	of("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", cluster),
	of("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", cluster),
	of("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", cluster, counted),
	of("storage.k8s.io", "v1", "StorageClass", "storageclasses", cluster),
	of("coordination.k8s.io", "v1", "Lease", "leases"),
	of("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", counted),
	of("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", cluster, status, counted, named("crd")),
}

func core(name, plural string, how ...func(*kind)) *kind { return of("", "v1", name, plural, how...) }

func of(group, version, name, plural string, how ...func(*kind)) *kind {
	k := &kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: name}, plural: plural, namespaced: true}
	for _, do := range how {
		do(k)
	}
	return k
}

func status(k *kind)  { k.status = true }
func scaled(k *kind)  { k.scale = true }
func cluster(k *kind) { k.namespaced = false }
func counted(k *kind) { k.counted = true }

func named(short string) func(*kind) { return func(k *kind) { k.short = []string{short} } }

// definition is the kind of definitions of other kinds.
var definition = builtIn[len(builtIn)-1]

// namespaceKind and the others here are treated specially.
var namespaceKind = builtIn[0]

// kinds returns all served kinds, the custom ones last. The lock must be held.
func (c *Cluster) kinds() []*kind {
	if len(c.defined) == 0 {
		return builtIn
	}
	out := slices.Clone(builtIn)
	for _, list := range c.defined {
		out = append(out, list...)
	}
	slices.SortStableFunc(out[len(builtIn):], func(a, b *kind) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// served finds the kind of a resource; nil if there is none.
func (c *Cluster) served(group, version, plural string) *kind {
	for _, k := range c.kinds() {
		if k.Group == group && k.Version == version && k.plural == plural {
			return k
		}
	}
	return nil
}

// defines returns the kinds of a CustomResourceDefinition.
func defines(crd map[string]any) []*kind {
	spec, _ := crd["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	group, _ := spec["group"].(string)
	name, _ := names["kind"].(string)
	plural, _ := names["plural"].(string)
	versions, _ := spec["versions"].([]any)
	var out []*kind
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if served, _ := version["served"].(bool); !served || plural == "" {
			continue
		}
		number, _ := version["name"].(string)
		k := of(group, number, name, plural, counted)
		k.custom, k.namespaced = true, spec["scope"] != "Cluster"
		sub, _ := version["subresources"].(map[string]any)
		_, k.status = sub["status"]
		_, k.scale = sub["scale"]
		out = append(out, k)
	}
	return out
}
