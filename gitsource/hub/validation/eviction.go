package validation

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// CheckEviction validates an eviction.
func CheckEviction(r *document.Report, id api.ID, spec *api.EvictionSpec) {
	checkName(r, id.Name, "the name field cannot have length exceeding 63")
	for field, value := range map[string]string{"placementName": spec.PlacementName, "clusterName": spec.ClusterName} {
		notEmpty(r, r.Field("spec", field), value)
		if len(value) > 255 {
			r.Rulef(r.Field("spec", field), "is longer than 255 characters; write the name of an object of the repository")
		}
	}
	r.RecordLine(r.Field("spec", "placementName"))
}

var share = regexp.MustCompile(`^(100|[0-9]{1,2})%$`)

// CheckDisruptionBudget validates a budget.
func CheckDisruptionBudget(r *document.Report, id api.ID, spec *api.DisruptionBudgetSpec) {
	checkName(r, id.Name, "the name field cannot have length exceeding 63")
	if spec.MaxUnavailable != nil && spec.MinAvailable != nil {
		r.Rulef(r.Field("spec"), "Both MaxUnavailable and MinAvailable cannot be specified; remove one of them")
	}
	for field, v := range map[string]*intstr.IntOrString{"maxUnavailable": spec.MaxUnavailable, "minAvailable": spec.MinAvailable} {
		p := r.Field("spec", field)
		switch {
		case v == nil:
			continue
		case v.Type == intstr.String && !share.MatchString(v.StrVal), v.Type == intstr.Int && v.IntVal < 0:
			r.Rulef(p, "%q is invalid: write a whole number without quotes, or a percentage from 0%% to 100%%", v.String())
		}
		r.RecordLine(p)
	}
	if spec.MaxUnavailable == nil && spec.MinAvailable == nil {
		r.Warnf(r.Field("spec"), "neither maxUnavailable nor minAvailable is set, so every eviction is blocked; write one of them")
	}
}

// BudgetFault returns the field of a budget that its placement does not allow, and why; empty if there is none.
func BudgetFault(spec *api.DisruptionBudgetSpec, policy *api.PlacementPolicy) (field, message string) {
	switch field = spec.FaultFor(policy); field {
	case "maxUnavailable":
		message = "cluster resource placement policy type PickAll is not supported with any specified max unavailable " + spec.MaxUnavailable.String()
	case "minAvailable":
		message = "cluster resource placement policy type PickAll is not supported with min available as a percentage " + spec.MinAvailable.String()
	}
	return field, message
}
