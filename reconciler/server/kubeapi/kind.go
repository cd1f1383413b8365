package kubeapi

import (
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/printer"
)

// A kind says how objects of one kind are served.
type kind struct {
	group, name      string
	plural, singular string
	// versions are the served versions, the preferred one first. Objects in the store have that
	// version.
	versions   []string
	namespaced bool
	short      []string
	categories []string
	columns    []printer.Column
	// fields are the selectable fields except name and namespace.
	fields []string
	// declared says that the objects come from the manifests of the commit in force. Those of
	// other kinds come from the report.
	declared bool
	// generated says that no manifest declares the objects: gitfleet itself writes them.
	generated bool
	// approvals says that its objects are approval requests, whose status may be written to approve them.
	approvals bool
	// verbs are the supported verbs; nil for those that read.
	verbs []string
	// lacks are the fields that a version does not have, as in api.Kind.
	lacks map[string][]string
	// alpha are the columns of v1alpha1; nil if it has the same.
	alpha []printer.Column
}

// storeKey is the key of the kind in the store.
func (k *kind) storeKey() schema.GroupVersionResource { return k.resource(k.versions[0]) }

func (k *kind) resource(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.group, Version: version, Resource: k.plural}
}

func (k *kind) gvk(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.group, Version: version, Kind: k.name}
}

// discovered returns the kind's discovery.
func (k *kind) discovered(version string) metav1.APIResource {
	return metav1.APIResource{
		Name: k.plural, SingularName: k.singular, Namespaced: k.namespaced, Kind: k.name, Version: version, Group: k.group,
		Verbs: append(metav1.Verbs{}, k.allowed()...), ShortNames: k.short, Categories: k.categories,
	}
}

var readVerbs = []string{"get", "list", "watch"}

func (k *kind) allowed() []string {
	if k.verbs != nil {
		return k.verbs
	}
	return readVerbs
}

var (
	placementCategories = []string{"fleet", "fleet-placement"}
	clusterCategories   = []string{"fleet", "fleet-cluster"}
)

func fleetKind(group, name string, columns []printer.Column) *kind {
	k := api.ManifestKinds[schema.GroupKind{Group: group, Kind: name}]
	out := &kind{
		group: group, name: k.Kind, plural: k.Plural, singular: strings.ToLower(k.Kind), versions: k.Versions,
		namespaced: k.Namespaced, categories: placementCategories, columns: columns, lacks: k.Lacks,
	}
	if group == api.ClusterGroup {
		out.categories = clusterCategories
	}
	if k.ShortName != "" {
		out.short = []string{k.ShortName}
	}
	return out
}

// withAlpha gives a kind other columns in v1alpha1.
func withAlpha(k *kind, columns []printer.Column) *kind {
	k.alpha = columns
	return k
}

// columnsOf are the columns of a version.
func (k *kind) columnsOf(version string) []printer.Column {
	if version == "v1alpha1" && k.alpha != nil {
		return k.alpha
	}
	return k.columns
}

// declaredKind returns a kind of configuration that has no status.
func declaredKind(name string) *kind {
	return configurationKind(api.PlacementGroup, name, printer.Manifests)
}

// configurationKind returns a kind of configuration of a group, with columns of its own.
func configurationKind(group, name string, columns []printer.Column) *kind {
	k := fleetKind(group, name, columns)
	k.declared = true
	return k
}

// approvalKind returns a kind of approval requests.
func approvalKind(name string) *kind {
	k := fleetKind(api.PlacementGroup, name, printer.ApprovalRequests)
	k.approvals = true
	return k
}

// accessReviews are created by "kubectl auth can-i" and by dashboards to check a permission; they are
// not stored.
var accessReviews = &kind{
	group: authorizationv1.GroupName, name: "SelfSubjectAccessReview", plural: "selfsubjectaccessreviews", singular: "selfsubjectaccessreview",
	versions: []string{"v1"}, verbs: []string{"create"},
}

// writeVerbs are the verbs with which the status of an approval request may be written.
var writeVerbs = []string{"update", "patch"}
