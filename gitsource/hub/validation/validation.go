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
	if a := spec.Policy.Affinity; a != nil {
		at := r.Field("spec", "policy", "affinity")
		for i := range a.PlacementAffinity {
			r.RecordLine(at.Child("placementAffinity").At(i).Child("name"))
		}
		for i := range a.PlacementAntiAffinity {
			r.RecordLine(at.Child("placementAntiAffinity").At(i).Child("name"))
		}
	}
	if annotations[api.StagedUpdateStrategyAnnotation] != "" {
		r.RecordLine(r.Field("metadata", "annotations", api.StagedUpdateStrategyAnnotation))
	}
}

// checkName applies the rules for names of gitfleet's kinds.
func checkName(r *document.Report, name, tooLong string) {
	p := r.Field("metadata", "name")
	if len(name) > 63 {
		r.Rulef(p, "%s; it has %d", tooLong, len(name))
		return
	}
	rules(r, p, validation.IsDNS1123Subdomain(name), "%q is not a valid name", name)
}

func checkTerms(r *document.Report, id api.ID, spec *api.PlacementSpec) {
	terms := spec.ResourceSelectors
	at := r.Field("spec", "resourceSelectors")
	CheckLength(r, at, len(terms), 1, 100)
	r.RecordLine(at)
	r.RecordLine(r.Field("spec", "policy"))
	namespaces := 0
	for i, t := range terms {
		p := at.At(i)
		r.RecordLine(p)
		if t.Name != "" && t.LabelSelector != nil {
			r.Rulef(p, "name and labelSelector are mutually exclusive in a resource selector; remove one of them")
		}
		notEmpty(r, p.Child("kind"), t.Kind)
		notEmpty(r, p.Child("version"), t.Version)
		checkLabelSelector(r, p.Child("labelSelector"), t.LabelSelector, "the labelSelector in resource selector is invalid")
		namespaced, known := api.Namespaced(api.GroupKind{Group: t.Group, Kind: t.Kind})
		if msg := SelectionFault(terms, t.Kind, namespaced, known, id.Namespace != ""); msg != "" {
			r.Rulef(p.Child("kind"), "%s", msg)
		}
		r.RecordLine(p.Child("kind"))
		if t.Kind == "Namespace" {
			namespaces++
		}
	}
	checkNamespaceTerms(r, at, terms)
	if id.Namespace == "" && spec.StatusReportingScope == api.NamespaceAccessible && namespaces != 1 {
		r.Rulef(r.Field("spec", "statusReportingScope"),
			"when statusReportingScope is NamespaceAccessible, exactly one resourceSelector with kind 'Namespace' is required")
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
	first := slices.IndexFunc(terms, selectsInNamespace)
	for i, t := range terms {
		switch {
		case first < 0 || !isNamespaceTerm(t):
		case !selectsInNamespace(t):
			r.Rulef(at.At(i), "when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed (cannot mix with other namespace selectors)")
		case i != first:
			r.Rulef(at.At(i), "only one namespace selector with NamespaceWithResourceSelectors mode is allowed")
		case t.Name == "" || t.LabelSelector != nil:
			r.Rulef(at.At(i), "namespace selector with NamespaceWithResourceSelectors mode must select by name (not by label)")
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
	switch destination := p.Child("reportBackStrategy", "destination"); {
	case s.ReportBackStrategy == nil || s.ReportBackStrategy.Type != api.ReportBackMirror:
	case s.ReportBackStrategy.Destination == nil:
		r.Rulef(destination, "when reportBackStrategy.type is 'Mirror', a destination must be specified")
	case *s.ReportBackStrategy.Destination == api.ReportBackOriginalResource:
		r.Warnf(destination, "OriginalResource has no effect: a Git repository has no object to write the status to; use WorkAPI, or remove reportBackStrategy")
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
