// Package validation sets the defaults of gitfleet's kinds, and validates them.
//
// Manifests in Git have not been through an API server. The rules here are those of KubeFleet's
// schema and webhooks for a single manifest, and the error messages contain KubeFleet's
// messages. Rules that need other objects of the commit are in package hub.
package validation

import (
	"fmt"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// CheckPlacement validates a placement whose defaults are set.
func CheckPlacement(r *document.Report, id api.ID, annotations map[string]string, spec *api.PlacementSpec) {
	checkName(r, id.Name, "the name field cannot have length exceeding 63")
	checkAnnotations(r, annotations, placementAnnotations)
	checkTerms(r, id, spec)
	between(r, r.Field("spec", "revisionHistoryLimit"), *spec.RevisionHistoryLimit, 1, 1000)
	checkPolicy(r, r.Field("spec", "policy"), spec.Policy)
	checkStrategy(r, r.Field("spec", "strategy"), &spec.Strategy)
	for i := range spec.Policy.ClusterNames {
		r.RecordLine(r.Field("spec", "policy", "clusterNames").At(i))
	}
}

// checkName applies the rules for names of gitfleet's kinds.
func checkName(r *document.Report, name, tooLong string) {
	p := r.Field("metadata", "name")
	if len(name) > 63 {
		r.Rulef(p, "%s; it has %d", tooLong, len(name))
		return
	}
	for _, msg := range validation.IsDNS1123Subdomain(name) {
		r.Rulef(p, "%q is not a valid name: %s", name, msg)
	}
}

func between(r *document.Report, p *document.FieldPath, value, low, high int32) {
	if value < low || value > high {
		r.Rulef(p, "must be between %d and %d, not %d", low, high, value)
	}
}

// CheckLength reports an error unless the number n of a list's entries is between low and high.
func CheckLength(r *document.Report, p *document.FieldPath, n, low, high int) {
	switch {
	case n < low:
		r.Rulef(p, "must have at least %d entry", low)
	case n > high:
		r.Rulef(p, "must have at most %d entries, and has %d", high, n)
	}
}

func checkTerms(r *document.Report, id api.ID, spec *api.PlacementSpec) {
	terms := spec.ResourceSelectors
	at := r.Field("spec", "resourceSelectors")
	CheckLength(r, at, len(terms), 1, 100)
	for i := range terms {
		checkTerm(r, at.At(i), &terms[i])
		r.RecordLine(at.At(i).Child("kind"))
	}
	checkNamespaceTerms(r, at, terms)
	namespaces := 0
	for _, t := range terms {
		if t.Kind == "Namespace" {
			namespaces++
		}
	}
	if id.Namespace == "" && spec.StatusReportingScope == api.NamespaceAccessible && namespaces != 1 {
		r.Rulef(r.Field("spec", "statusReportingScope"),
			"when statusReportingScope is NamespaceAccessible, exactly one resourceSelector with kind 'Namespace' is required")
	}
	checkTermScopes(r, at, terms, id.Namespace != "")
}

func checkTerm(r *document.Report, p *document.FieldPath, term *api.ResourceSelectorTerm) {
	if term.Name != "" && term.LabelSelector != nil {
		r.Rulef(p, "name and labelSelector are mutually exclusive in a resource selector; remove one of them")
	}
	notEmpty(r, p.Child("kind"), term.Kind)
	notEmpty(r, p.Child("version"), term.Version)
	checkLabelSelector(r, p.Child("labelSelector"), term.LabelSelector, "the labelSelector in resource selector is invalid")
}

func notEmpty(r *document.Report, p *document.FieldPath, value string) {
	if value == "" {
		r.Rulef(p, "must not be empty")
	}
}

func checkLabelSelector(r *document.Report, p *document.FieldPath, s *metav1.LabelSelector, what string) {
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		r.Rulef(p, "%s: %v", what, err)
	}
}

func isNamespaceTerm(t api.ResourceSelectorTerm) bool {
	return t.Group == "" && t.Version == "v1" && t.Kind == "Namespace"
}

// selectsInNamespace reports whether a term selects a Namespace of which other terms select
// single objects.
func selectsInNamespace(t api.ResourceSelectorTerm) bool {
	return isNamespaceTerm(t) && t.SelectionScope == api.NamespaceWithResourceSelectors
}

func checkNamespaceTerms(r *document.Report, at *document.FieldPath, terms []api.ResourceSelectorTerm) {
	first := -1
	for i, t := range terms {
		if !selectsInNamespace(t) {
			continue
		}
		if first >= 0 {
			r.Rulef(at.At(i), "only one namespace selector with NamespaceWithResourceSelectors mode is allowed")
			continue
		}
		first = i
		if t.Name == "" || t.LabelSelector != nil {
			r.Rulef(at.At(i), "namespace selector with NamespaceWithResourceSelectors mode must select by name (not by label)")
		}
	}
	for i, t := range terms {
		if first >= 0 && isNamespaceTerm(t) && !selectsInNamespace(t) {
			r.Rulef(at.At(i), "when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed (cannot mix with other namespace selectors)")
		}
	}
}

