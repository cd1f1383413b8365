package validation

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/placement/api"
)

// DefaultPlacement sets the defaults of a placement.
func DefaultPlacement(spec *api.PlacementSpec) {
	for i := range spec.ResourceSelectors {
		fill(&spec.ResourceSelectors[i].SelectionScope, api.NamespaceWithResources)
	}
	if spec.Policy == nil {
		spec.Policy = &api.PlacementPolicy{}
	}
	defaultPolicy(spec.Policy)
	defaultStrategy(&spec.Strategy)
	fillPointer(&spec.RevisionHistoryLimit, 10)
	fill(&spec.StatusReportingScope, api.ClusterScopeOnly)
}

func defaultPolicy(p *api.PlacementPolicy) {
	fill(&p.PlacementType, api.PickAll)
	for i := range p.TopologySpreadConstraints {
		c := &p.TopologySpreadConstraints[i]
		fillPointer(&c.MaxSkew, 1)
		fill(&c.WhenUnsatisfiable, api.DoNotSchedule)
	}
	for i := range p.Tolerations {
		fill(&p.Tolerations[i].Operator, api.TolerationEqual)
	}
}

func defaultStrategy(s *api.RolloutStrategy) {
	fill(&s.Type, api.RollingUpdate)
	if s.Type == api.RollingUpdate {
		fillPointer(&s.RollingUpdate, api.RollingUpdateConfig{})
	}
	if r := s.RollingUpdate; r != nil {
		fillPointer(&r.MaxUnavailable, intstr.FromString("25%"))
		fillPointer(&r.MaxSurge, intstr.FromString("25%"))
		fillPointer(&r.UnavailablePeriodSeconds, 60)
	}
	fillPointer(&s.ApplyStrategy, api.ApplyStrategy{})
	defaultApply(s.ApplyStrategy)
	fillPointer(&s.DeleteStrategy, api.DeleteStrategy{})
	fill(&s.DeleteStrategy.PropagationPolicy, api.DeletePropagationDelete)
	if s.ReportBackStrategy != nil {
		fill(&s.ReportBackStrategy.Type, api.ReportBackDisabled)
	}
}

func defaultApply(a *api.ApplyStrategy) {
	fill(&a.ComparisonOption, api.PartialComparison)
	fill(&a.WhenToApply, api.ApplyAlways)
	fill(&a.Type, api.ClientSideApply)
	fill(&a.WhenToTakeOver, api.TakeOverAlways)
	if a.Type == api.ServerSideApply {
		fillPointer(&a.ServerSideApplyConfig, api.ServerSideApplyConfig{})
	}
}

// DefaultCluster sets the defaults of a member cluster.
func DefaultCluster(c *api.MemberCluster) {
	fillPointer(&c.Spec.HeartbeatPeriodSeconds, 60)
	if c.Spec.DeleteOptions != nil {
		fill(&c.Spec.DeleteOptions.ValidationMode, api.DeleteValidationStrict)
	}
}

// DefaultOverride sets the defaults of an override.
func DefaultOverride(placement *api.PlacementRef, policy *api.OverridePolicy) {
	if placement != nil {
		fill(&placement.Scope, api.ClusterScoped)
	}
	if policy == nil {
		return
	}
	for i := range policy.OverrideRules {
		fill(&policy.OverrideRules[i].OverrideType, api.JSONPatchOverrideType)
	}
}

func fillPointer[T any](v **T, value T) {
	if *v == nil {
		*v = &value
	}
}

func fill[T comparable](v *T, value T) {
	if *v == *new(T) {
		*v = value
	}
}
