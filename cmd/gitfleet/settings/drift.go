package settings

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// DriftConfig configures how drift on members is handled.
type DriftConfig struct {
	Mode    string          `json:"mode,omitempty"`
	Kinds   KindModes       `json:"kinds,omitempty"`
	MinAge  metav1.Duration `json:"minAge,omitzero"`
	MaxOpen int             `json:"maxOpen,omitempty"`
}

func (d *DriftConfig) settings() []setting {
	return []setting{
		{"drift.mode", &d.Mode, "what is done about what others change: revert puts it back, propose leaves it and offers it as a pull request, report leaves it"},
		{"drift.kinds", &d.Kinds, "drift modes of kinds, as a mapping of KIND or GROUP/KIND to the mode, such as Secret: revert; with --set as KIND=MODE, may be repeated"},
		{"drift.minAge", &d.MinAge, "how long a change has to last before it is offered as a pull request"},
		{"drift.maxOpen", &d.MaxOpen, "how many pull requests and issues of drifts are open at once"},
	}
}

// proposes reports whether drift is offered as pull requests, at least for some kinds.
func (d *DriftConfig) proposes() bool {
	return d.Mode == proposeDrift || slices.Contains(slices.Collect(maps.Values(d.Kinds)), proposeDrift)
}

// The drift modes.
const (
	revertDrift  = string(api.DriftRevert)
	proposeDrift = string(api.DriftPropose)
	reportDrift  = string(api.DriftReport)
)

func (c Config) validateDrift() []error {
	var errs []error
	if !isDriftMode(c.Drift.Mode) {
		errs = append(errs, c.fault("drift.mode", fmt.Sprintf("%q is none of revert, propose, report", c.Drift.Mode)))
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Drift.Kinds)) {
		if err := validateKindMode(kind, c.Drift.Kinds[kind]); err != nil {
			errs = append(errs, c.fault("drift.kinds."+kind, err.Error()))
		}
	}
	if len(errs) > 0 || !c.AsksForge() {
		return errs
	}
	if c.Source.Branch == "" {
		errs = append(errs, c.fault("source.branch", "pull requests of drift are opened to a branch: name it"))
	}
	return append(errs, c.validateForge()...)
}

// AsksForge reports whether the daemon uses pull requests.
func (c Config) AsksForge() bool { return c.Drift.proposes() || c.Forge.Type != "" }