// checkTermScopes refuses kinds that the placement cannot select.
func checkTermScopes(r *document.Report, at *document.FieldPath, terms []api.ResourceSelectorTerm, inNamespace bool) {
	for i, t := range terms {
		namespaced, known := api.Namespaced(api.GroupKind{Group: t.Group, Kind: t.Kind})
		if msg := SelectionFault(terms, t.Kind, namespaced, known, inNamespace); msg != "" {
			r.Rulef(at.At(i).Child("kind"), "%s", msg)
		}
	}
}

// SelectionFault returns why a placement cannot select a kind; empty if it can, or if the scope
// of the kind is not known. inNamespace says that the placement is a ResourcePlacement.
func SelectionFault(terms []api.ResourceSelectorTerm, kind string, namespaced, known, inNamespace bool) string {
	switch {
	case known && inNamespace && !namespaced:
		return fmt.Sprintf("%s is a cluster scoped resource, which a ResourcePlacement cannot select; use a ClusterResourcePlacement", kind)
	case known && !inNamespace && namespaced && !slices.ContainsFunc(terms, selectsInNamespace):
		return fmt.Sprintf("%s is not a cluster scoped resource; select its Namespace by name with selectionScope: NamespaceWithResourceSelectors beside it, or use a ResourcePlacement", kind)
	}
	return ""
}

func checkStrategy(r *document.Report, p *document.FieldPath, s *api.RolloutStrategy) {
	if s.Type == api.External && s.RollingUpdate != nil {
		// "Conifg" is KubeFleet's spelling, which users search for.
		r.Rulef(p.Child("rollingUpdate"), "rollingUpdateConifg is not valid for ExternalRollout strategy type; remove it")
	}
	if s.RollingUpdate != nil {
		checkRollingUpdate(r, p.Child("rollingUpdate"), s.RollingUpdate)
	}
	if a := s.ApplyStrategy; a.ServerSideApplyConfig != nil && a.Type != api.ServerSideApply {
		r.Rulef(p.Child("applyStrategy", "serverSideApplyConfig"), "serverSideApplyConfig is only valid for ServerSideApply strategy type; remove it, or write type: ServerSideApply")
	}
	checkReportBack(r, p.Child("reportBackStrategy"), s.ReportBackStrategy)
}

func checkReportBack(r *document.Report, p *document.FieldPath, s *api.ReportBackStrategy) {
	switch {
	case s == nil || s.Type != api.ReportBackMirror:
	case s.Destination == nil:
		r.Rulef(p.Child("destination"), "when reportBackStrategy.type is 'Mirror', a destination must be specified")
	case *s.Destination == api.ReportBackOriginalResource:
		r.Warnf(p.Child("destination"), "OriginalResource has no effect: a Git repository has no object to write the status to; use WorkAPI, or remove reportBackStrategy")
	}
}

func checkRollingUpdate(r *document.Report, p *document.FieldPath, u *api.RollingUpdateConfig) {
	ok := checkAmount(r, p, "maxUnavailable", u.MaxUnavailable)
	ok = checkAmount(r, p, "maxSurge", u.MaxSurge) && ok
	if n := *u.UnavailablePeriodSeconds; n < 0 {
		r.Rulef(p.Child("unavailablePeriodSeconds"), "unavailablePeriodSeconds must be greater than or equal to 0, got %d", n)
	}
	switch {
	case !ok || !isZero(u.MaxUnavailable):
	case isZero(u.MaxSurge):
		r.Rulef(p, "maxUnavailable and maxSurge are both 0, so nothing could ever be rolled out; raise one of them, for example maxUnavailable: 1")
	default:
		r.Warnf(p.Child("maxUnavailable"), "0 lets no update reach a cluster that is available: maxSurge lets clusters be added, and updates none; write 1 or more")
	}
}

var percentage = regexp.MustCompile(`^(100|[0-9]{1,2})%$`)

func checkAmount(r *document.Report, p *document.FieldPath, name string, v *intstr.IntOrString) bool {
	switch {
	case v.Type == intstr.String && !percentage.MatchString(v.StrVal):
		r.Rulef(p.Child(name), "%s `%s` is invalid: write a whole number without quotes, or a percentage from 0%% to 100%%", name, v.StrVal)
	case v.Type == intstr.Int && v.IntVal < 0:
		r.Rulef(p.Child(name), "%s must be greater than or equal to 0, got `%d`", name, v.IntVal)
	default:
		return true
	}
	return false
}

func isZero(v *intstr.IntOrString) bool {
	return v.String() == "0" || v.String() == "0%" || v.String() == "00%"
}
