package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

func isDriftMode(mode string) bool {
	return mode == revertDrift || mode == proposeDrift || mode == reportDrift
}

// validateKindMode returns an error if the mode of a kind is invalid. An unknown kind may be one
// that a CustomResourceDefinition defines, whose group has a dot in its name.
func validateKindMode(text, mode string) error {
	kind := groupKind(text)
	switch {
	case !isDriftMode(mode):
		return fmt.Errorf("%q is none of revert, propose, report", mode)
	case kind.Kind == "" || strings.Contains(kind.Kind, "/") || strings.Contains(text, "/") && kind.Group == "":
		return errors.New("is not a kind; write KIND or GROUP/KIND, such as Secret or apps/Deployment")
	}
	similar := api.KnownKinds()
	slices.SortFunc(similar, func(a, b api.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	if slices.Contains(similar, kind) {
		return nil
	}
	inGroup := slices.DeleteFunc(slices.Clone(similar), func(other api.GroupKind) bool { return other.Group != kind.Group })
	what := "is not a kind of the core group"
	if kind.Group != "" {
		what = "is not a kind of Kubernetes"
		if len(inGroup) > 0 || strings.Contains(kind.Group, ".") {
			similar = inGroup
		}
	}
	var names []string
	for _, other := range similar {
		names = append(names, other.Kind)
	}
	if i := slices.Index(names, api.Closest(kind.Kind, names)); i >= 0 {
		return fmt.Errorf("%s; %s", what, api.DidYouMean(strings.TrimPrefix(similar[i].Group+"/"+similar[i].Kind, "/")))
	}
	if kind.Group == "" {
		return fmt.Errorf("%s; write GROUP/KIND, such as apps/Deployment", what)
	}
	return nil
}

// groupKind reads KIND or GROUP/KIND.
func groupKind(text string) api.GroupKind {
	group, kind, grouped := strings.Cut(text, "/")
	if !grouped {
		return api.GroupKind{Kind: text}
	}
	return api.GroupKind{Group: group, Kind: kind}
}

// Modes are the modes as members take them.
func (m KindModes) Modes() map[api.GroupKind]api.DriftMode {
	out := make(map[api.GroupKind]api.DriftMode, len(m))
	for kind, mode := range m {
		out[groupKind(kind)] = api.DriftMode(mode)
	}
	return out
}
